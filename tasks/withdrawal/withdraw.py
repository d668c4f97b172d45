"""A source or a person taken out of a workspace and of what was published from it, leaving a tombstone.

The tombstone is written first, together with what is yet to be removed; the latter is crossed out last. Every step can
be done twice, so a killed withdrawal is finished by the next one.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from schemas.tombstones import Tombstone, Unfinished, Withdrawals
from tasks.boards.forget import forget_review
from tasks.dataset.texts import interrupted, recover
from tasks.dataset.withdrawn import Edition, clean
from tasks.dataset.withdrawn import look as look_at_editions
from tasks.engine.errors import ConfigError
from tasks.engine.ledger import Ledger
from tasks.engine.shown import forget, noted
from tasks.engine.store import Store
from tasks.engine.tombstones import FILE, Withdrawn, read_withdrawals
from tasks.withdrawal.parts import Rows, find_rows, remove_rows, strip_plans
from tasks.withdrawal.traces import ANSWERS, forget_answers, remove_pictures, remove_reports, remove_scores
from tasks.withdrawal.whom import Going, check_known, going, parse, threshold, traces


@dataclass(frozen=True)
class Wish:
    """What somebody wants withdrawn.

    Attributes:
        keys: As reports show them.
        person: Whether the other sources of the same people go as well.
        folders: Data sets, releases and packs outside the workspace to clean as well.
        reason: For the tombstone.
        day: Likewise, "2026-11-30".
    """

    keys: Sequence[str]
    person: bool = False
    folders: Sequence[Path] = ()
    reason: str = ""
    day: str = ""


@dataclass(frozen=True)
class Found:
    """What a withdrawal would do, or what is left to do.

    Attributes:
        wish: The wish.
        going: Sources that are not withdrawn yet and would be.
        already: Tombstones of those among the wanted that are.
        rows: What the stages' parts hold.
        pictures: Stored pictures and edits of theirs.
        answers: Outside answers about these.
        shown: sha256 of pictures of theirs that models outside saw without a run: only answers are left of them.
        editions: Every published folder that would be looked through.
        unfinished: Whether an earlier withdrawal was stopped before its end.
    """

    wish: Wish
    going: list[Going]
    already: list[Tombstone]
    rows: Rows
    pictures: int
    answers: int
    editions: list[Edition]
    unfinished: bool
    shown: frozenset[str] = frozenset()

    @property
    def digests(self) -> set[str]:
        """sha256 of what goes: what another row names as well stays."""
        return (self.rows.own | self.shown) - self.rows.others


def look(store: Store, wish: Wish) -> Found:
    """Find everything of the sources, and write nothing.

    Raises:
        ConfigError: Nobody knows a key, or a folder cannot be cleaned.
        WorkspaceError: Something in the workspace cannot be read.
    """
    store.fetch()
    state = read_withdrawals(store)
    if not (wish.keys or wish.folders or state.unfinished):
        raise ConfigError("nobody to withdraw", "give a key as reports show it: pool/source_id")
    known = traces(store)
    asked = [parse(key, known) for key in wish.keys]
    folders = _folders(store, wish, state)
    before = Withdrawn.of(store)
    sources = {key for edition in look_at_editions(folders, ()) for key in edition.sources}
    check_known(asked, {*known, *sources, *before.keys})
    goes = going(known, asked, before, person=wish.person, same=threshold(store))
    after = Withdrawn(before.keys | {one.key for one in goes}, before.pixels | ({one.pixels for one in goes} - {""}))
    rows = find_rows(store, after)
    leaving = {one.key for one in goes}
    shown = frozenset(image for one in noted(store) if one.key in leaving for image in one.images)
    digests = (rows.own | shown) - rows.others
    return Found(
        wish,
        goes,
        [stone for stone in state.tombstones if stone.key in asked],
        rows,
        sum(store.path(f"images/{digest[:2]}/{digest}.png").exists() for digest in digests),
        Ledger(store.path(ANSWERS), "").count(digests),
        look_at_editions(folders, after.keys),
        state.unfinished is not None,
        shown,
    )


def _folders(store: Store, wish: Wish, state: Withdrawals) -> list[Path]:
    """Every data set, release and pack of the workspace, and those outside that are to be cleaned."""
    own = [*store.root.glob("datasets/*/*"), *store.root.glob("releases/*/*/*")]
    here = sorted(path for path in own if (path / "manifest.json").is_file() and not path.name.startswith("."))
    outside = [*wish.folders, *(Path(name) for name in (state.unfinished.folders if state.unfinished else ()))]
    return list(dict.fromkeys(path.resolve() for path in (*here, *outside)))


def withdraw(store: Store, wish: Wish) -> tuple[Found, list[str]]:
    """Do it; the caller holds the workspace's lock.

    Returns:
        What was found, and the outside providers that were sent a picture of it, one per answer.

    Raises:
        ConfigError, WorkspaceError: As `look`, before anything is written; or the disk.
    """
    for parent in (*store.root.glob("datasets/*"), *store.root.glob("releases/*/*")):
        for folder in interrupted(parent):
            recover(folder)
    for folder in wish.folders:
        recover(folder.resolve())
    found = look(store, wish)
    state = _bury(store, found)
    assert state.unfinished is not None, "it was written a moment ago"
    gone = set(state.unfinished.digests)
    withdrawn = Withdrawn.of(store)
    forget_review(store, withdrawn.keys)
    strip_plans(store, withdrawn)
    remove_reports(store, state.unfinished.keys)
    remove_scores(store, state.unfinished.keys)
    providers = forget_answers(store, gone)
    remove_rows(store, withdrawn, found.rows.parts)
    remove_pictures(store, gone, found.rows.others)
    forget(store, state.unfinished.keys)
    clean(found.editions, withdrawn.keys)
    store.write_json(FILE, state.model_copy(update={"unfinished": None}).model_dump(mode="json"))
    return found, providers


def _bury(store: Store, found: Found) -> Withdrawals:
    """Write the tombstones, and what is to be done."""
    state, wish = read_withdrawals(store), found.wish
    stones = tuple(
        Tombstone(pool=one.key.pool, source_id=one.key.source_id, day=wish.day, reason=wish.reason, pixels=one.pixels)
        for one in found.going
    )
    left = state.unfinished or Unfinished()
    outside = (str(folder.resolve()) for folder in wish.folders)
    state = Withdrawals(
        tombstones=state.tombstones + stones,
        unfinished=Unfinished(
            keys=tuple(sorted({*left.keys, *(str(stone.key) for stone in stones)})),
            digests=tuple(sorted({*left.digests, *found.digests})),
            folders=tuple(sorted({*left.folders, *outside})),
        ),
    )
    store.write_json(FILE, state.model_dump(mode="json"))
    return state
