"""Screening's decisions that no real photo is needed for."""

import pytest

from flows.options import load_config
from schemas.expressions import Expression
from schemas.outcomes import Reason
from schemas.records import Key, Source, SourceFacts, Vote
from schemas.screening import ScreenCut
from tasks.engine.errors import ConfigError
from tasks.screen import unfit

GOOD = SourceFacts(
    image="0", faces=1, inter_eye=80.0, yaw=0.0, pitch=0.0, sharpness=200.0, overexposed=0.0, underexposed=0.0
)


def votes(*seen: Expression) -> tuple[Vote, ...]:
    return tuple(Vote(voter=str(place), granularity="fine", expression=each) for place, each in enumerate(seen))


def fate(label: Expression | None, seen: tuple[Vote, ...], check: str) -> Reason | None:
    row = Source(key=Key("pool", "photo"), path="photo.png", label=label)
    cut = ScreenCut(label_check=check)
    rejection = unfit(row, GOOD.model_copy(update={"votes": seen}), cut)
    return rejection.reason if rejection else None


@pytest.mark.parametrize(
    ("seen", "check", "reason"),
    [
        ((Expression.SAD, Expression.SAD), "none", None),
        ((Expression.SAD, Expression.SAD), "polarity", Reason.LABEL_DOUBTED),
        ((Expression.SAD, Expression.SAD), "expression", Reason.LABEL_DOUBTED),
        ((Expression.HAPPY, Expression.HAPPY), "expression", None),
        ((Expression.SAD, Expression.HAPPY), "expression", None),
        ((), "expression", None),
    ],
)
def test_the_panel_checks_a_given_label(seen: tuple[Expression, ...], check: str, reason: Reason | None) -> None:
    assert fate(Expression.HAPPY, votes(*seen), check) is reason


def test_polarity_does_not_doubt_one_negative_for_another() -> None:
    assert fate(Expression.ANGER, votes(Expression.SAD, Expression.SAD), "polarity") is None
    assert fate(Expression.ANGER, votes(Expression.SAD, Expression.SAD), "expression") is Reason.LABEL_DOUBTED


def test_an_unlabelled_source_needs_a_majority_of_the_panel() -> None:
    assert fate(None, votes(Expression.SAD, Expression.SAD), "expression") is None
    assert fate(None, votes(Expression.SAD, Expression.HAPPY), "none") is Reason.UNLABELLED
    assert fate(None, (), "none") is Reason.UNLABELLED


def test_a_profile_is_a_name_for_numbers() -> None:
    lenient, default, strict = (
        load_config("demo", None, [f"screen.cut={name}"]).screen.cut for name in ("lenient", "default", "strict")
    )
    assert default == load_config("demo").screen.cut == ScreenCut()
    assert lenient.max_yaw > default.max_yaw > strict.max_yaw
    assert lenient.min_inter_eye_px < default.min_inter_eye_px < strict.min_inter_eye_px
    with pytest.raises(ConfigError, match="lenient, default, strict"):
        load_config("demo", None, ["screen.cut=nice"])


def test_a_profile_can_be_refined() -> None:
    cut = load_config("demo", None, ["screen.cut=strict", "screen.cut.max_yaw=30"]).screen.cut
    assert cut.max_yaw == 30
    assert cut.max_pitch == load_config("demo", None, ["screen.cut=strict"]).screen.cut.max_pitch


def test_a_check_that_nobody_looked_for_is_refused() -> None:
    with pytest.raises(ConfigError, match="check_labels"):
        load_config("demo", None, ["screen.cut.label_check=polarity"])
    assert load_config("demo", None, ["screen.measure.check_labels=true", "screen.cut.label_check=polarity"])
