"""What lies in a copy of DFEW: its clips in three media, its folds and votes, and what does not fit."""

from collections import Counter, defaultdict
from pathlib import Path
from typing import Final

from schemas.expressions import Expression
from tasks.sources.dfew_tables import Tables, clip_name, read_tables
from tasks.sources.folder import escape
from tasks.sources.trees import Count, Doubts, Filed, Finding, Labelled, Survey, gaps, is_archive, plain, walk

MEDIA: Final = ("original", "clip_224x224", "clip_224x224_16f")
CLIPS: Final = 16_372
PUBLISHED: Final = {"original": CLIPS, "clip_224x224": 15_906, "clip_224x224_16f": 15_906}
SINGLE_LABELLED: Final = 12_059
FOLDS: Final = {1: (9356, 2341), 2: (9356, 2341), 3: (9357, 2340), 4: (9358, 2339), 5: (9361, 2336)}


def survey(root: Path) -> Survey:
    """All clips of all media, and what the label files say of them."""
    files, tables, doubts = read(root)
    fold_of = {name: f"fold-{fold}" for fold in sorted(tables.folds) for name in tables.folds[fold].get("test", ())}
    labels = {name: label for fold in tables.folds.values() for part in fold.values() for name, label in part.items()}
    _doubt_folds(tables, doubts)
    for name in sorted(labels.keys() & tables.votes.keys()):
        if tables.votes[name].label is not labels[name]:
            doubts.add("fold files and annotation.xlsx disagree (the fold files count)", name)
    table = labels or {name: votes.label for name, votes in tables.votes.items() if votes.label}
    rows = {
        name: Labelled(label, fold_of.get(name, ""), share_of(tables, name, label)) for name, label in table.items()
    }
    filed = tuple(Filed(f.name, f.version, fold_of.get(f.name, ""), f.path, None, f.name) for f in files)
    counts = [Count(f"clips {medium}", len({f.name for f in filed if f.version == medium}), PUBLISHED[medium])
              for medium in MEDIA]  # fmt: skip
    if tables.votes:
        single = sum(votes.label is not None for votes in tables.votes.values())
        counts += [Count("voted on", len(tables.votes), CLIPS), Count("single-labelled", single, SINGLE_LABELLED)]
    for fold, sizes in FOLDS.items():
        for split, published in zip(("train", "test"), sizes, strict=True):
            counts.append(Count(f"fold {fold} {split}", len(tables.folds.get(fold, {}).get(split, {})), published))
    found = list(doubts.findings())
    for medium in MEDIA:
        numbers = {int(f.name) for f in filed if f.version == medium}
        if numbers:
            count, ranges = gaps(numbers, CLIPS, 5)
            if count:
                known = f" ({CLIPS - PUBLISHED[medium]} published)"
                found.append(Finding(f"id gaps in {medium}{known}", count, ranges[:20]))
    return Survey(filed, rows, tuple(counts), tuple(found))


def _doubt_folds(tables: Tables, doubts: Doubts) -> None:
    tests: Counter[str] = Counter()
    seen: dict[str, set[Expression]] = defaultdict(set)
    for number, fold in tables.folds.items():
        tests.update(fold.get("test", {}).keys())
        for name in sorted(fold.get("train", {}).keys() & fold.get("test", {}).keys()):
            doubts.add("clips in both train and test of one fold", f"{name} in fold {number}")
        for part in fold.values():
            for name, label in part.items():
                seen[name].add(label)
    for name, times in sorted(tests.items()):
        if times > 1:
            doubts.add("clips in the test part of several folds", name)
    for name, labels in sorted(seen.items()):
        if len(labels) > 1:
            doubts.add("clips labelled otherwise in another fold", name)


def read(root: Path) -> tuple[list[Filed], Tables, Doubts]:
    """Clips and label files; the folder of a clip is not entered, since there may be a million frames."""
    doubts = Doubts()
    files: list[Filed] = []
    tables: list[Path] = []
    media = {plain(medium): medium for medium in MEDIA}
    for folder, folders, names in walk(root):
        medium = next((media[plain(part)] for part in reversed(folder.parts) if plain(part) in media), "")
        if medium and medium != "original":
            clips = [name for name in folders if clip_name(name)]
            folders[:] = [name for name in folders if name not in clips]
        else:
            clips = [name for name in names if medium and name.lower().endswith(".mp4") and clip_name(name)]
        files += [Filed(clip_name(name), medium, "", escape(str(folder / name))) for name in clips]
        tables += [root / folder / name for name in names if name.lower().endswith((".csv", ".xlsx"))]
        for name in names:
            if is_archive(name):
                doubts.add("archives, not read", str(folder / name))
            elif medium == "original" and name not in clips:
                doubts.add("files that are no clip", str(folder / name))
    return files, read_tables(root, tables, doubts), doubts


def share_of(tables: Tables, name: str, label: Expression | None) -> float | None:
    """The share of the votes that a clip's label has, 0..1; None without votes."""
    return tables.votes[name].shares[label] if label and name in tables.votes else None
