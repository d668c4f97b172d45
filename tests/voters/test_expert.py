"""The local voters on photos whose expression is plain to see."""

import json
import math
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from schemas.answers import Ballot
from schemas.expressions import EXPRESSIONS, Expression, Polarity
from schemas.outcomes import Abstention
from tasks.engine.errors import ConfigError
from tasks.voters import VOTERS
from tasks.voters.action_units import SCORES, probabilities
from tests.doors import SHUT
from tests.photos import photo

NAMES = ["fer", "blendshapes"]


def vote(voter: str, name: str, **params: Any) -> Ballot:
    return VOTERS.get(voter, params).vote(photo(name), SHUT)


@pytest.mark.parametrize("voter", NAMES)
@pytest.mark.parametrize(
    ("name", "polarity"),
    [
        ("happy", Polarity.POSITIVE),
        ("smiling", Polarity.POSITIVE),
        ("astronaut", Polarity.POSITIVE),
        ("hopper", Polarity.NEUTRAL),
        ("surprised", Polarity.NEGATIVE),
        ("angry", Polarity.NEGATIVE),
    ],
)
def test_polarity(voter: str, name: str, polarity: Polarity) -> None:
    ballot = vote(voter, name)
    assert ballot.answer is polarity
    assert ballot.confidence is not None
    assert 0.34 < ballot.confidence <= 1


@pytest.mark.parametrize("voter", NAMES)
def test_fine_names_an_expression(voter: str) -> None:
    assert vote(voter, "happy", granularity="fine").answer is Expression.HAPPY
    assert VOTERS.get(voter, {"granularity": "fine"}).granularity == "fine"


@pytest.mark.parametrize("voter", NAMES)
def test_raw_holds_the_seven_probabilities(voter: str) -> None:
    raw = json.loads(vote(voter, "angry").raw)
    assert list(raw) == [str(expression) for expression in EXPRESSIONS]
    assert math.fsum(raw.values()) == pytest.approx(1, abs=0.01)


@pytest.mark.parametrize("voter", NAMES)
def test_no_face_is_an_abstention(voter: str) -> None:
    assert vote(voter, "landscape") == Ballot(abstained=Abstention.NO_FACE)


@pytest.mark.parametrize("voter", NAMES)
def test_the_largest_of_several_is_judged(voter: str) -> None:
    assert vote(voter, "five_people").answer is Polarity.POSITIVE


def test_an_unsure_voter_abstains() -> None:
    ballot = vote("fer", "hopper", min_confidence=0.99)
    assert ballot.abstained is Abstention.CANNOT_TELL
    assert ballot.raw


def test_a_wrong_parameter_is_a_config_error() -> None:
    with pytest.raises(ConfigError, match="granularity"):
        VOTERS.get("fer", {"granularity": "medium"})


@pytest.mark.parametrize("voter", NAMES)
def test_the_same_from_four_threads(voter: str) -> None:
    names = ["happy", "hopper", "angry", "surprised"] * 2
    alone = [vote(voter, name) for name in names]
    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(lambda name: vote(voter, name), names)) == alone


def test_the_table_names_real_blendshapes() -> None:
    relaxed = dict.fromkeys(_shapes(), 0.0)
    assert max(probabilities(relaxed), key=probabilities(relaxed).__getitem__) is Expression.NEUTRAL
    for expression, score in SCORES.items():
        shown = dict(relaxed)
        for term in score.terms:
            for name in relaxed:
                if term.weight > 0 and name.removesuffix("Left").removesuffix("Right") == term.blendshape:
                    shown[name] = min(1.0, term.above + term.limit)
        if score.terms:
            assert probabilities(shown)[expression] > probabilities(relaxed)[expression]


def _shapes() -> tuple[str, ...]:
    from tasks.faces.geometry import BLENDSHAPES

    return BLENDSHAPES
