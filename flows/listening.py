"""`fedbench review listen`: Label Studio's webhook wakes it, and it does what a collection by hand does, no more.

A wake-up may come late, twice, forged, or never. So nothing is read from it, and it looks by itself every so often.
"""

import hmac
import json
import signal
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, Final

from flows.console import ERR, OUT, build_and_show, opened
from flows.reviews import go_on_is_due
from flows.server import address
from schemas.config import BuildConfig
from tasks.boards.access import read_access
from tasks.boards.collecting import in_short
from tasks.boards.hooks import HEADER, PATH, pulse, secret_of, set_up, take_down
from tasks.boards.projects import one_at_a_time
from tasks.engine.errors import ConfigError, FedbenchError
from tasks.engine.fingerprint import fingerprint
from tasks.engine.store import Store
from tasks.reviewing import collect_review, review_of, told

LONGEST_BODY: Final = 65_536
DEPLOYMENT: Final = "collect-review/collect-review"


class Bell:
    """Rung by any number of threads, heard by one: a flood of rings is one."""

    def __init__(self) -> None:
        self._rung = threading.Event()

    def ring(self) -> None:
        self._rung.set()

    def wait(self, every: float, quiet: float) -> bool:
        """Until it has been rung and then been quiet for `quiet` seconds (at most ten times that); or `every` seconds.

        Returns:
            Whether it was rung.
        """
        if not self._rung.wait(every):
            return False
        end = time.monotonic() + 10 * quiet
        while time.monotonic() < end:
            self._rung.clear()
            if not self._rung.wait(quiet):
                break
        self._rung.clear()
        return True


def door(port: int, secret: str, bell: Bell) -> ThreadingHTTPServer:
    """A server on 127.0.0.1 that rings the bell for whoever knows the secret; port 0 takes a free one.

    Raises:
        ConfigError: Somebody listens there.
    """

    class Door(BaseHTTPRequestHandler):
        timeout = 5  # for a request that never ends

        def do_POST(self) -> None:
            with suppress(ValueError):  # what it says is nobody's business; unread, it would break the answer off
                self.rfile.read(min(max(int(self.headers.get("Content-Length", "0")), 0), LONGEST_BODY))
            shown = self.headers.get(HEADER, "").encode("latin-1", "replace")
            known = hmac.compare_digest(shown, secret.encode())
            if known and self.path == PATH:
                bell.ring()
            self.send_response(204 if known and self.path == PATH else 404 if known else 401)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, format: str, *args: Any) -> None:
            """Nothing: whoever knocks is not to fill a log."""

    class Server(ThreadingHTTPServer):
        daemon_threads = True

        def handle_error(self, request: Any, client_address: Any) -> None:
            """Nothing: a caller that hangs up is no news."""

    try:
        return Server(("127.0.0.1", port), Door)
    except OSError:
        raise ConfigError(f"port {port} is taken", "stop what runs there, or give --port") from None


@dataclass
class Listener:
    """What listening takes.

    Attributes:
        workspace, run, sets: Of the build that waits for people.
        as_json: Whether each look is told as a line of JSON.
        failures: How many of Prefect's runs failed: the same key would bring a failed one back.
    """

    workspace: Path
    run: str | None
    sets: Sequence[str]
    as_json: bool = False
    failures: int = 0

    @property
    def config(self) -> BuildConfig:
        return opened(self.workspace, self.run, self.sets).config

    def look(self) -> None:
        """Collect, and let the build go on when enough is decided: here, or as a run of Prefect's where a server is."""
        if address():
            self._start_run()
            return
        found = collect_review(review_of(opened(self.workspace, self.run, self.sets)))
        numbers = told(review_of(opened(self.workspace, self.run, self.sets)))
        decided, sources = numbers["decided"], numbers["sources"]
        self.tell(
            f"{found.fresh} answers are new; {decided} of {sources} sources are decided",
            fresh=found.fresh,
            decided=decided,
            sources=sources,
            notes=found.notes,
        )
        for note in [] if self.as_json else in_short(found.notes):
            self.tell(f"· {note}")
        if go_on_is_due(self.config, numbers):
            with one_at_a_time(Store(self.workspace), "going-on"):
                build_and_show(self.workspace, self.config, as_json=self.as_json)

    def _start_run(self) -> None:
        """Start `collect-review` on the Prefect server: once per state of the answers, whoever asks how often."""
        from prefect.deployments import run_deployment
        from prefect.exceptions import ObjectNotFound

        config, store = self.config, Store(self.workspace)
        state = pulse(store, read_access(store), config.name, config.review.cut)
        key = fingerprint("collect-review", store.where, config.name, config.edition, state, self.failures)
        try:
            # Waits, so that what is answered meanwhile is a round of its own and no second run at once.
            run: Any = run_deployment(
                DEPLOYMENT,
                parameters={"config": config.model_dump(mode="json"), "workspace": store.where},
                idempotency_key=key,
                timeout=3600,
                as_subflow=False,
            )
        except ObjectNotFound:
            raise ConfigError(f"the Prefect server has no deployment {DEPLOYMENT}", "prefect deploy --all") from None
        self.failures += run.state is not None and run.state.is_final() and not run.state.is_completed()
        state_name = run.state.name if run.state else "not begun"
        self.tell(f"run {run.name}: {state_name}", run=run.name, state=state_name)

    def tell(self, words: str, **values: Any) -> None:
        """Say it in a line."""
        OUT.print(json.dumps(values) if self.as_json else words, markup=False, highlight=False, soft_wrap=True)


def _in_a_line(work: Callable[[], object]) -> None:
    """Do it; an error is a line, and the next round tries again."""
    try:
        work()
    except FedbenchError as error:
        ERR.print(str(error), style="red", markup=False, soft_wrap=True)


def listen(
    workspace: Path,
    run: str | None,
    sets: Sequence[str],
    *,
    port: int,
    every: float,
    quiet: float,
    as_json: bool = False,
) -> None:
    """Until Ctrl-C or SIGTERM.

    Args:
        workspace: Where everything lies.
        run, sets: Which build.
        port: On 127.0.0.1; 0 takes a free one.
        every: Seconds after which it looks unasked.
        quiet: Seconds without another wake-up before it looks.
        as_json: Whether to tell in lines of JSON.
    """
    store = Store(workspace.resolve())
    listener = Listener(store.root, run, sets, as_json)
    config, access, bell = listener.config, read_access(store), Bell()
    name, cut = config.name, config.review.cut
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    with door(port, secret_of(access, name), bell) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        url = f"http://127.0.0.1:{server.server_address[1]}{PATH}"
        listener.tell(f"listening at {url}; looks by itself every {every:g} s", listening=url, every=every)
        try:
            rung = False
            while True:
                if not rung:
                    # At each look of its own: projects that are new, or hooks that somebody changed, are found too.
                    _in_a_line(lambda: set_up(store, read_access(store), name, cut, url))
                _in_a_line(listener.look)
                rung = bell.wait(every, quiet)
        finally:
            server.shutdown()
            _in_a_line(lambda: take_down(store, read_access(store), name, cut, url))
