"""A look at a user's copy of a published set before anything is spent: counts, labels, and what is wrong with it.

No model runs. Pictures are opened only here: their headers, or all of them with `decode_all`.
"""

import hashlib
import importlib
import re
import stat
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from schemas.expressions import EXPRESSIONS
from tasks.engine.decode import decode
from tasks.engine.errors import ConfigError, UnreadableImage
from tasks.sources.folder import read_inside, unescape
from tasks.sources.frames import frame_names, video_frames, video_opens
from tasks.sources.trees import EXAMPLES, Count, Filed, Finding, Survey, nothing_usable, open_root

SURVEYS: Final = {
    "dfew": "tasks.sources.dfew_tree",
    "rafdb": "tasks.sources.rafdb_tree",
    "sfew": "tasks.sources.sfew",
}
# Sizes of the published face crops, width and height; a film frame or web photo of that size is one of them.
_CROPS: Final = {"sfew": (143, 181), "rafdb": (100, 100)}
_INTERPOLATED: Final = 16
_FORMATS: Final = ("JPEG", "PNG", "WEBP", "BMP", "GIF", "TIFF")


@dataclass(frozen=True, slots=True)
class Inspection:
    """What a copy is like.

    Attributes:
        kind, root: As asked.
        decoded: Whether pictures were decoded, or only their headers read.
        counts: Beside the published ones.
        labels: Split → expression ("none" for unlabelled) → how many; by name, versions together.
        findings: What is wrong or good to know.
    """

    kind: str
    root: str
    decoded: bool
    counts: tuple[Count, ...]
    labels: dict[str, dict[str, int]]
    findings: tuple[Finding, ...]


def inspect(kind: str, root: str, *, decode_all: bool = False) -> Inspection:
    """Inspect a copy of a published set.

    Args:
        kind: One of `SURVEYS`.
        root: Where it lies.
        decode_all: Decode every picture and frame, instead of reading headers.

    Raises:
        ConfigError: An unknown kind, a root that is no folder, or one in which nothing of the set is found.
    """
    if kind not in SURVEYS:
        raise ConfigError(f"no inspection of '{kind}'", f"choose one of: {', '.join(SURVEYS)}")
    path = open_root(kind, root)
    survey: Callable[[Path], Survey] = importlib.import_module(SURVEYS[kind]).survey
    found = survey(path)
    if not found.files and not found.table:
        raise nothing_usable(kind, path, f"nothing of {kind}", f"is this the folder your copy of {kind} lies in?")
    checked = _Files(kind, path, decode_all)
    findings = (
        *found.findings,
        *_named("empty files", checked.check(found.files)),
        *checked.findings(),
        *_doubles(found),
        *_matches(found),
        *_shared_clips(found.files),
        *checked.identical(),
    )
    return Inspection(kind, str(path), decode_all, found.counts, _labels(found), findings)


class _Files:
    """The files of a copy, opened once each."""

    def __init__(self, kind: str, root: Path, decode_all: bool) -> None:
        self._kind, self._root, self._decode = kind, root, decode_all
        self._bad: dict[str, list[str]] = defaultdict(list)
        self._crops: list[str] = []
        self._short: list[str] = []
        self._mixed: list[str] = []
        self._by_size: dict[tuple[str, int], list[tuple[Filed, list[str]]]] = defaultdict(list)

    def check(self, files: Iterable[Filed]) -> list[str]:
        """Look at every file; the paths of those without a byte (or, for a folder of frames, without a frame)."""
        empty: list[str] = []
        for filed in files:
            parts = self._parts(filed)
            sizes = [self._size(part) for part in parts]
            empty += [part for part, size in zip(parts, sizes, strict=True) if size == 0]
            if not parts:
                empty.append(filed.path)
            if filed.version == "clip_224x224_16f" and len(parts) != _INTERPOLATED:
                self._short.append(f"{filed.path} ({len(parts)})")
            numbers = [_frame_number(part) for part in parts]
            if len(parts) > 1 and len(set(numbers)) < len(parts):
                self._mixed.append(filed.path)
            for part, size in zip(parts, sizes, strict=True):
                if size:
                    self._open(filed, part)
            if sum(sizes):
                self._by_size[filed.version, sum(sizes)].append((filed, parts))
        return empty

    def findings(self) -> Iterator[Finding]:
        """What `check` saw."""
        for reason, paths in sorted(self._bad.items()):
            yield from _named(f"unreadable files ({reason})", paths)
        yield from _named("face crops among the originals (two versions mixed)", self._crops)
        yield from _named("clips of the 16-frame version without 16 frames", self._short)
        yield from _named("clips with a frame twice (two versions in one folder)", self._mixed)

    def identical(self) -> Iterator[Finding]:
        """Byte-identical files of one version in different splits; only files of equal size are hashed."""
        same: list[str] = []
        for group in self._by_size.values():
            if len({filed.split for filed, _ in group}) > 1:
                by_digest: dict[str, list[Filed]] = defaultdict(list)
                for filed, parts in group:
                    by_digest[self._digest(parts)].append(filed)
                same += [
                    " = ".join(filed.path for filed in equal)
                    for equal in by_digest.values()
                    if len({filed.split for filed in equal}) > 1
                ]
        yield from _named("byte-identical files across splits", same)

    def _parts(self, filed: Filed) -> list[str]:
        """The file itself, or a clip's frames."""
        path = unescape(filed.path)
        if not (self._root / path).is_dir():
            return [path]
        try:
            return [f"{path}/{name}" for name in frame_names(self._root / path)]
        except UnreadableImage as error:
            self._bad[error.reason].append(filed.path)
            return []

    def _size(self, part: str) -> int:
        """Bytes; 1 for what is no regular file, so that opening it says why."""
        try:
            status = (self._root / part).stat()
        except (OSError, ValueError):
            return 1
        return status.st_size if stat.S_ISREG(status.st_mode) else 1

    def _open(self, filed: Filed, part: str) -> None:
        video = part.lower().endswith(".mp4")
        try:
            if video:
                path = regular(self._root, part)
                video_frames(path, range) if self._decode else video_opens(path)
                return
            size = decode(read_inside(self._root, part)).shape[1::-1] if self._decode else header(self._root, part)
        except UnreadableImage as error:
            self._bad[error.reason].append(filed.path if filed.path.endswith(part) else part)
            return
        if filed.version == "original" and size == _CROPS.get(self._kind):
            self._crops.append(filed.path)

    def _digest(self, parts: list[str]) -> str:
        digest = hashlib.sha256()
        for part in parts:
            try:
                digest.update(read_inside(self._root, part))
            except UnreadableImage:
                digest.update(part.encode(errors="surrogateescape"))
        return digest.hexdigest()


def header(root: Path, relative: str) -> tuple[int, int]:
    """Width and height as the header of a picture below the root says; nothing is decoded.

    Raises:
        UnreadableImage: `missing`, `outside_root`, `not_a_file`, `not_an_image`, `unreadable`.
    """
    from PIL import Image, UnidentifiedImageError

    path = regular(root, relative)
    try:
        with Image.open(path, formats=_FORMATS) as image:
            return image.size
    except UnidentifiedImageError as error:
        raise UnreadableImage("not_an_image", f"'{relative}' begins like no image") from error
    except Exception as error:  # on hostile bytes the readers of headers raise whatever they like
        raise UnreadableImage("unreadable", f"'{relative}': {error}") from error


def regular(root: Path, relative: str) -> Path:
    """The path of a regular file below the root, links resolved; nothing is opened, for opening a pipe waits.

    Raises:
        UnreadableImage: `missing`, `outside_root`, `not_a_file`, `unreadable`.
    """
    path = root / relative
    try:
        real = path.resolve()
        if not real.is_relative_to(root.resolve()):
            raise UnreadableImage("outside_root", f"'{relative}' leads out of the root")
        if not real.is_file():
            raise UnreadableImage("not_a_file" if real.exists() else "missing", f"'{relative}' is no file")
    except (OSError, ValueError, RuntimeError) as error:
        raise UnreadableImage("unreadable", f"'{relative}': {error}") from error
    return real


def _frame_number(path: str) -> str:
    """The last number in a frame's name, however padded; the name itself where it has none."""
    numbers = re.findall(r"\d+", Path(path).stem)
    return numbers[-1].lstrip("0") if numbers else path


def _named(what: str, paths: Iterable[str]) -> tuple[Finding, ...]:
    """One finding, or none where there is no path."""
    every = list(paths)
    return (Finding(what, len(every), tuple(every[:EXAMPLES])),) if every else ()


def _doubles(found: Survey) -> Iterator[Finding]:
    """One name twice in a version: the same stem with two extensions, in two class folders, in two splits."""
    groups: dict[tuple[str, str], list[Filed]] = defaultdict(list)
    for filed in found.files:
        groups[filed.version, filed.name].append(filed)
    several = [group for group in groups.values() if len(group) > 1]
    yield from _named("duplicate names", (" = ".join(filed.path for filed in group) for group in several))
    yield from _named(
        "names with two labels",
        (" = ".join(f.path for f in group) for group in several if len({f.label for f in group}) > 1),
    )


def _matches(found: Survey) -> Iterator[Finding]:
    """Labels against files, version by version."""
    for version in sorted({filed.version for filed in found.files}):
        own = [filed for filed in found.files if filed.version == version]
        names = {filed.name for filed in own}
        if found.table:
            yield from _named(f"labels without files ({version})", sorted(found.table.keys() - names))
        bare = [filed.path for filed in own if filed.label is None and filed.name not in found.table]
        yield from _named(f"files without labels ({version})", bare)
    if not found.files:
        yield from _named("labels without files", sorted(found.table))


def _shared_clips(files: Iterable[Filed]) -> Iterator[Finding]:
    """Clips whose frames are in more than one split."""
    splits: dict[str, set[str]] = defaultdict(set)
    for filed in files:
        if filed.clip and filed.split:
            splits[filed.clip].add(filed.split)
    shared = (f"{clip} in {', '.join(sorted(where))}" for clip, where in sorted(splits.items()) if len(where) > 1)
    yield from _named("clips shared by splits", shared)


def _labels(found: Survey) -> dict[str, dict[str, int]]:
    said: dict[tuple[str, str], str] = {}
    for filed in found.files:
        row = found.table.get(filed.name)
        label = filed.label or (row.label if row else None)
        said[filed.split, filed.name] = str(label or "none")
    for name, row in found.table.items():
        said.setdefault((row.split, name), str(row.label or "none"))
    counts = Counter((split, label) for (split, _), label in said.items())
    order = [*EXPRESSIONS, "none"]
    return {
        split: {str(label): counts[split, label] for label in order if counts[split, label]}
        for split in sorted({split for split, _ in counts})
    }
