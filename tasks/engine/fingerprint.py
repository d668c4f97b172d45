"""Hashes of values: what was done, with what, to what."""

import hashlib
import json
from typing import Any, Final

# Rises when the way of hashing changes, so that an old fingerprint reads as unknown and never as equal.
SCHEME: Final = 1


def canonical(value: Any) -> bytes:
    """The one JSON text of a plain value: sorted keys, no spaces, no NaN."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False).encode()


def sha256(data: bytes) -> str:
    """Hexadecimal sha256 of bytes."""
    return hashlib.sha256(data).hexdigest()


def fingerprint(*parts: Any) -> str:
    """Hexadecimal sha256 over plain values (numbers, strings, lists, dictionaries), order-sensitive."""
    return sha256(canonical([SCHEME, *parts]))


def seed_of(*parts: Any) -> int:
    """A seed in 0..2^31-1 that depends on the parts alone, never on batch, worker or clock."""
    return int(fingerprint("seed", *parts)[:8], 16) & 0x7FFFFFFF
