"""A config from preset, file and `--set`: who wins, and every mistake in one line that says where and what is known."""

import json
from datetime import date
from pathlib import Path
from typing import Any

import pytest
import yaml

from flows.options import load_config, merge, presets
from schemas.config import BuildConfig
from tasks.engine.errors import ConfigError
from tasks.outside import BY_FIELD, adapters_in
from tasks.pipeline import make_stages, open_pools


def wrong(*sets: str, preset: str | None = "demo", file: Path | None = None) -> ConfigError:
    """The error of a config; it and its hint are a line each."""
    with pytest.raises(ConfigError) as caught:
        load_config(preset, file, sets)
    return told(caught.value)


def told(error: ConfigError) -> ConfigError:
    assert error.exit_code == 2
    assert error.hint, "an error says how to mend it"
    assert "\n" not in str(error)
    assert "pydantic" not in str(error)
    return error


def said(error: ConfigError, *words: str) -> None:
    for word in words:
        assert word in str(error)


# -- what wins ----------------------------------------------------------------------------------------------------


def test_every_preset_is_a_valid_config() -> None:
    assert presets() == ["benchmark", "demo", "folder", "training"]
    for name in presets():
        assert load_config(name).name == name


def test_the_presets_adapters_and_parameters_exist() -> None:
    for name in presets():
        for stage in make_stages(load_config(name), {}):
            for field, spec in adapters_in(stage.measure_params):
                assert BY_FIELD[field].parse(spec.name, spec.params), (name, field)
    assert list(open_pools(load_config("demo"))) == ["samples"]


def test_nothing_chosen_gives_the_defaults() -> None:
    assert load_config() == BuildConfig()


def test_a_file_wins_over_the_preset_and_set_over_both(tmp_path: Path) -> None:
    file = tmp_path / "mine.yaml"
    file.write_text("shard_size: 7\nseed: 3\nrank: {cut: {top_k: 5, min_identity: 0.1}}\n")
    config = load_config("demo", file, ["seed=4", "rank.cut.top_k=6"])
    assert (config.name, config.shard_size, config.seed) == ("demo", 7, 4)
    assert (config.rank.cut.top_k, config.rank.cut.min_identity) == (6, 0.1)
    assert config.rank.cut.max_background_rmse == BuildConfig().rank.cut.max_background_rmse
    assert len(config.screen.measure.label_panel) == 2  # of the preset, untouched by the file


def test_a_later_set_wins() -> None:
    assert load_config("demo", None, ["seed=1", "seed=2"]).seed == 2


def test_mappings_merge_and_lists_are_replaced() -> None:
    base = {"a": {"x": 1, "y": [1, 2]}, "b": 1}
    assert merge(base, {"a": {"y": [3]}, "c": {}}) == {"a": {"x": 1, "y": [3]}, "b": 1, "c": {}}
    assert base == {"a": {"x": 1, "y": [1, 2]}, "b": 1}


@pytest.mark.parametrize(
    ("option", "path", "value"),
    [
        ("limit=null", "limit", None),
        ("limit=3", "limit", 3),
        ("rank.cut.min_identity=-0.5", "rank.cut.min_identity", -0.5),
        ("generate.measure.targets=[sad, fear]", "generate.measure.targets", ["sad", "fear"]),
        ("generate.measure.editor=warp", "generate.measure.editor", {"name": "warp", "params": {}}),
        ("generate.measure.editor.params.x=1", "generate.measure.editor", {"name": "warp", "params": {"x": 1}}),
        ("pools=[samples]", "pools.0.name", "samples"),
        ("pools.0.params.variants=2", "pools.0", {"name": "samples", "params": {"variants": 2}}),
        ("pools.0.name=folder", "pools.0.name", "folder"),
        ("pools.0=folder", "pools.0.name", "folder"),
        ("screen.measure.label_panel.1.params.granularity=coarse", "screen.measure.label_panel.1.name", "blendshapes"),
        ("name='5'", "name", "5"),
        ("pools.0.params.root=a=b", "pools.0.params.root", "a=b"),
    ],
)
def test_set_takes_yaml_and_steps_into_lists_and_bare_names(option: str, path: str, value: Any) -> None:
    node: Any = load_config("demo", None, [option]).model_dump(mode="json")
    for step in path.split("."):
        node = node[int(step)] if isinstance(node, list) else node[step]
    assert node == value


# -- mistakes -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("option", "words"),
    [
        ("nope=1", ("unknown key 'nope'", "shard_size", "pools")),
        ("rank.nope=1", ("unknown key 'rank.nope'", "cut, measure")),
        ("rank.cut.topk=1", ("unknown key 'rank.cut.topk'", "top_k", "identity_weight")),
        ("rank.measure.identity.nam=x", ("unknown key 'rank.measure.identity.nam'", "name, params")),
        ("verify.measure.panel=[{name: fer, x: 1}]", ("unknown key 'verify.measure.panel.0.x'", "name, params")),
        ("rank..top_k=1", ("unknown key 'rank.'", "cut")),
        (
            "generate.measure.top_up=[{target: sad, aim: x}]",
            ("unknown key 'generate.measure.top_up.0.aim'", "target", "called"),
        ),
    ],
)
def test_an_unknown_key_is_named_with_those_known_there(option: str, words: tuple[str, ...]) -> None:
    said(wrong(option), *words)


@pytest.mark.parametrize(
    ("option", "words"),
    [
        ("rank.cut.top_k=many", ("rank.cut.top_k", "integer", "'many'")),
        ("rank.cut.top_k=1.5", ("rank.cut.top_k", "integer", "1.5")),
        ("name=1", ("name", "string", "1")),
        ("rank=3", ("rank", "3")),
        ("rank=", ("rank", "None")),
        ("pools=samples", ("pools", "'samples'")),
        ("generate.measure.targets=[joy]", ("generate.measure.targets.0", "'happy'", "'joy'")),
    ],
)
def test_a_wrong_type_is_named_with_its_place(option: str, words: tuple[str, ...]) -> None:
    said(wrong(option), *words)


@pytest.mark.parametrize(
    ("option", "words"),
    [
        ("rank.cut.top_k=0", ("rank.cut.top_k", "greater than or equal to 1", "0")),
        ("rank.cut.top_k=61", ("rank.cut.top_k", "less than or equal to 60", "61")),
        ("max_failed=1.01", ("max_failed", "less than or equal to 1")),
        ("verify.cut.min_change=.nan", ("verify.cut.min_change", "nan")),
        ("name=Mine!", ("name", "pattern", "'Mine!'")),
        ("split=dev", ("split", "'train'", "'test'", "'dev'")),
        ("pools=[]", ("pools", "at least 1")),
        ("seed=-1", ("seed", "greater than or equal to 0")),
    ],
)
def test_an_impossible_value_is_named_with_what_is_possible(option: str, words: tuple[str, ...]) -> None:
    said(wrong(option), *words)


@pytest.mark.parametrize(
    ("entry", "words"),
    [
        ("{source: sad, target: sad}", "sad is no change from sad"),
        ("{target: fear}", "fear is not among generate.measure.targets"),
        ("{target: sad, called: other}", "there is none"),
        ("{target: sad, editor: {name: warp, params: {intensity: 2}}}", "both called 'warp'"),
        ("{target: sad, attempts: 0}", "greater than or equal to 1"),
        ("{target: sad, editor: warp, called: A b}", "pattern"),
    ],
)
def test_a_top_up_that_cannot_be_is_refused(entry: str, words: str) -> None:
    said(wrong("generate.measure.targets=[sad, happy]", f"generate.measure.top_up=[{entry}]"), "top_up", ".0", words)


def test_a_top_up_may_call_the_same_editor_by_another_name() -> None:
    entry = "{target: sad, editor: {name: warp, params: {intensity: 2}}, called: strong}"
    measure = load_config("demo", None, [f"generate.measure.top_up=[{entry}, {{target: fear}}]"]).generate.measure
    assert {name: editor.params for name, editor in measure.editors.items()} == {"warp": {}, "strong": {"intensity": 2}}


def test_a_key_is_a_word(tmp_path: Path) -> None:
    route = "{model: openai/m, price: {input_per_mtok: 1, output_per_mtok: 2, on: 2026-11-29}, extra_body: {think: no}}"
    (tmp_path / "a.yaml").write_text(f"verify: {{measure: {{panel: [{{name: x, params: {{routes: [{route}]}}}}]}}}}")
    by_file = load_config(None, tmp_path / "a.yaml").verify.measure.panel[0]
    option = f"verify.measure.panel.0={{name: x, params: {{routes: [{route}]}}}}"
    assert by_file == load_config(None, None, [option]).verify.measure.panel[0]
    (route_,) = by_file.params["routes"]
    assert (route_["price"]["on"], route_["extra_body"]["think"]) == (date(2026, 11, 29), False)


def test_infinity_is_refused() -> None:
    said(wrong("rank.cut.background_scale=.inf"), "rank.cut.background_scale", "finite")


@pytest.mark.parametrize("where", ["verify.measure.panel", "screen.measure.label_panel"])
def test_one_adapter_twice_in_a_panel_is_refused(where: str) -> None:
    said(wrong(f"{where}=[fer, {{name: fer, params: {{}}}}]"), where, "twice", "fer")
    load_config("demo", None, [f"{where}=[fer, {{name: fer, params: {{granularity: coarse}}}}]"])


def test_an_unknown_preset_is_named_with_those_that_ship() -> None:
    said(wrong(preset="nope"), "'nope'", "demo, folder")


@pytest.mark.parametrize("option", ["rank.cut.top_k", "=3", "", "rank.cut.top_k:3"])
def test_a_set_without_key_or_value_is_shown_how(option: str) -> None:
    said(wrong(option), f"--set {option}: no '='", "top_k=3")


@pytest.mark.parametrize("value", ["[", "{a", "'x", "!!python/name:os.system", "2000-13-45", "[" * 5000, "a: b: c"])
def test_a_set_whose_value_is_no_yaml_is_refused(value: str) -> None:
    said(wrong(f"limit={value}"), "--set limit=", "not YAML", "quote it")


@pytest.mark.parametrize(
    ("option", "words"),
    [
        ("seed.x=1", ("'seed'", "plain value")),
        ("rank.cut.top_k.x.y=1", ("'top_k'", "plain value")),
        ("limit.x=1", ("'limit'", "plain value")),
    ],
)
def test_stepping_into_a_plain_value_is_refused(option: str, words: tuple[str, ...]) -> None:
    said(wrong(option), f"--set {option}", *words)


@pytest.mark.parametrize("place", ["1", "7", "-1", "x", "²", ""])
def test_a_place_outside_a_list_is_refused(place: str) -> None:
    said(wrong(f"pools.{place}=samples"), f"'{place}' is no place in a list of 1", "start at 0")
    said(wrong(f"pools.{place}.name=samples"), f"'{place}' is no place in a list of 1")


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"name: [a", ("not YAML", "line 1")),
        (b"name: a\nlimit: 1\nname: b", ("'name' stands twice", "line 3")),
        (b"name: a\n  b: c\n", ("not YAML", "line 2")),
        (b"name: !!python/object:os.system x", ("not YAML", "line 1")),
        (b"name: \xff", ("not YAML", "byte 0xff")),
        (b"name: a\0", ("not YAML",)),
        (b"limit: 2000-13-45", ("not YAML", "month")),
        (b"a: " + b"[" * 5000, ("not YAML", "recursion")),
        (b"", ("no mapping",)),
        (b"- a\n", ("no mapping",)),
        (b"plain", ("no mapping",)),
        (b"rank: 3\n", ("rank", "3")),
        (b"rank:\n  cut:\n    topk: 1\n", ("rank.cut.topk", "top_k")),
        (b"pools: [{nam: x}]\n", ("pools.0.name", "required")),
        (b"1: 2\n", ("1", "string")),
    ],
)
def test_a_file_with_a_mistake_is_named_with_it(tmp_path: Path, content: bytes, words: tuple[str, ...]) -> None:
    file = tmp_path / "mine.yaml"
    file.write_bytes(content)
    said(wrong(file=file), *words)


def test_a_file_that_cannot_be_read_is_named_with_why(tmp_path: Path) -> None:
    said(wrong(file=tmp_path / "gone.yaml"), "gone.yaml", "No such file")
    said(wrong(file=tmp_path), str(tmp_path), "directory")
    (tmp_path / "loop.yaml").symlink_to("loop.yaml")
    said(wrong(file=tmp_path / "loop.yaml"), "loop.yaml", "symbolic links")


def test_a_mistake_in_a_long_value_stays_a_short_line() -> None:
    assert len(str(wrong(f"name={'x' * 100_000}"))) < 500


# -- what the adapters refuse ---------------------------------------------------------------------------------------


def identities(*sets: str) -> None:
    config = load_config("demo", None, sets)
    for stage in make_stages(config, open_pools(config)):
        stage.identities()


@pytest.mark.parametrize(
    ("option", "words"),
    [
        ("generate.measure.editor=nope", ("unknown editor 'nope'", "warp")),
        ("screen.measure.faces=nope", ("'nope'", "mediapipe")),
        ("rank.measure.identity=nope", ("'nope'", "sface")),
        ("verify.measure.panel=[nope]", ("unknown voter 'nope'", "blendshapes", "fer")),
        ("review.measure.board=nope", ("'nope'", "auto")),
        ("caption.measure.describer=nope", ("'nope'", "blendshapes")),
        ("pools=[nope]", ("unknown pool 'nope'", "folder", "samples")),
    ],
)
def test_an_unknown_adapter_is_named_with_those_known(option: str, words: tuple[str, ...]) -> None:
    with pytest.raises(ConfigError) as caught:
        identities(option)
    said(told(caught.value), *words)


@pytest.mark.parametrize(
    ("option", "words"),
    [
        ("generate.measure.editor.params.speed=1", ("editor 'warp'", "speed")),
        ("verify.measure.panel.0.params.granularity=5", ("voter 'fer'", "granularity")),
        ("pools.0.params.variants=0", ("pool 'samples'", "variants", "greater than or equal to 1")),
        ("pools=[folder]", ("pool 'folder'", "root", "required")),
    ],
)
def test_a_wrong_parameter_of_an_adapter_is_named(option: str, words: tuple[str, ...]) -> None:
    with pytest.raises(ConfigError) as caught:
        identities(option)
    said(told(caught.value), *words)


def test_an_unknown_parameter_of_an_adapter_is_named_with_those_known() -> None:
    with pytest.raises(ConfigError) as caught:
        identities("pools.0.params.varients=2")
    said(told(caught.value), "varients", "variants")


def test_two_pools_of_one_name_are_refused() -> None:
    with pytest.raises(ConfigError) as caught:
        identities("pools=[samples, {name: samples, params: {variants: 2}}]")
    said(told(caught.value), "'samples'", "`pool`")
    identities("pools=[samples, {name: samples, params: {pool: more}}]")


# -- print-config ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("preset", presets())
def test_a_printed_config_loads_again_to_the_same(
    preset: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    from flows.console import show_config

    root = f"/{'long' * 60}/[bold]:smile:/笑顔 \\ \u0301 'q' \"d\" # no: comment"
    config = load_config(
        preset, None, ["seed=5", f"pools={json.dumps([{'name': 'folder', 'params': {'root': root}}])}"]
    )
    show_config(config, as_json=False)
    printed = capsys.readouterr().out
    file = tmp_path / "printed.yaml"
    file.write_text(printed, encoding="utf-8")
    assert load_config(None, file) == config
    assert load_config("folder", file) == config
    show_config(config, as_json=True)
    assert json.loads(capsys.readouterr().out) == yaml.safe_load(printed)


def test_paths_mean_the_same_wherever_the_config_is_read_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    config = load_config("folder", None, ["pools.0.params.root=photos", "exclude=[bench#benchmark]"])
    assert config.pools[0].params["root"] == str(tmp_path / "photos")
    assert config.exclude == (str(tmp_path / "bench#benchmark"),)
