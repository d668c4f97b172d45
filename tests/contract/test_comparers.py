"""What every metric of a study must keep, on real photos; one that needs the model extra is skipped without it."""

import importlib.util
import math

import numpy as np
import pytest

from tasks.engine import weights
from tasks.engine.images import Picture
from tasks.study.comparers import COMPARERS, Comparer, numbers
from tests.photos import frame, jpeg, photo, picture
from tests.study.measuring import better_of


def keeps(comparer: Comparer) -> None:
    """Equal pictures are best, another photo is worse than a JPEG of the same, and neighbours change nothing."""
    shown = frame(0)
    near, far = jpeg(shown, 60), picture(np.ascontiguousarray(shown.pixels[:, ::-1]))
    if comparer.aligns:
        far = Picture("hopper", photo("hopper").pixels)
    values = [comparer.compare(one, shown) for one in (shown, near, far, near)]
    assert all(isinstance(value, float) and math.isfinite(value) for value in values)
    same, nearer, further, again = values
    assert nearer == again
    assert better_of(comparer, same, nearer) >= 0
    assert better_of(comparer, nearer, further) > 0


@pytest.mark.parametrize("name", COMPARERS.names())
def test_a_metric_knows_what_is_alike(name: str) -> None:
    kind = COMPARERS.adapter_class(name)
    if any(weights.state(weight) not in ("ready", "derivable") for weight in kind.weights):
        pytest.skip(f"{', '.join(kind.weights)}: not all here")
    if name.startswith(("clip", "dino")):
        pytest.skip("a model of the user's: tests/torch has it")
    if name.startswith("lpips") and importlib.util.find_spec("torch") is None:
        pytest.skip("it needs torch")
    keeps(COMPARERS.get(name, {}))


@pytest.mark.parametrize("name", COMPARERS.names())
def test_its_columns_are_told_apart(name: str) -> None:
    needed = {"model": "m", "revision": "r"} if name.startswith(("clip", "dino")) else {}
    columns = numbers(name, {**needed, "name": "X"})
    assert columns
    assert len({one.metric for one in columns}) == len(columns)
    assert all(one.metric.startswith("X") for one in columns)
