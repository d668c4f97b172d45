"""Builds of fakes that wait for people, and people who answer."""

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from schemas.config import BuildConfig
from schemas.records import Key
from schemas.reviews import Answer, Question
from tasks import pipeline
from tasks.boards.answers import add
from tasks.engine.fingerprint import fingerprint
from tasks.engine.store import Store
from tasks.waiting import in_review
from tests import fakes

# What somebody finds usable of a question: digests of pictures.
Opinion = Callable[[Question], Iterable[str]]


def config(*sets: str, sources: int = 12) -> BuildConfig:
    """Fakes, reviewed by people; gold tasks and audits where a test wants them."""
    return fakes.config("review.measure.board=label_studio", "review.gold=0", "review.audit=0", *sets, sources=sources)


def questions(workspace: Path, settings: BuildConfig) -> list[Question]:
    """All that people are asked of a build as far as it is, in plan order."""
    pipeline._worker.cache_clear()
    run = pipeline.open_run(workspace, settings, extend=False)
    return list(in_review(run.executor, run.executor.commits()))


def many(workspace: Path, settings: BuildConfig, count: int) -> list[Question]:
    """So many questions with two finalists, no two about the same source: those of a build under other names."""
    some = [one for one in questions(workspace, settings) if len(one.finalists) == 2]
    return [
        some[number % len(some)].model_copy(
            update={"digest": fingerprint("many", count, number), "key": Key("many", f"{number:06d}")}
        )
        for number in range(count)
    ]


def answer(question: Question, annotator: str, usable: Iterable[str], **fields: Any) -> Answer:
    return Answer(
        question=question.digest,
        key=question.key,
        annotator=annotator,
        usable=tuple(sorted(usable)),
        first=question.finalists[0].image,
        captions=True,
        guide=question.guide,
        **fields,
    )


def best(question: Question) -> list[str]:
    return [question.finalists[0].image]


def last(question: Question) -> list[str]:
    return [question.finalists[-1].image]


def both(question: Question) -> list[str]:
    return [one.image for one in question.finalists]


def none(question: Question) -> list[str]:  # noqa: ARG001 - an opinion as the others
    return []


def say(workspace: Path, asked: Iterable[Question], **opinions: Opinion) -> int:
    """Let people answer questions."""
    rows = [answer(question, name, opinion(question)) for question in asked for name, opinion in opinions.items()]
    return add(Store(workspace), rows)
