"""Finds and measures faces: YuNet detects, MediaPipe's FaceLandmarker measures each face on its own crop.

FaceLandmarker's bundled detector is a short-range one: it finds none of six faces in a group photo. So YuNet looks
at the whole picture, and the landmarker sees one square crop per face, 2.2 times the box, at 512 px.

A face is what both see: a detection whose crop gives no landmarks on it is dropped as no face. The one exception
is the largest: where it has no landmarks the picture has no usable face and the answer is empty, because the
next smaller face is not the one the picture is about.
"""

import atexit
import math
import os
import weakref
from typing import Any, Final

import cv2
import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, Field

from tasks.engine import weights
from tasks.engine.images import Picture
from tasks.engine.registry import Adapter
from tasks.faces import Face
from tasks.faces.geometry import Square, context_box, crop, landmark_box
from tasks.faces.memo import Memo
from tasks.faces.quiet import quiet_stderr

CONTEXT: Final = 2.2  # the crop against the box; measured: 89 of 89 crops of real photos landmarked
CROP_SIZE: Final = 512
MIN_OVERLAP: Final = 0.2  # of landmarks and detection, so that a neighbour's face is never taken for this one

# 4096 entries are about 25 MB; one picture is asked for by screening, editor, voters, ranking and describers.
_analysed: Memo[tuple[Face, ...]] = Memo(4096)
_open: "weakref.WeakSet[MediapipeAnalyzer]" = weakref.WeakSet()


class MediapipeAnalyzer(Adapter):
    """YuNet and MediaPipe FaceLandmarker on the CPU. One object serves one thread; results are shared by all."""

    class Params(BaseModel, extra="forbid", frozen=True):
        """What counts as a face.

        Attributes:
            min_score: Least detection confidence.
            min_size: Least longer side of the box, as a share of the picture's longer side (OFIQ: .05).
            max_faces: How many faces are measured, the largest first.
            work_side: Longest side in pixels of the picture that the detector sees; never enlarged.
        """

        min_score: float = Field(0.6, ge=0, le=1)
        min_size: float = Field(0.05, ge=0, le=1)
        max_faces: int = Field(8, ge=1)
        work_side: int = Field(640, ge=64)

    version = 1
    weights = ("yunet", "face_landmarker")
    seconds = 0.05
    params: Params

    def __init__(self, params: Params) -> None:
        super().__init__(params)
        self._landmarker: Any = None
        yunet, task = str(weights.path("yunet")), str(weights.path("face_landmarker"))
        os.environ.setdefault("GLOG_minloglevel", "2")  # read by MediaPipe when its library is loaded
        import mediapipe
        from mediapipe.tasks.python import BaseOptions, vision

        self._mediapipe = mediapipe
        options = vision.FaceLandmarkerOptions(
            base_options=BaseOptions(model_asset_path=task, delegate=BaseOptions.Delegate.CPU),
            num_faces=3,
            output_face_blendshapes=True,
            output_facial_transformation_matrixes=True,
        )
        with quiet_stderr():
            self._detector: Any = cv2.FaceDetectorYN.create(yunet, "", (320, 320), params.min_score, 0.3, 5000)
            self._landmarker = vision.FaceLandmarker.create_from_options(options)
            # The first run builds the graph and says so; it should do that here.
            self._landmarker.detect(self._image(np.zeros((CROP_SIZE, CROP_SIZE, 3), np.uint8)))
        _open.add(self)
        self._key = params.model_dump_json()

    def analyze(self, picture: Picture) -> tuple[Face, ...]:
        """All faces, the largest box first (ties: leftmost, then topmost); empty where there is none.

        Remembered by the picture's digest over all threads of the process. The arrays are read-only.
        """
        return _analysed.get((picture.digest, self._key), lambda: self._analyze(picture.pixels))

    def _analyze(self, pixels: NDArray[np.uint8]) -> tuple[Face, ...]:
        found = [(box, score, self._measure(pixels, box, score)) for box, score in self._detect(pixels)]
        if not found or found[0][2] is None:
            return ()
        return tuple(face for _, _, face in found if face is not None)

    def _detect(self, pixels: NDArray[np.uint8]) -> list[tuple[NDArray[np.float32], float]]:
        """Boxes in picture pixels with their scores, largest first, at most `max_faces`."""
        height, width = pixels.shape[:2]
        scale = min(1.0, self.params.work_side / max(height, width))
        size = (max(1, round(width * scale)), max(1, round(height * scale)))
        small = pixels if scale == 1 else cv2.resize(pixels, size, interpolation=cv2.INTER_AREA)
        self._detector.setInputSize(size)
        _, rows = self._detector.detect(cv2.cvtColor(small, cv2.COLOR_RGB2BGR))
        if rows is None:
            return []
        back = np.array([width / size[0], height / size[1]] * 2, np.float32)
        boxes = [(np.asarray(row[:4] * back, np.float32), float(row[14])) for row in rows]
        least = self.params.min_size * max(height, width)
        boxes = [(box, score) for box, score in boxes if max(box[2:]) >= least and _touches(box, width, height)]
        boxes.sort(key=lambda found: (-float(found[0][2] * found[0][3]), *found[0][:2].tolist()))
        return boxes[: self.params.max_faces]

    def _measure(self, pixels: NDArray[np.uint8], box: NDArray[np.float32], score: float) -> Face | None:
        """The face of one detection, or None where the landmarker sees none on it."""
        square = context_box(box, CONTEXT)
        result = self._landmarker.detect(self._image(crop(pixels, square, CROP_SIZE)))
        every = zip(result.face_landmarks, result.face_blendshapes, result.facial_transformation_matrixes, strict=True)
        faces = [_face(box, score, square, seen) for seen in every]
        best = max(faces, key=lambda face: _overlap(box, landmark_box(face)), default=None)
        return best if best is not None and _overlap(box, landmark_box(best)) >= MIN_OVERLAP else None

    def _image(self, pixels: NDArray[np.uint8]) -> Any:
        return self._mediapipe.Image(image_format=self._mediapipe.ImageFormat.SRGB, data=pixels)

    def close(self) -> None:
        """Free the landmarker; afterwards the object is of no use."""
        if self._landmarker is not None:
            self._landmarker.close()
            self._landmarker = None


@atexit.register
def _close_all() -> None:
    """MediaPipe's own __del__ prints a TypeError when it runs after its module is gone."""
    for analyzer in list(_open):
        analyzer.close()


def forget() -> None:
    """Drop all remembered results (tests and benchmarks)."""
    _analysed.clear()


def _face(box: NDArray[np.float32], score: float, square: Square, seen: tuple[Any, Any, Any]) -> Face:
    """One landmarker result in picture pixels; it speaks in shares of the crop, z in the same unit as x."""
    points, shapes, matrix = seen
    landmarks = np.array([(point.x, point.y, point.z) for point in points], np.float32) * np.float32(square.side)
    landmarks += np.array([square.left, square.top, 0], np.float32)
    landmarks.setflags(write=False)
    box.setflags(write=False)
    yaw, pitch, roll = pose(np.asarray(matrix))
    blendshapes = {shape.category_name: float(shape.score) for shape in shapes}
    return Face(box, score, landmarks, blendshapes, yaw, pitch, roll)


def pose(matrix: NDArray[np.float64]) -> tuple[float, float, float]:
    """Yaw, pitch and roll in degrees of MediaPipe's facial transformation matrix.

    Its camera looks along −z, x is right and y up in the picture; the face's own z leaves the nose. Positive
    yaw: the nose points to the right of the picture. Positive pitch: it points up. Positive roll: the head leans
    to the right of the picture (clockwise). Checked on photos, their mirrored and their rotated copies.

    Args:
        matrix: (4, 4) of FaceLandmarker, or its rotation (3, 3).
    """
    rotation = matrix[:3, :3] / np.linalg.norm(matrix[:3, :3], axis=0)
    side, up, ahead = rotation.T
    yaw = math.atan2(ahead[0], ahead[2])
    pitch = math.asin(float(np.clip(ahead[1], -1, 1)))
    roll = math.atan2(-side[1], up[1])
    return math.degrees(yaw), math.degrees(pitch), math.degrees(roll)


def _touches(box: NDArray[np.float32], width: int, height: int) -> bool:
    x, y, w, h = (float(value) for value in box)
    return w > 0 and h > 0 and x < width and y < height and x + w > 0 and y + h > 0


def _overlap(one: NDArray[np.float32], other: NDArray[np.float32]) -> float:
    """Intersection over union of two boxes (x, y, width, height), 0..1."""
    low = np.maximum(one[:2], other[:2])
    high = np.minimum(one[:2] + one[2:], other[:2] + other[2:])
    common = float(np.prod(np.clip(high - low, 0, None)))
    return common / (float(np.prod(one[2:])) + float(np.prod(other[2:])) - common)
