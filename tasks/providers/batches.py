"""Batches of OpenAI's shape (/v1/files, /v1/batches). Only openai/ models: litellm cannot begin others everywhere.

A line of a file is what litellm would have sent singly, and a result goes through it as if it had come singly, so a
request has the same answer either way. Files and batches are the client's below it: litellm's own functions hold a file
in memory several times, and download results once more to count their cost.
"""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from tasks.engine.batch_service import Seen
from tasks.engine.errors import PermanentError, TransientError
from tasks.engine.ledger import Reply, Request
from tasks.providers.completion import Way, complete

NAME: Final = "fedbench"
# Batches that are looked through for one whose id got lost, the newest first.
_LISTED: Final = 1000
_TERMINAL: Final = ("completed", "expired", "cancelled")
_EMPTY: Final = {
    "id": "",
    "object": "chat.completion",
    "created": 0,
    "model": "",
    "choices": [{"index": 0, "message": {"role": "assistant", "content": ""}, "finish_reason": "stop"}],
}


def line_of(way: Way, key: str, messages: Sequence[Mapping[str, Any]], settings: Mapping[str, Any]) -> bytes:
    """A request as a line of a batch's file. It holds pictures, and no key.

    Args:
        way: Whom it would be sent to.
        key: What its answer is known by.
        messages: As OpenAI's chat has them.
        settings: Further parameters.
    """
    bodies: list[bytes] = []
    complete(way, messages, settings, images=0, wire=_wire(way, 200, json.dumps(_EMPTY).encode(), bodies.append))
    (body,) = bodies
    head = {"custom_id": key, "method": "POST", "url": _endpoint(way)}
    # The body is not parsed for this: most of it is a picture.
    return json.dumps(head).encode()[:-1] + b', "body": ' + body + b"}\n"


class OpenAIBatches:
    """The batches of a route's model."""

    def __init__(self, way: Way) -> None:
        self._way = way

    @property
    def name(self) -> str:
        return f"{self._way.route.provider} {self._way.route.model}"

    def upload(self, path: Path) -> str:
        with self._client() as client, path.open("rb") as file:
            return str(client.files.create(file=(path.name, file, "application/jsonl"), purpose="batch").id)

    def create(self, file: str, name: str) -> str:
        with self._client() as client:
            batch = client.batches.create(
                completion_window="24h", endpoint=_endpoint(self._way), input_file_id=file, metadata={NAME: name}
            )
            return str(batch.id)

    def find(self, name: str) -> str | None:
        with self._client() as client:
            for place, batch in enumerate(client.batches.list(limit=100)):
                if (batch.metadata or {}).get(NAME) == name:
                    return str(batch.id)
                if place >= _LISTED:
                    break
            return None

    def look(self, id_: str) -> Seen:
        with self._client() as client:
            try:
                batch = client.batches.retrieve(id_)
            except self._way.client.openai.NotFoundError:
                return Seen("not found", gone=True)
        counts, errors = batch.request_counts, batch.errors.data if batch.errors else None
        return Seen(
            word=batch.status,
            ended=batch.status in _TERMINAL,
            failed=batch.status == "failed",
            total=counts.total if counts else 0,
            answered=counts.completed if counts else 0,
            troubled=counts.failed if counts else 0,
            message=self._way.without_key("; ".join(str(error.message) for error in errors or ())),
            results=tuple(file for file in (batch.output_file_id, batch.error_file_id) if file),
            files=tuple(file for file in (batch.input_file_id, batch.output_file_id, batch.error_file_id) if file),
        )

    def fetch(self, seen: Seen, path: Path) -> None:
        with self._client() as client, path.open("wb") as out:
            for file in seen.results:
                with client.files.with_streaming_response.content(file) as response:
                    for chunk in response.iter_bytes():
                        out.write(chunk)
                out.write(b"\n")  # a file that was cut off

    def reply(self, request: Request, line: dict[str, Any]) -> Reply:
        response, error = line.get("response") or {}, line.get("error") or {}
        if not response:
            raise TransientError(self._way.without_key(f"{error.get('code')}: {error.get('message')}"))
        body = json.dumps(response.get("body")).encode()
        wire = _wire(self._way, int(response.get("status_code") or 0) or 500, body)
        return complete(self._way, [{"role": "user", "content": ""}], {}, images=len(request.images), wire=wire)

    def cancel(self, id_: str) -> None:
        with self._client() as client:
            client.batches.cancel(id_)

    def delete(self, file: str) -> None:
        with self._client() as client:
            client.files.delete(file)

    @contextmanager
    def _client(self) -> Iterator[Any]:
        """A client for a few calls; its errors come out as ours."""
        way, openai = self._way, self._way.client.openai
        address = {"base_url": way.route.api_base} if way.route.api_base else {}
        client = openai.OpenAI(api_key=way.api_key, timeout=way.route.timeout_s, max_retries=0, **address)
        try:
            with client:
                yield client
        except openai.NotFoundError as error:
            raise PermanentError(f"404: {way.without_key(str(error))}") from None
        except openai.OpenAIError as error:
            raise way.classed(error) from None


def _endpoint(way: Way) -> str:
    """Where a line would have been sent, as batches name it: the last part of the address and the call's."""
    version = (way.route.api_base or "v1").rstrip("/").rpartition("/")[2]
    return f"/{version}/chat/completions"


def _wire(way: Way, status: int, body: bytes, seen: Callable[[bytes], object] = lambda _: None) -> Any:
    """A client that sends nothing: every request is shown to `seen`, and gets this answer."""
    import httpx

    async def answer(request: httpx.Request) -> httpx.Response:
        seen(await request.aread())
        return httpx.Response(status, content=body, headers={"content-type": "application/json"}, request=request)

    http = httpx.AsyncClient(transport=httpx.MockTransport(answer), trust_env=False)
    return way.client.openai.AsyncOpenAI(
        api_key="none", base_url=way.route.api_base or "https://unused.invalid/v1", max_retries=0, http_client=http
    )
