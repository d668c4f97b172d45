"""Edits whose truth we know, put before the verdict: right target, unchanged source, wrong target, other person."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from schemas.config import BuildConfig
from schemas.expressions import POLARITY, Expression, others
from schemas.records import Ballots, Candidate, Photo, Vote
from tasks.accuracy.sub_panels import RULES
from tasks.engine.images import ImageStore
from tasks.engine.stage import Kept, Rejected
from tasks.faces import ANALYZERS, EMBEDDERS
from tasks.metrics.change import expression_change
from tasks.metrics.identity import cosine
from tasks.metrics.interval import Share
from tasks.verify import verdict


class Case(StrEnum):
    """What is planted. Only the first should pass."""

    RIGHT = "right target"
    UNCHANGED = "unchanged source"
    WRONG_POLARITY = "wrong target, other polarity"
    SAME_POLARITY = "wrong target, same polarity"
    OTHER_PERSON = "other person"


@dataclass(frozen=True)
class Plant:
    """A picture that is handed in as the edit of a source to a target.

    Attributes:
        case: What it really is.
        photo: The source.
        asked: The edit that it is handed in as: its key says the target.
        image: Digest of the picture.
    """

    case: Case
    photo: Photo
    asked: Candidate
    image: str


@dataclass
class Passed:
    """How many plants of each case a verdict let pass, of how many.

    Attributes:
        rule: Of the majority: "panel" or "valid".
        identity: Whether ranking's floor on identity counts, too, as it does in a build.
        planted, passed: By case.
    """

    rule: str
    identity: bool
    planted: Counter[Case] = field(default_factory=Counter)
    passed: Counter[Case] = field(default_factory=Counter)

    def share(self, case: Case) -> Share:
        return Share(self.passed[case], self.planted[case])

    @property
    def precision(self) -> Share:
        """Of what passed, what is right. It depends on how many of each case were planted."""
        return Share(self.passed[Case.RIGHT], self.passed.total())

    @property
    def recall(self) -> Share:
        """Of what is right, what passed."""
        return self.share(Case.RIGHT)

    def plain(self) -> dict[str, Any]:
        """For JSON."""
        cases = {str(case): self.share(case).plain() for case in Case}
        told = {"rule": self.rule, "identity_floor": self.identity}
        return told | {"precision": self.precision.plain(), "recall": self.recall.plain(), "passed": cases}


class Verdicts:
    """The verdict of verification on plants, under both majority rules, without and with ranking's identity floor.

    Args:
        config: Its `verify.cut` decides, and `rank.cut.min_identity`.
        images: Where the pictures are.

    Attributes:
        tables: The four counts.
        reasons: Why plants of each case fell under the config's own rule.
    """

    def __init__(self, config: BuildConfig) -> None:
        self._config = config
        self.tables = [Passed(rule, identity) for identity in (False, True) for rule in RULES]
        self.reasons: dict[Case, Counter[str]] = {case: Counter() for case in Case}

    def judge(self, plant: Plant, votes: Sequence[Vote], images: ImageStore) -> None:
        """Decide on one plant, with the votes on its picture."""
        spec, cut = self._config.verify.measure.faces, self._config.verify.cut
        analyzer = ANALYZERS.get(spec.name, spec.params)
        source, picture = images.get(plant.photo.image), images.get(plant.image)
        before, after = analyzer.analyze(source), analyzer.analyze(picture)
        change, like = None, None
        if before and after:
            change = expression_change(before[0].blendshapes, after[0].blendshapes)
            embed = self._config.rank.measure.identity
            embedder = EMBEDDERS.get(embed.name, embed.params)
            like = cosine(embedder.embed(source, before[0]), embedder.embed(picture, after[0]))
        ballots = Ballots(votes=tuple(votes), faces=len(after), change=change)
        for table in self.tables:
            outcome = verdict(plant.asked, ballots, cut.model_copy(update={"majority": table.rule}))
            same = like is not None and like >= self._config.rank.cut.min_identity
            passes = isinstance(outcome, Kept) and (same or not table.identity)
            table.planted[plant.case] += 1
            table.passed[plant.case] += passes
            if table.rule == cut.majority and not table.identity and not isinstance(outcome, Kept):
                why = outcome.reason if isinstance(outcome, Rejected) else "insufficient_votes"
                self.reasons[plant.case][str(why)] += 1


def plants(edits: Mapping[str, Mapping[Expression, Candidate]], photos: Sequence[Photo]) -> Iterator[Plant]:
    """Every plant that these photos and their edits give, at most one per case, source and target.

    A wrong target is the edit to the next expression in the enum's order; another person is the next photo of a person
    that no pool says is the same, edited to the target, or itself where it shows that already.

    Args:
        edits: By the photo's key, its edits that could be made, by target.
        photos: Sources, in order; what follows the last is the first.
    """
    for place, photo in enumerate(photos):
        made = edits[str(photo.key)]
        neighbours = [*photos[place + 1 :], *photos[:place]]
        targets = others(photo.expression)
        for number, target in enumerate(targets):
            asked = made.get(target)
            if asked is None:
                continue
            yield Plant(Case.RIGHT, photo, asked, asked.image)
            yield Plant(Case.UNCHANGED, photo, asked, photo.image)
            wrong = targets[(number + 1) % len(targets)]
            if wrong in made:
                same = POLARITY[wrong] is POLARITY[target]
                yield Plant(Case.SAME_POLARITY if same else Case.WRONG_POLARITY, photo, asked, made[wrong].image)
            other = next((one for one in neighbours if _another(photo, one)), None)
            if other is not None:
                shows = other.image if other.expression is target else None
                edit = edits[str(other.key)].get(target)
                if image := shows or (edit.image if edit else None):
                    yield Plant(Case.OTHER_PERSON, photo, asked, image)


def _another(photo: Photo, other: Photo) -> bool:
    """Whether nothing says that two photos show one person."""
    same_clip = photo.clip and (photo.key.pool, photo.clip) == (other.key.pool, other.clip)
    return not same_clip and photo.subject != other.subject
