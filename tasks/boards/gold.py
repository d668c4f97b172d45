"""Gold tasks: one finalist is spoilt on purpose, so that who finds it usable did not look. They decide nothing.

They are made of the source's own pictures: its photo as if it were an edit (a copy), or an edit beside a request that
it does not meet (wrong target). Which sources have one, and which finalist it is, follows from the secret.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

import prompts
from schemas.expressions import EXPRESSIONS, POLARITY, Expression
from schemas.records import Finalist
from schemas.reviews import Answer, Question
from tasks.boards.blind import share
from tasks.boards.questions import question_of
from tasks.metrics.interval import Share

# Digests are hexadecimal, so that none of a real question begins so.
MARK: Final = "gold"
# Ranks of real finalists begin at 1.
SPOILT: Final = 0


def is_gold(digest: str) -> bool:
    return digest.startswith(MARK)


def gold_of(key: bytes, question: Question, of_all: float) -> Question | None:
    """The gold task beside a question, or None where it has none.

    Args:
        key: The secret.
        question: A real one.
        of_all: Share of the questions that have one; a larger share keeps those of a smaller.
    """
    if share(key, "gold", question.digest) >= of_all:
        return None
    place = int(share(key, "gold which", question.digest) * len(question.finalists))
    copy = share(key, "gold how", question.digest) < 0.5
    finalists = list(question.finalists)
    finalists[place] = _copied(finalists[place]) if copy else _mistaken(key, finalists[place])
    made = question_of(finalists)
    return made.model_copy(update={"digest": MARK + made.digest[len(MARK) :]})


def spoilt(gold: Question) -> str:
    """Digest of the picture that nobody should find usable."""
    return next(one.image for one in gold.finalists if one.rank == SPOILT)


def scores(answers: Iterable[Answer], golds: Mapping[str, Question], names: Sequence[str]) -> dict[str, dict[str, Any]]:
    """By annotator: of how many gold tasks they left the spoilt finalist.

    Args:
        answers: All that were collected.
        golds: The run's gold tasks, by digest.
        names: Of the annotators.
    """
    left = {name: [0, 0] for name in names}
    for one in answers:
        if one.question in golds and one.annotator in left and not one.gone:
            left[one.annotator][0] += spoilt(golds[one.question]) not in one.usable
            left[one.annotator][1] += 1
    return {name: Share(*counts).plain() for name, counts in left.items()}


def _copied(finalist: Finalist) -> Finalist:
    return finalist.model_copy(update={"image": finalist.source_image, "rank": SPOILT})


def _mistaken(key: bytes, finalist: Finalist) -> Finalist:
    """The edit beside a request of another polarity than it shows, and than the photo shows."""
    shown = {POLARITY[Expression(finalist.key.target)]}
    others = [one for one in EXPRESSIONS if POLARITY[one] not in shown and one != finalist.source_expression]
    target = others[int(share(key, "gold target", finalist.image) * len(others))]
    words = prompts.render("simple_instruction", source=finalist.source_expression, target=target)
    return finalist.model_copy(update={"instruction": words, "rank": SPOILT})
