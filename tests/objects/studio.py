"""As much of Label Studio's API as review needs, on this machine: what is written to it is counted."""

import json
import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit


class StandIn:
    """The server's state.

    Attributes:
        url: Its address.
        projects, tasks: By number; a task knows its project.
        writes: Method and path of everything that changed something.
    """

    def __init__(self) -> None:
        self.url = ""
        self.projects: dict[int, dict[str, Any]] = {}
        self.tasks: dict[int, dict[str, Any]] = {}
        self.writes: list[str] = []

    def get(self, path: str, query: dict[str, str]) -> Any:
        if path == "/api/users/":
            return [{"id": n, "email": f"ann{n}@fedbench.local"} for n in range(1, 4)]
        if path == "/api/projects/":
            count = {n: sum(t["project"] == n for t in self.tasks.values()) for n in self.projects}
            found = [{**project, "task_number": count[n]} for n, project in self.projects.items()]
            return {"results": found, "next": None}
        assert path == "/api/tasks/", path
        found = [task for task in self.tasks.values() if task["project"] == int(query["project"])]
        return {"tasks": found if query.get("page") == "1" else [], "total": len(found)}

    def write(self, method: str, path: str, value: Any) -> Any:
        if path == "/api/token/refresh/":
            return {"access": "for five minutes"}
        self.writes.append(f"{method} {path}")
        if found := re.fullmatch(r"/api/projects/(\d+)/import", path):
            for one in value:
                number = len(self.tasks) + 1
                self.tasks[number] = {"id": number, "project": int(found[1]), "annotations": [], **one}
            return {"task_count": len(value)}
        if method == "POST":
            number = len(self.projects) + 1
            self.projects[number] = {"id": number, **value}
            return self.projects[number]
        found = re.fullmatch(r"/api/(projects|tasks)/(\d+)/", path)
        assert found, path
        (self.projects if found[1] == "projects" else self.tasks)[int(found[2])].update(value)
        return {}


@contextmanager
def stand_in() -> Iterator[StandIn]:
    """A server, as long as it is needed."""
    state = StandIn()

    class Handler(BaseHTTPRequestHandler):
        def answer(self) -> None:
            parts = urlsplit(self.path)
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            if self.command == "GET":
                said = state.get(parts.path, {name: one[0] for name, one in parse_qs(parts.query).items()})
            else:
                said = state.write(self.command, parts.path, json.loads(body))
            data = json.dumps(said).encode()
            self.send_response(200)
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        do_GET = do_POST = do_PATCH = answer  # noqa: N815 - the library's names

        def log_message(self, *_: object) -> None:
            """Nothing to the terminal."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    state.url = f"http://127.0.0.1:{server.server_address[1]}"
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield state
    finally:
        server.shutdown()
        server.server_close()
