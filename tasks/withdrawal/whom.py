"""Whom a withdrawal is about: sources by key, the same picture under other names, and a person's other sources."""

import re
from collections import defaultdict
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from difflib import get_close_matches
from typing import Any

import numpy as np
from numpy.typing import NDArray

from schemas.config import BuildConfig
from schemas.records import Key
from schemas.screening import ScreenCut
from tasks.engine.errors import ConfigError
from tasks.engine.shown import noted
from tasks.engine.store import Store
from tasks.engine.tombstones import Withdrawn, pixels_mark
from tasks.withdrawal.parts import part_files, planned, read_table


@dataclass
class Trace:
    """What a workspace knows of a source.

    Attributes:
        runs: Whose plans hold it.
        names: What it shares with others of its clip or person: "clip sfew/x", "identity folder/anna", "subject ...".
        pixels: Marks of its decoded pixels.
        vectors: (D,) float32 length-1 identity vectors, one per model that saw it.
    """

    runs: set[str] = field(default_factory=set)
    names: set[str] = field(default_factory=set)
    pixels: set[str] = field(default_factory=set)
    vectors: list[NDArray[np.float32]] = field(default_factory=list)


@dataclass(frozen=True)
class Going:
    """A source that goes: why, in words, by what mark of its pixels it is known again, and which runs have it."""

    key: Key
    why: str
    pixels: str
    runs: tuple[str, ...]


def traces(store: Store) -> dict[Key, Trace]:
    """What plans and screening know, and what was shown to models outside without a run, by source."""
    found: dict[Key, Trace] = defaultdict(Trace)
    for run, source in planned(store):
        trace = found[source.key]
        trace.runs.add(run)
        trace.names |= {
            f"{kind} {source.key.pool}/{name}" for kind in ("clip", "identity") if (name := getattr(source, kind))
        }
    for one in noted(store):
        trace = found[one.key]
        trace.names |= {
            f"{kind} {one.key.pool}/{name}" for kind in ("clip", "identity") if (name := getattr(one, kind))
        }
        trace.pixels |= {one.pixels} - {""}
    for path in part_files(store, "stages/screen/*"):
        for row in read_table(
            path, ("key", "value.pixel_sha256", "value.embedding", "value.subject", "value.clip")
        ).to_pylist():
            key, value = Key(**row["key"]), row.get("value") or {}
            trace = found[key]
            if value.get("pixel_sha256"):
                trace.pixels.add(pixels_mark(value["pixel_sha256"]))
            if value.get("embedding"):
                trace.vectors.append(np.frombuffer(value["embedding"], "<f4"))
            if value.get("subject"):
                trace.names.add(f"subject {value['subject']}")
            if value.get("clip"):
                trace.names.add(f"clip {key.pool}/{value['clip']}")
    return dict(found)


def threshold(store: Store) -> float:
    """The lowest cosine from which a run of the workspace takes two faces for one person."""
    runs = [
        store.read_as(str(path.relative_to(store.root)), BuildConfig) for path in store.root.glob("runs/*/config.json")
    ]
    return min((run.screen.cut.same_identity for run in runs if run), default=ScreenCut().same_identity)


def parse(text: str, known: Collection[Key] = ()) -> Key:
    """The source that a key as reports show it is about; a candidate's names its source.

    Args:
        text: The key.
        known: Keys that may be meant: the name of a pool may hold a slash.

    Raises:
        ConfigError: It is no key.
    """
    source = re.sub(r":\w+@[^:@]+#\d+$", "", text)
    for key in known:
        if str(key) == source:
            return key
    pool, slash, source_id = source.partition("/")
    if not (pool and slash and source_id):
        raise ConfigError(f"'{text}' is no key", "give it as reports show it: pool/source_id")
    return Key(pool, source_id)


def check_known(asked: Collection[Key], known: Collection[Key]) -> None:
    """Refuse a key that nothing here knows.

    Raises:
        ConfigError: Names it, and what looks like it.
    """
    names = [str(key) for key in known]
    for key in asked:
        if key not in known:
            near = get_close_matches(str(key), names, 3, 0.6)
            hint = f"near it: {', '.join(near)}" if near else "keys stand in the report, as samples/astronaut"
            raise ConfigError(f"no source '{key}' here, and none was withdrawn", hint)


def going(
    found: Mapping[Key, Trace], asked: Collection[Key], withdrawn: Withdrawn, *, person: bool, same: float
) -> list[Going]:
    """Who goes: what was asked for, then the person's other sources if that is wanted, then the same pictures.

    Names (clip, identity, subject) lead from source to source; a cosine only from those that names led to, so that
    no chain of likenesses runs away.

    Args:
        found: What is known.
        asked: Sources asked for, withdrawn ones left out of the result.
        withdrawn: Already gone.
        person: Whether the person goes.
        same: Cosine from which it is the same person.
    """
    why = dict.fromkeys(asked, "asked for")
    if person:
        _follow_names(found, why)
        _follow_faces(found, why, same)
        _follow_names(found, why)
    marks = {mark: key for key in why for mark in _pixels(found, key)}
    for key, trace in found.items():
        if shared := trace.pixels & marks.keys():
            why.setdefault(key, f"the same picture as {marks[min(shared)]}")
    return [
        Going(key, words, min(_pixels(found, key), default=""), tuple(sorted(found[key].runs if key in found else ())))
        for key, words in why.items()
        if key not in withdrawn.keys
    ]


def _pixels(found: Mapping[Key, Trace], key: Key) -> set[str]:
    return found[key].pixels if key in found else set()


def _follow_names(found: Mapping[Key, Trace], why: dict[Key, str]) -> None:
    by_name: dict[str, list[Key]] = defaultdict(list)
    for key, trace in found.items():
        for name in trace.names:
            by_name[name].append(key)
    due = list(why)
    while due:
        key = due.pop()
        for name in sorted(found[key].names) if key in found else ():
            for other in by_name.pop(name, ()):
                if other not in why:
                    why[other] = f"same {name}"
                    due.append(other)


def _follow_faces(found: Mapping[Key, Trace], why: dict[Key, str], same: float) -> None:
    """Vectors of equal length are compared, whichever model made them: of two models they are as good as orthogonal."""
    known: dict[int, list[tuple[Key, Any]]] = defaultdict(list)
    for key in why:
        for vector in found[key].vectors if key in found else ():
            known[len(vector)].append((key, vector))
    sides = {size: np.stack([vector for _, vector in side]) for size, side in known.items()}
    for key, trace in found.items():
        for vector in trace.vectors if key not in why else ():
            if len(vector) in sides:
                cosines = sides[len(vector)] @ vector
                nearest = int(cosines.argmax())
                if cosines[nearest] >= same:
                    why[key] = f"cosine {cosines[nearest]:.3f} to {known[len(vector)][nearest][0]}, from {same:g} on"
                    break
