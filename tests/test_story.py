"""The whole way, by the command line: two generated pools, a build at target 60, its release and hydration.

The pools have the published names and shapes of SFEW 2.0 and DFEW, and hold crops of the few faces inside installed
packages. So that a hundred of them pass, screening takes near duplicates and any number of pictures of a person or a
clip here: the numbers of a real build are another thing altogether.
"""

import json
import os
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import pyarrow.parquet as pq
import pytest
import yaml

from schemas.expressions import Expression
from tasks.sources.samples import SamplePool
from tests.commands import environment, fedbench, run
from tests.fakes import tree
from tests.trees import save, text, write_video, write_votes

pytestmark = pytest.mark.slow  # some minutes on two cores

TARGET: Final = 60
VARIANTS: Final = 6
# The class folder of SFEW and the code of DFEW for what the sample photos show; the others stay unlabelled.
FOLDERS: Final = {
    Expression.HAPPY: "Happy",
    Expression.NEUTRAL: "Neutral",
    Expression.SURPRISE: "Surprise",
    Expression.ANGER: "Angry",
}
CODES: Final = {Expression.HAPPY: 1, Expression.NEUTRAL: 3, Expression.ANGER: 4, Expression.SURPRISE: 5}


def write_pools(root: Path) -> tuple[Path, Path]:
    """An SFEW tree with half of the crops as stills, and a DFEW tree with the others as clips of two frames."""
    sfew, dfew = root / "SFEW 2.0", root / "DFEW"
    pool = SamplePool(SamplePool.Params(variants=VARIANTS, rejects=False))
    clips: dict[int, tuple[int, tuple[int, ...], str]] = {}
    for number, source in enumerate(pool.list(), 1):
        pixels = pool.load(source).pixels
        if source.label is None:
            continue
        if number % 2:
            split = "Val" if number % 5 == 0 else "Train"
            name = f"Film_{number % 7}_{number:04}00000_00000001.png"
            save(sfew / split / FOLDERS[source.label] / name, pixels)
        else:
            code = CODES[source.label]
            write_video(dfew / f"Clip/original/{number:05}.mp4", [pixels, pixels])
            votes = tuple(8 if place == code else int(place in (2, 6)) for place in range(1, 8))
            clips[number] = (code, votes, "train" if number % 10 else "test")
    for part in ("train", "test"):
        rows = [f"{clip},{code}" for clip, (code, _, split) in clips.items() if split == part]
        text(
            dfew / f"EmoLabel_DataSplit/{part}(single-labeled)/set_1.csv", "\r\n".join(["video_name,label", *rows, ""])
        )
    write_votes(dfew / "Annotation/annotation.xlsx", clips=clips)
    return sfew, dfew


@dataclass(frozen=True)
class Story:
    """Where everything of this story lies, and the command to go on with it."""

    root: Path
    workspace: Path
    config: Path
    env: dict[str, str]

    def tell(self, *words: str | Path, code: int = 0) -> Any:
        """What a verb says as JSON."""
        done = run(fedbench(*words, "--json"), self.env, self.root, timeout=600)
        assert done.returncode == code, done.stderr
        return json.loads(done.stdout)


@pytest.fixture(scope="module")
def story(tmp_path_factory: pytest.TempPathFactory) -> Story:
    """The pools, and a build of 60 triplets from them."""
    root = Path(os.environ.get("FEDBENCH_STORY") or tmp_path_factory.mktemp("story"))
    sfew, dfew = write_pools(root)
    values = {
        "name": "benchmark",
        "split": "test",
        "pools": [{"name": "sfew", "params": {"root": str(sfew)}}, {"name": "dfew", "params": {"root": str(dfew)}}],
        "shard_size": 12,
        "screen": {"cut": {"near_duplicate_bits": 0, "max_per_clip": None, "max_per_identity": None}},
        "publish": {"cut": {"target": TARGET, "margin": 1.1}},
    }
    config = root / "benchmark.yaml"
    config.write_text(yaml.safe_dump(values))
    made = Story(root, root / "workspace", config, environment(root / "prefect"))
    told = made.tell("build", "--config", config, "-w", made.workspace)
    assert told["triplets"] == TARGET
    return made


def test_the_build_is_as_asked_and_checks_out(story: Story) -> None:
    folder = story.workspace / "datasets/benchmark/v1"
    assert story.tell("verify", folder)["ok"]
    rows = [row for path in folder.glob("data/*.parquet") for row in pq.read_table(path).to_pylist()]
    assert len(rows) == len({(row["pool"], row["source_id"]) for row in rows}) == TARGET
    assert {row["pool"] for row in rows} == {"sfew", "dfew"}
    told = story.tell("top-up", "-w", story.workspace)
    assert sum(cell["has"] for cell in told["cells"]) == TARGET
    # Verb and manifest tell of the same cells: what was natural, what was selected, what is short.
    manifest = json.loads((folder / "manifest.json").read_text())
    said = {(cell["source"], cell["target"]): cell for cell in manifest["cells"]}
    for cell in told["cells"]:
        here = said.get((cell["source"], cell["target"]), {"survivors": 0, "triplets": 0, "short": 0})
        assert (cell["natural"], cell["has"], cell["short"]) == (here["survivors"], here["triplets"], here["short"])
    # Water-filling: whoever had more than was taken of it is as full as the fullest, or one below.
    most = max(cell["has"] for cell in told["cells"])
    assert all(cell["has"] >= most - 1 for cell in told["cells"] if cell["natural"] > cell["has"])
    again = story.tell("build", "--config", story.config, "-w", story.workspace)
    assert not again["written"]


def test_the_index_and_its_pack_become_the_same_bytes_again(story: Story, tmp_path: Path) -> None:
    made = story.tell("publish", "--release", "index", "--pack", "-w", story.workspace)
    for folder in made.values():
        assert story.tell("verify", folder)["ok"]
    # Somebody else's copies, in other places.
    for name in ("SFEW 2.0", "DFEW"):
        shutil.copytree(story.root / name, tmp_path / "copies" / name.lower())
    pools = [
        {"name": kind, "params": {"root": str(tmp_path / "copies" / name)}}
        for kind, name in (("sfew", "sfew 2.0"), ("dfew", "dfew"))
    ]
    config = tmp_path / "pools.yaml"
    config.write_text(yaml.safe_dump({"pools": pools}))
    out = tmp_path / "full"
    told = story.tell("hydrate", made["index"], "--pack", made["pack"], "--config", config, "--out", out)
    assert (told["ok"], told["identical"]) == (True, True)
    assert tree(out) == tree(story.workspace / "datasets/benchmark/v1")


def test_a_second_edition_differs_as_the_diff_says(story: Story) -> None:
    first = tree(story.workspace / "datasets/benchmark/v1")
    strong = "{source: surprise, target: happy, editor: {name: warp, params: {intensity: 1.4}}, called: strong}"
    sets = ["edition=v2", "publish.cut.core=v1", "rank.cut.min_identity=0.75", f"generate.measure.top_up=[{strong}]"]
    options = [word for option in sets for word in ("--set", option)]
    due = story.tell("status", "-w", story.workspace, *options)["rows"]
    assert 0 < due["generate"]["due"] < 10  # the sources of one cell, once each
    assert story.tell("build", "--config", story.config, "-w", story.workspace, *options)["triplets"] == TARGET
    folder = story.workspace / "datasets/benchmark/v2"
    assert story.tell("verify", folder)["ok"]
    assert tree(story.workspace / "datasets/benchmark/v1") == first
    rejected = [row for path in folder.glob("rejected/*.parquet") for row in pq.read_table(path).to_pylist()]
    assert any(row["editor"] == "strong" for row in rejected)

    told = story.tell("diff", "benchmark/v1", "benchmark/v2", "-w", story.workspace)
    assert told["removed"]
    assert told["kept"] + len(told["removed"]) == told["kept"] + len(told["added"]) == TARGET
    said = " ".join(row["where"] for row in told["settings"])
    assert "top_up" in said
    assert "min_identity" in said
    # What the first edition held stays, unless it no longer survives: selection takes nothing from it.
    assert {row["fate"]["stage"] for row in told["removed"]} <= {"rank", "review"}


def test_who_withdraws_is_gone_and_the_rest_goes_on(story: Story) -> None:
    ids: dict[str, str] = {}
    for path in (story.workspace / "datasets/benchmark/v2/data").glob("*.parquet"):
        ids |= {f"{row['pool']}/{row['source_id']}": row["source_sha256"] for row in pq.read_table(path).to_pylist()}
    key = min(key for key in ids if key.startswith("sfew"))
    told = story.tell("withdraw", key, "--reason", "asked to", "-w", story.workspace)
    assert key in {one["key"] for one in told["withdrawn"]}
    gone = {one["key"] for one in told["withdrawn"]}
    for folder in story.workspace.glob("datasets/benchmark/*"):
        assert story.tell("verify", folder)["ok"]
        rows = [row for path in folder.glob("data/*.parquet") for row in pq.read_table(path).to_pylist()]
        assert not gone & {f"{row['pool']}/{row['source_id']}" for row in rows}
    assert not list(story.workspace.glob(f"images/*/{ids[key]}.png"))
    sets = ["--set", "edition=v3", "--set", "rank.cut.min_identity=0.75"]
    assert story.tell("build", "--config", story.config, "-w", story.workspace, *sets)["triplets"] == TARGET
    moved = story.tell("diff", "benchmark/v2", "benchmark/v3", "-w", story.workspace)
    # The withdrawal had left v2 short of its target; the later edition is whole again, without them.
    assert moved["a"]["triplets"] < moved["b"]["triplets"] == TARGET
    assert not gone & {row["id"].partition(":")[0] for row in moved["added"]}
    rejected = story.workspace.glob("datasets/benchmark/v3/rejected/*.parquet")
    reasons = {row["id"]: row["reason"] for path in rejected for row in pq.read_table(path).to_pylist()}
    assert all(reasons[key] == "withdrawn" for key in gone)
