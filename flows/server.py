"""Which Prefect server a build would talk to, and whether it answers."""

import os
import signal
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from http.client import HTTPException
from types import FrameType

from tasks.engine.errors import ConfigError, WorkspaceError


def address() -> str:
    """The API's URL from Prefect's settings (environment or profile); empty for a temporary server per build."""
    from prefect.settings import get_current_settings

    return (get_current_settings().api.url or "").rstrip("/")


def trouble(url: str) -> str:
    """Why the API at `url` does not answer; empty if it does."""
    try:
        with urllib.request.urlopen(f"{url}/health", timeout=5):
            return ""
    except (OSError, HTTPException, ValueError) as error:
        return str(error) or type(error).__name__


def must_answer() -> None:
    """Go on only with a server that runs for longer than we do.

    Raises:
        ConfigError: None is set.
        WorkspaceError: It does not answer.
    """
    if not address():
        raise ConfigError("no Prefect server is set", "set PREFECT_API_URL, or start one: fedbench server up")
    _check()


def _check() -> None:
    url = address()
    if url and (why := trouble(url)):
        raise WorkspaceError(f"no Prefect server answers at {url}: {why}", "start it, or unset PREFECT_API_URL")


@contextmanager
def reached() -> Iterator[None]:
    """Within it a flow may run.

    Raises:
        WorkspaceError: The server that is set does not answer, or the temporary one does not come up.
    """
    _check()
    try:
        with _leaving_at_once():
            yield
    except RuntimeError as error:
        if "ephemeral" not in str(error):
            raise
        raise WorkspaceError(
            "Prefect's temporary server did not come up in time", "run again, or start one: prefect server start"
        ) from None


@contextmanager
def _leaving_at_once() -> Iterator[None]:
    """Within it Ctrl-C and SIGTERM end the process at once, and the temporary server with it.

    Prefect would wait minutes for a server that the same Ctrl-C has ended. Nothing needs tidying: whatever was
    published stays, and the next build does the rest.
    """

    def leave(number: int, _frame: FrameType | None) -> None:
        # Straight to the descriptor: a handler may have interrupted whoever holds the stream.
        os.write(2, b"\nfedbench: stopped; run the same command again to go on\n")
        for server in SubprocessASGIServer._instances.values():
            if server.server_process is not None:
                server.server_process.terminate()
        os._exit(128 + number)

    from prefect.server.api.server import SubprocessASGIServer

    before = {number: signal.signal(number, leave) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
