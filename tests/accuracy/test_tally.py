"""Accuracy of voters and sub-panels: by hand, and against the rule that verification itself applies."""

import random
from collections import Counter
from itertools import combinations

import pytest

from schemas.expressions import EXPRESSIONS, POLARITY, Expression, Polarity
from schemas.outcomes import Abstention
from schemas.paper_accuracy import paper_accuracy
from schemas.records import Vote
from tasks.accuracy.sub_panels import RULES, sub_panels
from tasks.accuracy.tally import Tally
from tasks.metrics.interval import Share
from tasks.verify import winner


def vote(voter: str, answer: Expression | Polarity | Abstention) -> Vote:
    if isinstance(answer, Abstention):
        return Vote(voter=voter, granularity="coarse", abstained=answer)
    if isinstance(answer, Polarity):
        return Vote(voter=voter, granularity="coarse", polarity=answer)
    return Vote(voter=voter, granularity="fine", expression=answer, polarity=POLARITY[answer])


def silent(voter: str, kind: Abstention, granularity: str = "fine") -> Vote:
    return Vote(voter=voter, granularity=granularity, abstained=kind)


def test_an_abstention_is_no_class_and_is_told() -> None:
    tally = Tally()
    for truth, fine, coarse in (
        (Expression.HAPPY, vote("Ada", Expression.HAPPY), vote("Bo", Polarity.POSITIVE)),
        (Expression.SAD, vote("Ada", Expression.ANGER), vote("Bo", Abstention.REFUSED)),
        (Expression.SAD, silent("Ada", Abstention.UNPARSABLE), vote("Bo", Polarity.NEUTRAL)),
        (Expression.NEUTRAL, silent("Ada", Abstention.REFUSED), vote("Bo", Abstention.REFUSED)),
    ):
        tally.add(truth, [fine, coarse])
    ada, bo = tally.voters()
    assert ada.fine is not None
    assert (ada.fine.of_all, ada.fine.of_answered) == (Share(1, 4), Share(1, 2))
    assert (ada.coarse.of_all, ada.coarse.of_answered) == (Share(2, 4), Share(2, 2)), "sad and anger are negative"
    assert ada.abstained == {"refused": 1, "unparsable": 1}
    assert bo.fine is None
    assert (bo.coarse.of_all, bo.coarse.of_answered) == (Share(1, 4), Share(1, 2))
    assert bo.confusion["sad"] == {"positive": 0, "neutral": 1, "negative": 0, "abstained": 1}
    assert {truth: sum(said.values()) for truth, said in ada.confusion.items()} == tally.truths()
    assert Share(0, 0).value is None
    assert ada.fine.of_all.plain()["low"] == pytest.approx(0.0456, abs=1e-3)


def test_nothing_shown_is_nothing_said() -> None:
    assert Tally().voters() == []
    assert sub_panels(Tally()) == []


def drawn(voters: int, pictures: int) -> list[tuple[Expression, list[Vote]]]:
    """Votes that are often right; every second voter names polarities."""
    luck = random.Random(7)
    found = []
    for _ in range(pictures):
        truth = luck.choice(EXPRESSIONS)
        votes = []
        for number in range(voters):
            said = truth if luck.random() < 0.5 else luck.choice(EXPRESSIONS)
            if luck.random() < 0.2:
                votes.append(silent(f"v{number}", Abstention.CANNOT_TELL, "coarse" if number % 2 else "fine"))
            else:
                votes.append(vote(f"v{number}", POLARITY[said] if number % 2 else said))
        found.append((truth, votes))
    return found


def test_sub_panels_are_decided_as_verification_decides() -> None:
    shown = drawn(voters=5, pictures=60)
    tally = Tally()
    for truth, votes in shown:
        tally.add(truth, votes)
    found = {(one.granularity, one.rule, one.size): one for one in sub_panels(tally)}
    assert found.keys() == {("coarse", rule, size) for rule in RULES for size in range(1, 6)} | {
        ("fine", rule, size) for rule in RULES for size in range(1, 4)
    }
    for rule in RULES:
        for size in range(1, 6):
            expected = []
            for places in combinations(range(5), size):
                won = [(winner([votes[each] for each in places], rule)[0], POLARITY[truth]) for truth, votes in shown]
                decided = sum(name is not None for name, _ in won)
                expected.append((sum(name is truth for name, truth in won), decided))
            one = found["coarse", rule, size]
            assert one.panels == len(expected)
            assert one.best.of_all == Share(max(hits for hits, _ in expected), 60)
            assert one.average == pytest.approx(sum(hits for hits, _ in expected) / len(expected) / 60)
            assert one.average_decided == pytest.approx(sum(decided for _, decided in expected) / len(expected) / 60)
            assert one.average_of_decided == pytest.approx(
                sum(hits / decided for hits, decided in expected) / len(expected)
            )
    assert found["fine", "valid", 3].best_voters == ("v0", "v2", "v4")
    hits = 0
    for truth, votes in shown:
        named = Counter(one.expression for one in votes if one.expression)
        hits += named[truth] > named.total() / 2
    assert found["fine", "valid", 3].best.of_all.hits == hits


def test_voters_of_one_name_are_told_apart() -> None:
    tally = Tally()
    tally.add(Expression.SAD, [vote("fer", Expression.SAD), vote("fer", Polarity.NEGATIVE)])
    assert sub_panels(tally)[-1].best_voters == ("fer (fine)", "fer (coarse)")


def test_the_papers_figures_are_the_papers() -> None:
    five = next(row for row in paper_accuracy().rows if row.size == 5)
    assert (five.fine.best, five.fine.average) == (66.67, 61.75)
    assert (five.coarse.best, five.coarse.average) == (84.87, 82.27)
