"""The target mix, the panel's table and the numbers, over a made-up run whose counts are known."""

from pathlib import Path

import pytest

from schemas.expressions import Expression, Polarity
from tasks.engine.dossier import lives
from tasks.report.mix import Mix
from tasks.report.spread import Spread
from tasks.report.voices import Voices
from tests.report.made_up import made_up


def test_the_mix_counts_what_each_cut_kept(tmp_path: Path) -> None:
    run, done = made_up(tmp_path, ["a", "b", "no-face"])
    mix = Mix()
    for shard, one in zip(run.executor.shards, done, strict=True):
        for life in lives(run.executor, shard, one):
            mix.add(life)
    counts = {stage: mix.total(stage) for stage in ("generate", "verify", "rank", "review", "publish")}
    assert counts == {"generate": 10, "verify": 6, "rank": 4, "review": 2, "publish": 2}
    assert mix.count("generate", Expression.FEAR) == 0
    assert mix.count("verify", Expression.DISGUST) == 0
    assert mix.count("verify", Expression.NEUTRAL, "source") == 6
    assert mix.cell("publish", Expression.NEUTRAL, Expression.SURPRISE) == 2
    assert sum(mix.shares("verify").values()) == pytest.approx(1)


def test_an_empty_mix_has_no_shares() -> None:
    assert set(Mix().shares("publish").values()) == {0}


def test_the_panel_counts_answers_abstentions_and_agreement(tmp_path: Path) -> None:
    run, done = made_up(tmp_path, ["a"])
    voices = Voices(run.config.verify.measure.panel, run.config.verify.cut)
    for life in lives(run.executor, run.executor.shards[0], done[0]):
        voices.add(life)
    right, other = voices.voices
    assert (right.asked, right.answered, right.target_share) == (5, 5, 1)
    assert other.answers == {Polarity.POSITIVE: 2, Polarity.NEGATIVE: 2}
    assert other.abstained == {"refused": 1}
    assert other.target_share == pytest.approx(3 / 4)
    assert (other.decided, other.agreement) == (3, 1)


def test_a_voter_never_asked_has_no_shares(tmp_path: Path) -> None:
    run, _ = made_up(tmp_path, ["no-face"])
    voice = Voices(run.config.verify.measure.panel, run.config.verify.cut).voices[0]
    assert (voice.agreement, voice.target_share) == (None, None)


def spread(*values: float | None, threshold: float = 0.4) -> Spread:
    made = Spread("Identity", "cosine", threshold, "least")
    for value in values:
        made.add(value)
    return made


def test_every_value_is_in_one_bin() -> None:
    made = spread(0.1, 0.4, 0.4, 0.9, None, float("nan"))
    plot = made.plot()
    assert plot is not None
    assert sum(one.count for one in plot.bins) == 4
    assert plot.low <= 0.1
    assert plot.high >= 0.9
    assert plot.threshold == pytest.approx(100 * (0.4 - plot.low) / (plot.high - plot.low))
    assert (made.passing, made.missing) == (3, 2)


def test_a_threshold_far_off_does_not_squash_the_values() -> None:
    plot = spread(0.0, 0.5, 1.0, threshold=40).plot()
    assert plot is not None
    assert plot.threshold is None
    assert plot.high < 3


@pytest.mark.parametrize("value", [0.0, -1.0, 0.4, 1e-9, 255.0])
def test_equal_values_have_an_axis(value: float) -> None:
    plot = spread(value, value).plot()
    assert plot is not None
    assert plot.low < plot.high
    assert sum(one.count for one in plot.bins) == 2


def test_no_values_are_no_plot() -> None:
    made = spread(None)
    assert made.plot() is None
    assert made.quantile(0.5) is None
