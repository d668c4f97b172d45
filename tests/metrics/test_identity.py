"""Cosine of identity vectors."""

import numpy as np
import pytest

from tasks.metrics.identity import cosine


def test_cosine() -> None:
    x, y = np.array([3, 0], np.float32), np.array([0, 2], np.float32)
    assert cosine(x, x) == 1
    assert cosine(x, y) == 0
    assert cosine(x, -x) == -1


def test_what_has_no_cosine() -> None:
    with pytest.raises(ValueError, match="different models"):
        cosine(np.ones(2, np.float32), np.ones(3, np.float32))
    with pytest.raises(ValueError, match="length 0"):
        cosine(np.ones(2, np.float32), np.zeros(2, np.float32))
