"""The ablation table, on pairs whose shares are counted by hand."""

import pytest

from schemas.scoring import ABLATIONS
from tasks.study.ablation import ablations, metric_of
from tasks.study.pairs import Pair


def pair(number: int, **values: tuple[float | None, float | None]) -> Pair:
    """People prefer a; every config the same way unless told."""
    told = {metric_of(config): (1.0, 0.0) for config in ABLATIONS}
    for name, value in values.items():
        told[metric_of({"reg": "w/o REG", "model": "w/o Model", "full": "full"}[name])] = value  # type: ignore[assignment]
    return Pair(f"s{number:02d}", "x", "y", "", "", {"overall": ["a", "a", "b"]}, dict(told))


def test_what_each_part_is_worth() -> None:
    wrong, tie = (0.0, 1.0), (0.0, 0.0)
    pairs = [pair(n) for n in range(6)]
    pairs += [pair(n, reg=wrong) for n in range(6, 8)]  # without REG, 2 of 12 turn
    pairs += [pair(n, model=tie) for n in range(8, 11)]  # without the model, 3 are ties
    pairs += [pair(11, full=(None, 1.0))]  # a failed output: no number of the full score
    (rows,) = ablations(pairs).values()
    told = {row.config: row for row in rows}
    assert [row.config for row in rows] == list(ABLATIONS)
    full, reg, model = told["full"], told["w/o REG"], told["w/o Model"]
    assert (full.agreement.value, full.agreement.n, full.agreement.missing, full.change) == (1.0, 11, 1, None)
    assert reg.agreement.value == pytest.approx(10 / 12)
    assert (model.agreement.value, model.agreement.ties) == (pytest.approx(10.5 / 12), 3)
    # Paired: over the 11 pairs that both have a number for.
    assert reg.change
    assert model.change
    assert (reg.change.value, reg.change.n) == (pytest.approx(-2 / 11, abs=1e-6), 11)
    assert model.change.value == pytest.approx(-1.5 / 11, abs=1e-6)
    assert reg.change.low is not None
    assert reg.change.low < 0
    assert told["w/o Rule"].change
    assert told["w/o Rule"].change.verdict == "indistinguishable"


def test_without_a_fed_score_there_is_no_ablation() -> None:
    assert ablations([Pair("s", "x", "y", "", "", {"q": ["a"]}, {"partial score": (1.0, 0.5)})]) == {}
