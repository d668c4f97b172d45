"""People's answers in the workspace: immutable snapshots, one on the other, and which of them a build takes."""

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Final

from pydantic import Field

from schemas.config import BuildConfig
from schemas.records import Key, Record
from schemas.reviews import Answer
from tasks.boards.gold import decides_nothing
from tasks.engine.fingerprint import fingerprint
from tasks.engine.store import Store

FOLDER: Final = "review/answers"
COMMIT: Final = "review/answers.json"


class Snapshots(Record):
    """The snapshots in the order they were taken; of each question and person the last row counts."""

    parts: tuple[str, ...] = ()


class Settled(Record):
    """Questions whose decisions an edition was published with: by digest, how many snapshots there were then."""

    questions: dict[str, int] = Field(default_factory=dict)


@dataclass(frozen=True)
class Answers:
    """The answers that count for a build.

    Attributes:
        by_question: Digest → answers, by annotator.
        taken: How many snapshots they come from.
    """

    by_question: Mapping[str, tuple[Answer, ...]] = field(default_factory=dict)
    taken: int = 0

    def to(self, question: str) -> tuple[Answer, ...]:
        return self.by_question.get(question, ())

    def about(self, keys: Collection[Key]) -> list[str]:
        """Digest of what decides about these sources, in a list; empty if nobody said anything."""
        said = sorted(one for key in keys for one in self._by_source.get(key, ()))
        return [fingerprint("answers", said)] if said else []

    @cached_property
    def _by_source(self) -> dict[Key, list[list[Any]]]:
        found: dict[Key, list[list[Any]]] = defaultdict(list)
        for answers in self.by_question.values():
            for one in answers:
                rated = [[each.image, each.quality, each.value] for each in one.ratings]
                found[one.key].append([one.question, one.annotator, list(one.usable), rated])
                if one.played:  # the note of a decision says so
                    found[one.key].append([one.question, one.annotator, ["played"], []])
        return found


NONE_YET: Final = Answers()


def snapshots(store: Store) -> Snapshots:
    return store.read_as(COMMIT, Snapshots) or Snapshots()


def heard(store: Store, taken: int | None = None) -> dict[tuple[str, str], Answer]:
    """The answers by question and annotator, those that were taken back as `gone`.

    Args:
        store: The workspace.
        taken: Only the first so many snapshots; None for all.
    """
    found = {}
    for part in snapshots(store).parts[:taken]:
        for answer in store.read_part(FOLDER, part, Answer):
            found[answer.question, answer.annotator] = answer
    return found


def add(store: Store, rows: Iterable[Answer]) -> int:
    """Keep what differs from what is known, as one snapshot; how many answers that are."""
    known = heard(store)
    fresh = [row for row in rows if known.get((row.question, row.annotator)) != row]
    if fresh:
        ordered = sorted(fresh, key=lambda row: (row.question, row.annotator))
        part = store.write_part(FOLDER, Answer, ordered)
        parts = (*snapshots(store).parts, part)
        store.write_json(COMMIT, Snapshots(parts=parts).model_dump(mode="json"))
    return len(fresh)


def final_of(store: Store, run: str, edition: str) -> Settled:
    return store.read_as(_final(run, edition), Settled) or Settled()


def make_final(store: Store, run: str, edition: str, questions: Iterable[str], taken: int) -> None:
    """From now on these decisions of an edition rest on the first `taken` snapshots, unless they do on fewer."""
    before = final_of(store, run, edition)
    after = Settled(questions=dict.fromkeys(questions, taken) | before.questions)
    if after != before:
        store.write_json(_final(run, edition), after.model_dump(mode="json"))


def answers_for(store: Store, config: BuildConfig, taken: int | None = None) -> Answers:
    """The answers that count for a build: what its edition was published with stays as it was.

    Args:
        store: The workspace.
        config: What is built; where its board asks nobody, nothing counts.
        taken: Only the first so many snapshots; None for all.
    """
    if not config.review.asks_people:
        return NONE_YET
    count = len(snapshots(store).parts) if taken is None else taken
    final = final_of(store, config.name, config.edition).questions
    by_question: dict[str, list[Answer]] = defaultdict(list)
    for moment in sorted({count, *final.values()}):
        for (question, _), answer in sorted(heard(store, moment).items()):
            if final.get(question, count) == moment and not answer.gone and not decides_nothing(question):
                by_question[question].append(answer)
    return Answers({question: tuple(answers) for question, answers in by_question.items()}, count)


def changed_since_final(store: Store, run: str, edition: str, decided: Answers) -> list[str]:
    """Questions that an edition was published with and whose answers have changed since; they change nothing there."""
    final = final_of(store, run, edition).questions
    now: dict[str, dict[str, Sequence[str]]] = defaultdict(dict)
    for (question, annotator), answer in heard(store).items():
        if question in final and not answer.gone:
            now[question][annotator] = answer.usable
    return sorted(q for q in final if {one.annotator: one.usable for one in decided.to(q)} != now[q])


def forget_answers_of(store: Store, keys: Collection[Key]) -> None:
    """Delete all answers about these sources, from every snapshot."""
    parts = []
    for part in snapshots(store).parts:
        rows = store.read_part(FOLDER, part, Answer)
        stay = [row for row in rows if row.key not in keys]
        parts.append(part if len(stay) == len(rows) else store.write_part(FOLDER, Answer, stay))
    if tuple(parts) != snapshots(store).parts:
        gone = set(snapshots(store).parts) - set(parts)
        store.write_json(COMMIT, Snapshots(parts=tuple(parts)).model_dump(mode="json"))
        for part in sorted(gone):
            store.remove(f"{FOLDER}/{part}")


def _final(run: str, edition: str) -> str:
    return f"runs/{run}/reviewed-{edition}.json"
