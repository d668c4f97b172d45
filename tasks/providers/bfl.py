"""Black Forest Labs' jobs: an edit is sent in, asked after until it is ready, and fetched (docs.bfl.ai)."""

import asyncio
from typing import Any, Final
from urllib.parse import urlsplit

from tasks.engine.errors import TransientError
from tasks.providers.drawing import Arrived, Sketch
from tasks.providers.line import Line, seed_of
from tasks.providers.routed import stays_here
from tasks.providers.web import ask_json, check_address

HOST: Final = "https://api.bfl.ai"
_REFUSED: Final = {"Request Moderated", "Content Moderated"}
_UNDER_WAY: Final = {"Pending", "Queued", "Processing", "Reasoning"}
POLL_S: Final = 1.0


async def job(line: Line, sketch: Sketch) -> Arrived:
    """One edit. A job that was sent in is paid for: while it may come, a further try asks after it again.

    Raises:
        ProviderError: As `classed` says; transient also where the job failed or is forgotten.
    """
    base = (line.route.api_base or HOST).rstrip("/")
    if not line.job:
        body = {
            "prompt": sketch.text,
            "input_image": line.shown(sketch).partition(",")[2],
            **seed_of(sketch),
            **line.route.extra_body,
        }
        sent = await _asked(line, "POST", f"{base}/v1/{line.model}", body)
        line.job = str(sent.get("polling_url") or f"{base}/v1/get_result?id={sent.get('id', '')}")
        check_address(line.job, here=stays_here(line.route))
        _check_host(line.job, base)
    while True:
        told = await _asked(line, "GET", line.job)
        status = str(told.get("status") or "")
        if status in _UNDER_WAY:
            await asyncio.sleep(POLL_S)
            continue
        id_ = str(told.get("id") or "")
        line.job = ""
        result = told.get("result") or {}
        if status == "Ready" and isinstance(result, dict) and result.get("sample"):
            return Arrived(url=str(result["sample"]), finish=status, model=line.model, id=id_)
        if status in _REFUSED:
            details = str(told.get("details") or "")
            words = f"{status}: {details}" if details else status
            return Arrived(finish=status, refusal=words, model=line.model, id=id_)
        raise TransientError(f"the job ended as '{status or 'nothing'}'")


async def _asked(line: Line, method: str, url: str, body: Any = None) -> dict[str, Any]:
    told, _ = await ask_json(line.route, method, url, json=body, headers={"x-key": line.way.key or ""})
    return told


def _check_host(url: str, base: str) -> None:
    """The key goes only where it belongs: to the host that was asked, and to others of its domain."""
    host, own = (urlsplit(one).hostname or "" for one in (url, base))
    if host != own and not host.endswith("." + ".".join(own.split(".")[-2:])):
        raise TransientError(f"the job would be asked after at another host: {host}")
