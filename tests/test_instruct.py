"""The check of dense instructions: who is asked what, and every status it can end in."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from schemas.config import InstructMeasure, NoCut
from schemas.expressions import Expression
from schemas.outcomes import BackCheck, FailureKind
from schemas.records import DenseText, GroundTruth, Key
from schemas.routes import CallSettings
from tasks.describers import DESCRIBERS
from tasks.engine.calls import Calls
from tasks.engine.errors import ConfigError
from tasks.engine.images import ImageStore, Picture
from tasks.engine.registry import Adapter
from tasks.engine.stage import Context, Failed
from tasks.engine.store import Store
from tasks.instruct import Instruct
from tests.doors import decoded, routes
from tests.providers.loopback import Asked, Loopback

SOURCE, TRUTH, RUNNER_UP = 10, 20, 30
FIRST, SECOND = "Open the jaw.", "Open the jaw wide and raise both brows. Keep the rest."
NO = "I'm sorry, I can't help with real people."


class Local(Adapter):
    """A writer that has one text."""

    family = "local"

    def instruct(self, source: Picture, ground_truth: Picture, call: Calls, mistaken: str = "") -> str:
        assert not mistaken
        return "Said once."


@pytest.fixture
def ctx(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Context]:
    monkeypatch.setitem(DESCRIBERS._entries, "local", Local)
    call = Calls(tmp_path / "answers.sqlite", CallSettings(backoff_s=0.001, attempts=2), "run")
    yield Context(0, ImageStore(Store(tmp_path)), call, print)
    call.close()


def row(ctx: Context, number: int = 0, runner_up: int | None = RUNNER_UP) -> GroundTruth:
    def put(level: int | None) -> str:
        return "" if level is None else ctx.images.put(np.full((32, 32, 3), level, np.uint8)).digest

    return GroundTruth(
        key=Key("p", f"{number}", "happy", "e"), source_image=put(SOURCE), source_expression=Expression.SAD,
        image=put(TRUTH), instruction="", rank=1, caption="", mode="auto", note="", runner_up=put(runner_up),
    )  # fmt: skip


def levels(asked: Asked) -> list[int]:
    """What the pictures are, in the order they were shown."""
    return [int(decoded(data).pixels[0, 0, 0]) for data in asked.pictures]


class Model:
    """Writes the first text, and a second one when told that somebody was mistaken; chooses what it is told to."""

    def __init__(self, *choices: int | str, second: str = SECOND) -> None:
        self.choices, self.second = list(choices), second
        self.picks: list[tuple[str, list[int]]] = []
        self.written: list[Asked] = []

    def __call__(self, asked: Asked) -> str:
        if "Find the picture" not in asked.text:
            self.written.append(asked)
            text = self.second if "<mistaken>" in asked.text else FIRST
            return text if text.startswith("I'm") else json.dumps({"faces": True, "differs": True, "instruction": text})
        wanted = self.choices.pop(0)
        text = asked.text.partition("<instruction>\n")[2].partition("\n</instruction>")[0]
        self.picks.append((text, levels(asked)))
        return wanted if isinstance(wanted, str) else json.dumps({"choice": "ABC"[levels(asked).index(wanted)]})


def stage(provider: Loopback, **writer: Any) -> Instruct:
    checker = {"name": "mllm", "params": {"name": "C", "routes": routes(provider, "c", family="other")}}
    written_by = writer or {"name": "mllm", "params": {"name": "W", "routes": routes(provider, "w")}}
    return Instruct(InstructMeasure.model_validate({"describer": written_by, "checker": checker}), NoCut())


def told(ctx: Context, model: Model, **changes: Any) -> DenseText | Failed:
    with Loopback(answer=model) as provider:
        ((_, answer),) = stage(provider, **changes.pop("writer", {})).measure([row(ctx, **changes)], ctx)
        return answer


@pytest.mark.parametrize(
    ("choices", "check", "text", "words"),
    [
        ([TRUTH], "passed", FIRST, "the checker chose the ground truth of 3"),
        ([SOURCE, TRUTH], "rewritten", SECOND, "chose the source of 3; rewritten; then the checker chose the ground"),
        (['{"choice": "cannot tell"}', TRUTH], "rewritten", SECOND, "cannot tell; rewritten"),
        (
            [RUNNER_UP, SOURCE],
            "failed",
            SECOND,
            "chose the runner-up of 3; rewritten; then the checker chose the source",
        ),
        ([NO], "abstained", FIRST, "the checker abstains: refused"),
        (["what", "what"], "abstained", FIRST, "the checker abstains: unparsable"),
        ([SOURCE, NO], "abstained", SECOND, "then the checker abstains: refused"),
    ],
)
def test_every_status(ctx: Context, choices: list[int | str], check: str, text: str, words: str) -> None:
    model = Model(*choices)
    answer = told(ctx, model)
    assert isinstance(answer, DenseText)
    assert (answer.back_check, answer.text) == (check, text)
    assert words in answer.evidence
    assert not model.choices
    assert all(sorted(shown) == [SOURCE, TRUTH, RUNNER_UP] for _, shown in model.picks)
    assert model.picks[0][0] == FIRST


def test_the_writer_is_told_what_misled_and_shown_no_third_picture(ctx: Context) -> None:
    model = Model(SOURCE, TRUTH)
    told(ctx, model)
    first, second = model.written
    assert [levels(each) for each in (first, second)] == [[SOURCE, TRUTH]] * 2
    assert "<mistaken>" not in first.text
    assert f"<mistaken>\n{FIRST}\n</mistaken>" in second.text


@pytest.mark.parametrize(
    ("second", "words"),
    [(FIRST, "had no other words"), (NO, "not rewritten: w: refused")],
)
def test_a_writer_without_better_words_leaves_it_failed(ctx: Context, second: str, words: str) -> None:
    answer = told(ctx, Model(SOURCE, second=second))
    assert isinstance(answer, DenseText)
    assert (answer.back_check, answer.text) == (BackCheck.FAILED, FIRST)
    assert words in answer.evidence


def test_without_a_runner_up_two_pictures_are_left(ctx: Context) -> None:
    model = Model(TRUTH)
    answer = told(ctx, model, runner_up=None)
    assert isinstance(answer, DenseText)
    assert answer.evidence == "the checker chose the ground truth of 2"
    assert sorted(model.picks[0][1]) == [SOURCE, TRUTH]


def test_the_pictures_are_shuffled_by_the_key_alone(ctx: Context) -> None:
    model = Model(*[TRUTH] * 24)
    with Loopback(answer=model) as provider:
        list(stage(provider).measure([row(ctx, number) for number in range(24)], ctx))
        places = {shown.index(TRUTH) for _, shown in model.picks}
        assert places == {0, 1, 2}
        asked = len(provider.asked)
        list(stage(provider).measure([row(ctx, number) for number in reversed(range(24))], ctx))
        assert len(provider.asked) == asked, "the same order is the same question"


def test_a_local_writer_is_checked_and_not_asked_again(ctx: Context) -> None:
    answer = told(ctx, Model(SOURCE), writer={"name": "local"})
    assert isinstance(answer, DenseText)
    assert (answer.back_check, answer.text) == (BackCheck.FAILED, "Said once.")


def test_without_a_checker_nothing_is_claimed(ctx: Context) -> None:
    plain = Instruct(InstructMeasure.model_validate({"describer": "local"}), NoCut())
    ((_, answer),) = plain.measure([row(ctx)], ctx)
    assert isinstance(answer, DenseText)
    assert answer.back_check == BackCheck.NOT_CHECKED
    assert "runner_up" in plain.ignores


def test_a_checker_that_cannot_be_reached_fails_the_row_for_now(ctx: Context) -> None:
    with Loopback(answer=Model(TRUTH)) as provider, Loopback() as lame:
        checked = stage(provider)
        lame.always = "503"
        params = checked.measure_params.checker.params
        params["routes"][0] |= {"api_base": lame.url, "provider": "lame"}
        ((_, answer),) = checked.measure([row(ctx)], ctx)
    assert isinstance(answer, Failed)
    assert (answer.kind, answer.retryable) == (FailureKind.PROVIDER, True)


@pytest.mark.parametrize(("writer", "checker"), [("gemini", "gemini"), ("gemini", ""), ("", "glm")])
def test_a_relative_cannot_vouch(writer: str, checker: str) -> None:
    def params(family: str) -> dict[str, Any]:
        route = {"model": "openai/m", "provider": "p", "api_base": "http://127.0.0.1:1/v1", "family": family}
        return {"name": "mllm", "params": {"name": "M", "routes": [route]}}

    measure = InstructMeasure.model_validate({"describer": params(writer), "checker": params(checker)})
    with pytest.raises(ConfigError, match="another family"):
        Instruct(measure, NoCut())


@pytest.mark.parametrize(
    "text", ["Make it like the second picture.", "As in image 2, smile.", "Match the ground truth."]
)
def test_a_text_that_points_at_a_picture_is_sent_back(ctx: Context, text: str) -> None:
    answers = iter([text, FIRST])

    def answer(_: Asked) -> str:
        return json.dumps({"faces": True, "differs": True, "instruction": next(answers)})

    with Loopback(answer=answer) as provider:
        spec = {"name": "mllm", "params": {"name": "W", "routes": routes(provider, "w")}}
        ((_, told_),) = Instruct(InstructMeasure.model_validate({"describer": spec}), NoCut()).measure([row(ctx)], ctx)
    assert isinstance(told_, DenseText)
    assert told_.text == FIRST
    assert len(provider.asked) == 2
