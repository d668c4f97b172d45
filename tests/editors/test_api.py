"""Hosted editors: the table that ships, what a config makes of it, and a whole build that edits outside."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from schemas.config import BuildConfig
from schemas.hosted import shipped_editors
from schemas.routes import routes_in
from tasks import pipeline
from tasks.dataset.verify import verify
from tasks.editors import EDITORS
from tasks.engine.errors import ConfigError
from tasks.engine.store import Store
from tasks.forecast.asks import asks, price
from tasks.outside import adapters_in
from tasks.pipeline import Run, open_run
from tasks.results import Result, finish
from tests import fakes
from tests.builds import built, config
from tests.dataset.test_publish import rows_of
from tests.doors import routes, warped
from tests.fakes import tree
from tests.providers.drawing import PRICE
from tests.providers.loopback_images import TRANSIENT, ImageLoopback

FAULTS = tuple(fault for fault in TRANSIENT if fault != "hang")


def settings(editor: Any, **fields: Any) -> BuildConfig:
    return config(limit=3, generate={"measure": {"editor": editor}}, **fields)


def shipped(name: str) -> dict[str, Any]:
    return {"name": "api", "params": {"model": name}}


def parsed(name: str) -> Any:
    return EDITORS.parse("api", {"model": name})


@pytest.mark.parametrize("name", shipped_editors())
def test_a_shipped_editor_can_be_asked(name: str) -> None:
    params = parsed(name)
    EDITORS.check("api", {"model": name})
    assert params.name == name
    assert EDITORS.family("api", {"model": name})
    for route in params.routes:
        assert route.pictures == "png", "nothing but the model changes the background"
        assert route.price is None or route.price.as_of.year == 2026
    here = all((route.api_base or "").startswith("http://127.0.0.1") for route in params.routes)
    assert EDITORS.sends_outside("api", {"model": name}) == (not here)
    dollars = EDITORS.adapter_class("api").dollars(params)
    assert dollars == 0.0 if here else dollars is None or 0.01 < dollars < 0.3
    assert bool(params.routes[0].key_env) == (not here)


def test_those_of_the_paper_and_its_rivals_ship() -> None:
    assert {"nano-banana", "nano-banana-pro", "gpt-image-2", "seedream-4", "seededit-3", "flux-kontext-pro"} | {
        "flux-kontext-max",
        "flux-2-pro",
        "qwen-image-edit-plus",
        "omnigen2",
        "step1x-edit",
        "bagel",
        "dreamomni2",
    } <= shipped_editors().keys()
    assert shipped_editors()["nano-banana"].watermark.startswith("SynthID")


def test_a_name_is_spelled_out_and_can_be_changed() -> None:
    spelled = settings({"name": "api", "params": {"model": "nano-banana", "side": 512}})
    editor = spelled.generate.measure.editor
    assert (editor.label, editor.params["side"], "model" in editor.params) == ("nano-banana", 512, False)
    assert [route.key_env for route in routes_in(spelled.model_dump(mode="json"))] == ["GEMINI_API_KEY"]
    assert BuildConfig.model_validate(spelled.model_dump(mode="json")) == spelled
    with pytest.raises(ValueError, match="unknown hosted editor 'nanana', choose one of: nano-banana,"):
        settings({"name": "api", "params": {"model": "nanana"}})
    second = {"target": "happy", "editor": {"name": "api", "params": {"model": "bagel"}}, "called": "bagel"}
    topped = config(generate={"measure": {"top_up": [second]}})
    assert topped.generate.measure.editors["bagel"].params["seeded"] is True


def test_prices_days_and_names_ask_nothing_anew() -> None:
    ways = [route.model_dump(mode="json") for route in parsed("nano-banana").routes]
    plain = EDITORS.identity("api", {"name": "x", "routes": ways})
    ways[0] |= {"price": None, "retires": None, "timeout_s": 1.0}
    assert EDITORS.identity("api", {"name": "y", "watermark": "w", "routes": ways}) == plain
    assert EDITORS.identity("api", {"name": "x", "side": 512, "routes": ways}) != plain


@pytest.mark.parametrize(
    ("route", "words"),
    [
        ({"model": "anthropic/claude", "key_env": "K"}, "nobody knows how to ask anthropic/claude for a picture"),
        ({"model": "openai/m", "key_env": "K", "batch": True}, "openai/m cannot be asked for pictures in batches"),
        ({"model": "openai/m", "key_env": "K", "extra_body": {"prompt": "x"}}, "extra_body of openai/m holds 'prompt'"),
    ],
)
def test_routes_that_cannot_work_are_named_before_anything_is_asked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, route: dict[str, Any], words: str
) -> None:
    monkeypatch.setenv("K", "k")
    wrong = {"name": "api", "params": {"name": "x", "routes": [route]}}
    with pytest.raises(ConfigError, match=words):
        open_run(tmp_path, settings(wrong, acknowledge_external_api=True))


def test_a_missing_key_is_named_before_anything_is_asked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("BFL_API_KEY", raising=False)
    with pytest.raises(ConfigError, match="the variable BFL_API_KEY is empty or not set"):
        open_run(tmp_path, settings(shipped("flux-kontext-pro"), acknowledge_external_api=True))


def test_restricted_faces_go_to_a_local_server_only(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GEMINI_API_KEY", "k")
    monkeypatch.setenv("OPENROUTER_API_KEY", "k")
    fakes.install()

    def restricted(model: str) -> BuildConfig:
        return fakes.config(f"generate.measure.editor={{name: api, params: {{model: {model}}}}}")

    with pytest.raises(ConfigError, match="editor 'nano-banana' of stage 'generate' sends pictures to an outside"):
        open_run(tmp_path, restricted("nano-banana"))
    open_run(tmp_path, restricted("bagel"))
    pipeline._worker.cache_clear()


@pytest.mark.parametrize(("name", "dollars"), [("flux-kontext-max", 0.08), ("seedream-4", None)])
def test_a_forecast_counts_pictures(name: str, dollars: float | None) -> None:
    (ask,) = [ask for ask in asks(settings(shipped(name))) if ask.role == "edit"]
    assert price(ask, ()).value == dollars
    assert ask.model == parsed(name).routes[0].model


# -- a build ----------------------------------------------------------------------------------------------------


def build(folder: Path, editor: Any, **calls: Any) -> tuple[Run, Result]:
    pipeline._worker.cache_clear()
    with Store(folder).lock():
        run, done = built(folder, settings(editor, calls={"backoff_s": 0.01, "attempts": 8} | calls))
        return run, finish(run, done)


@pytest.fixture(scope="module")
def outside(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Path, Any, ImageLoopback, Run, Result]]:
    folder = tmp_path_factory.mktemp("hosted") / "workspace"
    with ImageLoopback(drawn=warped, share=0.2, faults=FAULTS) as provider:
        provider.dated = "warp-2026-11-01"
        way = routes(provider, "warp", price=PRICE)[0] | {"model": "hosted_vllm/warp"}
        editor = {"name": "api", "params": {"name": "Warp", "routes": [way], "watermark": "a corner", "side": 4096}}
        run, result = build(folder, editor)
    yield folder, editor, provider, run, result
    run.executor.context.call.close()


def test_it_makes_what_the_local_editor_makes(
    outside: tuple[Path, Any, ImageLoopback, Run, Result], tmp_path: Path
) -> None:
    _, _, provider, run, result = outside
    _, local = build(tmp_path, "warp")
    here, there = (rows_of(one.dataset, "data") + rows_of(one.dataset, "rejected") for one in (local, result))
    shown = [
        {(row["source_id"], row["target"]): row.get("ground_truth_sha256") or row.get("image_sha256") for row in rows}
        for rows in (here, there)
    ]
    assert shown[0] == shown[1]
    assert len(shown[0]) >= 12
    edits = sum(met == "ok" for met in provider.met)
    (total,) = [total for total in run.executor.context.call.totals() if total.role == "editor"]
    assert (total.calls, total.calls - total.failed, total.images) == (len(provider.met), edits, edits)
    assert total.cost == pytest.approx(0.04 * edits)


def test_rows_and_card_say_who_made_it_and_how_it_is_marked(
    outside: tuple[Path, Any, ImageLoopback, Run, Result],
) -> None:
    result = outside[4]
    rows = rows_of(result.dataset, "data")
    assert {(row["editor_model"], row["watermark"]) for row in rows} == {("warp-2026-11-01", "a corner")}
    assert "Pictures are marked: a corner." in (result.dataset / "README.md").read_text()
    assert verify(result.dataset) == []


def test_it_replays_without_a_network_to_the_same_bytes(
    outside: tuple[Path, Any, ImageLoopback, Run, Result], tmp_path: Path
) -> None:
    folder, editor, _, run, result = outside
    run.executor.context.call.close()
    for path in (folder / "answers.sqlite", *folder.glob("answers/*/*")):
        copy = tmp_path / path.relative_to(folder)
        copy.parent.mkdir(parents=True, exist_ok=True)
        copy.write_bytes(path.read_bytes())
    _, again = build(tmp_path, editor, replay_only=True)
    assert tree(again.dataset) == tree(result.dataset)


def test_every_adapter_of_the_build_is_found(outside: tuple[Path, Any, ImageLoopback, Run, Result]) -> None:
    run = outside[3]
    stage = run.executor.stages["generate"]
    assert [(field, spec.label) for field, spec in adapters_in(stage.measure_params)] == [("editor", "Warp")]
