"""The failures that scores exist to expose: nothing done, somebody else, too little and too much."""

from pathlib import Path

import cv2
import numpy as np
import pytest

from schemas.expressions import EXPRESSIONS, Expression, others
from schemas.outcomes import FailureKind
from schemas.records import Key
from tasks.editors import EDITORS, NO_KEY, EditRequest
from tasks.editors.warp import INTENSITIES, warp_face
from tasks.engine.errors import ConfigError, ItemFailed
from tasks.engine.images import Picture
from tasks.faces import ANALYZERS, EMBEDDERS
from tasks.metrics.change import expression_change
from tasks.metrics.identity import cosine
from tasks.sources.samples import SamplePool
from tests.doors import SHUT
from tests.photos import photo, picture

SAMPLES = SamplePool(SamplePool.Params.model_validate({}))


def sample(name: str) -> Picture:
    return picture(SAMPLES.load(next(one for one in SAMPLES.list() if one.key.source_id == name)).pixels)


def requests(source: Picture, key: Key = NO_KEY, seeds: int = 6) -> list[EditRequest]:
    targets = others(Expression.NEUTRAL)
    return [EditRequest(source, Expression.NEUTRAL, targets[seed % 6], "", seed, key) for seed in range(seeds)]


def test_the_copy_is_the_source() -> None:
    source = photo("landscape")
    for edit in EDITORS.get("copy", {}).edit(requests(source), SHUT):
        assert isinstance(edit, np.ndarray)
        assert np.array_equal(edit, source.pixels)
        edit[:] = 0  # it is the caller's


def test_a_stranger_is_drawn_by_the_seed_and_is_never_the_source() -> None:
    editor = EDITORS.get("random_identity", {})
    source = sample("astronaut")
    for key in (NO_KEY, Key("samples", "astronaut", "happy"), Key("another", "astronaut", "happy")):
        drawn = editor.edit(requests(source, key, seeds=60), SHUT)
        assert [each.tobytes() for each in editor.edit(requests(source, key, seeds=60), SHUT)] == [
            each.tobytes() for each in drawn
        ]
        assert len({each.tobytes() for each in drawn}) > 12, "all photos have their turn"
        own = EMBEDDERS.get("sface", {}).embed(source, ANALYZERS.get("mediapipe", {}).analyze(source)[0])
        for pixels in {each.tobytes(): each for each in drawn}.values():
            shown = picture(pixels)
            (face, *_) = ANALYZERS.get("mediapipe", {}).analyze(shown)
            assert cosine(own, EMBEDDERS.get("sface", {}).embed(shown, face)) < 0.36


def folder(root: Path, **people: str) -> Path:
    """Photos by name, and a manifest that says who is on them."""
    root.mkdir()
    lines = ["path,identity"]
    for name, person in people.items():
        shown = sample(name.replace("_", "-")) if person else photo("landscape")
        cv2.imwrite(str(root / f"{name}.png"), shown.pixels[..., ::-1])
        lines.append(f"{name}.png,{person}")
    (root / "people.csv").write_text("\n".join(lines))
    return root


def test_hints_keep_the_persons_other_photos_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root = folder(tmp_path / "photos", officer="hopper", studio_1="hopper", studio_2="other", scene="")
    source = sample("officer")
    key = Key("folder", "officer.png", "happy")
    params = {"pool": "folder", "root": str(root)}
    both = {each.tobytes() for each in EDITORS.get("random_identity", params).edit(requests(source, key, 40), SHUT)}
    assert both == {sample("studio-1").pixels.tobytes(), sample("studio-2").pixels.tobytes()}, "no hint, and no scene"
    listed = {one.key: one for one in EDITORS.get("random_identity", params)._people.values()}  # type: ignore[attr-defined]
    people = {"officer.png": "hopper", "studio_1.png": "hopper", "studio_2.png": "other", "scene.png": ""}
    editor = EDITORS.adapter_class("random_identity")(EDITORS.parse("random_identity", params))
    hinted = {each: one.model_copy(update={"identity": people[each.source_id]}) for each, one in listed.items()}
    monkeypatch.setattr(type(editor), "_people", hinted)
    assert {each.tobytes() for each in editor.edit(requests(source, key, 40), SHUT)} == {  # type: ignore[attr-defined]
        sample("studio-2").pixels.tobytes()
    }


def test_where_nobody_can_be_drawn_the_edit_fails(tmp_path: Path) -> None:
    root = folder(tmp_path / "photos", officer="hopper", scene="", view="")
    params = {"pool": "folder", "root": str(root)}
    for failed in EDITORS.get("random_identity", params).edit(requests(sample("officer")), SHUT):
        assert isinstance(failed, ItemFailed)
        assert failed.kind is FailureKind.NO_FACE
    for wrong in ({"pool": "folder", "root": str(tmp_path / "gone")}, {"pool": "nowhere"}):
        with pytest.raises(ConfigError):
            EDITORS.check("random_identity", wrong)
    before = EDITORS.identity("random_identity", params)
    (root / "more.png").write_bytes((root / "officer.png").read_bytes())
    assert EDITORS.identity("random_identity", params) != before, "other photos, another draw"


@pytest.mark.parametrize("name", ["officer", "studio-3", "group-a-2"])
def test_the_scale_of_intensity(name: str) -> None:
    source = sample(name)
    analyzer, embedder = ANALYZERS.get("mediapipe", {}), EMBEDDERS.get("sface", {})
    face = analyzer.analyze(source)[0]
    own = embedder.embed(source, face)
    for target in EXPRESSIONS:
        if target is Expression.NEUTRAL:
            continue
        changes, identities = [], []
        for intensity in INTENSITIES.values():
            edit = picture(warp_face(source.pixels, face, target, intensity))
            (after, *_) = analyzer.analyze(edit)
            changes.append(expression_change(face.blendshapes, after.blendshapes))
            identities.append(cosine(own, embedder.embed(edit, after)))
        assert changes == sorted(changes), f"{target}: the expression goes further"
        assert identities == sorted(identities, reverse=True), f"{target}: the person is lost"
        assert identities[0] > 0.85, "a lazy edit keeps the person"
