"""A build that excludes: decided with evidence, at any length of the list; no path of this machine is published."""

import json
import shutil
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from schemas.config import BuildConfig
from schemas.outcomes import Reason
from tasks import pipeline
from tasks.dataset.verify import verify
from tasks.engine.errors import ConfigError
from tasks.engine.store import Store
from tests import builds, fakes, photos
from tests.trees import save

LEAKS = {Reason.LEAK_CLIP, Reason.LEAK_DUPLICATE, Reason.LEAK_IDENTITY}


def decisions(built: fakes.Built) -> dict[str, tuple[str, str]]:
    """Reason and evidence by key, in plan order."""
    executor = built.run.executor
    return {
        str(row.key): (str(row.reason or ""), row.evidence)
        for shard, done in zip(executor.shards, built.done, strict=True)
        for row in executor.decided("screen", shard, done["screen"])
    }


@pytest.fixture
def bench(tmp_path: Path) -> Path:
    """A benchmark of nine fake sources, four of which screening keeps; its pool has another name."""
    fakes.install()
    settings = fakes.config("name=bench", "pools.0.params.pool=bench", sources=9)
    return fakes.build(tmp_path / "bench", settings).run.store.root


def training(*exclude: object, sources: int = 40) -> BuildConfig:
    listed = ", ".join(f'"{path}"' for path in exclude)
    return fakes.config("name=training", "screen.cut.max_per_clip=null", f"exclude=[{listed}]", sources=sources)


def test_leaking_sources_are_rejected_with_the_other_key_and_the_number(bench: Path, tmp_path: Path) -> None:
    plain = decisions(fakes.build(tmp_path / "plain", training(), publishing=False))
    built = fakes.build(tmp_path / "training", training(f"{bench}#bench"))
    found = decisions(built)
    kept = {key.partition("/")[2] for key, (reason, _) in decisions_of_bench(bench).items() if not reason}
    assert {key.partition("/")[2] for key, (reason, _) in found.items() if reason == Reason.LEAK_DUPLICATE} == kept
    assert any(reason == Reason.LEAK_IDENTITY for reason, _ in found.values())
    for key, (reason, evidence) in found.items():
        if reason in LEAKS:
            assert plain[key][0] not in LEAKS
            assert "bench/" in evidence
            assert "same pixels" in evidence or "cosine 1.000" in evidence
        elif reason in ("", *(set(Reason) - LEAKS)) and plain[key][0] not in (
            "",
            Reason.NEAR_DUPLICATE,
            Reason.DUPLICATE,
        ):
            assert (reason, evidence) == plain[key]
    published = built.tree()
    assert str(tmp_path).encode() not in b"".join(published.values())
    said = json.loads(published["manifest.json"])
    assert "exclude" not in said["config"]
    assert said["excluded"]["sources"] == len(kept)
    assert said["excluded"]["digest"] == built.run.excluded.guard.digest  # type: ignore[union-attr]
    assert verify(built.published.folder) == []  # type: ignore[union-attr]


def decisions_of_bench(bench: Path) -> dict[str, tuple[str, str]]:
    settings = fakes.config("name=bench", "pools.0.params.pool=bench", sources=9)
    return decisions(fakes.build(bench, settings, publishing=False))


def test_a_clip_of_the_same_pool_is_enough(tmp_path: Path) -> None:
    fakes.install()
    fakes.build(tmp_path / "bench", fakes.config("name=bench", sources=9), publishing=False)
    found = decisions(fakes.build(tmp_path / "training", training(tmp_path / "bench"), publishing=False))
    clips = [evidence for reason, evidence in found.values() if reason == Reason.LEAK_CLIP]
    assert any("clip fake/clip-1 is also that of fake/" in evidence for evidence in clips)


def test_a_longer_list_moves_no_earlier_decision(bench: Path, tmp_path: Path) -> None:
    short = decisions(fakes.build(tmp_path / "training", training(bench, sources=20), publishing=False))
    longer = decisions(fakes.build(tmp_path / "training", training(bench, sources=40), publishing=False))
    again = decisions(fakes.build(tmp_path / "other", training(bench, sources=40), 2, publishing=False))
    assert len(longer) > len(short)
    assert {key: longer[key] for key in short} == short
    leaking = {key: found for key, found in longer.items() if found[0] in LEAKS}
    assert leaking.items() <= again.items()


def test_a_changed_benchmark_decides_anew_and_asks_no_model(bench: Path, tmp_path: Path) -> None:
    first = fakes.build(tmp_path / "training", training(bench), publishing=False)
    same = fakes.build(tmp_path / "training", training(bench), publishing=False)
    assert same.asked == []
    more = fakes.config("name=bench", "pools.0.params.pool=bench", sources=30)
    fakes.build(bench, more, publishing=False)
    second = fakes.build(tmp_path / "training", training(bench), publishing=False)
    assert not {"load", "analyze", "embed"} & {role for role, _ in second.asked}
    counts = [sum(reason in LEAKS for reason, _ in decisions(built).values()) for built in (first, second)]
    assert counts[0] < counts[1]


def test_a_data_set_is_looked_at_once(bench: Path, tmp_path: Path) -> None:
    dataset = bench / "datasets/bench/v1"
    settings = training(dataset)
    fakes.world().asked.clear()
    pipeline.open_run(tmp_path / "training", settings)
    looked = fakes.world().counts()
    assert looked["analyze"] == looked["embed"] > 0
    pipeline.open_run(tmp_path / "training", settings)
    assert fakes.world().counts() == looked


def test_a_benchmark_without_pictures_cannot_be_excluded(bench: Path, tmp_path: Path) -> None:
    index = tmp_path / "index"
    shutil.copytree(bench / "datasets/bench/v1", index)
    for file in (index / "data").glob("*.parquet"):
        pq.write_table(pq.read_table(file).drop_columns(["source", "ground_truth"]), file)
    with pytest.raises(ConfigError, match=r"exclude: identity not checked for .* no picture") as caught:
        pipeline.open_run(tmp_path / "training", training(index))
    assert "hydrate" in caught.value.hint


@pytest.mark.usefixtures("bench")
def test_a_wrong_path_is_one_line_before_anything_is_asked(tmp_path: Path) -> None:
    fakes.build(tmp_path / "training", training(sources=6), publishing=False)
    fakes.world().asked.clear()
    wrong = {"nowhere": "'.*nowhere' does not exist", "training#training": "is the run itself", "bench#x": "which run"}
    for path, words in wrong.items():
        with pytest.raises(ConfigError, match=f"exclude: .*{words}") as caught:
            pipeline.open_run(tmp_path / "training", training(tmp_path / path))
        assert "\n" not in str(caught.value)
    assert fakes.world().asked == []


def test_real_photos_of_one_person_leave_and_others_stay(tmp_path: Path) -> None:
    save(tmp_path / "bench/hopper.jpg", photos.photo("hopper").pixels[:, ::-1])
    save(tmp_path / "bench/frame.jpg", photos.frame(20).pixels)
    pools = [{"name": "samples", "params": {"rejects": False}}]
    settings = builds.config(exclude=[str(tmp_path / "bench")], pools=pools)
    with Store(tmp_path / "training").lock():
        run = pipeline.open_run(tmp_path / "training", settings)
        done = pipeline._screened(run, builds.threads)
    rows = {
        row.key.source_id: row
        for shard, commits in zip(run.executor.shards, done, strict=True)
        for row in run.executor.decided("screen", shard, commits["screen"])
    }
    assert {name for name, row in rows.items() if row.reason in LEAKS} == {"officer", "portrait"}
    assert rows["officer"].reason is Reason.LEAK_DUPLICATE
    assert "mirrored, " in rows["officer"].evidence
    # A photo, found by a frame of a video of the same man.
    assert rows["portrait"].reason is Reason.LEAK_IDENTITY
    assert rows["portrait"].evidence.startswith("cosine 0.")
    assert "folder/frame.jpg" in rows["portrait"].evidence
