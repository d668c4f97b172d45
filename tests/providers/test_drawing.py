"""Pictures over real HTTP, by every wire: what is sent, what comes back, what becomes of what does not."""

import json
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from schemas.outcomes import FailureKind
from tasks.editors import Edit
from tasks.editors.api import read
from tasks.engine.calls import Calls
from tasks.engine.decode import decode
from tasks.engine.errors import ConfigError, ItemFailed, NotSent, StoppedError, TransientError, WorkspaceError
from tasks.engine.fingerprint import sha256
from tasks.providers.drawing import Drawn, Sketch, drawing_request
from tasks.providers.web import check_address
from tests.providers.asking import KEY, KEY_ENV
from tests.providers.drawing import SIDE, edited, editor, request, way
from tests.providers.loopback_images import ImageLoopback, tinted

Opened = Callable[..., Calls]
WIRES = ("hosted_vllm/m-1", "openai/m-1", "ark/m-1", "gemini/m-1", "bfl/flux-1")


@pytest.fixture
def provider() -> Iterator[ImageLoopback]:
    with ImageLoopback(key=KEY) as serving:
        yield serving


def made(results: Sequence[Edit | ItemFailed]) -> NDArray[np.uint8]:
    """The pixels of the one edit."""
    (result,) = results
    assert isinstance(result, Edit)
    return result.pixels


def raw(calls: Calls, by: Any, number: int) -> dict[str, Any]:
    """The stored answer to an edit."""
    asked = request(number)
    sketch = Sketch(asked.source, asked.instruction, asked.seed, by.params.side, by.params.seeded)
    answer = calls.recall(drawing_request(by.params.routes[0], sketch))
    assert answer is not None
    found: dict[str, Any] = json.loads(answer)
    return found


@pytest.mark.parametrize("model", WIRES)
def test_what_goes_on_a_wire_and_what_comes_back(opened: Opened, provider: ImageLoopback, model: str) -> None:
    calls, by = opened(), editor(way(provider.url, model))
    result = made(by.edit([request(3)], calls))
    (wanted,) = provider.wanted
    assert np.array_equal(result, decode(tinted(wanted))), "to the level"
    assert np.array_equal(decode(wanted.picture), request(3).source.pixels)
    assert wanted.text == request(3).instruction, "the instruction as it stands, and nothing else"
    assert "'seed': 3" in str(wanted.fields) or "'seed': '3'" in str(wanted.fields)
    assert provider.keys == {KEY}
    (total,) = calls.totals()
    assert (total.role, total.model, total.calls, total.images) == ("editor", model, 1, 1)
    assert total.cost == pytest.approx(0.04)
    stored = raw(calls, by, 3)
    assert sha256(calls.blobs.get(stored["picture"])) == stored["picture"]
    assert stored["model"] == ("m-1-dated" if model.startswith("gemini") else model.partition("/")[2])


@pytest.mark.parametrize("met", ["url", "jpeg", "grey", "alpha", "cmyk", "half"])
def test_pictures_of_any_kind_come_in_as_rgb(opened: Opened, provider: ImageLoopback, met: str) -> None:
    provider.always = met
    result = made(editor(way(provider.url)).edit([request(1)], opened()))
    side = SIDE // 2 if met == "half" else SIDE
    assert (result.shape, result.dtype) == ((side, side, 3), np.uint8)
    if met == "grey":
        assert np.array_equal(result[..., 0], result[..., 2])
    if met in ("jpeg", "cmyk"):
        plain = decode(tinted(provider.wanted[0])).astype(int)
        assert np.abs(result.astype(int) - plain)[: SIDE // 4, : SIDE // 4].mean() < 12


@pytest.mark.parametrize(
    ("model", "met", "kind", "words", "calls"),
    [
        ("hosted_vllm/m-1", "null", FailureKind.REFUSED, "an answer without a picture", 1),
        ("ark/m-1", "no data", FailureKind.REFUSED, "an answer without a picture", 1),
        ("gemini/m-1", "null", FailureKind.REFUSED, "filter: content_filter", 1),
        ("gemini/m-1", "blocked", FailureKind.REFUSED, "filter: content_filter", 1),
        ("gemini/m-1", "prose refusal", FailureKind.REFUSED, "I can't edit photos of real people", 1),
        ("gemini/m-1", "chatter", FailureKind.REFUSED, "What a face!", 2),
        ("bfl/flux-1", "null", FailureKind.REFUSED, "Content Moderated: a face", 1),
        ("hosted_vllm/m-1", "400 policy", FailureKind.REFUSED, "safety system", 1),
        ("gemini/m-1", "400 policy", FailureKind.REFUSED, "safety system", 1),
        ("hosted_vllm/m-1", "400 other", FailureKind.PROVIDER, "too small", 1),
        ("hosted_vllm/m-1", "not a picture", FailureKind.BAD_OUTPUT, "not_an_image", 2),
        ("hosted_vllm/m-1", "animated", FailureKind.BAD_OUTPUT, "animated", 2),
    ],
)
def test_what_is_no_picture_is_a_failure_with_its_words(  # noqa: PLR0917
    opened: Opened, provider: ImageLoopback, model: str, met: str, kind: FailureKind, words: str, calls: int
) -> None:
    provider.always = met
    by = editor(way(provider.url, model))
    for _ in range(2):
        (result,) = by.edit([request(1)], opened())
        assert isinstance(result, ItemFailed)
        assert (result.kind, result.retryable) == (kind, False)
        assert words in str(result)
        assert len(provider.met) == calls, "what is known is not asked for again"


def test_what_passes_is_waited_for(opened: Opened, provider: ImageLoopback) -> None:
    for number, fault in enumerate(("429", "429 after", "500", "503", "reset", "cut json", "html", "hang")):
        for model in ("hosted_vllm/m-1", "gemini/m-1", "bfl/flux-1"):
            provider.always = fault
            by = editor(way(provider.url, model, timeout_s=1.5))
            ended = edited(opened(attempts=2), by, number)
            assert ended.startswith("provider for now"), (fault, model, ended)
            provider.always = None
            assert len(edited(opened(), by, number)) == 64


def test_an_address_is_fetched_again_and_not_paid_again(opened: Opened, provider: ImageLoopback) -> None:
    provider.always, provider.on_the_way = "url", ["500", "html", "moved", "ok"]
    by = editor(way(provider.url))
    assert len(edited(opened(), by, 1)) == 64
    assert (len(provider.met), provider.fetched) == (1, ["500", "html", "moved", "ok"])
    provider.on_the_way = ["away"] * 6
    assert edited(opened(), by, 2).startswith("provider for now: the answer lies at an address that is not fetched")
    assert len(provider.met) == 2
    # What has expired is asked for anew.
    provider.on_the_way = ["no model", "ok"]
    assert len(edited(opened(), by, 3)) == 64
    assert len(provider.met) == 4


def test_a_job_under_way_is_asked_after_again_and_not_sent_again(opened: Opened, provider: ImageLoopback) -> None:
    provider.on_the_way = ["Pending", "500", "Processing", "Ready", "503", "ok"]
    assert len(edited(opened(), editor(way(provider.url, "bfl/flux-1")), 1)) == 64
    assert (len(provider.met), provider.on_the_way) == (1, [])
    provider.on_the_way = ["Task not found"]
    assert len(edited(opened(), editor(way(provider.url, "bfl/flux-1")), 2)) == 64
    assert len(provider.met) == 3


def test_addresses_that_are_not_fetched_from() -> None:
    own = ("http://127.0.0.1:8/x", "http://localhost/x", "http://[::1]/x", "https://127.0.0.1/x")
    for url in ("https://cdn.example/x.png", *own):
        check_address(url, here=True)
    check_address("https://cdn.example/x.png", here=False)
    for url in own:  # of a service elsewhere, whose words must not make this machine ask its own servers
        with pytest.raises(TransientError, match="not fetched from"):
            check_address(url, here=False)
    inner = ("https://10.0.0.1/x", "https://169.254.169.254/latest/meta-data")
    for url in ("http://cdn.example/x", "ftp://127.0.0.1/x", "file:///etc/passwd", *inner, "x.png", "http://[::1"):
        with pytest.raises(TransientError, match="not fetched from"):
            check_address(url, here=True)


def test_an_answer_at_no_address_fails_and_one_at_this_machine_is_not_fetched_for_a_stranger(
    opened: Opened, provider: ImageLoopback, monkeypatch: pytest.MonkeyPatch
) -> None:
    provider.always = "url"
    with monkeypatch.context() as broken:
        broken.setattr(provider, "_laid", lambda _: "http://[::1")
        ended = edited(opened(attempts=1), editor(way(provider.url)), 1)
    assert ended.startswith("provider for now: the answer lies at")
    monkeypatch.setattr("tasks.providers.images.stays_here", lambda _: False)
    assert edited(opened(attempts=1), editor(way(provider.url)), 2).startswith("provider for now: the answer lies at")
    assert provider.fetched == []


def test_an_edit_is_known_again_by_what_decides_it(opened: Opened, provider: ImageLoopback) -> None:
    calls, by = opened(), editor(way(provider.url))
    first = made(by.edit([request(1)], calls))
    same = editor(way(provider.url, timeout_s=9, price=None, family="f", key_env=KEY_ENV), watermark="w", name="other")
    assert np.array_equal(made(same.edit([request(1)], calls)), first)
    assert len(provider.met) == 1
    others = [
        editor(way(provider.url, "hosted_vllm/m-2")),
        editor(way(provider.url, extra_body={"steps": 4})),
        editor(way(provider.url), side=64),
        editor(way(provider.url), seeded=False),
    ]
    for number, other in enumerate(others, 2):
        other.edit([request(1)], calls)
        assert len(provider.met) == number
    by.edit([request(1, seed=9)], calls)
    assert len(provider.met) == 6


def test_the_next_route_is_asked_where_one_stays_unreachable(opened: Opened, provider: ImageLoopback) -> None:
    down = way("http://127.0.0.1:9/v1", provider="down")
    by = editor(down, way(provider.url))
    first = edited(opened(attempts=2), by, 1)
    assert len(first) == 64
    assert edited(opened(attempts=2), by, 1) == first
    assert len(provider.met) == 1


def test_a_replay_needs_neither_key_nor_network(
    opened: Opened, provider: ImageLoopback, monkeypatch: pytest.MonkeyPatch
) -> None:
    by = editor(way(provider.url))
    first = edited(opened(), by, 1)
    monkeypatch.delenv(KEY_ENV)
    assert edited(opened(replay_only=True), by, 1) == first
    with pytest.raises(NotSent, match="no stored answer"):
        edited(opened(replay_only=True), by, 2)
    with pytest.raises(ConfigError, match=KEY_ENV):
        edited(opened(), by, 2)
    assert len(provider.met) == 1


def test_a_lost_picture_is_said_and_not_paid_for_again(opened: Opened, provider: ImageLoopback, tmp_path: Path) -> None:
    by = editor(way(provider.url))
    edited(opened(), by, 1)
    (blob,) = tmp_path.glob("answers/*/*")
    blob.write_bytes(b"damaged")
    with pytest.raises(WorkspaceError, match="is damaged"):
        edited(opened(), by, 1)
    blob.unlink()
    with pytest.raises(WorkspaceError, match="is gone"):
        edited(opened(), by, 1)
    assert len(provider.met) == 1


def test_the_budget_holds_by_the_price_of_a_picture(opened: Opened, provider: ImageLoopback) -> None:
    by = editor(way(provider.url))
    calls = opened(role_budgets={"editor": 0.1})
    assert len(edited(calls, by, 1)) == len(edited(calls, by, 2)) == 64
    with pytest.raises(StoppedError, match=r"role_budgets.editor: \$0.0800 of \$0.1000 is spent"):
        edited(calls, by, 3)
    assert len(provider.met) == 2


def test_a_strangers_words_steer_no_terminal(opened: Opened) -> None:
    failed = read(Drawn("", "", "", "\x1b]0;own\x07no\x9b31m\n faces: né", "m"), opened().blobs)
    assert str(failed) == "m: ]0;own no 31m faces: né"


def test_unknown_prices_are_null(opened: Opened, provider: ImageLoopback) -> None:
    calls = opened()
    edited(calls, editor(way(provider.url, price=None)), 1)
    provider.always = "null"
    edited(calls, editor(way(provider.url)), 2)
    (total,) = calls.totals()
    assert (total.calls, total.unpriced, total.cost, total.images) == (2, 2, 0.0, 1)


def test_litellms_own_edit_reaches_other_providers(opened: Opened, provider: ImageLoopback) -> None:
    provider.usage["input_tokens_details"] = {"image_tokens": 258, "text_tokens": 42}
    assert len(edited(opened(), editor(way(provider.url, "litellm_proxy/m-1")), 1)) == 64
    assert provider.keys == {KEY}
