"""The provider on this machine with files and batches: shuffles what it answers, forgets, expires, dies."""

import json
import random
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from aiohttp import web

from tests.providers.loopback import _ERRORS, Asked, Loopback, asked_in, error_of


@dataclass
class Sent:
    """A batch as the provider has it."""

    id: str
    lines: list[dict[str, Any]]
    metadata: dict[str, str]
    input_file: str
    endpoint: str
    status: str = "in_progress"
    looked: int = 0
    results: dict[str, str] = field(default_factory=dict)  # files by their field


class Batching(Loopback):
    """Counts are `batches`, `uploads`, `deleted`; what a line meets is what its body would have met singly.

    Attributes:
        polls: Looks at a batch before it ends.
        ends: The word it ends with. Of an expired one only every second line is answered.
        forgets: Lines that are answered nowhere.
        odd: Whether results also hold a line nobody asked, one twice, and one that is cut.
        stick: A call that does what it is asked, and never says so: "create", "upload", "look" or "fetch".
        refuses: A call that answers with this error of `_ERRORS`, by name.
    """

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        self.polls, self.ends, self.odd = 1, "completed", False
        self.forgets: Callable[[Asked], bool] = lambda _: False
        self.stick = ""
        self.refuses: dict[str, str] = {}
        self.batches: list[Sent] = []
        self.uploads: list[bytes] = []
        self.deleted: list[str] = []
        self.files: dict[str, bytes] = {}
        self.calls: list[str] = []

    def app(self) -> web.Application:
        app = super().app()
        app._client_max_size = 512 * 2**20  # files of batches are large
        app.router.add_post("/v1/files", self._upload)
        app.router.add_get("/v1/files/{id}/content", self._fetch)
        app.router.add_delete("/v1/files/{id}", self._delete)
        app.router.add_post("/v1/batches", self._create)
        app.router.add_get("/v1/batches", self._list)
        app.router.add_get("/v1/batches/{id}", self._look)
        app.router.add_post("/v1/batches/{id}/cancel", self._cancel)
        return app

    async def _before(self, call: str, request: web.Request) -> web.Response | None:
        self.calls.append(call)
        key = request.headers.get("authorization", "").removeprefix("Bearer ")
        met = "401" if self.key is not None and key != self.key else self.refuses.get(call, "")
        if not met:
            return None
        status, headers, body = error_of(met, key)
        return web.json_response(body, status=status, headers=headers)

    async def _after(self, call: str, value: Any) -> web.Response:
        if self.stick == call:
            await self._stuck.wait()
        return web.json_response(value)

    async def _upload(self, request: web.Request) -> web.Response:
        data = await request.post()
        assert data["purpose"] == "batch"
        held = data["file"].file.read()  # type: ignore[union-attr]
        if refused := await self._before("upload", request):
            return refused
        self.uploads.append(held)
        id_ = f"file-{len(self.files)}"
        self.files[id_] = held
        value = {"id": id_, "object": "file", "bytes": len(held), "created_at": 0, "filename": "", "purpose": "batch"}
        return await self._after("upload", value | {"status": "processed"})

    async def _create(self, request: web.Request) -> web.Response:
        if refused := await self._before("create", request):
            return refused
        body = await request.json()
        lines = [json.loads(line) for line in self.files[body["input_file_id"]].splitlines()]
        assert all(line["url"] == body["endpoint"] and line["method"] == "POST" for line in lines)
        assert len({line["body"]["model"] for line in lines}) == 1
        id_ = f"batch-{len(self.batches)}"
        sent = Sent(id_, lines, body.get("metadata") or {}, body["input_file_id"], body["endpoint"])
        self.batches.append(sent)
        return await self._after("create", _shown(sent))

    async def _list(self, request: web.Request) -> web.Response:
        if refused := await self._before("list", request):
            return refused
        data = [_shown(sent) for sent in reversed(self.batches)]
        return web.json_response({"object": "list", "data": data, "has_more": False})

    async def _look(self, request: web.Request) -> web.Response:
        if refused := await self._before("look", request):
            return refused
        sent = next((one for one in self.batches if one.id == request.match_info["id"]), None)
        if sent is None:
            return web.json_response({"error": {"message": "No batch found", "code": None}}, status=404)
        sent.looked += 1
        if sent.looked > self.polls and sent.status in ("in_progress", "cancelling"):
            self._end(sent, "cancelled" if sent.status == "cancelling" else self.ends)
        return await self._after("look", _shown(sent))

    async def _cancel(self, request: web.Request) -> web.Response:
        if refused := await self._before("cancel", request):
            return refused
        sent = next(one for one in self.batches if one.id == request.match_info["id"])
        sent.status = "cancelling"
        return web.json_response(_shown(sent))

    async def _fetch(self, request: web.Request) -> web.Response:
        if refused := await self._before("fetch", request):
            return refused
        if self.stick == "fetch":
            await self._stuck.wait()
        return web.Response(body=self.files[request.match_info["id"]])

    async def _delete(self, request: web.Request) -> web.Response:
        if refused := await self._before("delete", request):
            return refused
        del self.files[request.match_info["id"]]
        self.deleted.append(request.match_info["id"])
        return web.json_response({"id": request.match_info["id"], "object": "file", "deleted": True})

    def _end(self, sent: Sent, word: str) -> None:
        sent.status = word
        if word == "failed":
            return
        answered, troubled = [], []
        for place, line in enumerate(sent.lines):
            asked = asked_in(json.dumps(line["body"]).encode())
            if self.forgets(asked):
                continue
            if word != "completed" and place % 2:
                error = {"code": f"batch_{word}", "message": "This request could not be executed in time."}
                troubled.append({"custom_id": line["custom_id"], "response": None, "error": error})
                continue
            met = self.meets(asked) if self.meets else "ok"
            self.met.append(met)
            self.asked.append(asked)
            status, _, body = error_of(met) if met in _ERRORS else (200, {}, self._body(asked, met))
            result = {"id": f"r-{place}", "custom_id": line["custom_id"], "error": None}
            result["response"] = {"status_code": status, "request_id": "q", "body": body}
            (answered if status == 200 else troubled).append(result)
        lines = [json.dumps(line) for line in answered]
        random.Random(self.seed).shuffle(lines)
        if self.odd:
            lines += [lines[0], json.dumps({**answered[0], "custom_id": "f" * 64}), lines[1][: len(lines[1]) // 2]]
        for kind, text in (("output", "\n".join(lines)), ("error", "\n".join(map(json.dumps, troubled)))):
            if text:
                id_ = f"file-{sent.id}-{kind}"
                self.files[id_] = text.encode()
                sent.results[f"{kind}_file_id"] = id_


def _shown(sent: Sent) -> dict[str, Any]:
    ended = sent.status not in ("in_progress", "cancelling")
    errors = {"object": "list", "data": [{"code": "token_limit", "message": "Enqueued token limit reached"}]}
    return {
        "id": sent.id,
        "object": "batch",
        "endpoint": sent.endpoint,
        "input_file_id": sent.input_file,
        "completion_window": "24h",
        "status": sent.status,
        "created_at": int(time.time()),
        "metadata": sent.metadata,
        "errors": errors if sent.status == "failed" else None,
        "request_counts": {"total": len(sent.lines), "completed": len(sent.lines) if ended else 0, "failed": 0},
        **sent.results,
    }
