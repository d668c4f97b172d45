"""The loop that somebody would write to screen a folder of photos: one photo after the other, every library's defaults.

It measures of a photo what screening measures, with the same models and the same arithmetic. On demand it also keeps
what screening keeps: the upright picture as PNG (OpenCV's own way), and a line of JSON.
"""

import hashlib
import io
import json
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import cv2
import imagehash
import mediapipe
import numpy as np
from insightface import model_zoo
from mediapipe.tasks.python import BaseOptions, vision
from numpy.typing import NDArray
from PIL import Image, ImageOps

from tasks.engine import weights
from tasks.faces import Face
from tasks.faces.analyzer import CONTEXT, CROP_SIZE, MediapipeAnalyzer, pose
from tasks.faces.geometry import align, context_box, crop, inter_eye_distance
from tasks.faces.identity import SFace
from tasks.faces.quality import exposure_shares, second_face_ratio, sharpness

PARAMS: Final = MediapipeAnalyzer.Params()
Pixels = NDArray[np.uint8]


class Plain:
    """Models, loaded as their libraries' own examples load them."""

    def __init__(self) -> None:
        self._detector = cv2.FaceDetectorYN.create(str(weights.path("yunet")), "", (320, 320), PARAMS.min_score, 0.3)
        options = vision.FaceLandmarkerOptions(
            base_options=BaseOptions(model_asset_path=str(weights.path("face_landmarker"))),
            num_faces=3,
            output_face_blendshapes=True,
            output_facial_transformation_matrixes=True,
        )
        self._landmarker = vision.FaceLandmarker.create_from_options(options)
        self._recogniser: Any = model_zoo.get_model(
            str(weights.path("sface")), model_task="recognition", model_metadata=SFace.metadata
        )

    def __call__(self, files: Sequence[Path], kept: Path | None = None) -> dict[str, dict[str, Any]]:
        """By file name: what is measured of a photo; picture and line go into the folder `kept`, if there is one."""
        facts = {}
        for file in files:
            data = file.read_bytes()
            pixels = np.asarray(ImageOps.exif_transpose(Image.open(io.BytesIO(data))).convert("RGB"))
            facts[file.name] = self._photo(data, pixels)
            if kept:
                cv2.imwrite(str(kept / f"{file.stem}.png"), cv2.cvtColor(pixels, cv2.COLOR_RGB2BGR))
                with (kept / "facts.jsonl").open("a") as lines:
                    lines.write(json.dumps(facts[file.name]) + "\n")
        return facts

    def _photo(self, data: bytes, pixels: Pixels) -> dict[str, Any]:
        faces = self._faces(pixels)
        found: dict[str, Any] = {
            "file_sha256": hashlib.sha256(data).hexdigest(),
            "pixel_sha256": hashlib.sha256(repr(pixels.shape).encode() + pixels.tobytes()).hexdigest(),
            "phash": phash(pixels),
            "mirror_phash": phash(pixels[:, ::-1]),
            "faces": len(faces),
        }
        if not faces:
            return found
        face = faces[0]
        aligned = align(pixels, face)
        vector = self._recogniser.get_feat(cv2.cvtColor(aligned, cv2.COLOR_RGB2BGR)).ravel()
        over, under = exposure_shares(pixels, face)
        return found | {
            "face_phash": phash(aligned),
            "face_mirror_phash": phash(aligned[:, ::-1]),
            "second_face": second_face_ratio(faces),
            "inter_eye": inter_eye_distance(face),
            "yaw": face.yaw,
            "pitch": face.pitch,
            "roll": face.roll,
            "sharpness": sharpness(pixels, face),
            "overexposed": over,
            "underexposed": under,
            "embedding": (vector / np.linalg.norm(vector)).tolist(),
        }

    def _faces(self, pixels: Pixels) -> list[Face]:
        height, width = pixels.shape[:2]
        scale = min(1.0, PARAMS.work_side / max(height, width))
        size = (round(width * scale), round(height * scale))
        small = cv2.resize(pixels, size, interpolation=cv2.INTER_AREA) if scale < 1 else pixels
        self._detector.setInputSize(size)
        _, rows = self._detector.detect(cv2.cvtColor(small, cv2.COLOR_RGB2BGR))
        back = np.array([width / size[0], height / size[1]] * 2, np.float32)
        boxes = [(row[:4] * back, float(row[14])) for row in (rows if rows is not None else ())]
        boxes = [(box, score) for box, score in boxes if max(box[2:]) >= PARAMS.min_size * max(height, width)]
        boxes.sort(key=lambda found: -found[0][2] * found[0][3])
        faces = [self._face(pixels, box, score) for box, score in boxes[: PARAMS.max_faces]]
        return [face for face in faces if face is not None] if faces and faces[0] else []

    def _face(self, pixels: Pixels, box: NDArray[np.float32], score: float) -> Face | None:
        square = context_box(box, CONTEXT)
        image = mediapipe.Image(image_format=mediapipe.ImageFormat.SRGB, data=crop(pixels, square, CROP_SIZE))
        seen = self._landmarker.detect(image)
        if not seen.face_landmarks:
            return None
        points = np.array([(point.x, point.y, point.z) for point in seen.face_landmarks[0]], np.float32) * square.side
        points += np.array([square.left, square.top, 0], np.float32)
        shapes = {shape.category_name: shape.score for shape in seen.face_blendshapes[0]}
        return Face(box, score, points, shapes, *pose(np.asarray(seen.facial_transformation_matrixes[0])))


def phash(pixels: Pixels) -> str:
    """`imagehash.phash` of the grey picture at 128 px, as screening takes it."""
    grey = cv2.cvtColor(np.ascontiguousarray(pixels), cv2.COLOR_RGB2GRAY)
    return str(imagehash.phash(Image.fromarray(cv2.resize(grey, (128, 128), interpolation=cv2.INTER_AREA))))


def different(ours: dict[str, Any], theirs: dict[str, Any]) -> list[str]:
    """The names of measures that differ: hashes and counts at all, numbers by more than 1e-4, vectors by more than
    1e-5 of cosine (a network on two threads adds in another order)."""
    return [name for name, value in theirs.items() if not _equal(name, ours[name], value)]


def _equal(name: str, one: Any, other: Any) -> bool:
    if name == "embedding":
        return float(np.dot(one, other)) > 1 - 1e-5
    return math.isclose(one, other, rel_tol=1e-4, abs_tol=1e-4) if isinstance(other, float) else one == other
