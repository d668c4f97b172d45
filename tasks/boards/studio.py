"""Label Studio's API, as far as review needs it: reads are tried again, a write never is."""

import json
import time
from collections.abc import Iterator, Sequence
from typing import Any, Final

import httpx

from tasks.engine.errors import ConfigError, WorkspaceError

TRIES: Final = 5
PAGE: Final = 1000
# What is asked of a project; the server counts much else, which is dear and not always right.
PROJECT: Final = (
    "id,title,description,label_config,expert_instruction,show_instruction,maximum_annotations,show_skip_button,"
    "enable_empty_annotation,show_collab_predictions,sampling,task_number"
)


class Studio:
    """One person at one server.

    Args:
        url: The server's address.
        token: The person's personal access token; it is in no message.
        pause: Seconds before a second try; doubled for each further one.
    """

    def __init__(self, url: str, token: str, *, pause: float = 0.5) -> None:
        if not url:
            raise ConfigError(
                "no Label Studio is known here", "start one: fedbench review up, or set FEDBENCH_STUDIO_URL"
            )
        self.url = url
        self._token = token
        self._pause = pause
        self._client = httpx.Client(base_url=url, timeout=httpx.Timeout(120, connect=5), trust_env=False)
        self._entered = False

    def close(self) -> None:
        self._client.close()

    def __enter__(self) -> "Studio":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # -- requests -------------------------------------------------------------------------------------------------

    def _enter(self) -> None:
        """Exchange the token for one that lasts five minutes."""
        answer = self._client.post("/api/token/refresh/", json={"refresh": self._token})
        if answer.status_code in (400, 401, 403):
            raise ConfigError(
                f"Label Studio at {self.url} does not take the token that is stored here",
                "its accounts were made elsewhere or anew: delete the person from review/access.json, and "
                "fedbench review up",
            )
        answer.raise_for_status()
        try:
            access = str(answer.json()["access"])
        except (ValueError, KeyError, TypeError):
            raise ConfigError(
                f"what answers at {self.url} is no Label Studio", "see FEDBENCH_STUDIO_URL, or fedbench review up"
            ) from None
        self._client.headers["Authorization"] = f"Bearer {access}"
        self._entered = True

    def _once(self, method: str, path: str, **more: Any) -> httpx.Response:
        if not self._entered:
            self._enter()
        answer = self._client.request(method, path, **more)
        if answer.status_code == 401:  # five minutes are over; a refused request did nothing
            self._enter()
            answer = self._client.request(method, path, **more)
        return answer

    def get(self, path: str, *, missing: tuple[int, ...] = (), **params: Any) -> httpx.Response:
        """Read, again after a hang-up or a 5xx.

        Args:
            path: Below the address.
            missing: Status codes that are an answer.
            params: Of the query.

        Raises:
            WorkspaceError: The server does not answer, or not so.
        """
        trouble = ""
        for tried in range(TRIES):
            if tried:
                time.sleep(self._pause * 2 ** (tried - 1))
            try:
                answer = self._once("GET", path, params=params or None)
            except (httpx.HTTPError, httpx.StreamError) as error:
                trouble = type(error).__name__
                continue
            if answer.status_code < 400 or answer.status_code in missing:
                return answer
            trouble = f"HTTP {answer.status_code}"
            if answer.status_code < 500 and answer.status_code not in (408, 429):
                break
        raise WorkspaceError(
            f"Label Studio at {self.url} does not answer {path}: {trouble}", "start it: fedbench review up"
        )

    def read(self, path: str, **params: Any) -> Any:
        """What it says to a GET, as plain values.

        Raises:
            WorkspaceError: As `get`; or it is no JSON, as of a proxy's page.
        """
        return self._plain(path, self.get(path, **params))

    def _plain(self, path: str, answer: httpx.Response) -> Any:
        try:
            return answer.json()
        except ValueError:
            raise WorkspaceError(
                f"Label Studio at {self.url} does not answer {path} in JSON", "see whether a proxy is in between"
            ) from None

    def write(self, method: str, path: str, value: Any) -> Any:
        """Change something, once: whoever sends it again would not know whether it is there twice.

        Raises:
            WorkspaceError: It was refused, or nobody knows; the next run looks what is there.
        """
        try:
            answer = self._once(method, path, json=value)
        except (httpx.HTTPError, httpx.StreamError) as error:
            raise WorkspaceError(
                f"Label Studio at {self.url} hung up on {path}: {type(error).__name__}",
                "run again: what is there already is found",
            ) from None
        if answer.status_code >= 400:
            raise WorkspaceError(
                f"Label Studio refuses {method} {path}: HTTP {answer.status_code} {_said(answer)}", "mend that first"
            )
        return self._plain(path, answer) if answer.content else None

    # -- what it has ----------------------------------------------------------------------------------------------

    def users(self) -> dict[int, str]:
        """Account number → address."""
        return {user["id"]: user["email"].lower() for user in self.read("/api/users/")}

    def projects(self) -> Iterator[dict[str, Any]]:
        """Every project: its settings, and in `task_number` how many tasks it has, which the server counts anew."""
        page = 1
        while True:
            found = self.read("/api/projects/", page=page, page_size=100, include=PROJECT)
            yield from found["results"]
            if not found["next"]:
                return
            page += 1

    def tasks(self, project: int, *, annotations: bool = False) -> Iterator[dict[str, Any]]:
        """Number and data of every task of a project, and its annotations where wanted.

        `annotations` is None where the server has some that it cannot show: it keeps text that is no Unicode, and
        fails on the whole page with it, so that one such answer would keep all others from being read.
        """
        page = 1
        while True:
            found, full = self._page(project, page, PAGE, annotations=annotations)
            yield from found
            if not full:
                return
            page += 1

    def _page(self, project: int, page: int, size: int, *, annotations: bool) -> tuple[list[dict[str, Any]], bool]:
        """The tasks of a page, and whether there may be more behind it."""
        # The filter holds for annotations too.
        told = "id,data,annotations,result,completed_by,updated_by,updated_at,was_cancelled,lead_time,task"
        answer = self.get(
            "/api/tasks/",
            missing=(404, 500) if annotations else (404,),  # 404: one page too far
            project=project,
            page=page,
            page_size=size,
            fields="all" if annotations else "task_only",
            include=told if annotations else "id,data",
            resolve_uri="false",
        )
        if answer.status_code == 500:
            return self._around(project, page, size)
        found = self._plain("/api/tasks/", answer)["tasks"] if answer.status_code == 200 else []
        return found, len(found) == size

    def _around(self, project: int, page: int, size: int) -> tuple[list[dict[str, Any]], bool]:
        """A page that the server fails on, by tenths, down to the task that it cannot show."""
        if size == 1:
            found, full = self._page(project, page, 1, annotations=False)
            return [task | {"annotations": None} for task in found], full
        rows: list[dict[str, Any]] = []
        for tenth in range(10):
            found, full = self._page(project, (page - 1) * 10 + tenth + 1, size // 10, annotations=True)
            rows += found
            if not full:
                return rows, False
        return rows, True

    def newest(self, project: int) -> tuple[str, int]:
        """When a task of a project was changed last, and how many tasks it has."""
        latest = json.dumps({"ordering": ["-tasks:updated_at"]})
        found = self.read(
            "/api/tasks/", project=project, page_size=1, fields="task_only", include="id,updated_at", query=latest
        )
        return str(found["tasks"][0]["updated_at"]) if found["tasks"] else "", int(found["total"])

    def add_tasks(self, project: int, tasks: Sequence[dict[str, Any]]) -> None:
        """Import them, all or none."""
        made = self.write("POST", f"/api/projects/{project}/import?return_task_ids=true", list(tasks))
        if made["task_count"] != len(tasks):
            raise WorkspaceError(f"Label Studio took {made['task_count']} of {len(tasks)} tasks", "run again")


def _said(answer: httpx.Response) -> str:
    try:
        value = answer.json()
    except ValueError:
        return ""
    told = value.get("validation_errors") or value.get("detail") or "" if isinstance(value, dict) else value
    return str(told)[:300]
