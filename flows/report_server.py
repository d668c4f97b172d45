"""Serves a workspace's reports to browsers of this machine, and nothing else that lies there."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from http import HTTPStatus
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, Final

# Reports, and the pictures that they link to; beside them lie answers, keys of the review board, data sets.
_OPEN: Final = (("reports",), ("images",))


class _Handler(SimpleHTTPRequestHandler):
    def send_head(self) -> Any:
        """As the base does it, but for requests that are none of ours."""
        # Of the path that would be opened: the one that is asked for may have dots in it.
        wanted = self.translate_path(self.path)
        below = Path(wanted).relative_to(self.directory).parts
        # A foreign page could reach us by a name that resolves to this machine.
        host = (self.headers.get("Host") or "").rpartition(":")[0]
        if below[:1] not in _OPEN or host not in ("127.0.0.1", "localhost") or "\0" in wanted:
            self.send_error(HTTPStatus.NOT_FOUND)
            return None
        return super().send_head()

    def list_directory(self, path: Any) -> Any:
        self.send_error(HTTPStatus.NOT_FOUND)

    def log_message(self, format: str, *args: Any) -> None:
        """Say nothing."""


class _Server(ThreadingHTTPServer):
    def handle_error(self, request: Any, client_address: Any) -> None:
        """Say nothing: browsers hang up midway when somebody goes to another page."""


@contextmanager
def reports_served(workspace: Path) -> Iterator[str]:
    """Within it they are served on a free port of 127.0.0.1; yields the address of the folder of reports."""
    server = _Server(("127.0.0.1", 0), partial(_Handler, directory=str(workspace)))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/reports"
    finally:
        server.shutdown()
        server.server_close()
