"""What a scoring run would ask outside, before it does."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from tasks.editors import EDITORS
from tasks.judges import JUDGES
from tasks.scoring.drift import Planned, questions_again
from tasks.scoring.judge import questions
from tasks.scoring.run import Scoring


@dataclass(frozen=True, slots=True)
class Ask:
    """Questions to one model.

    Attributes:
        role: editor, judge or drift check.
        who: What the run calls it.
        questions: At most; what the answer store has is neither asked nor paid.
        dollars: About; None where no price is known.
    """

    role: str
    who: str
    questions: int
    dollars: float | None


def asks(run: Scoring, left: Sequence[dict[str, int]], plan: Sequence[Planned] = ()) -> list[Ask]:
    """What goes outside, by model; empty where nothing does.

    Args:
        run: The opened run.
        left: Per entry and step, the rows yet to measure (`run.due`).
        plan: Whom drift checks ask again.
    """
    return [ask for ask in [*_asks(run, left), *_again(run, plan)] if ask.questions]


def judges_are_asked(left: Sequence[dict[str, int]]) -> bool:
    """Whether judges have questions to answer."""
    return any(counts.get("score_judge", 0) for counts in left)


def _again(run: Scoring, plan: Sequence[Planned]) -> Iterator[Ask]:
    for one in plan:
        each = JUDGES.adapter_class(one.judge.name).dollars(JUDGES.parse(one.judge.name, one.judge.params))
        asked = len(one.sample) * len(questions_again(run))
        yield Ask("drift check", one.judge.label, asked, _times(each, asked))


def _asks(run: Scoring, left: Sequence[dict[str, int]]) -> Iterator[Ask]:
    for editor in run.config.editors:
        spec = editor.adapter
        if EDITORS.remote(spec.name):
            entries = zip(run.entries, left, strict=True)
            mine = [counts for entry, counts in entries if entry.called == editor.called]
            edits = sum(counts["score_edit"] + counts["score_noop"] for counts in mine)
            each = EDITORS.adapter_class(spec.name).dollars(EDITORS.parse(spec.name, spec.params))
            yield Ask("editor", editor.called, edits, _times(each, edits))
    judged = sum(counts.get("score_judge", 0) for counts in left)
    for judge in run.config.judges:
        each = JUDGES.adapter_class(judge.name).dollars(JUDGES.parse(judge.name, judge.params))
        asked = judged * len(questions(run.config.judging))
        yield Ask("judge", judge.label, asked, _times(each, asked))


def total(held: Sequence[Ask]) -> float | None:
    """Dollars in all; None where one has no price."""
    known = [ask.dollars for ask in held if ask.dollars is not None]
    return sum(known) if len(known) == len(held) else None


def plain(ask: Ask) -> dict[str, Any]:
    """For JSON."""
    return {"role": ask.role, "who": ask.who, "questions": ask.questions, "dollars": ask.dollars}


def _times(each: float | None, count: int) -> float | None:
    return None if each is None else each * count
