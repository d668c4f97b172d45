"""Gathers the portraits of a side, looks only where nothing is stored, and remembers what it saw."""

import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from schemas.config import BuildConfig
from schemas.portraits import Portrait
from schemas.records import Key, Record
from tasks.engine.errors import ConfigError
from tasks.engine.fingerprint import fingerprint
from tasks.engine.store import Store
from tasks.engine.tombstones import NOBODY, Withdrawn
from tasks.leakage.compare import Guard
from tasks.leakage.eye import Eye
from tasks.leakage.places import Place, open_place, scope_of

# Looking is kept in steps of so many pictures, so that a killed build does not look at all of them again.
_STEP: Final = 256


class _Seen(Record):
    """A portrait that was made, under the stamp of its picture."""

    stamp: str
    portrait: Portrait


@dataclass(frozen=True)
class Excluded:
    """What a build must not share a clip, a picture or a person with.

    Attributes:
        guard: Over the portraits of all sides.
        model: `Eye.model` of their vectors.
        without_identity: How many have none, because no face was found or the file is not readable.
    """

    guard: Guard
    model: str
    without_identity: int


def portraits(path: str, eye: Eye, *, memory: Store | None = None, threads: int = 0) -> list[Portrait]:
    """The portraits of a side.

    What a workspace's screening stored is taken as it is, if the same models made it; everything else is looked at.
    Where there is no picture to look at, `lacking` says so.

    Args:
        path: A workspace run, a data set, or a folder of images.
        eye: The models.
        memory: A workspace that remembers portraits made here, so that they are made once.
        threads: How many pictures are looked at at once; 0 for as many as there are processors.

    Raises:
        ConfigError: There is nothing usable at the path.
    """
    return _gather(open_place(path), eye, memory, threads or os.cpu_count() or 1)


def excluded(config: BuildConfig, memory: Store) -> Excluded | None:
    """Everything that a build excludes; None if that is nothing.

    Args:
        config: Of the build. It cannot exclude itself.
        memory: Its workspace.

    Raises:
        ConfigError: A path is wrong, or a side has no pictures, so that no identity can be checked.
    """
    if not config.exclude:
        return None
    eye = Eye.of(config.screen.measure)
    found: dict[tuple[str, Key], Portrait] = {}
    for path in dict.fromkeys(config.exclude):
        try:
            place = open_place(path)
        except ConfigError as error:
            raise ConfigError(f"exclude: {error.message}", error.hint) from None
        if place.scope == scope_of(memory.root, config.name):
            raise ConfigError(f"exclude: '{path}' is the run itself", f"name another run: {memory.root}#NAME")
        side = _gather(place, eye, memory, config.workers)
        blind = [row for row in side if row.model != eye.model and row.lacking in ("", "no picture")]
        if blind:
            raise ConfigError(
                f"exclude: identity not checked for {len(blind)} of {len(side)} sources of '{path}': no picture",
                "hydrate it, or give the workspace it was built in",
            )
        found |= {(path, row.key): row for row in side}
    guard = Guard(list(found.values()), config.screen.cut)
    return Excluded(guard, eye.model, sum(not row.embedding for row in guard.portraits))


def _gather(place: Place, eye: Eye, memory: Store | None, threads: int) -> list[Portrait]:
    ready = {
        entry.portrait.key: entry.portrait
        for entry in place.entries
        if entry.portrait.model == eye.model and entry.portrait.face_phash
    }
    due = [entry for entry in place.entries if entry.portrait.key not in ready]
    folder = f"leakage/{fingerprint(place.scope, eye.model)[:32]}"
    seen = _remembered(memory, folder) if due and memory else {}
    stamps = {entry.portrait.key: entry.stamp for entry in due}
    # What is not in the picture (clip, the pool's word for a person) is taken anew.
    for entry in due:
        row = seen.get((entry.portrait.key, entry.stamp)) if entry.stamp else None
        if row is not None:
            kept = {"clip": entry.portrait.clip, "person": entry.portrait.person}
            ready[row.key] = row.model_copy(update=kept)
    known = {entry.portrait.key: entry.portrait for entry in due if entry.portrait.key not in ready}
    fresh: list[_Seen] = []
    withdrawn = Withdrawn.of(memory) if memory else NOBODY
    if known:
        for portrait in eye.look_at_all(known, place.pictures(known), threads):
            ready[portrait.key] = portrait
            if memory and portrait.phash and stamps[portrait.key] and not withdrawn.shows(portrait.pixel_sha256):
                fresh.append(_Seen(stamp=stamps[portrait.key], portrait=portrait))
                if len(fresh) == _STEP:
                    _remember(memory, folder, fresh)
                    fresh = []
    if memory and fresh:
        _remember(memory, folder, fresh)
    return [ready[entry.portrait.key] for entry in place.entries]


def _remember(memory: Store, folder: str, rows: Sequence[_Seen]) -> None:
    memory.write_part(folder, _Seen, rows)


def _remembered(memory: Store, folder: str) -> dict[tuple[Key, str], Portrait]:
    """By key and stamp. Parts are whole or not there, and equal keys and stamps have equal portraits."""
    return {
        (row.portrait.key, row.stamp): row.portrait
        for part in sorted(memory.path(folder).glob("part-*.parquet"))
        for row in memory.read_part(folder, part.name, _Seen)
    }
