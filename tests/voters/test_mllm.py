"""A voter behind an address, over real HTTP: what becomes of every kind of answer, and what is asked again."""

import json
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from schemas.expressions import Expression, Polarity
from schemas.outcomes import Abstention, FailureKind
from schemas.records import Vote
from schemas.sections import Adapter as Spec
from tasks.engine.calls import Calls
from tasks.engine.decode import encode_png
from tasks.engine.fingerprint import sha256
from tasks.engine.images import Picture
from tasks.engine.stage import Failed
from tasks.voters import VOTERS
from tasks.voters.ballots import Poll
from tests.doors import routes
from tests.providers.loopback import Asked, Loopback

GOOD = json.dumps({"signs": "corners up", "polarity": "positive"})
Opened = Callable[..., Calls]


def drawn(number: int) -> Picture:
    pixels = np.random.default_rng(number).integers(0, 256, (40, 40, 3), np.uint8)
    return Picture(sha256(encode_png(pixels)), pixels)


def vote(provider: Loopback, call: Calls, **params: Any) -> Any:
    return VOTERS.get("mllm", {"name": "M", "routes": routes(provider), **params}).vote(drawn(1), call)


def says(*texts: str) -> Callable[[Asked], str]:
    """Answers one after the other; the last one again and again."""
    left = list(texts)
    return lambda _: left.pop(0) if len(left) > 1 else left[0]


def test_an_answer_has_its_words_and_its_model(opened: Opened) -> None:
    with Loopback(answer=says(GOOD)) as provider:
        ballot = vote(provider, opened())
    assert (ballot.answer, ballot.abstained, ballot.raw) == (Polarity.POSITIVE, None, GOOD)
    assert (ballot.model, ballot.repaired) == ("m-1", False)
    (asked,) = provider.asked
    assert "three words" in asked.text
    assert asked.body["response_format"]["json_schema"]["schema"]["required"] == ["signs", "polarity"]


def test_a_fine_voter_names_an_expression(opened: Opened) -> None:
    with Loopback(answer=says('{"signs": "", "expression": "fear"}')) as provider:
        assert vote(provider, opened(), granularity="fine").answer is Expression.FEAR
    assert "seven words" in provider.asked[0].text


def test_what_cannot_be_read_is_asked_for_once_more_and_that_is_recorded(opened: Opened) -> None:
    with Loopback(answer=says("Rather happy, I would say.", GOOD)) as provider:
        ballot = vote(provider, opened())
        assert (ballot.answer, ballot.raw, ballot.repaired) == (Polarity.POSITIVE, GOOD, True)
        assert vote(provider, opened(replay_only=True)) == ballot
    first, second = provider.asked
    roles = [message["role"] for message in second.body["messages"]]
    assert roles == ["user", "assistant", "user"]
    assert second.body["messages"][0] == first.body["messages"][0]
    assert "Rather happy" in second.text
    assert second.text.endswith('{"signs": "what brows, eyes, nose and mouth do", "polarity": "the word"}')


@pytest.mark.parametrize(
    ("text", "kind", "asked"),
    [
        ("It is hard to say.", Abstention.UNPARSABLE, 2),
        ('{"polarity": "positive"} {"polarity": "negative"}', Abstention.UNPARSABLE, 2),
        ("", Abstention.UNPARSABLE, 2),
        ("<think>well", Abstention.TRUNCATED, 2),
        ('{"polarity": "cannot tell"}', Abstention.CANNOT_TELL, 1),
        ("I'm sorry, I can't help with real people.", Abstention.REFUSED, 1),
    ],
)
def test_after_that_it_is_an_abstention_with_its_words(opened: Opened, text: str, kind: Abstention, asked: int) -> None:
    with Loopback(answer=says(text)) as provider:
        ballot = vote(provider, opened())
    assert (ballot.answer, ballot.abstained, ballot.raw) == (None, kind, text)
    assert ballot.repaired == (asked == 2)
    assert len(provider.asked) == asked
    assert all(message["content"] for each in provider.asked for message in each.body["messages"])


@pytest.mark.parametrize(
    ("fault", "kind", "words"),
    [
        ("400 policy", Abstention.FILTERED, "safety system"),
        ("400 other", Abstention.NOT_TAKEN, "too small"),
        ("filtered", Abstention.FILTERED, "content_filter"),
        ("refusal field", Abstention.REFUSED, "can't help"),
        ("truncated", Abstention.TRUNCATED, '{"signs"'),
    ],
)
def test_what_the_provider_says_against_it_is_an_abstention(
    opened: Opened, fault: str, kind: Abstention, words: str
) -> None:
    with Loopback(answer=says(GOOD)) as provider:
        provider.always = fault
        ballot = vote(provider, opened())
    assert (ballot.answer, ballot.abstained) == (None, kind)
    assert words in ballot.raw


# -- a panel ----------------------------------------------------------------------------------------------------


def polled(panel: list[Spec], pictures: list[Picture], call: Calls) -> list[Any]:
    poll = Poll(panel, {each.digest: each for each in pictures}.__getitem__, call)
    for each in pictures:
        poll.show(each)
    return poll.votes()


def panel_of(provider: Loopback, *models: str) -> list[Spec]:
    return [Spec(name="mllm", params={"name": each.upper(), "routes": routes(provider, each)}) for each in models]


def test_a_panel_is_asked_at_once_and_answers_in_its_order(opened: Opened) -> None:
    pictures = [drawn(number) for number in range(20)]

    def answer(asked: Asked) -> str:
        return json.dumps({"polarity": "negative" if asked.model == "a" else "neutral"})

    limit = {"limit": {"concurrency": 64}}
    with Loopback(answer=answer, delay_s=0.3) as provider:
        panel = [
            Spec(name="mllm", params={"name": each.upper(), "routes": routes(provider, each, **limit)})
            for each in ("a", "b", "c", "d")
        ]
        votes = polled(panel, pictures, opened())
    assert 24 < provider.peak <= 64, "many at once, of all voters and pictures"
    assert len(provider.asked) == 80
    for row in votes:
        assert [vote.voter for vote in row] == ["A", "B", "C", "D"]
        assert [vote.model for vote in row] == ["a", "b", "c", "d"]
        assert [vote.polarity for vote in row] == [Polarity.NEGATIVE, *[Polarity.NEUTRAL] * 3]


def test_one_that_cannot_be_reached_fails_the_row_and_alone_is_asked_again(opened: Opened) -> None:
    pictures = [drawn(number) for number in range(3)]
    with Loopback(answer=says(GOOD)) as provider, Loopback(answer=says(GOOD)) as lame:
        panel = panel_of(provider, "a", "b") + panel_of(lame, "c")
        lame.always = "503"
        votes = polled(panel, pictures, opened(attempts=3))
        assert all(isinstance(row, Failed) for row in votes)
        assert {(row.kind, row.retryable) for row in votes} == {(FailureKind.PROVIDER, True)}
        assert all(row.message.startswith("C: 503") for row in votes)
        assert (len(provider.asked), len(lame.asked)) == (6, 9)
        lame.always = None
        again = polled(panel, pictures, opened(attempts=3))
        assert (len(provider.asked), len(lame.asked)) == (6, 12)
    assert all(isinstance(vote, Vote) and vote.polarity for row in again for vote in row)


def test_one_model_may_sit_twice_and_is_asked_twice(opened: Opened) -> None:
    with Loopback(answer=says(GOOD, '{"polarity": "neutral"}')) as provider:
        (spec,) = panel_of(provider, "a")
        twice = spec.model_copy(update={"params": spec.params | {"repeat": 1}})
        ((first, second),) = polled([spec, twice], [drawn(1)], opened())
    assert [(vote.voter, vote.repeat) for vote in (first, second)] == [("A", 0), ("A", 1)]
    assert len(provider.asked) == 2
