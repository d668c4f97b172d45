"""Addresses at which a browser gets a picture: of Label Studio's picture folder, or, of a bucket, presigned ones.

A presigned address is a capability: whoever has it gets that picture until it ends. It names the endpoint, the bucket,
the workspace's folder, the opaque path of `blind.files_of` and the number of the access key, and nothing else.
"""

import html
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final
from urllib.parse import parse_qs, urlsplit

import httpx

from tasks.boards.pictures import FOLDER, ROOT
from tasks.engine.errors import WorkspaceError
from tasks.engine.fingerprint import fingerprint, sha256
from tasks.engine.store import Store

# What Label Studio serves of its folder; in a bucket, what a presigned address takes the place of.
ADDRESS: Final = f"/data/local-files/?d={FOLDER.removeprefix(ROOT).strip('/')}/"
DAY_S: Final = 86_400
# Share of its time below which an address is made anew (ours).
NEAR_END: Final = 0.5
_PLAIN: Final = re.compile(re.escape(ADDRESS) + r"([\w.-]+(?:/[\w.-]+)*)")
_SIGNED: Final = re.compile(r"https?://[^\s\"'<>]*[?&;]X-Amz-Date=[^\s\"'<>]*")


@dataclass(frozen=True)
class Term:
    """What an address says of itself.

    Attributes:
        path: Of the picture, with the bucket and all.
        signer: Digest of the endpoint, the access key's number and its session.
        begins, ends: Unix seconds.
    """

    path: str
    signer: str
    begins: int
    ends: int


def term_of(address: str) -> Term | None:
    """Of a presigned address; None where it is none."""
    parts = urlsplit(address)
    query = {name: values[0] for name, values in parse_qs(parts.query).items()}
    try:
        begins = int(datetime.strptime(query["X-Amz-Date"], "%Y%m%dT%H%M%SZ").replace(tzinfo=UTC).timestamp())
        ends = begins + int(query["X-Amz-Expires"])
        key = query["X-Amz-Credential"].partition("/")[0]
    except (KeyError, ValueError):
        return None
    signer = fingerprint("signer", parts.scheme, parts.netloc, key, query.get("X-Amz-Security-Token", ""))
    return Term(parts.path, signer, begins, ends)


@dataclass(frozen=True)
class Addresses:
    """Gives out the addresses of a workspace's pictures.

    Attributes:
        store: The workspace.
        days: How long presigned ones last.
    """

    store: Store
    days: float

    def of(self, values: Mapping[str, Any], before: Mapping[str, Any] | None = None) -> dict[str, Any]:
        """Values with texts that hold addresses, as people get them.

        Args:
            values: Settings of a project, or data of a task, with addresses of Label Studio's folder.
            before: What was given out: kept where it differs by signatures alone, and lasts.
        """
        told = {name: self._text(value) if isinstance(value, str) else value for name, value in values.items()}
        return {name: _kept((before or {}).get(name), value) for name, value in told.items()}

    def last(self, signer: str, ends: int) -> bool:
        """Whether addresses of this signer that end then need not be made anew; a folder's never end."""
        fresh = self._term()
        return fresh is None or (fresh.signer == signer and _lasts(ends, fresh))

    def ends(self, values: Iterable[Mapping[str, Any]]) -> tuple[str, int]:
        """Who signs now, and when the first of the addresses in these values ends; ("", 0) in a folder."""
        fresh = self._term()
        terms = (term_of(text) for each in values for text in each.values() if isinstance(text, str))
        return (fresh.signer, min((one.ends for one in terms if one), default=fresh.ends)) if fresh else ("", 0)

    def probe(self, origin: str, path: str, image: str) -> bool:
        """Look at a picture as a browser would, before tasks are made that show none; False in a folder.

        Args:
            origin: Address of the server whose pages show it.
            path: Of the picture, below the image folder.
            image: Its digest.

        Raises:
            WorkspaceError: It does not come, or no page of that server may have it.
        """
        address = self._signed(path)
        if address is None:
            return False
        shown = self.store.shown(f"{FOLDER}/{path}")
        hint = "check AWS_ENDPOINT_URL, which annotators must reach as well, and that the credentials may read there"
        try:
            answer = httpx.get(address, headers={"Origin": origin}, timeout=60, trust_env=False)
        except (httpx.HTTPError, httpx.StreamError) as error:
            what = type(error).__name__
            raise WorkspaceError(f"the presigned address of {shown} does not answer: {what}", hint) from None
        if answer.status_code != 200 or sha256(answer.content) != image:
            what = f"HTTP {answer.status_code}" if answer.status_code != 200 else "another picture"
            raise WorkspaceError(f"the presigned address of {shown} gives {what}", hint)
        if answer.headers.get("access-control-allow-origin") not in ("*", origin):
            raise WorkspaceError(
                f"pages of {origin} may not show pictures of {self.store.where}",
                "let the bucket's CORS rules allow GET from there",
            )
        return True

    def _term(self) -> Term | None:
        address = self._signed("-")
        return term_of(address) if address else None

    def _signed(self, path: str) -> str | None:
        return self.store.presigned(f"{FOLDER}/{path}", int(self.days * DAY_S))

    def _text(self, text: str) -> str:
        def signed(found: re.Match[str]) -> str:
            address = self._signed(found[1])
            if address is None:
                return found[0]
            return address if found[0] == text else html.escape(address)  # within text it is HTML

        return _PLAIN.sub(signed, text)


def _kept(old: Any, new: Any) -> Any:
    """The old text where the new one says the same with other signatures, and the old ones last; else the new."""
    if not (isinstance(old, str) and isinstance(new, str)) or _SIGNED.sub("", old) != _SIGNED.sub("", new):
        return new
    pairs = zip(_terms(old), _terms(new), strict=True)
    same = all(a and b and (a.path, a.signer) == (b.path, b.signer) and _lasts(a.ends, b) for a, b in pairs)
    return old if same else new


def _terms(text: str) -> list[Term | None]:
    return [term_of(html.unescape(found)) for found in _SIGNED.findall(text)]


def _lasts(ends: int, fresh: Term) -> bool:
    return ends - fresh.begins >= NEAR_END * (fresh.ends - fresh.begins)
