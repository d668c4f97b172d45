"""The text files of a data set, and how a finished folder takes its place."""

import hashlib
import json
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from tasks.dataset.card import render_card
from tasks.dataset.croissant import croissant
from tasks.engine.errors import ConfigError
from tasks.engine.store import disk

_UNFINISHED: Final = ".unfinished"


def json_bytes(value: Any) -> bytes:
    """The JSON text that all files of a data set are written as."""
    return json.dumps(value, indent=1, sort_keys=True, ensure_ascii=False).encode() + b"\n"


def texts_of(manifest: dict[str, Any], hashes: Mapping[str, str]) -> dict[str, bytes]:
    """Manifest, card and Croissant of a data set, by name.

    Args:
        manifest: As plain values.
        hashes: sha256 of the tables' files, by name.
    """
    return {
        "manifest.json": json_bytes(manifest),
        "README.md": render_card(manifest).encode(),
        "croissant.json": json_bytes(croissant(manifest, hashes)),
    }


def write_texts(folder: Path, manifest: dict[str, Any]) -> None:
    """Write manifest, card, Croissant and checksums beside the tables that lie there already."""
    hashes = digests(folder)
    write_checked(folder, texts_of(manifest, hashes), hashes)


def write_checked(folder: Path, texts: Mapping[str, bytes], hashes: Mapping[str, str]) -> None:
    """Write texts, then the checksums of them and of the files whose hashes are given."""
    with disk(folder):
        for name, data in texts.items():
            (folder / name).write_bytes(data)
        (folder / "checksums.sha256").write_bytes(checksum_lines(texts, hashes))


def checksum_lines(texts: Mapping[str, bytes], hashes: Mapping[str, str]) -> bytes:
    """`checksums.sha256` of texts, and of the files whose hashes are given."""
    return _lines({**hashes, **{name: hashlib.sha256(data).hexdigest() for name, data in texts.items()}}).encode()


def digests(folder: Path) -> dict[str, str]:
    """sha256 of every file of a data set but its checksums, by name, without holding one in memory."""
    names = sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file())
    listed = [name for name in names if name != "checksums.sha256" and not name.startswith(".git")]
    with disk(folder):
        return {name: file_sha256(folder / name) for name in listed}


def checksums(folder: Path) -> str:
    """`sha256sum` lines of every file of a data set but the checksums themselves, in order of name."""
    return _lines(digests(folder))


def _lines(hashes: Mapping[str, str]) -> str:
    return "".join(f"{digest}  {name}\n" for name, digest in sorted(hashes.items()))


def said_checksums(data: bytes) -> dict[str, str]:
    """File → sha256, as a `checksums.sha256` says."""
    lines = data.decode(errors="replace").splitlines()
    return {name: digest for digest, _, name in (line.partition("  ") for line in lines)}


def file_sha256(path: Path) -> str:
    """Hash of a file of any size, without holding it in memory."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def swap(aside: Path, folder: Path) -> None:
    """Put a finished folder in the place of an older one, if there is one."""
    replaced = aside.with_name(f"{aside.name}-replaced")
    with disk(folder):
        folder.parent.mkdir(parents=True, exist_ok=True)
        if folder.exists():
            folder.rename(replaced)
        aside.rename(folder)
        shutil.rmtree(replaced, ignore_errors=True)


def recover(folder: Path) -> None:
    """Put right what a killed writer of this folder left: the old one comes back where it was moved away."""
    aside = _aside(folder)
    replaced = aside.with_name(f"{aside.name}-replaced")
    with disk(folder):
        if replaced.exists() and not folder.exists():
            replaced.rename(folder)
        for left in (replaced, aside):
            if left.exists():
                shutil.rmtree(left)


def interrupted(parent: Path) -> Iterator[Path]:
    """The folders in `parent` whose writer was killed."""
    for left in sorted(parent.glob(".*.unfinished*")):
        yield left.with_name(left.name.removesuffix("-replaced").removesuffix(_UNFINISHED)[1:])


def _aside(folder: Path) -> Path:
    return folder.with_name(f".{folder.name}{_UNFINISHED}")


@contextmanager
def finished_folder(folder: Path) -> Iterator[Path]:
    """A folder beside `folder` to write into: it takes its place at the end, and is gone after an error.

    Raises:
        ConfigError: There is something of that name which this program did not write.
        WorkspaceError: The disk.
    """
    recover(folder)
    with disk(folder):
        ours = (folder / "checksums.sha256").is_file() or not folder.exists()
        if not ours and not (folder.is_dir() and not any(folder.iterdir())):
            raise ConfigError(f"{folder} holds something else already", "choose another --out")
    aside = _aside(folder)
    with disk(aside):
        aside.mkdir(parents=True)
    try:
        yield aside
        swap(aside, folder)
    finally:
        shutil.rmtree(aside, ignore_errors=True)
