"""Exports that are files rather than tables: a folder of pictures with its JSON lines, and tar shards."""

import io
import json
import tarfile
from collections.abc import Iterable, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Final

from tasks.engine.fingerprint import sha256
from tasks.engine.store import disk

BYTES_PER_SHARD: Final = 400 * 2**20


def write_folder(folder: Path, rows: Iterable[tuple[Mapping[str, Any], Mapping[str, bytes]]]) -> int:
    """Write `images/<sha256>.png` and `metadata.jsonl`, whose `<role>_file_name` imagefolder makes pictures of.

    Args:
        folder: Where.
        rows: Plain columns, and PNGs by role. A picture that several rows show is written once.

    Returns:
        How many rows.
    """
    count = 0
    with disk(folder):
        (folder / "images").mkdir(parents=True)
        with (folder / "metadata.jsonl").open("w", encoding="utf-8") as lines:
            for values, pictures in rows:
                names = {}
                for role, data in pictures.items():
                    names[f"{role}_file_name"] = name = f"images/{sha256(data)}.png"
                    if not (folder / name).exists():
                        (folder / name).write_bytes(data)
                lines.write(json.dumps({**names, **values}, ensure_ascii=False) + "\n")
                count += 1
    return count


class TarShards:
    """WebDataset shards: per row `<number>.<role>.png` and `<number>.json`; equal rows give equal bytes.

    Args:
        folder: Where the shards go.
        split: How their names begin.
    """

    def __init__(self, folder: Path, split: str) -> None:
        self._folder = folder
        self._split = split
        self._tar: tarfile.TarFile | None = None
        self._bytes = 0
        self._shards = 0
        self.rows = 0

    def add(self, values: Mapping[str, Any], pictures: Mapping[str, bytes]) -> None:
        """Append a row; the next shard is begun before one grows beyond 400 MiB."""
        size = sum(map(len, pictures.values()))
        with disk(self._folder):
            if self._tar is None or self._bytes + size > BYTES_PER_SHARD:
                self._close()
                path = self._folder / f"{self._split}-{self._shards:05d}.tar"
                self._tar = tarfile.open(path, "w", format=tarfile.USTAR_FORMAT)  # noqa: SIM115 - closed in _close
                self._shards += 1
            for role, data in pictures.items():
                self._member(f"{self.rows:07d}.{role}.png", data)
            self._member(f"{self.rows:07d}.json", json.dumps(dict(values), ensure_ascii=False).encode())
        self._bytes += size
        self.rows += 1

    def _member(self, name: str, data: bytes) -> None:
        assert self._tar is not None
        member = tarfile.TarInfo(name)  # its time, owner and mode are constants
        member.size = len(data)
        self._tar.addfile(member, io.BytesIO(data))

    def _close(self) -> None:
        if self._tar is not None:
            self._tar.close()
        self._tar, self._bytes = None, 0

    def __enter__(self) -> "TarShards":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with disk(self._folder):
            self._close()
