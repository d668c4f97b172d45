"""Gold tasks: questions whose answer is known, so that who errs did not look. They decide nothing.

They are made of the run's own pictures: a finalist is spoilt (copy, stranger, mistaken), or the photo is shown as an
edit of its own edit, which must be accepted (clean). Which sources have one, and of which kind, follows from the
secret; a task that was asked once stays as it is.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

import prompts
from schemas.expressions import EXPRESSIONS, POLARITY, Expression
from schemas.records import Finalist
from schemas.reviews import Answer, Extra, ExtraKind, Question
from tasks.boards.blind import share
from tasks.boards.made import Maker
from tasks.boards.questions import question_of
from tasks.metrics.interval import Share

# Digests are hexadecimal, so that none of a real question begins so.
MARK: Final = "extra"
GOLD: Final = (ExtraKind.COPY, ExtraKind.STRANGER, ExtraKind.MISTAKEN, ExtraKind.CLEAN)
# Of what nobody should find usable; ranks of real finalists begin at 1.
SPOILT: Final = 0


def decides_nothing(digest: str) -> bool:
    """Whether a question is a gold task or an audit."""
    return digest.startswith(MARK)


def extra_question(finalists: Sequence[Finalist], extra: Extra) -> Question:
    """A question that decides nothing."""
    made = question_of(finalists)
    return made.model_copy(update={"digest": MARK + made.digest[len(MARK) :], "extra": extra})


def gold_due(key: bytes, question: Question, of_all: float) -> bool:
    """Whether a question has a gold task beside it; a larger share keeps those of a smaller."""
    return share(key, "gold", question.digest) < of_all


def gold_of(key: bytes, question: Question, donors: Sequence[Finalist], maker: Maker) -> Question:
    """The gold task beside a question.

    Args:
        key: The secret.
        question: A real one.
        donors: Finalists that show other persons.
        maker: Makes its pictures.
    """
    kind = GOLD[int(share(key, "gold kind", question.digest) * len(GOLD))]
    place = int(share(key, "gold which", question.digest) * len(question.finalists))
    if kind is ExtraKind.CLEAN:
        return _clean(question, maker)
    finalist = question.finalists[place]
    spoilt, donor = None, None
    if kind is ExtraKind.STRANGER:
        spoilt, donor = _stranger(key, finalist, donors, maker)
    if kind is ExtraKind.MISTAKEN:
        spoilt = _mistaken(key, finalist)
    if spoilt is None:  # a copy; or nobody else shows that expression, or no face is found
        kind, spoilt = ExtraKind.COPY, copied(finalist, maker)
    finalists = [spoilt if one is finalist else one for one in question.finalists]
    faces = (donor.key.source(),) if donor else ()
    return extra_question(finalists, Extra(kind=kind, picture=spoilt.image, beside=question.digest, donors=faces))


def passed(answer: Answer, gold: Question) -> bool:
    """Whether somebody answered a gold task right."""
    extra = gold.extra
    assert extra
    return (extra.picture in answer.usable) == (extra.kind is ExtraKind.CLEAN)


def scores(
    answers: Iterable[Answer], extras: Mapping[str, Question], names: Sequence[str]
) -> dict[str, dict[str, Any]]:
    """By annotator: of how many gold tasks they answered right, and the same by kind.

    The copy that is shown beside an audited candidate counts among the copies.

    Args:
        answers: All that were collected.
        extras: The run's gold tasks and audits, by digest.
        names: Of the annotators.
    """
    found: dict[str, dict[ExtraKind, list[bool]]] = {name: {kind: [] for kind in GOLD} for name in names}
    for one in answers:
        asked = extras.get(one.question)
        if asked is None or asked.extra is None or one.annotator not in found or one.gone:
            continue
        if asked.extra.kind is not ExtraKind.AUDIT:
            found[one.annotator][asked.extra.kind].append(passed(one, asked))
        for beside in asked.finalists if asked.extra.kind is ExtraKind.AUDIT else ():
            if beside.rank == SPOILT:
                found[one.annotator][ExtraKind.COPY].append(beside.image not in one.usable)
    return {
        name: Share(sum(map(sum, kinds.values())), sum(map(len, kinds.values()))).plain()
        | {"kinds": {str(kind): Share(sum(right), len(right)).plain() for kind, right in kinds.items() if right}}
        for name, kinds in found.items()
    }


def copied(finalist: Finalist, maker: Maker) -> Finalist:
    """The photo in an edit's place."""
    return finalist.model_copy(update={"image": maker.copied(finalist.source_image), "rank": SPOILT})


def _mistaken(key: bytes, finalist: Finalist) -> Finalist:
    """The edit beside a request of another polarity than it shows, and than the photo shows."""
    shown = {POLARITY[Expression(finalist.key.target)]}
    others = [one for one in EXPRESSIONS if POLARITY[one] not in shown and one != finalist.source_expression]
    target = others[int(share(key, "gold target", finalist.image) * len(others))]
    words = prompts.render("simple_instruction", source=finalist.source_expression, target=target)
    return finalist.model_copy(update={"instruction": words, "rank": SPOILT})


def _stranger(
    key: bytes, finalist: Finalist, donors: Sequence[Finalist], maker: Maker
) -> tuple[Finalist | None, Finalist | None]:
    """The edit with the face of somebody else who shows the same expression; only the person is wrong."""
    fitting = [one for one in donors if one.key.target == finalist.key.target]
    for donor in sorted(fitting, key=lambda one: share(key, "gold donor", finalist.image, one.image))[:3]:
        image = maker.swapped(finalist.image, donor.image)
        if image:
            return finalist.model_copy(update={"image": image, "rank": SPOILT}), donor
    return None, None


def _clean(question: Question, maker: Maker) -> Question:
    """The best finalist as the photo; the photo as its perfect edit back, and beside it a copy of the finalist."""
    best, others = question.finalists[0], question.finalists[1:]
    shown, back = Expression(best.key.target), best.source_expression
    base = best.model_copy(update={"source_image": best.image, "source_expression": shown, "caption": ""})

    def beside(target: str, image: str, rank: int) -> Finalist:
        words = prompts.render("simple_instruction", source=shown, target=target)
        key = best.key._replace(target=target)
        return base.model_copy(update={"key": key, "image": image, "instruction": words, "rank": rank})

    photo = beside(back, maker.copied(best.source_image), 1)
    asked = [one.key.target for one in others[:1]]  # the same expression twice, where an edit was tried again
    other = next(one for one in (*asked, *EXPRESSIONS) if one not in (shown, back))
    copies = [beside(other, maker.copied(best.image), SPOILT) for _ in others[:1]]
    extra = Extra(kind=ExtraKind.CLEAN, picture=photo.image, beside=question.digest)
    return extra_question([photo, *copies], extra)
