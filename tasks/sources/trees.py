"""What the pools over published sets share: finding things below a root, crops, and what a look at a set gives.

A set lies as its users unpacked it: one folder too deep, hyphens for underscores, half of it missing. So nothing
here demands one exact path; a file is known by the parts of its path.
"""

import os
import re
import unicodedata
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import Final

import numpy as np
from numpy.typing import NDArray

from schemas.expressions import Expression
from tasks.engine.errors import ConfigError
from tasks.faces.geometry import context_box
from tasks.sources.folder import EXTENSIONS, escape

_ARCHIVES: Final = (".zip", ".rar", ".7z", ".tar", ".gz", ".tgz")
_DIGITS: Final = re.compile(r"(\d+)")
EXAMPLES: Final = 5


@dataclass(frozen=True, slots=True)
class Filed:
    """A picture, or a clip, on disk.

    Attributes:
        name: What the set calls it: equal over its versions and in its label tables; NFC.
        version: "original", "aligned", "clip_224x224", ...
        split: "train", "val", "test"; for DFEW the test fold, "fold-1" to "fold-5"; empty where unknown.
        path: Below the root, as `folder.escape` writes it. A folder of frames for some clips.
        label: What its class folder says.
        clip: The clip a frame was taken from; empty where unknown.
    """

    name: str
    version: str
    split: str
    path: str
    label: Expression | None = None
    clip: str = ""


@dataclass(frozen=True, slots=True)
class Labelled:
    """What a label table says of one name. `confidence` is a share of votes, 0..1."""

    label: Expression | None
    split: str
    confidence: float | None = None


@dataclass(frozen=True, slots=True)
class Count:
    """How many there are, beside how many were published."""

    what: str
    found: int
    published: int | None = None


@dataclass(frozen=True, slots=True)
class Finding:
    """Something that is not as it should be, or good to know: how often, and a few examples."""

    what: str
    count: int
    examples: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Survey:
    """A set as it lies on disk, no picture opened.

    Attributes:
        files: Every picture or clip of every version.
        table: What the label tables say, by name; empty where only folders label.
        counts: Against the published ones.
        findings: What reading the tables and names brought up.
    """

    files: tuple[Filed, ...]
    table: Mapping[str, Labelled] = field(default_factory=dict)
    counts: tuple[Count, ...] = ()
    findings: tuple[Finding, ...] = ()


class Doubts:
    """Collects what is odd, by kind, in the order met."""

    def __init__(self) -> None:
        self._seen: dict[str, list[str]] = {}

    def add(self, what: str, example: str) -> None:
        self._seen.setdefault(what, []).append(example)

    def findings(self) -> tuple[Finding, ...]:
        """One per kind."""
        return tuple(Finding(what, len(seen), tuple(seen[:EXAMPLES])) for what, seen in self._seen.items())


def open_root(pool: str, root: str) -> Path:
    """The root as a path.

    Raises:
        ConfigError: It is no folder.
    """
    path = Path(root)
    if not path.is_dir():
        what = "is not a folder" if path.exists() else "does not exist"
        raise ConfigError(f"pool '{pool}': root '{root}' {what}", "set `root` to the folder your copy lies in")
    return path


def walk(root: Path) -> Iterator[tuple[PurePosixPath, list[str], list[str]]]:
    """Like `os.walk`, top down and sorted, with paths below the root; the caller may prune the folders in place.

    Hidden things and `__MACOSX`, which holds a `._` twin of every file zipped on a Mac, are left out.

    Raises:
        ConfigError: A folder cannot be listed.
    """

    def refuse(error: OSError) -> None:
        raise ConfigError(f"cannot list '{error.filename}': {error.strerror}", "mend its permissions") from error

    for folder, folders, files in os.walk(root, onerror=refuse):
        folders[:] = sorted(name for name in folders if not name.startswith(".") and name != "__MACOSX")
        names = sorted(name for name in files if not name.startswith(("._", ".", "~$")))
        yield PurePosixPath(Path(folder).relative_to(root).as_posix()), folders, names


def nothing_usable(pool: str, root: Path, lacking: str, hint: str) -> ConfigError:
    """The one line for a root that cannot be used; where archives lie there, it says to unpack them."""
    packed = [name for _, _, files in walk(root) for name in files if name.lower().endswith(_ARCHIVES)]
    if packed:
        shown = ", ".join(packed[:3]) + (", ..." if len(packed) > 3 else "")
        hint = f"unzip first, fedbench never does: {shown}"
    return ConfigError(f"pool '{pool}': {lacking} in '{root}'", hint)


def archives(root: Path) -> list[str]:
    """Names of the archives below the root."""
    return [str(folder / name) for folder, _, files in walk(root) for name in files if is_archive(name)]


def is_archive(name: str) -> bool:
    return name.lower().endswith(_ARCHIVES)


def is_picture(name: str) -> bool:
    return PurePosixPath(name).suffix.lower() in EXTENSIONS


def plain(name: str) -> str:
    """A folder's or column's name for comparing: "EmoLabel_DataSplit" and "emolabel-datasplit" are one."""
    return re.sub(r"[^0-9a-z]", "", name.lower())


def canonical(name: str) -> str:
    """A file's stem as every copy has it: NFC (Macs unpack to NFD), undecodable bytes escaped."""
    return unicodedata.normalize("NFC", escape(name))


def natural(name: str) -> tuple[tuple[int, int, str], ...]:
    """Sorts "2.jpg" before "10.jpg", whatever the padding; names of equal numbers by their text."""
    parts = _DIGITS.split(name)
    return (*((1, int(part), part) if place % 2 else (0, 0, part) for place, part in enumerate(parts)), (2, 0, name))


def stamp(path: Path, *choices: object) -> str:
    """Size and time of a file or folder, so that a replaced one is seen; "" where there is none.

    A folder of frames has the time at which a frame was added, removed or renamed, which is what unpacking does;
    asking each of a million frames would make listing slow.

    Args:
        path: The file or folder.
        choices: What else decides the pixels that loading gives (a crop's margin), so that a changed one is seen too.
    """
    try:
        status = path.stat()
    except (OSError, ValueError):
        return ""
    return " ".join([f"{status.st_size}-{status.st_mtime_ns}", *map(str, choices)])


def cut_around(pixels: NDArray[np.uint8], box: NDArray[np.float32], scale: float) -> NDArray[np.uint8]:
    """A face with context: the square around the box, moved into the picture and no larger than it.

    Nothing is enlarged or made up beyond the border. In a picture narrower than the square the result is a rectangle.

    Args:
        pixels: RGB (H, W, 3) uint8.
        box: (4,) x, y, width, height in pixels; it must touch the picture.
        scale: Side of the square over the box's longer side.

    Returns:
        RGB (h, w, 3) uint8, contiguous.
    """
    height, width = pixels.shape[:2]
    left, top, side = context_box(box, scale)
    across, down = min(side, width), min(side, height)
    left, top = min(max(left, 0), width - across), min(max(top, 0), height - down)
    return np.ascontiguousarray(pixels[top : top + down, left : left + across])


def gaps(numbers: Iterable[int], last: int, digits: int) -> tuple[int, tuple[str, ...]]:
    """How many of 1..last are missing, and the missing ones as ranges ("00009", "00038-00040")."""
    missing = sorted(set(range(1, last + 1)) - set(numbers))
    ranges: list[list[int]] = []
    for number in missing:
        if ranges and number == ranges[-1][1] + 1:
            ranges[-1][1] = number
        else:
            ranges.append([number, number])
    named = (f"{low:0{digits}}" if low == high else f"{low:0{digits}}-{high:0{digits}}" for low, high in ranges)
    return len(missing), tuple(named)
