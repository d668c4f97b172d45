"""Which frame of a clip becomes a source: videos and folders of frames in, one picture out."""

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final, Literal

import numpy as np
from numpy.typing import NDArray

from schemas.sections import Adapter
from tasks.engine.decode import MAX_PIXELS, MIN_SIDE
from tasks.engine.errors import UnreadableImage
from tasks.engine.fingerprint import sha256
from tasks.engine.images import Picture
from tasks.faces import ANALYZERS, Face
from tasks.faces.quality import sharpness
from tasks.faces.quiet import quiet_stderr
from tasks.metrics.change import expression_change
from tasks.sources.folder import escape
from tasks.sources.trees import is_picture, natural

if TYPE_CHECKING:
    import cv2

Policy = Literal["apex", "sharpest", "middle"]

# Ours, and the default screen's: a turned head moves every blendshape, so a frame that screening would refuse must
# not win as the strongest expression.
MAX_YAW: Final = 35.0
MAX_PITCH: Final = 25.0


@dataclass(frozen=True, slots=True)
class Frame:
    """A frame of a clip. `number` counts from 1; `pixels` is RGB (H, W, 3) uint8."""

    number: int
    pixels: NDArray[np.uint8]
    face: Face | None = None


def spread(count: int, most: int | None) -> list[int]:
    """Places of at most `most` of `count` frames, evenly spread from the first to the last; all for None."""
    if most is None or count <= most:
        return list(range(count))
    if most == 1:
        return [(count - 1) // 2]
    return [round(place * (count - 1) / (most - 1)) for place in range(most)]


def frame_names(folder: Path) -> list[str]:
    """The frames of a clip in the order of time: "2.jpg" comes before "10.jpg".

    Raises:
        UnreadableImage: `unreadable`: the folder cannot be listed.
    """
    try:
        names = os.listdir(folder)  # noqa: PTH208 - names are wanted, not paths
    except OSError as error:
        raise UnreadableImage("unreadable", f"'{escape(folder.name)}': {error.strerror}") from error
    return sorted((name for name in names if is_picture(name) and not name.startswith(".")), key=natural)


def video_frames(path: Path, choose: Callable[[int], Sequence[int]]) -> tuple[list[Frame], int]:
    """Frames of a video file.

    Args:
        path: A regular file; whether it may be read is the caller's to check (`folder.read_inside` does).
        choose: Count of frames → places (from 0, ascending) of those wanted.

    Returns:
        The frames, upright; and how many the video has.

    Raises:
        UnreadableImage: `empty`; `unreadable`; `broken`: no video or no frame; `truncated`: it ends before half of
            what its header promises; `too_large`, `too_small`: the frames.
    """
    import cv2

    count = _counted(path)
    wanted = set(choose(count))
    frames: list[Frame] = []
    video = _opened(path)
    try:
        for place in range(max(wanted, default=-1) + 1):
            if not video.grab():
                break
            if place in wanted:
                done, bgr = video.retrieve()
                if done:
                    frames.append(Frame(place + 1, np.asarray(cv2.cvtColor(bgr, cv2.COLOR_BGR2RGB), np.uint8)))
    finally:
        video.release()
    if not frames and wanted:
        raise UnreadableImage("broken", f"none of the {count} frames can be decoded")
    return frames, count


def video_opens(path: Path) -> None:
    """Look at a video's header and first frame only.

    Raises:
        UnreadableImage: `empty`; `unreadable`; `broken`: there is none.
    """
    video = _opened(path)
    try:
        if not video.grab():
            raise UnreadableImage("broken", "there is not one frame of a video in it")
    finally:
        video.release()


def _opened(path: Path) -> "cv2.VideoCapture":
    """By its absolute path, which FFmpeg cannot take for a protocol.

    Not from memory: OpenCV 5.0's VideoCapture over a Python stream keeps no reference to it, and crashed on us.
    """
    import cv2

    try:
        if not path.stat().st_size:
            raise UnreadableImage("empty", "the file has no bytes")
        with quiet_stderr():
            return cv2.VideoCapture(str(path.resolve()), cv2.CAP_FFMPEG)
    except (OSError, UnicodeError, cv2.error) as error:  # UnicodeError: a path that is no UTF-8
        raise UnreadableImage("unreadable", f"OpenCV cannot open the video '{escape(path.name)}'") from error


def _counted(path: Path) -> int:
    """How many frames a video has, by reading it; the count in a header is often wrong."""
    import cv2

    count = 0
    video = _opened(path)
    try:
        width, height = (int(video.get(what)) for what in (cv2.CAP_PROP_FRAME_WIDTH, cv2.CAP_PROP_FRAME_HEIGHT))
        promised = int(video.get(cv2.CAP_PROP_FRAME_COUNT))
        if width * height > MAX_PIXELS:
            raise UnreadableImage("too_large", f"{width} × {height} is more than {MAX_PIXELS} pixels")
        while video.isOpened() and video.grab():
            count += 1
    finally:
        video.release()
    if not count:
        raise UnreadableImage("broken", "there is not one frame of a video in it")
    if count < promised / 2:
        raise UnreadableImage("truncated", f"only {count} of {promised} frames")
    if min(width, height) < MIN_SIDE:
        raise UnreadableImage("too_small", f"{width} × {height}: less than {MIN_SIDE} pixels a side")
    return count


def with_face(frame: Frame, analyzer: Adapter) -> Frame:
    """The frame with its largest face, if it has one."""
    picture = Picture(f"frame {sha256(repr(frame.pixels.shape).encode() + frame.pixels.tobytes())}", frame.pixels)
    faces = ANALYZERS.get(analyzer.name, analyzer.params).analyze(picture)
    return Frame(frame.number, frame.pixels, faces[0] if faces else None)


def best_frame(frames: Sequence[Frame], policy: Policy, count: int) -> Frame:
    """The frame a policy takes, among those with a face where there are any; the earliest of equal ones.

    `apex`: the greatest expression strength, which is the blendshape distance from the clip's median face (ours),
    among frames whose head is turned by at most 35 degrees and raised by at most 25, where there are any.
    `sharpest`: the greatest sharpness of the face. `middle`: the nearest to the middle of the clip.

    Args:
        frames: At least one, in order.
        policy: As above.
        count: Frames of the whole clip.
    """
    seen = [(frame, frame.face) for frame in frames if frame.face is not None]
    middle = (count + 1) / 2
    if not seen or policy == "middle":
        return min([frame for frame, _ in seen] or frames, key=lambda frame: abs(frame.number - middle))
    if policy == "sharpest":
        return max(seen, key=lambda pair: sharpness(pair[0].pixels, pair[1]))[0]
    seen = [pair for pair in seen if abs(pair[1].yaw) <= MAX_YAW and abs(pair[1].pitch) <= MAX_PITCH] or seen
    names = seen[0][1].blendshapes
    median = {name: float(np.median([face.blendshapes[name] for _, face in seen])) for name in names}
    return max(seen, key=lambda pair: expression_change(median, pair[1].blendshapes))[0]
