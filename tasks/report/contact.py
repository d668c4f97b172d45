"""The first triplets of a run as one small page of Markdown that needs no file beside it."""

import base64
import html
from collections.abc import Sequence
from itertools import islice
from typing import Final

import cv2

from tasks.engine.images import ImageStore
from tasks.engine.rows import Commit
from tasks.pipeline import Run

SIDE: Final = 128  # pixels
# Prefect keeps an artifact as a row of its database; beyond a megabyte its page gets slow.
MOST_BYTES: Final = 700_000


def contact_sheet(run: Run, done: Sequence[dict[str, Commit]], most: int = 12) -> str:
    """Source, ground truth and instruction of the first triplets, in plan order; pictures stand in the text itself.

    Args:
        run: The run.
        done: Per shard, its commits; shards that are not through are left out.
        most: How many triplets at most.

    Raises:
        WorkspaceError: A part or picture is gone or damaged.
    """
    kept = (
        row
        for shard, commits in zip(run.executor.shards, done, strict=True)
        if "publish" in commits
        for row in run.executor.kept("publish", shard, commits)
    )
    lines, size = ["| source | ground truth | instruction |", "|:--|:--|:--|"], 0
    for row in islice(kept, most):
        source, truth = (_picture(run.images, digest) for digest in (row.source_image, row.image))
        line = f"| {source} | {truth} | {_text(str(row.key))}<br>{_text(row.instruction)} |"
        size += len(line)
        if size > MOST_BYTES:
            break
        lines.append(line)
    return "\n".join(lines) + "\n" if len(lines) > 2 else "No triplet is published yet.\n"


def _picture(images: ImageStore, digest: str) -> str:
    pixels = images.get(digest).pixels
    scale = SIDE / max(pixels.shape[:2])
    size = max(1, round(pixels.shape[1] * scale)), max(1, round(pixels.shape[0] * scale))
    small = cv2.resize(pixels, size, interpolation=cv2.INTER_AREA)
    _, data = cv2.imencode(".jpg", small[:, :, ::-1], [cv2.IMWRITE_JPEG_QUALITY, 82])
    return f"![](data:image/jpeg;base64,{base64.b64encode(data.tobytes()).decode()})"


def _text(value: str) -> str:
    """What a model or a file name says is text, and no markup of either kind."""
    escaped = html.escape(" ".join(value.split()))
    return "".join(f"\\{letter}" if letter in "\\`*_{}[]()#+-.!|~" else letter for letter in escaped)
