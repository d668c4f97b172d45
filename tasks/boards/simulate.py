"""Annotators that are played, with a known bias and noise, through the same API as people use."""

import random
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from schemas.reviewing import ReviewCut
from schemas.reviews import ASKED, ExtraKind, Question
from tasks.boards.access import Access
from tasks.boards.blind import PLAYED, in_order, item_of, share
from tasks.boards.gold import SPOILT
from tasks.boards.projects import find_projects, mark_of, people
from tasks.boards.questions import asked
from tasks.boards.studio import Studio
from tasks.engine.store import Store

# Share of the rejected candidates that played people would have accepted.
AUDITED_USABLE: Final = 0.15


@dataclass(frozen=True)
class Behaviour:
    """How played people are.

    Attributes:
        noise: Share of answers that are drawn at random.
        bias: Share of answers that are A, whatever is shown.
        seed: Of everything that is drawn.
        limit: Answers per person, at most; None for all.
    """

    noise: float = 0.1
    bias: float = 0.0
    seed: int = 0
    limit: int | None = None


def truth(question: Question, seed: int) -> str:
    """What everybody would find without noise: the picture of a finalist, "both" or "neither"."""
    luck = share(b"played", "truth", str(seed), question.digest)
    if question.extra:
        kind, picture = question.extra.kind, question.extra.picture
        if kind is ExtraKind.CLEAN or (kind is ExtraKind.AUDIT and luck < AUDITED_USABLE):
            return picture
        good = [one.image for one in question.finalists if one.image != picture and one.rank != SPOILT]
        return good[0] if good else "neither"
    if luck < 0.1:
        return "neither"
    if len(question.finalists) == 1:
        return question.finalists[0].image
    if luck < 0.2:
        return "both"
    return question.finalists[0 if luck < 0.75 else 1].image


# What somebody played says of a question: by the question, name, secret, luck and behaviour.
Annotate = Callable[[Question, str, bytes, random.Random, Behaviour], dict[str, Any]]


def play(
    store: Store,
    access: Access,
    run: str,
    cut: ReviewCut,
    *,
    how: Behaviour,
    tell: Callable[[str, int], None],
    annotate: Annotate | None = None,
) -> int:
    """Let everybody answer the tasks of their projects that have no answer; how many that were."""
    total = 0
    questions = asked(store)
    for name in people(cut):
        items = {item_of(access.key, question, name): question for question in questions.values()}
        with Studio(access.url, access.token(name)) as studio:
            marks = [mark_of(access.key, run, name, single=single) for single in (False, True)]
            given = 0
            for project in find_projects(studio, store, marks).values():
                for task in list(studio.tasks(project["id"], annotations=True)):
                    item = str(task["data"].get("item", ""))
                    if task["annotations"] or item not in items or given == how.limit:
                        continue
                    luck = random.Random(f"{how.seed}:{item}")
                    value = (annotate or _annotation)(items[item], name, access.key, luck, how)
                    studio.write("POST", f"/api/tasks/{task['id']}/annotations/", value)
                    given += 1
            tell(name, given)
            total += given
    return total


def _annotation(question: Question, name: str, key: bytes, luck: random.Random, how: Behaviour) -> dict[str, Any]:
    sides = dict(zip(("left", "right"), (one.image for one in in_order(key, question, name)), strict=False))
    side_of = {image: side for side, image in sides.items()}
    right = truth(question, how.seed)
    decision = side_of.get(right, right)
    dice = luck.random()
    if dice < how.noise:
        decision = luck.choice([*sides, "neither", *(["both"] if len(sides) == 2 else [])])
    elif dice < how.noise + how.bias:
        decision = "left"
    said = {"from_name": "comment", "to_name": "src_image", "type": "textarea", "value": {"text": [PLAYED]}}
    result: list[dict[str, Any]] = [_choice("decision", "src_image", [decision]), said]
    for side in sides:
        good = decision in (side, "both")
        for quality in ASKED:
            value = min(5, max(1, round(luck.gauss(4.3 if good else 2.8, 0.7))))
            result.append(_choice(f"{side}_{quality}", f"{side}_image", [str(value)]))
        if not good and luck.random() < 0.5:
            flag = luck.choice(["artifacts", "identity", "background", "expression"])
            result.append(_choice(f"{side}_flags", f"{side}_image", [flag]))
    return {"result": result, "lead_time": round(luck.lognormvariate(3.4, 0.4), 1)}


def _choice(name: str, to: str, choices: list[str]) -> dict[str, Any]:
    return {"from_name": name, "to_name": to, "type": "choices", "value": {"choices": choices}}
