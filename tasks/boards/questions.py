"""Which question the finalists of a source make, and where the workspace keeps those that were asked."""

from collections.abc import Collection, Iterable, Sequence
from typing import Final

import pyarrow.parquet as pq

import prompts
from schemas.records import Finalist, Key
from schemas.reviews import Question
from tasks.engine.fingerprint import fingerprint
from tasks.engine.store import Store

FOLDER: Final = "review/questions"
GUIDE: Final = "review_guide"


def current_guide() -> int:
    """Version of the guide that annotators read now."""
    return prompts.version_of(GUIDE)


def question_of(finalists: Sequence[Finalist]) -> Question:
    """The question that these finalists of one source make; their ranks and captions are no part of its digest."""
    ranked = sorted(finalists, key=lambda one: one.rank)
    key, guide = ranked[0].key.source(), current_guide()
    pictures = sorted([one.image, one.instruction] for one in ranked)
    digest = fingerprint("review", list(key), ranked[0].source_image, pictures, guide)
    return Question(digest=digest, key=key, guide=guide, finalists=tuple(ranked))


def asked(store: Store) -> dict[str, Question]:
    """Every question that was ever asked from this workspace, by digest."""
    return {
        question.digest: question
        for path in sorted(store.root.glob(f"{FOLDER}/part-*.parquet"))
        for question in store.read_part(FOLDER, path.name, Question)
    }


def remember(store: Store, questions: Iterable[Question]) -> None:
    """Keep the questions that are new, before anybody is asked."""
    # 20,000 questions are read in seconds, their digests alone in a moment.
    paths = sorted(store.path(FOLDER).glob("part-*.parquet"))
    known = {digest for path in paths for digest in pq.read_table(path, columns=["digest"])["digest"].to_pylist()}
    fresh = {question.digest: question for question in questions if question.digest not in known}
    if fresh:
        store.write_part(FOLDER, Question, [fresh[digest] for digest in sorted(fresh)])


def about(question: Question, keys: Collection[Key]) -> bool:
    """Whether a question shows one of these sources, or a face that was taken from one."""
    return question.key in keys or any(one in keys for one in (question.extra.donors if question.extra else ()))


def forget_questions(store: Store, keys: Collection[Key]) -> list[Question]:
    """Delete the questions that show these sources; which they were."""
    gone = []
    for path in sorted(store.root.glob(f"{FOLDER}/part-*.parquet")):
        rows = store.read_part(FOLDER, path.name, Question)
        stay = [row for row in rows if not about(row, keys)]
        if len(stay) < len(rows):
            gone += [row for row in rows if about(row, keys)]
            if stay:
                store.write_part(FOLDER, Question, stay)
            store.remove(f"{FOLDER}/{path.name}")
    return gone
