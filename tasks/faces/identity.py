"""Identity vectors: which person a face shows. Run by insightface's `model_zoo`, on files that are already here."""

import os
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from tasks.engine import weights
from tasks.engine.images import Picture
from tasks.engine.loading import loading
from tasks.engine.registry import Adapter
from tasks.faces import Face
from tasks.faces.geometry import ALIGNED_SIZE, align
from tasks.faces.memo import Memo

# The source is compared with each of its candidates.
_embedded: Memo[NDArray[np.float32]] = Memo(4096)


class Embedder(Adapter):
    """A recognition network of insightface, on the CPU with one thread. Subclasses name their one weight."""

    seconds = 0.03
    # What insightface needs to be told where it would otherwise guess from the names of the graph's nodes.
    metadata: ClassVar[dict[str, Any] | None] = None

    def __init__(self, params: Any) -> None:
        super().__init__(params)
        (name,) = self.weights
        self._sha256 = weights.sha256_of(name)
        with loading(f"the model '{name}'"):  # the hash of one that is brought by hand is not known
            self._model = _load(weights.path(name), self.metadata)

    def embed(self, picture: Picture, face: Face) -> NDArray[np.float32]:
        """(D,) float32 of length 1, read-only; remembered by model, picture and box over all threads.

        The dot product of two of them is the cosine. The face is aligned by `geometry.align`.
        """
        box = tuple(np.round(face.box).astype(int).tolist())
        return _embedded.get((self._sha256, picture.digest, box), lambda: self._embed(picture.pixels, face))

    def _embed(self, pixels: NDArray[np.uint8], face: Face) -> NDArray[np.float32]:
        # get_feat wants OpenCV's BGR and swaps it back: these networks take RGB.
        vector = self._model.get_feat(np.ascontiguousarray(align(pixels, face)[:, :, ::-1])).ravel()
        unit = np.asarray(vector / np.linalg.norm(vector), np.float32)
        unit.setflags(write=False)
        return unit


class SFace(Embedder):
    """SFace (Zhong et al. 2021), 128-d: free weights, for the demo and for tests."""

    version = 1
    weights = ("sface",)
    metadata: ClassVar[dict[str, Any] | None] = {
        "preprocessing": "embedded",  # the graph subtracts and scales; insightface's guess would do it twice
        "preprocessing_version": "insightface-arcface-1",
        "input_size": (ALIGNED_SIZE, ALIGNED_SIZE),
        "embedding_dimension": 128,
    }


class BuffaloL(Embedder):
    """InsightFace's buffalo_l recognition network (ArcFace R50), 512-d; non-commercial weights installed by hand."""

    version = 1
    weights = ("buffalo_l",)
    seconds = 0.15


def forget() -> None:
    """Drop all remembered vectors (tests and benchmarks)."""
    _embedded.clear()


def _load(file: Path, metadata: dict[str, Any] | None) -> Any:
    """The network from a file; insightface is given a path, so it never looks for a download."""
    os.environ.setdefault("NO_ALBUMENTATIONS_UPDATE", "1")
    # From 1.29 on it sends telemetry, from native code that no Python guard sees.
    os.environ.setdefault("ORT_DISABLE_TELEMETRY", "1")
    import onnxruntime
    from insightface import model_zoo

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.log_severity_level = 3
    extra = {"model_task": "recognition", "model_metadata": metadata} if metadata else {}
    return model_zoo.get_model(str(file), providers=["CPUExecutionProvider"], sess_options=options, **extra)
