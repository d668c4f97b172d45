"""A generation run over sample photos with a tiny pipeline, in processes of their own, one of them killed midway."""

import json
import os
import signal
import sys
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import pytest

from schemas.config import GenerateCut, GenerateMeasure
from schemas.expressions import Expression
from schemas.records import Candidate, Key, Photo
from schemas.sections import Adapter
from tasks.engine.execute import Executor
from tasks.engine.images import ImageStore
from tasks.engine.shards import Shard
from tasks.engine.stage import Context
from tasks.engine.store import Store
from tasks.generate import Generate
from tests.commands import environment, run
from tests.doors import SHUT
from tests.photos import photo
from tests.torch.test_diffusion import BUILDERS, params

pytestmark = pytest.mark.torch
NAMES = ("flux-kontext", "qwen-image-edit-2511", "instruct-pix2pix")
PHOTOS = ("happy", "hopper", "astronaut")
OWED = 6 * len(PHOTOS)


def generate(workspace: Path, told: dict[str, Any], fatal: int) -> dict[str, list[Any]]:
    """What a generate stage makes of the photos: (picture, width as made) by key.

    Args:
        workspace: Where it stores.
        told: Parameters of the diffusion editor.
        fatal: The process is killed before it remembers its edit of this number; -1 for never.
    """
    images = ImageStore(Store(workspace))
    remember, remembered = images.remember_edit, list[str]()

    def fragile(*args: Any) -> None:
        if len(remembered) == fatal:
            os.kill(os.getpid(), signal.SIGKILL)
        remember(*args)
        remembered.append(args[0])

    images.remember_edit = fragile  # type: ignore[method-assign]
    stage = Generate(GenerateMeasure(editor=Adapter(name="diffusion", params=told)), GenerateCut())
    rows = []
    for name in PHOTOS:
        stored = images.put(np.asarray(cv2.resize(photo(name).pixels, (160, 120)), np.uint8))
        rows.append(
            Photo(
                key=Key("samples", name), image=stored.digest, width=160, height=120, file_sha256="", pixel_sha256="",
                expression=Expression.NEUTRAL, label_source="given", subject="", path="", split="", clip="", movie="",
                licence="",
            )
        )  # fmt: skip
    executor = Executor(Store(workspace), [stage], [], Context(7, images, SHUT, print))
    found = executor.measure("generate", Shard(0, "shard", ()), rows)
    assert sorted(found) == sorted(key for row in rows for key in stage.owes(row))
    made = {key: value for key, value in found.items() if isinstance(value, Candidate)}
    assert len(made) == OWED
    return {"/".join(map(str, key)): [value.image, value.raw_width, len(remembered)] for key, value in made.items()}


CODE = """
import json, sys
from pathlib import Path
import torch
torch.set_num_threads(1)
from tests.torch.test_diffusion_run import generate
jobs, fatal = json.loads(sys.argv[1])
print("made", json.dumps([generate(Path(workspace), told, fatal) for workspace, told in jobs]))
"""


def made(home: Path, jobs: dict[Path, dict[str, Any]], fatal: int = -1) -> list[dict[str, list[Any]]] | None:
    """`generate` for each workspace, all in one process of their own; None if it was killed."""
    told = json.dumps([[(str(workspace), params) for workspace, params in jobs.items()], fatal])
    done = run([sys.executable, "-c", CODE, told], environment(home), home, timeout=600)
    if done.returncode == -signal.SIGKILL:
        return None
    assert done.returncode == 0, done.stderr
    values: list[dict[str, list[Any]]] = json.loads(done.stdout.splitlines()[-1].removeprefix("made "))
    return values


def apart(one: Path, other: Path, left: dict[str, list[Any]], right: dict[str, list[Any]]) -> int:
    """The largest difference between the pictures of two workspaces, of 255."""
    assert left.keys() == right.keys()
    stores = ImageStore(Store(one)), ImageStore(Store(other))
    pairs = [(stores[0].get(left[key][0]).pixels, stores[1].get(right[key][0]).pixels) for key in left]
    return max(int(np.abs(a.astype(int) - b.astype(int)).max()) for a, b in pairs)


def test_two_processes_give_the_same_bytes_and_a_kill_loses_nothing(tmp_path: Path) -> None:
    told = {name: params(BUILDERS[name](tmp_path / name), name) for name in NAMES}
    first = made(tmp_path, {tmp_path / "a" / name: told[name] for name in NAMES})
    singly = {tmp_path / "one" / name: told[name] | {"batch": 1} for name in NAMES}
    second = made(tmp_path, {tmp_path / "b" / name: told[name] for name in NAMES} | singly)
    assert first is not None
    assert second is not None
    assert first == second[:3]
    for name, batched, single in zip(NAMES, first, second[3:], strict=True):
        assert {width for _, width, _ in batched.values()} <= {72, 80}, "its own size, then brought to the source's"
        assert apart(tmp_path / "a" / name, tmp_path / "one" / name, batched, single) <= 2
    # Killed with 6 of the first source and 3 of the second on the disk: the others are made, those are not again.
    killed = {tmp_path / "killed": told[NAMES[0]]}
    assert made(tmp_path, killed, fatal=9) is None
    resumed = made(tmp_path, killed)
    assert resumed is not None
    assert {each[2] for each in resumed[0].values()} == {OWED - 9}
    assert apart(tmp_path / "a" / NAMES[0], tmp_path / "killed", first[0], resumed[0]) <= 2
