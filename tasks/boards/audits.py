"""Blind audits: what people find of candidates that votes and floors rejected, so that it is known what was lost."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

import prompts
from schemas.expressions import EXPRESSIONS
from schemas.outcomes import Reason, Status
from schemas.records import Candidate, Finalist, Key
from schemas.reviewing import Review
from schemas.reviews import Answer, AuditCount, AuditReviewed, Extra, ExtraKind, Question
from tasks.boards.gold import copied, extra_question
from tasks.boards.made import Maker
from tasks.boards.sampling import sampled
from tasks.boards.votes import verdict
from tasks.engine.fingerprint import seed_of
from tasks.metrics.interval import Share

# How a candidate left a stage: status, reason, evidence.
Left = tuple[Status, str, str]
UNUSABLE: Final = ("found none usable", "no majority of")


def audits(review: Review) -> bool:
    """Whether people are asked about some of the rejected candidates."""
    return review.asks_people and review.audit > 0


def drawn(key: Key, review: Review) -> bool:
    """Whether people are asked about a rejected candidate: a coin of its own, so that nothing else turns it."""
    return seed_of("audit", review.cut.sample_seed, list(key)) < review.audit * 2**31


def fell(steps: Mapping[str, Left]) -> tuple[str, str] | None:
    """Stage and reason where votes or a floor rejected a candidate; a place behind the best two is no fault."""
    for stage in ("verify", "rank"):
        if stage in steps and steps[stage][0] is Status.REJECTED and steps[stage][1] != Reason.BELOW_TOP_K:
            return stage, steps[stage][1]
    return None


def audit_of(candidate: Candidate, maker: Maker, *, single: bool) -> Question:
    """The question about a rejected candidate.

    It looks like most others: where two finalists are the rule, the photo itself stands in the other's place, so that
    the better one of the two says whether the candidate is usable. It has no captions, as a fifth of all tasks.

    Args:
        candidate: The rejected one.
        maker: Makes the copy.
        single: Whether one finalist is the rule.
    """
    finalist = Finalist(
        key=candidate.key,
        source_image=candidate.source_image,
        source_expression=candidate.source_expression,
        image=candidate.image,
        instruction=candidate.instruction,
        rank=1,
        score=0.0,
    )
    extra = Extra(kind=ExtraKind.AUDIT, picture=candidate.image)
    if single:
        return extra_question([finalist], extra)
    others = [one for one in EXPRESSIONS if one not in (candidate.key.target, candidate.source_expression)]
    target = others[seed_of("audit beside", list(candidate.key)) % len(others)]
    words = prompts.render("simple_instruction", source=candidate.source_expression, target=target)
    key = candidate.key._replace(target=target)
    beside = copied(finalist.model_copy(update={"key": key, "instruction": words}), maker)
    return extra_question([finalist, beside], extra)


class AuditTally:
    """Counts what was rejected automatically, and what people found of it.

    Args:
        review: The config's.
        asked: Every question that was asked; audits are looked for among them.
        answers: All answers to them, by question.
    """

    def __init__(self, review: Review, asked: Iterable[Question] = (), answers: Iterable[Answer] = ()) -> None:
        self._review = review
        said: dict[str, list[Answer]] = {}
        for one in answers:
            if not one.gone:
                said.setdefault(one.question, []).append(one)
        self._found: dict[tuple[Key, str], bool] = {}
        for question in sorted(asked, key=lambda one: one.guide):
            if question.extra and question.extra.kind is ExtraKind.AUDIT:
                picture = question.extra.picture
                key = next(one.key for one in question.finalists if one.image == picture)
                usable = verdict(said.get(question.digest, ()), review.cut).usable
                if usable is not None:
                    self._found[key, picture] = picture in usable
        self._rejected: Counter[tuple[str, str]] = Counter()
        self._decided: Counter[tuple[str, str]] = Counter()
        self._usable: Counter[tuple[str, str]] = Counter()
        self._drawn = self._passed = self._judged = self._judged_usable = 0

    def add(self, key: Key, image: str, steps: Mapping[str, Left]) -> None:
        """Count a candidate.

        Args:
            key: Its key; candidates of sources that nobody is to look at are not counted.
            image: Digest of its picture.
            steps: How it left each stage that it came to.
        """
        if "verify" not in steps or not sampled(key, self._review.cut):
            return
        self._passed += steps["verify"][0] is Status.KEPT
        rule = fell(steps)
        if rule:
            self._rejected[rule] += 1
            self._drawn += drawn(key, self._review)
            if drawn(key, self._review) and (key, image) in self._found:
                self._decided[rule] += 1
                self._usable[rule] += self._found[key, image]
        elif "review" in steps:
            status, _, words = steps["review"]
            usable = status is Status.KEPT or "found both usable" in words
            if usable or (status is Status.REJECTED and any(word in words for word in UNUSABLE)):
                self._judged += 1
                self._judged_usable += usable

    def found(self) -> AuditReviewed | None:
        """What the audits say; None where none are asked for."""
        if not audits(self._review):
            return None
        of_all = Share(self._usable.total(), self._decided.total())
        low, high = of_all.interval or (None, None)
        return AuditReviewed(
            rejected=self._rejected.total(),
            drawn=self._drawn,
            decided=of_all.of,
            usable=of_all.hits,
            share=of_all.value,
            low=low,
            high=high,
            by=tuple(
                AuditCount(
                    stage=stage,
                    reason=reason,
                    rejected=count,
                    decided=self._decided[stage, reason],
                    usable=self._usable[stage, reason],
                )
                for (stage, reason), count in sorted(self._rejected.items())
            ),
            passed=self._passed,
            judged=self._judged,
            judged_usable=self._judged_usable,
            **self._recall(),
        )

    def _recall(self) -> dict[str, float | None]:
        """Usable among those that passed, over that and usable among those that the votes rejected."""
        votes = [rule for rule in self._rejected if rule[0] == "verify"]
        lost = Share(sum(self._usable[rule] for rule in votes), sum(self._decided[rule] for rule in votes))
        names: Sequence[str] = ("recall", "recall_low", "recall_high")
        if not self._judged_usable or lost.value is None or lost.interval is None:
            return dict.fromkeys(names)
        good = self._passed * self._judged_usable / self._judged
        rejected = sum(self._rejected[rule] for rule in votes)
        shares: tuple[Any, ...] = (lost.value, lost.interval[1], lost.interval[0])
        return {name: good / (good + rejected * share) for name, share in zip(names, shares, strict=True)}
