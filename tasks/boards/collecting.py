"""Reads what people answered: the server enforces almost nothing, so who, what and how often is checked here."""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Generic, TypeVar

from schemas.reviewing import ReviewCut
from schemas.reviews import ASKED, Answer, Flag, Flagged, Quality, Question, Rating
from schemas.studies import PairAnswer
from tasks.boards.access import ADMIN, Access
from tasks.boards.answers import add, heard
from tasks.boards.blind import PLAYED, captioned, in_order, item_of
from tasks.boards.projects import accounts, find_projects, mark_of, one_at_a_time
from tasks.boards.questions import asked
from tasks.boards.studio import Studio
from tasks.engine.store import Store

# Seconds; a task that lay open for longer says nothing of a pace (ours).
LONGEST: Final = 86_400


@dataclass
class Collected:
    """What a collection brought.

    Attributes:
        fresh: How many answers are new or changed.
        projects: How many projects were read.
        notes: What was not counted, in words; names no token.
    """

    fresh: int = 0
    projects: int = 0
    notes: list[str] = field(default_factory=list)


A = TypeVar("A", Answer, PairAnswer)
# An annotation as an answer, or None and why it is none: of a question, by a secret, by somebody.
Parse = Callable[[Question, Mapping[str, Any], bytes, str], tuple[A | None, str]]


@dataclass(frozen=True)
class Shelf(Generic[A]):
    """Where one kind of answers lies.

    Attributes:
        recall: The answers that are known, by question and annotator.
        parse: Makes an answer of an annotation.
        keep: Keeps the answers that there are now; how many of them are new or changed.
    """

    recall: Callable[[Store], Mapping[tuple[str, str], A]]
    parse: Parse[A]
    keep: Callable[[Store, Sequence[A]], int]


def collect(store: Store, access: Access, run: str, cut: ReviewCut) -> Collected:
    """Read every project of a run, and keep what differs from what is known as one snapshot."""
    return read_projects(store, access, run, cut, Shelf(heard, parsed, add))


def read_projects(store: Store, access: Access, run: str, cut: ReviewCut, shelf: Shelf[A]) -> Collected:
    """Read every project of a run, and keep the answers on their shelf."""
    names = [*cut.annotators, *cut.former, *cut.adjudicators]
    found = Collected()
    with one_at_a_time(store), Studio(access.url, access.token(ADMIN)) as studio:
        questions, known = asked(store), shelf.recall(store)
        of_name = accounts(studio, [name for name in names if name not in cut.former])
        of_name |= _former(studio, cut.former)
        rows: list[A] = []
        marks = {
            (name, single): mark_of(access.key, run, name, single=single) for name in names for single in (False, True)
        }
        projects = find_projects(studio, store, list(marks.values()))
        for name in names:
            items = {item_of(access.key, question, name): question for question in questions.values()}
            for single in (False, True):
                project = projects.get(marks[name, single])
                if project is not None:
                    found.projects += 1
                    tasks = list(studio.tasks(project["id"], annotations=True))
                    rows += _read(
                        tasks, Reader(access.key, name, of_name.get(name), items, known, found.notes, shelf.parse)
                    )
        found.fresh = shelf.keep(store, rows)
    return found


def _former(studio: Studio, names: Sequence[str]) -> dict[str, int]:
    """Account numbers of those who left, as far as they still have one."""
    users = studio.users()
    return {name: number for name in names for number, email in users.items() if name in (email, email.split("@")[0])}


@dataclass(frozen=True)
class Reader(Generic[A]):
    """What reading one person's project takes.

    Attributes:
        key: The secret.
        name, account: Whose project it is; the account is None if it was deleted.
        items: Number of a task → its question.
        known: The answers that earlier collections brought.
        notes: Told what cannot be counted.
        parse: Makes an answer of an annotation.
    """

    key: bytes
    name: str
    account: int | None
    items: Mapping[str, Question]
    known: Mapping[tuple[str, str], A]
    notes: list[str]
    parse: Parse[A]


def _read(tasks: Sequence[dict[str, Any]], reader: Reader[A]) -> list[A]:
    """One answer per question of a project; a task that is there twice counts once."""
    by_item: dict[str, list[dict[str, Any]]] = {}
    unseen: set[str] = set()
    for task in tasks:
        item = str((task.get("data") or {}).get("item", ""))
        if item not in reader.items:
            reader.notes.append(f"{reader.name}: task {task['id']} asks nothing that was asked here")
            continue
        if task.get("annotations", ()) is None:
            what = f"Label Studio cannot show the answers to task {task['id']}"
            reader.notes.append(f"{reader.name}: {what}; delete them there, what was collected before stands")
            unseen.add(item)
            continue
        if item in by_item:
            reader.notes.append(f"{reader.name}: task {task['id']} is there twice; its latest answer counts")
        by_item.setdefault(item, []).extend(task.get("annotations") or [])
    rows = [latest(reader.items[item], found, reader) for item, found in by_item.items() if item not in unseen]
    return [row for row in rows if row is not None]


def latest(question: Question, annotations: Sequence[dict[str, Any]], reader: Reader[A]) -> A | None:
    """This person's latest answer to a question.

    What somebody else wrote or changed is not their answer: then the one that was collected before stands. So it does
    where the latest cannot be read. One that was deleted, or skipped since, is taken back.
    """
    before = reader.known.get((question.digest, reader.name))
    mine, nobodys = [], False
    for one in sorted(annotations, key=lambda one: (str(one["updated_at"]), one["id"])):
        if reader.account is not None and _account(one["completed_by"]) != reader.account:
            reader.notes.append(f"{reader.name}: answer {one['id']} is by account {_account(one['completed_by'])}")
        elif reader.account is not None and one.get("updated_by") is None:
            # An import says in whose name an answer is, and the server believes it; of an answer it knows the hand.
            nobodys = True
            reader.notes.append(f"{reader.name}: answer {one['id']} was imported, or its writer is gone; it counts not")
        else:
            mine.append(one)
    if len(mine) > 1:
        reader.notes.append(f"{reader.name}: {len(mine)} answers to task {mine[-1].get('task')}; the latest counts")
    if not mine and nobodys:
        return before
    if not mine or mine[-1].get("was_cancelled"):
        return before.model_copy(update={"gone": True}) if before else None
    last = mine[-1]
    changed_by = _account(last["updated_by"])
    if changed_by != _account(last["completed_by"]):
        stands = "the one collected before stands" if before else "it does not count"
        reader.notes.append(f"{reader.name}: answer {last['id']} was changed by account {changed_by}; {stands}")
        return before.model_copy(update={"edited_by": changed_by}) if before else None
    answer, why = reader.parse(question, last, reader.key, reader.name)
    if answer is None:
        reader.notes.append(f"{reader.name}: answer {last['id']} cannot be read: {why}")
        return before
    return answer


def parsed(question: Question, annotation: Mapping[str, Any], key: bytes, name: str) -> tuple[Answer | None, str]:
    """An annotation as an answer, A and B brought back to pictures; or None, and why it is none."""
    shown = in_order(key, question, name)
    sides = dict(zip(("left", "right"), (one.image for one in shown), strict=False))
    decisions: dict[str, list[str]] = {"neither": [], **{side: [image] for side, image in sides.items()}}
    if len(sides) == 2:
        decisions["both"] = list(sides.values())
    decided: set[str] = set()
    comment = ""
    # Keyed, since an answer that says something twice says it once: nobody rates for two.
    ratings: dict[tuple[str, str], Rating] = {}
    flags: dict[tuple[str, str], Flagged] = {}
    for field_, choices, text in said(annotation):
        side, _, what = field_.partition("_")
        if field_ == "decision":
            decided |= set(choices)
        elif field_ == "comment":
            comment = text
        elif side in sides and what == "flags":
            flags |= {(side, one): Flagged(image=sides[side], flag=Flag(one)) for one in choices if one in list(Flag)}
        elif side in sides and what in ASKED and choices and choices[0] in ("1", "2", "3", "4", "5"):
            rated = Rating(image=sides[side], quality=Quality(what), value=int(choices[0]))
            ratings[side, what] = rated
    if len(decided) != 1:
        return None, f"it holds {len(decided) or 'no'} decision{'s' if decided else ''}"
    (decision,) = decided
    if decision not in decisions:
        return None, f"'{decision[:40]}' is no decision"
    return Answer(
        question=question.digest,
        key=question.key,
        annotator=name,
        usable=tuple(sorted(decisions[decision])),
        first=shown[0].image,
        captions=captioned(key, question, name),
        guide=question.guide,
        seconds=seconds_of(annotation),
        ratings=tuple(ratings.values()),
        flags=tuple(flags.values()),
        comment=comment,
        played=comment == PLAYED,
        given=str(annotation["updated_at"]),
    ), ""


def said(annotation: Mapping[str, Any]) -> Iterator[tuple[str, list[str], str]]:
    """Of each part of an annotation: its control, what was chosen, what was written.

    The server takes any JSON from whoever has a token, so what is not shaped as the screen shapes it says nothing.
    """
    parts = annotation.get("result")
    for part in parts if isinstance(parts, list) else []:
        value = part.get("value") if isinstance(part, dict) else None
        if isinstance(value, dict):
            choices, text = (value.get(name) for name in ("choices", "text"))
            yield (
                str(part.get("from_name")),
                [str(one) for one in choices] if isinstance(choices, list) else [],
                " / ".join(map(str, text)) if isinstance(text, list) else "",
            )


def seconds_of(annotation: Mapping[str, Any]) -> float | None:
    """How long it took; None where nobody says, or says what cannot be (the server takes any number)."""
    seconds = annotation.get("lead_time")
    return float(seconds) if seconds is not None and 0 <= seconds <= LONGEST else None


def _account(value: Any) -> int | None:
    """Label Studio gives a number, or an object with one."""
    number: int | None = value["id"] if isinstance(value, dict) else value
    return number


def in_short(notes: Sequence[str], most: int = 10) -> list[str]:
    """The notes, each once, and how many more there are."""
    seen = list(Counter(notes))
    return seen[:most] + ([f"and {len(seen) - most} more of the kind"] if len(seen) > most else [])
