"""A Label Studio on this machine, as far as review needs it, that restarts while it is asked.

What it has told outlives a restart, as what lies in a database does. Of a request that a restart meets nobody knows
whether it was done: by luck it was. Afterwards nobody answers for a while.
"""

import json
import random
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import TracebackType
from typing import Any, Final
from urllib.parse import parse_qs, urlsplit

from tasks.boards.addresses import ADDRESS
from tasks.boards.pictures import FOLDER

PEOPLE: Final = ("admin", "ann1", "ann2", "ann3")


@dataclass
class Studio:
    """The server; `with Studio(workspace) as studio` serves from a thread.

    Attributes:
        workspace: Whose folder of pictures it serves.
        luck: When it restarts.
        share: Of the requests that meet a restart.
        restarts: How many there were.
    """

    workspace: Path
    luck: random.Random
    share: float = 0.0
    restarts: int = 0
    projects: dict[int, dict[str, Any]] = field(default_factory=dict)
    tasks: dict[int, dict[str, Any]] = field(default_factory=dict)
    storages: list[dict[str, Any]] = field(default_factory=list)
    _away: int = 0
    _one: Any = field(default_factory=threading.Lock)

    def __enter__(self) -> "Studio":
        handler = type("Handler", (_Handler,), {"studio": self})
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
        self._server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._server.server_port}"
        threading.Thread(target=self._server.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *_: type[BaseException] | BaseException | TracebackType | None) -> None:
        self._server.shutdown()
        self._server.server_close()

    def answer(self, work: Callable[[], tuple[int, Any]]) -> tuple[int, Any] | None:
        """What a request gets; None where the connection breaks."""
        with self._one:
            if self._away:
                self._away -= 1
                return self.luck.choice([None, (502, {})])
            if self.luck.random() < self.share:
                self.restarts += 1
                self._away = self.luck.choice([0, 1, 3, 8])
                if self.luck.random() < 0.5:
                    work()
                return None
            return work()

    # -- what it knows --------------------------------------------------------------------------------------------

    def get(self, path: str, asked: dict[str, str]) -> tuple[int, Any]:
        if path == "/api/users/":
            return 200, [{"id": number, "email": f"{name}@fedbench.local"} for number, name in enumerate(PEOPLE, 1)]
        if path == "/api/projects/":
            count = {number: sum(task["project"] == number for task in self.tasks.values()) for number in self.projects}
            rows = [one | {"task_number": count[number]} for number, one in self.projects.items()]
            return 200, {"results": rows, "next": None}
        if path == "/api/storages/localfiles/":
            return 200, [row for row in self.storages if str(row["project"]) == asked["project"]]
        if path == "/api/tasks/":
            rows = [task for task in self.tasks.values() if str(task["project"]) == asked["project"]]
            size, page = int(asked["page_size"]), int(asked["page"])
            part = rows[size * (page - 1) : size * page]
            return (200, {"tasks": part, "total": len(rows)}) if part or page == 1 else (404, {})
        return 404, {}

    def picture(self, place: str) -> tuple[int, Any]:
        """A file of the folder that is served once a project has a storage."""
        file = self.workspace / FOLDER / place.removeprefix(ADDRESS.partition("?d=")[2])
        return (200, file.read_bytes()) if self.storages and file.is_file() else (404, {})

    def change(self, who: int, path: str, value: Any) -> tuple[int, Any]:
        words = path.strip("/").split("/")[1:]  # without "api"
        if words == ["projects"]:
            made = {"id": len(self.projects) + 1, **value}
            self.projects[made["id"]] = made
            return 201, made
        if words[0] == "projects" and words[-1] == "import":
            for data in value:
                number = len(self.tasks) + 1
                self.tasks[number] = {"id": number, "project": int(words[1]), "data": data["data"], "annotations": []}
            return 201, {"task_count": len(value)}
        if words[0] == "projects":
            self.projects[int(words[1])] |= value
            return 200, self.projects[int(words[1])]
        if words[:2] == ["storages", "localfiles"]:
            self.storages.append(value)
            return 201, value
        if words[0] == "tasks" and words[-1] == "annotations":
            given = self.tasks[int(words[1])]["annotations"]
            by = {"completed_by": who, "updated_by": who, "updated_at": f"2026-01-01T00:00:0{len(given)}Z"}
            given.append({"id": 10 * int(words[1]) + len(given), "task": int(words[1]), **by, **value})
            return 201, given[-1]
        return 404, {}


class _Handler(BaseHTTPRequestHandler):
    studio: Studio

    def do_GET(self) -> None:
        parts = urlsplit(self.path)
        asked = {name: values[0] for name, values in parse_qs(parts.query).items()}
        if parts.path == "/data/local-files/":
            self._say(self.studio.answer(lambda: self.studio.picture(asked["d"])))
        else:
            self._say(self.studio.answer(lambda: self.studio.get(parts.path, asked)))

    def do_POST(self) -> None:
        value = json.loads(self.rfile.read(int(self.headers.get("Content-Length") or 0)) or b"null")
        path = urlsplit(self.path).path
        if path == "/api/token/refresh/":
            self._say(self.studio.answer(lambda: (200, {"access": value["refresh"]})))
        else:
            token = self.headers["Authorization"].removeprefix("Bearer ")
            who = PEOPLE.index(token) + 1
            self._say(self.studio.answer(lambda: self.studio.change(who, path, value)))

    do_PATCH = do_POST  # noqa: N815 - the name that http.server looks for

    def _say(self, answer: tuple[int, Any] | None) -> None:
        self.close_connection = True
        if answer is None:
            return
        status, value = answer
        body = value if isinstance(value, bytes) else json.dumps(value).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:
        """Say nothing."""
