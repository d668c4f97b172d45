"""Generate: whatever an editor gives back, each owed candidate leaves once, and says what it is."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from schemas.config import GenerateCut, GenerateMeasure
from schemas.expressions import Expression
from schemas.outcomes import FailureKind, Reason, Status
from schemas.records import Candidate, Key, Motion, Photo
from tasks.editors import EDITORS, EditRequest
from tasks.engine.calls import Calls
from tasks.engine.errors import ItemFailed
from tasks.engine.execute import Executor
from tasks.engine.images import ImageStore
from tasks.engine.registry import Adapter
from tasks.engine.shards import Shard
from tasks.engine.stage import Context, Failed, Item
from tasks.engine.store import Store
from tasks.generate import Generate, how_moved
from tests.doors import SHUT
from tests.metrics.test_registration import edited, moved
from tests.photos import jpeg, photo, picture

STILL = Motion(dx=0, dy=0, zoom=1, stretch=1, turn=0, confidence=1)


def gives(make: Callable[[Sequence[EditRequest]], Any]) -> type[Adapter]:
    class Odd(Adapter):
        def edit(self, requests: Sequence[EditRequest], call: Calls) -> Any:
            return make(requests)

    return Odd


def each(make: Callable[[EditRequest], Any]) -> type[Adapter]:
    return gives(lambda requests: [make(request) for request in requests])


class Bench:
    """A generate stage over one photo, with an editor of the test's own."""

    def __init__(self, folder: Path, editor: type[Adapter], **cut: Any) -> None:
        EDITORS.add("odd", editor)
        self.images = ImageStore(Store(folder))
        stored = self.images.put(photo("hopper").pixels)
        height, width = stored.pixels.shape[:2]
        self.stage = Generate(GenerateMeasure(editor="odd"), GenerateCut(**cut))  # type: ignore[arg-type]
        self.photo = Photo(
            key=Key("p", "hopper"), image=stored.digest, width=width, height=height, file_sha256="", pixel_sha256="",
            expression=Expression.NEUTRAL, label_source="given", subject="", path="hopper.jpg", split="", clip="",
            movie="", licence="",
        )  # fmt: skip
        context = Context(0, self.images, SHUT, lambda _: None)
        self.executor = Executor(Store(folder), [self.stage], [], context)

    def measured(self) -> dict[Key, Candidate | Failed]:
        found = self.executor.measure("generate", Shard(0, "shard", ()), [self.photo])
        assert sorted(found) == sorted(self.stage.owes(self.photo)), "none is lost, none is made up"
        return found

    def outcomes(self) -> list[Any]:
        found = {key: value for key, value in self.measured().items() if isinstance(value, Candidate)}
        return [outcome for _, outcome in self.stage.cut([Item(key, self.photo, found[key]) for key in found])]


@pytest.fixture(autouse=True)
def _editors(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(EDITORS, "_entries", dict(EDITORS._entries))


SOURCE = photo("hopper").pixels
ODD: dict[str, Any] = {
    "None": lambda _: None,
    "a list of video frames": lambda _: [SOURCE, SOURCE],
    "a clip as one array": lambda _: np.stack([SOURCE] * 4),
    "NaN": lambda _: np.full(SOURCE.shape, np.nan, np.float32),
    "floats": lambda _: SOURCE / np.float32(255),
    "grey": lambda _: SOURCE[..., 0],
    "RGBA": lambda _: np.dstack([SOURCE, SOURCE[..., :1]]),
    "empty": lambda _: SOURCE[:0],
    "black": lambda _: np.zeros_like(SOURCE),
    "nearly black": lambda _: np.random.default_rng(0).integers(0, 4, SOURCE.shape, np.uint8),
    "blue": lambda _: np.full(SOURCE.shape, (0, 0, 255), np.uint8),
}


@pytest.mark.parametrize("name", ODD)
def test_what_is_no_picture_fails_in_words(name: str, tmp_path: Path) -> None:
    found = Bench(tmp_path, each(ODD[name])).measured()
    assert len(found) == 6
    for failed in found.values():
        assert isinstance(failed, Failed)
        assert failed.kind is FailureKind.BAD_OUTPUT
        assert failed.message.startswith("the editor returned ")
        assert "\n" not in failed.message


def test_an_accident_of_one_request_is_its_own(tmp_path: Path) -> None:
    def edit(request: EditRequest) -> Any:
        if request.target is Expression.FEAR:
            return ItemFailed(FailureKind.REFUSED, "not this one")
        return None if request.target is Expression.SAD else edited("hopper", request.target)

    found = {key.target: value for key, value in Bench(tmp_path, each(edit)).measured().items()}
    assert {target for target, value in found.items() if isinstance(value, Failed)} == {"fear", "sad"}
    assert {value.kind for value in found.values() if isinstance(value, Failed)} == {
        FailureKind.REFUSED,
        FailureKind.BAD_OUTPUT,
    }


def raising(error: Exception) -> Any:
    def edit(_: Sequence[EditRequest]) -> Any:
        raise error

    return edit


@pytest.mark.parametrize(
    ("make", "kind"),
    [
        (raising(MemoryError()), FailureKind.OUT_OF_MEMORY),
        (raising(RuntimeError("boom")), FailureKind.CRASHED),
        (lambda _: None, FailureKind.CRASHED),
        (lambda _: [SOURCE] * 5, FailureKind.CRASHED),
        (lambda _: [SOURCE] * 7, FailureKind.CRASHED),
    ],
)
def test_an_editor_that_breaks_fails_all_it_was_asked_for(make: Any, kind: FailureKind, tmp_path: Path) -> None:
    found = Bench(tmp_path, gives(make)).measured()
    assert [value.kind for value in found.values() if isinstance(value, Failed)] == [kind] * 6


@pytest.mark.parametrize("quality", [None, 95, 90, 75])
def test_the_source_again_is_marked(quality: int | None, tmp_path: Path) -> None:
    again = SOURCE if quality is None else jpeg(photo("hopper"), quality).pixels
    outcomes = Bench(tmp_path, each(lambda _: again.copy())).outcomes()
    assert [(outcome.status, outcome.reason) for outcome in outcomes] == [
        (Status.REJECTED, Reason.UNCHANGED_PICTURE)
    ] * 6


def test_another_size_is_brought_to_the_sources_and_remembered(tmp_path: Path) -> None:
    double = np.ascontiguousarray(edited("hopper").repeat(2, 0).repeat(2, 1))
    bench = Bench(tmp_path, each(lambda _: double))
    for made in bench.measured().values():
        assert isinstance(made, Candidate)
        assert (made.raw_height, made.raw_width) == double.shape[:2]
        assert bench.images.get(made.image).pixels.shape == SOURCE.shape
        assert made.motion is not None
        assert abs(made.motion.dx) + abs(made.motion.dy) < 0.2
    assert {outcome.evidence for outcome in bench.outcomes()} == {""}


def test_a_moved_picture_is_flagged_or_rejected(tmp_path: Path) -> None:
    far = moved(edited("hopper"), 9, -3, 1.04)
    flagged = Bench(tmp_path / "flag", each(lambda _: far)).outcomes()
    assert {outcome.status for outcome in flagged} == {Status.KEPT}
    assert {outcome.evidence for outcome in flagged} == {"the whole picture is shifted by 9.5 px, zoomed by +4.0%"}
    rejected = Bench(tmp_path / "reject", each(lambda _: far), moved="reject").outcomes()
    assert {(outcome.reason, outcome.evidence) for outcome in rejected} == {(Reason.PICTURE_MOVED, flagged[0].evidence)}
    near = moved(edited("hopper"), 3, -2, 1.015)
    assert {outcome.evidence for outcome in Bench(tmp_path / "near", each(lambda _: near)).outcomes()} == {""}


def test_another_shape_is_told(tmp_path: Path) -> None:
    square = np.ascontiguousarray(edited("hopper")[: SOURCE.shape[1]])
    (evidence,) = {outcome.evidence for outcome in Bench(tmp_path, each(lambda _: square)).outcomes()}
    assert evidence.startswith("the whole picture is ")
    assert "stretched" in evidence
    assert evidence.endswith("given as 512 × 512, another shape than 512 × 600")


def test_what_cannot_be_told_is_never_nought(tmp_path: Path) -> None:
    stranger = picture(photo("astronaut").pixels).pixels
    for made in Bench(tmp_path, each(lambda _: stranger)).measured().values():
        assert isinstance(made, Candidate)
        assert made.motion is None
    assert how_moved(None, GenerateCut(max_shift=0)) == ""


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ({"dx": 3.0, "dy": 2.6}, ""),
        ({"dx": 3.0, "dy": 2.7}, "shifted by 4.0 px"),
        ({"zoom": 0.97}, "zoomed by -3.0%"),
        ({"stretch": 1.33}, "stretched by +33.0%"),
        ({"turn": -1.5}, "turned by -1.5°"),
    ],
)
def test_the_limits(values: dict[str, float], words: str) -> None:
    said = how_moved(STILL.model_copy(update=values), GenerateCut())
    assert said == (words and f"the whole picture is {words}")
