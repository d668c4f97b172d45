"""How an output lies on its source: brought to one size, then shift and zoom of the whole picture.

Editors give back other sizes, and some move or zoom what they were told to leave alone. Both are geometry, not
damage: they are measured here, so that ranking and scores can tell the one from the other.
"""

import math
from typing import Any, Final

import cv2
import numpy as np
from numpy.typing import NDArray

from schemas.records import Motion

# All ours; pixels are those of the working picture.
WORK_SIDE: Final = 512  # longest side that points are followed at
EVEN_SIDE: Final = 41  # brightness and contrast are evened out over squares of this side
POINTS: Final = 400
AGREES: Final = 1.0  # how far a point may be from where the common motion takes it
LEAST_POINTS: Final = 16
LEAST_CONFIDENCE: Final = 0.2
LEAST_SPREAD: Final = 0.12  # of the points, as a share of the side: zoom cannot be told from one corner
SHAPE: Final = 0.02  # from here on width : height is another
STILL: Final = 0.1  # pixels that a picture's corners may move; undoing less costs more than it mends

Floats = NDArray[np.float64]


def resized(pixels: NDArray[np.uint8], shape: tuple[int, ...]) -> NDArray[np.uint8]:
    """The one policy for outputs of another size: the whole picture at the source's size, never cut or padded.

    By area where it shrinks along both axes, else Lanczos (ours). An output of another shape is thereby stretched;
    `register` says how much its content was, which differs where the editor had cut or padded it.

    Args:
        pixels: RGB (H, W, 3) uint8.
        shape: Of the source; the first two entries (H, W) are read.
    """
    height, width = shape[:2]
    if pixels.shape[:2] == (height, width):
        return pixels
    shrinks = pixels.shape[0] >= height and pixels.shape[1] >= width
    method = cv2.INTER_AREA if shrinks else cv2.INTER_LANCZOS4
    return np.asarray(cv2.resize(pixels, (width, height), interpolation=method), np.uint8)


def has_other_shape(size: tuple[int, int], wanted: tuple[int, int]) -> bool:
    """Whether (height, width) is of another shape than the wanted one, by more than 2 % (ours)."""
    return abs(size[1] * wanted[0] / (size[0] * wanted[1]) - 1) > SHAPE


def register(source: NDArray[np.uint8], output: NDArray[np.uint8]) -> Motion | None:
    """Shift and zoom of a whole picture against its source; None where they cannot be told.

    Corners of the source are followed into the output and back (pyramidal Lucas–Kanade), and the affine motion that
    most of them share is fitted (RANSAC, then least squares); shear is left out. A changed face takes its own points
    out of the consensus. Flat and wholly repainted pictures and other people's have none. Deterministic.

    Measured on 18 photos of 384 to 512 px with faces warped by 1 and 2, shifted by up to 20 px, zoomed by up to 5 %
    and saved as JPEG 90: within .06 px and .03 %; of a face that fills a 112 px picture a half could be told, within
    .2 px and .3 %. Of 342 pairs of different photos, none.

    Args:
        source, output: RGB (H, W, 3) uint8 of one size (`resized`).

    Raises:
        ValueError: The shapes differ.
    """
    if source.shape != output.shape:
        raise ValueError(f"shapes differ: source {source.shape}, output {output.shape}")
    height, width = source.shape[:2]
    scale = WORK_SIDE / max(height, width)
    size = (max(1, round(width * scale)), max(1, round(height * scale)))
    looked_for, start, end = _followed(_even(source, size), _even(output, size))
    if len(start) < LEAST_POINTS:
        return None
    centre = (np.array(size) - 1) / 2
    start, end = start - centre, end - centre
    found, who = cv2.estimateAffine2D(start, end, method=cv2.RANSAC, ransacReprojThreshold=AGREES, maxIters=4000)
    if found is None:
        return None
    agree = who.ravel() > 0
    confidence = float(agree.sum()) / looked_for
    spread = start[agree].std(axis=0) / max(size)
    if agree.sum() < LEAST_POINTS or confidence < LEAST_CONFIDENCE or (spread < LEAST_SPREAD).any():
        return None
    return _motion(found, (width / size[0], height / size[1]), confidence)


def is_still(motion: Motion, shape: tuple[int, ...]) -> bool:
    """Whether no corner of an (H, W) picture moves by more than `STILL` pixels."""
    reach = math.hypot(*shape[:2]) / 2
    grown = abs(motion.zoom - 1) + abs(motion.stretch - 1) / 2 + abs(math.radians(motion.turn))
    return math.hypot(motion.dx, motion.dy) + grown * reach <= STILL


def undone(output: NDArray[np.uint8], motion: Motion) -> tuple[NDArray[np.uint8], NDArray[np.bool_]]:
    """The output moved back onto its source, and where it has something to show there.

    Args:
        output: RGB (H, W, 3) or (H, W) uint8.
        motion: Of that output.

    Returns:
        An array like `output`, by bicubic interpolation, and (H, W) bool, false where the content left the picture.
    """
    height, width = output.shape[:2]
    centre = np.array([(width - 1) / 2, (height - 1) / 2])
    turn, wide = math.radians(motion.turn), math.sqrt(motion.stretch)
    turned = np.array([[math.cos(turn), -math.sin(turn)], [math.sin(turn), math.cos(turn)]])
    linear = turned * (motion.zoom * wide, motion.zoom / wide)
    matrix = np.column_stack([linear, centre - linear @ centre + (motion.dx, motion.dy)])

    def back(pixels: NDArray[np.uint8], method: int) -> Any:
        return cv2.warpAffine(
            pixels, matrix, (width, height), flags=method | cv2.WARP_INVERSE_MAP, borderMode=cv2.BORDER_CONSTANT
        )

    inside = back(np.ones((height, width), np.uint8), cv2.INTER_NEAREST) > 0
    # Bicubic weights reach two pixels far; there the border's black would shine in.
    inside = cv2.erode(inside.astype(np.uint8), np.ones((3, 3), np.uint8), borderValue=1, iterations=2) > 0
    return np.asarray(back(output, cv2.INTER_CUBIC), np.uint8), inside


def _motion(affine: Floats, scale: tuple[float, float], confidence: float) -> Motion:
    """An affine motion (2, 3) about the working picture's centre, told in pixels of the source and rounded."""
    (dx, dy), (zoom_x, zoom_y) = affine[:, 2] * scale, np.linalg.norm(affine[:, :2], axis=0)
    turn = math.degrees(math.atan2(affine[1, 0] - affine[0, 1], affine[0, 0] + affine[1, 1]))
    return Motion(
        dx=round(float(dx), 3) + 0.0,  # no −0
        dy=round(float(dy), 3) + 0.0,
        zoom=round(math.sqrt(zoom_x * zoom_y), 5),
        stretch=round(float(zoom_x / zoom_y), 5),
        turn=round(turn, 3) + 0.0,
        confidence=round(confidence, 3),
    )


def _even(pixels: NDArray[np.uint8], size: tuple[int, int]) -> NDArray[np.uint8]:
    """The grey picture at the working size, with one brightness and contrast everywhere: light moves nothing."""
    grey = cv2.cvtColor(pixels, cv2.COLOR_RGB2GRAY)
    shrinks = size[0] < grey.shape[1]
    level = cv2.resize(grey, size, interpolation=cv2.INTER_AREA if shrinks else cv2.INTER_CUBIC).astype(np.float32)
    level -= cv2.blur(level, (EVEN_SIDE, EVEN_SIDE))
    contrast = np.sqrt(np.maximum(cv2.blur(level * level, (EVEN_SIDE, EVEN_SIDE)), 0))  # sums err by a hair
    return np.asarray(np.clip(128 + 40 * level / (contrast + 4), 0, 255), np.uint8)


def _followed(before: NDArray[np.uint8], after: NDArray[np.uint8]) -> tuple[int, Floats, Floats]:
    """How many points were looked for, and from where to where those went that find back: (N, 2) each."""
    seeds = cv2.goodFeaturesToTrack(before, POINTS, 0.005, max(before.shape) / 60)
    if seeds is None:
        return 0, np.zeros((0, 2)), np.zeros((0, 2))
    there, went, _ = cv2.calcOpticalFlowPyrLK(before, after, seeds, None, winSize=(21, 21), maxLevel=4)
    back, came, _ = cv2.calcOpticalFlowPyrLK(after, before, there, None, winSize=(21, 21), maxLevel=4)
    kept = (went & came).ravel().astype(bool) & (np.linalg.norm(back - seeds, axis=2).ravel() < AGREES)
    return len(seeds), seeds[kept, 0].astype(np.float64), there[kept, 0].astype(np.float64)
