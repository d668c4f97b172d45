"""Which pictures a pair shows, and where they are: files that the pairs name, or those of scoring runs."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from tasks.engine.decode import decode
from tasks.engine.errors import ConfigError
from tasks.engine.images import ImageStore, Picture
from tasks.engine.weights import hash_file
from tasks.faces.memo import Memo
from tasks.leaderboard.entrants import ScoredRun, score_rows
from tasks.study.pairs import Pair


@dataclass(frozen=True)
class Sight:
    """One output and what it is compared with, by sha256 of their files; `truth` is empty where there is none."""

    source: str
    output: str
    truth: str
    instruction: str


@dataclass
class Album:
    """Pictures by sha256 of their files: those of the workspace, and files of the user's."""

    images: ImageStore
    files: dict[str, Path] = field(default_factory=dict)
    _decoded: Memo[Picture] = field(default_factory=lambda: Memo(16))

    def add(self, path: Path) -> str:
        digest = hash_file(path)
        self.files[digest] = path
        return digest

    def get(self, digest: str) -> Picture:
        """The picture.

        Raises:
            UnreadableImage: A file of the user's cannot be decoded.
            WorkspaceError: One of the workspace is gone.
        """
        if digest not in self.files:
            return self.images.get(digest)
        return self._decoded.get(digest, lambda: Picture(digest, decode(self.files[digest].read_bytes())))


# By pair, what its two outputs are compared with; None where there is no picture.
Sights = list[tuple[Sight | None, Sight | None]]


def sights_of(pairs: Sequence[Pair], runs: Sequence[ScoredRun], album: Album) -> Sights:
    """What every pair shows: the files that it names, else the outputs of runs.

    Raises:
        ConfigError: A named file is not there; or neither says anything of pictures.
    """
    wanted = {(pair.triplet, pair.granularity, editor) for pair in pairs for editor in (pair.a, pair.b)}
    held: dict[tuple[str, str, str], Sight] = {}
    for run in runs:
        for row in score_rows(run):
            key = (row.triplet, str(row.granularity), row.editor)
            if key in wanted and row.image:
                held[key] = Sight(row.source_image, row.image, row.truth_image, row.instruction)
    found: Sights = []
    for pair in pairs:
        shown = pair.pictures
        if shown:
            source, truth = album.add(_there(shown["source"])), shown.get("truth")
            behind = album.add(_there(truth)) if truth else ""
            outputs = [album.add(_there(shown[side])) if side in shown else "" for side in ("a", "b")]
            a, b = (Sight(source, output, behind, pair.instruction) if output else None for output in outputs)
        else:
            a, b = (held.get((pair.triplet, pair.granularity, editor)) for editor in (pair.a, pair.b))
        found.append((a, b))
    if not any(one for both in found for one in both):
        raise ConfigError(
            "nothing says which pictures to measure",
            "give the columns source_image, a_image, b_image (and truth_image), or --scores RUN",
        )
    return found


def _there(path: Path) -> Path:
    if not path.is_file():
        raise ConfigError(f"no picture {path}", "paths are relative to the file of pairs")
    return path
