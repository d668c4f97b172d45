"""How much a share is worth: the interval of a binomial proportion."""

import math


def wilson(hits: int, trials: int, z: float = 1.96) -> tuple[float, float]:
    """Wilson's score interval (1927) of a share, within 0..1; `z` of 1.96 is 95 %.

    Args:
        hits: How many did, 0..trials.
        trials: Of how many, at least 1.
        z: Standard deviations on each side.
    """
    share, shrink = hits / trials, 1 + z * z / trials
    middle = (share + z * z / (2 * trials)) / shrink
    half = z / shrink * math.sqrt(share * (1 - share) / trials + z * z / (4 * trials * trials))
    return max(0.0, middle - half), min(1.0, middle + half)
