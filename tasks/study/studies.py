"""A study from its pairs to its file: made once, asked in Label Studio, collected, and written for `agreement`."""

import csv
import io
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from schemas.reviewing import ReviewCut
from schemas.studies import Aspect, PairAnswer, Study, StudyPair
from tasks.boards import pairs as held
from tasks.boards.access import read_access
from tasks.boards.collecting import Shelf, read_projects
from tasks.boards.pairs import PairDesk, answers_to, keep_answers, parsed_pair, question_of_pair, run_of
from tasks.boards.projects import Opened, Tell
from tasks.boards.simulate import Behaviour, play
from tasks.engine.errors import ConfigError
from tasks.engine.store import Store, disk
from tasks.leaderboard.entrants import ScoredRun, score_rows
from tasks.study.pairing import balanced

FILE: Final = "study.json"


@dataclass(frozen=True)
class Made:
    """What making a study's pairs brought: how many there are, were asked for, and would have shown equal pictures."""

    study: Study
    pairs: list[StudyPair]
    wanted: int
    equal: int


@dataclass
class Collected:
    """What a collection brought.

    Attributes:
        fresh: Answers that are new or changed.
        notes: What was not counted, in words.
        answered: By annotator, how many pairs they have answered.
        played: Answers that no person gave.
        pairs: How many there are.
    """

    fresh: int
    notes: list[str]
    answered: dict[str, int] = field(default_factory=dict)
    played: int = 0
    pairs: int = 0


def make(
    store: Store, runs: Sequence[ScoredRun], number: int, *, name: str, seed: int, annotators: Sequence[str]
) -> Made:
    """Draw a study's pairs, or more of them; those that were drawn before stay as they are.

    Args:
        store: The workspace.
        runs: Whose outputs are compared.
        number: How many pairs, at most; never fewer than the study has.
        name, seed, annotators: Of the study.

    Raises:
        ConfigError: The runs are of two data sets, hold no two outputs to compare, or the study has other pairs.
    """
    first = runs[0].manifest
    for run in runs[1:]:
        if run.manifest.rows_sha256 != first.rows_sha256:
            raise ConfigError(
                f"run '{run.manifest.name}' scored {run.manifest.dataset} {run.manifest.edition}, "
                f"'{first.name}' scored {first.dataset} {first.edition}",
                "compare outputs for one data set",
            )
    before = held.read_study_pairs(store, name)
    number = max(number, len(before))
    pairs, equal = balanced((row for run in runs for row in score_rows(run)), number, seed)
    if not pairs:
        raise ConfigError(
            f"no two editors of {', '.join(run.manifest.name for run in runs)} have different outputs for one triplet",
            "score another editor on the same data set",
        )
    study = Study(
        name=name,
        dataset=first.dataset,
        edition=first.edition,
        rows_sha256=first.rows_sha256,
        runs=tuple(run.manifest.name for run in runs),
        seed=seed,
        annotators=tuple(annotators),
    )
    if [one for one in before if one not in pairs]:
        raise ConfigError(
            f"study '{name}' has pairs that these runs and this seed do not give", "give another --name, or the same"
        )
    store.write_json(f"{held.ROOT}/{name}/{FILE}", study.model_dump(mode="json"))
    held.write_study_pairs(store, name, pairs)
    return Made(study, pairs, number, equal)


def read_study(store: Store, name: str) -> Study:
    """A study that was made.

    Raises:
        ConfigError: There is none of that name.
    """
    study = store.read_as(f"{held.ROOT}/{name}/{FILE}", Study)
    if study is None:
        known = ", ".join(held.studies(store))
        raise ConfigError(
            f"no study '{name}'", f"there are: {known}" if known else "make one: fedbench study pairs RUN --name NAME"
        )
    return study


def open_study(store: Store, study: Study, tell: Tell) -> list[Opened]:
    """Make a project for everybody, and the tasks that are not there."""
    answers: dict[str, list[PairAnswer]] = {}
    for one in answers_to(store, study.name).values():
        if not one.gone:
            answers.setdefault(one.question, []).append(one)
    questions = [question_of_pair(pair) for pair in held.read_study_pairs(store, study.name)]
    desk = PairDesk(store, read_access(store), run_of(study.name), _cut(study), tell)
    return desk.open([(question, answers.get(question.digest, [])) for question in questions])


def collect_study(store: Store, study: Study) -> Collected:
    """Fetch what people have answered since."""
    shelf = Shelf(
        lambda store: answers_to(store, study.name),
        parsed_pair,
        lambda store, rows: keep_answers(store, study.name, rows),
    )
    found = read_projects(store, read_access(store), run_of(study.name), _cut(study), shelf)
    return standing(store, study, Collected(found.fresh, found.notes))


def standing(store: Store, study: Study, told: Collected) -> Collected:
    """How far the study is, by what was collected."""
    asked = {question_of_pair(pair).digest for pair in held.read_study_pairs(store, study.name)}
    given = [one for one in answers_to(store, study.name).values() if not one.gone and one.question in asked]
    told.answered = {name: sum(one.annotator == name for one in given) for name in study.annotators}
    told.played, told.pairs = sum(one.played for one in given), len(asked)
    return told


def play_study(store: Store, study: Study, how: Behaviour) -> dict[str, int]:
    """Let played annotators answer; how many answers each gave."""
    given: dict[str, int] = {}
    cut, access = _cut(study), read_access(store)
    play(store, access, run_of(study.name), cut, how=how, tell=given.__setitem__, annotate=held.annotate)
    return given


def pairs_file(store: Store, study: Study) -> bytes:
    """The file of pairs as CSV: every pair, everybody's word on every aspect; empty where they have not answered."""
    answers = answers_to(store, study.name)
    rows: list[dict[str, Any]] = []
    for pair in held.read_study_pairs(store, study.name):
        row: dict[str, Any] = {"source": pair.subject, "a": pair.a, "b": pair.b}
        row |= pair.model_dump(mode="json", include={"triplet", "granularity", "instruction"})
        digest = question_of_pair(pair).digest
        for aspect in Aspect:
            for place, name in enumerate(study.annotators, 1):
                row[f"{aspect}_{place}"] = _word(answers.get((digest, name)), aspect)
        rows.append(row)
    sink = io.StringIO(newline="")
    table = csv.DictWriter(sink, rows[0] if rows else ["source"], lineterminator="\n")
    table.writeheader()
    table.writerows(rows)
    return sink.getvalue().encode()


def write_pairs_file(data: bytes, path: Path) -> None:
    with disk(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        aside = path.with_name(f"{path.name}.tmp")
        aside.write_bytes(data)
        aside.replace(path)


def _word(answer: PairAnswer | None, aspect: Aspect) -> str:
    if answer is None or answer.gone:
        return ""
    return next(one.side for one in answer.choices if one.aspect is aspect)


def _cut(study: Study) -> ReviewCut:
    return ReviewCut(annotators=study.annotators)
