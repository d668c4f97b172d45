"""Standing calibration: agreement with the majority and with people, and which way voters lean, counted by hand."""

from pathlib import Path

import pytest

from schemas.config import VerifyCut
from schemas.expressions import Expression, Polarity
from schemas.outcomes import Abstention, Status
from schemas.records import Ballots, Candidate, GroundTruth, Key, Photo, Source, Vote
from schemas.sections import Adapter
from tasks.engine.dossier import Life, SourceLife, Step, lives
from tasks.engine.errors import WaitingForReview
from tasks.metrics.interval import Share
from tasks.report.lean import RULES
from tasks.report.voices import Voices
from tasks.results import finish
from tests import fakes
from tests.review.asking import best, config, questions, say

PANEL = [Adapter(name="fake", params={"name": name}) for name in ("Ada", "Bo", "Cy")]
POSITIVE, NEUTRAL, NEGATIVE = Polarity.POSITIVE, Polarity.NEUTRAL, Polarity.NEGATIVE


def vote(voter: str, said: Polarity | None) -> Vote:
    return Vote(voter=voter, granularity="coarse", polarity=said, abstained=None if said else Abstention.REFUSED)


def candidate(name: str, target: Expression, said: tuple[Polarity | None, ...], mode: str = "") -> Life:
    key = Key("pool", name, target, "e")
    votes = tuple(vote(voter, one) for voter, one in zip(("Ada", "Bo", "Cy"), said, strict=True))
    measured = {"generate": Candidate.model_construct(key=key), "verify": Ballots(votes=votes, faces=1, change=1.0)}
    return Life(
        key,
        steps={"verify": Step(Status.KEPT, "", "")},
        measured=measured,
        outputs={"review": GroundTruth.model_construct(key=key, mode=mode)} if mode else {},
    )


def life(name: str, traits: tuple[str, ...], *candidates: Life) -> SourceLife:
    texts = dict.fromkeys(
        ("image", "file_sha256", "pixel_sha256", "label_source", "subject", "path", "split", "clip", "movie"), ""
    )
    photo = Photo(key=Key("pool", name), width=1, height=1, expression=Expression.HAPPY, licence="", traits=traits,
                  **texts)  # fmt: skip
    source = Source(key=Key("pool", name), path="")
    return SourceLife(photo.key, source=source, outputs={"screen": photo}, candidates=list(candidates))


def heard(*lives: SourceLife) -> Voices:
    voices = Voices(PANEL, VerifyCut())
    for one in lives:
        voices.add(one)
    return voices


WOMAN, MAN = ("gender=female", "age=20-39"), ("gender=male",)


def test_people_are_asked_apart_from_the_majority() -> None:
    voices = heard(
        life(
            "a",
            (),
            candidate("a", Expression.SAD, (NEGATIVE, NEGATIVE, NEUTRAL), "human"),
            candidate("a", Expression.FEAR, (NEGATIVE, NEGATIVE, None), "human"),
            candidate("a", Expression.ANGER, (NEGATIVE, NEGATIVE, POSITIVE)),
            candidate("a", Expression.NEUTRAL, (NEUTRAL, NEUTRAL, POSITIVE), "auto"),
        )
    )
    ada, _, cy = voices.voices
    assert voices.chosen == 2
    assert (ada.with_people, ada.reviewed, ada.people_share) == (2, 2, 1.0)
    assert (cy.with_people, cy.reviewed, cy.people_share) == (0, 1, 0.0), "an abstention is no disagreement"
    assert (cy.agreed, cy.decided) == (0, 3)
    assert heard(life("a", (), candidate("a", Expression.SAD, (NEGATIVE,) * 3, "auto"))).voices[0].people_share is None


def test_leaning_is_counted_by_expression_and_by_what_pools_say_of_people() -> None:
    voices = heard(
        life(
            "a",
            WOMAN,
            candidate("a", Expression.SAD, (NEGATIVE, NEUTRAL, NEUTRAL)),
            candidate("a", Expression.FEAR, (NEGATIVE, NEUTRAL, NEGATIVE)),
        ),
        life("b", MAN, candidate("b", Expression.SAD, (NEGATIVE, NEGATIVE, None))),
        life("c", (), candidate("c", Expression.NEUTRAL, (NEUTRAL, None, None))),
    )
    groups = voices.groups
    assert [(group.value, group.shown) for group in groups.of("target")] == [("neutral", 1), ("sad", 2), ("fear", 1)]
    assert [(group.value, group.shown) for group in groups.of("gender")] == [("female", 2), ("male", 1)]
    assert groups.unknown() == ["race"]
    woman, man = groups.of("gender")
    _, bo, cy = woman.voters
    assert (bo.bias(NEUTRAL), bo.bias(NEGATIVE), bo.bias(POSITIVE)) == (1.0, -1.0, 0.0)
    assert (cy.bias(NEUTRAL), cy.against_majority(NEUTRAL)) == (0.5, 0.0)
    assert bo.against_majority(NEGATIVE) == -0.5
    assert (man.voters[2].abstained, man.voters[2].bias(NEUTRAL)) == (1, None)
    every = groups.every
    assert sum(leaning.answered + leaning.abstained for leaning in every.voters) == 3 * every.shown
    # Of the panel of three, one vote of three is no majority; of the valid votes it is.
    assert [every.passing(rule) for rule in RULES] == [Share(2, 4), Share(3, 4)]
    told = voices.plain()
    assert told["groups"][0]["candidates"] == 4
    assert told["groups"][0]["targets"]["negative"] == 3
    assert told["unknown"] == ["race"]


def test_names_are_no_groups_and_memory_is_bounded() -> None:
    voices = heard(
        *(
            life(f"s{number}", (f"age={number}", f"nickname={number}"),
                 candidate(f"s{number}", Expression.SAD, (NEGATIVE,) * 3, None))
            for number in range(100)
        )
    )  # fmt: skip
    assert len(voices.groups.of("age")) == 25
    assert sum(group.shown for group in voices.groups.of("age")) == 100
    assert voices.groups.of("nickname") == []
    assert voices.groups.every.shown == 100


def test_what_was_measured_once_but_never_decided_counts_nowhere() -> None:
    unreached = candidate("a", Expression.SAD, (NEGATIVE,) * 3, None)
    unreached.steps.clear()
    assert heard(life("a", (), unreached)).voices[0].asked == 0


def test_what_people_answered_in_review_reaches_the_report(tmp_path: Path) -> None:
    fakes.install()
    with pytest.raises(WaitingForReview):
        fakes.build(tmp_path, config())
    asked = questions(tmp_path, config())
    say(tmp_path, asked, ann1=best, ann2=best)
    built = fakes.build(tmp_path, config())
    voices = Voices(built.run.config.verify.measure.panel, built.run.config.verify.cut)
    for shard, done in zip(built.run.executor.shards, built.done, strict=True):
        for one in lives(built.run.executor, shard, done):
            voices.add(one)
    assert voices.chosen == len(asked) > 4
    assert all(0 < voice.reviewed <= len(asked) for voice in voices.voices)
    text = finish(built.run, built.done).report.read_text()
    assert f"({len(asked)} edits)" in text
    assert "nobody reviewed" not in text
