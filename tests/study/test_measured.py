"""The usual metrics on real pictures: measured once, with a reason where there is no number."""

import csv
import json
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import pytest
from typer.testing import CliRunner

from flows.cli import app
from flows.study_console import metric_of
from tasks.engine.errors import ConfigError
from tasks.engine.images import ImageStore
from tasks.engine.store import Store
from tasks.study import measured, plain
from tasks.study.comparers import check_all
from tasks.study.measured import add_measured
from tasks.study.pairs import Pair, read_pairs
from tasks.study.pictures import Album, sights_of
from tests.commands import one_line
from tests.photos import frame, jpeg, photo


@pytest.fixture
def pairs(tmp_path: Path) -> Path:
    """A study of three pairs: a good against a bad output; one unreadable; one of a landscape, without ground truth."""
    shown, later, stranger = frame(0), frame(40), photo("hopper")
    for name, one in (("source", shown), ("truth", later), ("good", jpeg(later, 90)), ("bad", stranger)):
        cv2.imwrite(str(tmp_path / f"{name}.png"), one.pixels[:, :, ::-1])
    cv2.imwrite(str(tmp_path / "land.png"), photo("landscape").pixels[:, :, ::-1])
    (tmp_path / "torn.png").write_bytes((tmp_path / "good.png").read_bytes()[:400])
    told = {"instruction": "change the expression from neutral to happy", "q_1": "a", "q_2": "a", "q_3": "b"}
    rows: list[dict[str, Any]] = [
        {"source": "s", "a": "x", "b": "y", "a_image": "good.png", "b_image": "bad.png", "truth_image": "truth.png"},
        {"source": "s", "a": "x", "b": "z", "a_image": "good.png", "b_image": "torn.png", "truth_image": "truth.png"},
        {"source": "t", "a": "x", "b": "y", "a_image": "good.png", "b_image": "bad.png", "truth_image": ""},
    ]
    path = tmp_path / "pairs.csv"
    with path.open("w", newline="") as file:
        table = csv.DictWriter(file, [*rows[0], *told, "source_image"])
        table.writeheader()
        sources = ("source.png", "source.png", "land.png")
        table.writerows([row | told | {"source_image": shown} for row, shown in zip(rows, sources, strict=True)])
    return path


def measure(path: Path, workspace: Path, *names: str) -> tuple[list[Pair], dict[str, Any]]:
    found, _ = read_pairs(path)
    store = Store(workspace)
    album = Album(ImageStore(store))
    chosen = [metric_of(name) for name in names]
    return found, add_measured(found, sights_of(found, [], album), chosen, album, store, tell=lambda *_: None)


def test_every_number_has_its_reason_and_is_measured_once(
    pairs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found, lacking = measure(pairs, tmp_path / "w", "psnr", "sface")
    first, torn, land = (pair.values for pair in found)
    good, bad = first["PSNR_GT"]
    assert good is not None
    assert bad is not None
    assert good > 30 > bad
    good, bad = first["SFace_F"]
    assert good is not None
    assert bad is not None
    assert good > 0.4 > bad
    assert torn["PSNR"][1] is None
    assert lacking["PSNR"] == {"unreadable picture": 1}
    assert lacking["PSNR_F"] == {"unreadable picture": 1, "no face in the source": 2}
    assert land["PSNR_GT"] == (None, None)
    assert lacking["PSNR_GT"]["no ground truth"] == 2
    assert lacking["SFace_F"]["no face in one of the two"] == 2

    monkeypatch.setattr(plain.Psnr, "compare", lambda *_: pytest.fail("measured again"))
    again, told = measure(pairs, tmp_path / "w", "psnr")
    assert [pair.values["PSNR_F"] for pair in again] == [pair.values["PSNR_F"] for pair in found]
    assert told["PSNR_F"] == lacking["PSNR_F"]


def test_what_is_there_when_it_dies_is_kept(pairs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(measured, "CHUNK", 1)
    whole, _ = measure(pairs, tmp_path / "whole", "l1")
    asked: list[object] = []
    compare = plain.L1.compare

    def fragile(self: plain.L1, *shown: Any) -> float | None:
        asked.append(shown)
        if len(asked) == 6:  # in the second output: the first has four numbers
            raise KeyboardInterrupt
        return compare(self, *shown)

    monkeypatch.setattr(plain.L1, "compare", fragile)
    with pytest.raises(KeyboardInterrupt):
        measure(pairs, tmp_path / "w", "l1")
    asked.extend([None] * 10)
    resumed, _ = measure(pairs, tmp_path / "w", "l1")
    assert [pair.values for pair in resumed] == [pair.values for pair in whole]
    assert len(asked) == 16 + 4 + 2  # the second output's four, and two without face and ground truth


def test_the_face_is_cut_by_the_source(pairs: Path, tmp_path: Path) -> None:
    found, _ = measure(pairs, tmp_path / "w", "l1")
    source, output = (cv2.imread(str(tmp_path / f"{name}.png")).astype(int) for name in ("source", "good"))
    value = found[0].values["L1"][0]
    assert value == pytest.approx(np.abs(source - output).mean())
    assert found[0].values["L1_F"][0] > value  # type: ignore[operator]


def test_the_command_measures_and_draws(pairs: Path, tmp_path: Path) -> None:
    words = ["study", "agreement", str(pairs), "-w", str(tmp_path / "w"), "--metrics", "psnr,l1", "--json"]
    done = CliRunner().invoke(app, words)
    assert done.exit_code == 0, done.output
    told = json.loads(done.stdout)
    of = {one["metric"]: one for one in told["agreement"]}
    assert (of["PSNR_GT"]["value"], of["PSNR_GT"]["n"], of["L1_GT"]["better"]) == (1.0, 1, "lower")
    assert told["without_a_number"]["PSNR"] == {"unreadable picture": 1}
    assert [one["name"] for one in told["metrics"]] == ["psnr", "l1"]
    page = Path(told["page"]).read_text()
    assert "PSNR_GT" in page
    assert str(tmp_path) not in page
    assert json.loads((Path(told["page"]).parent / "agreement.json").read_text())["pairs"] == 3


@pytest.mark.parametrize(
    ("metrics", "message"),
    [
        ("clip", "unknown metric 'clip'"),
        ("dino", "metric 'dino': model: Field required"),
        ("psnr:x", "'x' is no parameter"),
        ("psnr,psnr", "two metrics are called 'PSNR'"),
        ("dino:model=m,revision=main", "needs torch"),
        ("lpips", "needs torch and lpips"),
    ],
)
def test_mistakes_are_one_line(pairs: Path, metrics: str, message: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        "importlib.util.find_spec", lambda name, *_: None if name in ("torch", "lpips", "transformers") else True
    )
    done = CliRunner().invoke(
        app, ["study", "agreement", str(pairs), "-w", str(pairs.parent / "w"), "--metrics", metrics]
    )
    assert done.exit_code == 2, done.output
    told, hint = one_line(done.stderr)
    assert message in told
    assert hint


def test_a_study_without_pictures_or_with_absent_ones_is_refused(pairs: Path, tmp_path: Path) -> None:
    (tmp_path / "bad.png").unlink()
    with pytest.raises(ConfigError, match=r"no picture .*bad\.png"):
        measure(pairs, tmp_path / "w", "l1")
    plain_pairs = [Pair("s", "x", "y", "", "", {"q": ["a"]})]
    with pytest.raises(ConfigError, match="nothing says which pictures"):
        sights_of(plain_pairs, [], Album(ImageStore(Store(tmp_path / "w"))))


def test_a_metric_as_it_is_typed() -> None:
    told = metric_of("dino:name=D,model=some/where,revision=0123")
    assert told == ("dino", {"name": "D", "model": "some/where", "revision": "0123"})
    assert {"D", "D_GT", "D_F", "D_F,GT"} == check_all([told]).keys()
    assert check_all([("lpips", {})])["LPIPS-Ratio_F"] == "near one"
