"""Plain HTTP, where litellm has no way or loses words: JSON asked and answered, and pictures fetched where they lie."""

import ipaddress
from functools import cache
from typing import Any, Final
from urllib.parse import urljoin, urlsplit

from schemas.routes import Route
from tasks.engine.errors import ProviderError, TransientError
from tasks.providers.errors import classed

MAX_BYTES: Final = 64 * 2**20
_REDIRECTS: Final = 3
_MOVED: Final = {301, 302, 303, 307, 308}
_GONE: Final = {401, 403, 404, 410}


class Gone(TransientError):
    """Nothing lies at the address any more: whoever wants it must ask for it anew."""


@cache
def _client() -> Any:
    """The one HTTP client; made and used in the loop of `tasks.providers.loop`."""
    import httpx

    # Queues and time-outs are ours.
    limits = httpx.Limits(max_connections=None, max_keepalive_connections=64)
    return httpx.AsyncClient(follow_redirects=False, timeout=None, limits=limits)


async def ask_json(route: Route, method: str, url: str, **request: Any) -> tuple[dict[str, Any], bytes]:
    """What a provider answers: a JSON object, and its bytes.

    Args:
        route: Whom, for the words of an error.
        method: GET or POST.
        url: Where.
        request: As httpx takes it: headers, json, data, files.

    Raises:
        ProviderError: As `classed` says; transient where nothing, no JSON or something else came.
    """
    import httpx

    try:
        async with _client().stream(method, url, **request) as response:
            data = await _read(response, 2 * MAX_BYTES)
    except (httpx.HTTPError, httpx.InvalidURL) as error:
        raise TransientError(f"no answer: {type(error).__name__}") from None
    if response.status_code != 200:
        problem: ProviderError = classed(route, response.status_code, _words(data), response.headers)
        raise problem
    told = _object(data)
    if told is None:
        raise TransientError("an answer that is no JSON object")
    return told, data


async def fetch(url: str, *, here: bool, max_bytes: int = MAX_BYTES) -> bytes:
    """The bytes of a picture at an address. No key is sent, and few redirects are followed.

    Args:
        url: The address, by whoever answered.
        here: Whether that is a server of the user's own, which may name this machine.
        max_bytes: What is longer is refused.

    Raises:
        Gone: The address holds nothing (any more).
        TransientError: It is refused, cannot be reached, answers otherwise, with a page of text, or with too much.
    """
    import httpx

    for _ in range(_REDIRECTS + 1):
        check_address(url, here=here)
        try:
            async with _client().stream("GET", url) as response:
                if response.status_code in _MOVED:
                    url = _joined(url, response.headers.get("location", ""))
                    continue
                if response.status_code != 200:
                    kind = Gone if response.status_code in _GONE else TransientError
                    raise kind(f"{response.status_code}: the answer's picture cannot be fetched")
                if response.headers.get("content-type", "").startswith("text/"):
                    raise TransientError("where the answer's picture should be lies a page of text")
                return await _read(response, max_bytes)
        except (httpx.HTTPError, httpx.InvalidURL) as error:
            raise TransientError(f"the answer's picture cannot be fetched: {type(error).__name__}") from None
    raise TransientError("the answer's picture is redirected too often")


def check_address(url: str, *, here: bool) -> None:
    """Refuse what is no https address, and those of private networks; of this machine only where it is to be trusted.

    Raises:
        TransientError: It is refused; the provider may name another one next time.
    """
    try:
        parts = urlsplit(url)
        host = parts.hostname or ""
    except ValueError:
        raise TransientError("the answer lies at an address that is not fetched from: it is none") from None
    try:
        address = ipaddress.ip_address("127.0.0.1" if host == "localhost" else host)
    except ValueError:
        address = None
    own = address is not None and address.is_loopback
    inner = address is not None and not address.is_global and not (own and here)
    if inner or not (parts.scheme == "https" or (parts.scheme == "http" and own)):
        raise TransientError(f"the answer lies at an address that is not fetched from: {parts.scheme}://{host}")


def _joined(url: str, location: str) -> str:
    """Where a redirect leads."""
    try:
        return urljoin(url, location)
    except ValueError:
        return location  # no address, as whoever checks it will say


async def _read(response: Any, most: int) -> bytes:
    data = bytearray()
    async for piece in response.aiter_bytes():
        data += piece
        if len(data) > most:
            raise TransientError(f"an answer of more than {most} bytes")
    return bytes(data)


def _object(data: bytes) -> dict[str, Any] | None:
    import json

    try:
        told = json.loads(data)
    except ValueError:
        return None
    return told if isinstance(told, dict) else None


def _words(data: bytes) -> str:
    """What an error's body says: its message and code, where it has them."""
    told = _object(data) or {}
    error = told.get("error") or told.get("detail") or told.get("message")
    if isinstance(error, dict):
        error = " ".join(dict.fromkeys(str(error[name]) for name in ("code", "type", "message") if error.get(name)))
    return str(error or data[:500].decode(errors="replace"))
