"""Metrics that need no text and no transformers: pixels, LPIPS, and identity."""

from collections.abc import Callable, Sequence
from typing import Any, ClassVar, Final

import numpy as np
from numpy.typing import NDArray

from schemas.score_config import ScoreCut
from tasks.distances import DISTANCES
from tasks.engine import weights
from tasks.engine.images import Picture
from tasks.faces import ANALYZERS, EMBEDDERS
from tasks.metrics.identity import cosine, matched
from tasks.study.agreement import Better
from tasks.study.comparers import Against, Area, Comparer

# Equal pictures have no finite PSNR; ours: they count as 100 dB, which no lossy edit reaches.
BEST_PSNR: Final = 100.0


def _pixels(measure: Callable[[NDArray[np.uint8], NDArray[np.uint8]], float], output: Picture, other: Any) -> float:
    if output.pixels.shape != other.pixels.shape:
        raise ValueError(f"shapes differ: {output.pixels.shape} and {other.pixels.shape}")
    return measure(output.pixels, other.pixels)


class L1(Comparer):
    """Mean absolute difference of the pixels, 0–255."""

    version = 1
    label = "L1"
    better: ClassVar[Better] = "lower"
    seconds = 0.01

    def compare(self, output: Picture, other: Picture | str) -> float | None:
        return _pixels(lambda a, b: float(np.abs(a.astype(np.int16) - b).mean()), output, other)


class Psnr(Comparer):
    """Peak signal-to-noise ratio, 10 log10(255² / MSE), in dB; equal pictures count as 100."""

    version = 1
    label = "PSNR"
    seconds = 0.01

    def compare(self, output: Picture, other: Picture | str) -> float | None:
        return _pixels(_psnr, output, other)


class Ssim(Comparer):
    """Structural similarity (Wang et al. 2004), −1..1, with the Gaussian window of its authors; mean over channels."""

    version = 1
    label = "SSIM"
    seconds = 0.3

    def compare(self, output: Picture, other: Picture | str) -> float | None:
        if min(output.pixels.shape[:2]) < 11:
            return None
        return _pixels(_ssim, output, other)


class Weighted(Comparer):
    """A metric that another adapter computes, with weights."""

    @classmethod
    def check(cls, params: Any) -> None:  # noqa: ARG003 - every kind is checked so
        _present(cls.weights)

    def __init__(self, params: Any) -> None:
        super().__init__(params)
        _present(self.weights)


class LpipsAlex(Weighted):
    """LPIPS (Zhang et al. 2018) on AlexNet, ≥ 0, of whole pictures and of faces; and the face's ratio r, as in REG."""

    version = 1
    weights = ("lpips_alex",)
    label = "LPIPS"
    better: ClassVar[Better] = "lower"
    against: ClassVar[tuple[Against, ...]] = ("source", "truth", "ratio")
    least = ScoreCut().min_lpips
    distance: ClassVar[str] = "lpips"
    seconds = 0.1

    @classmethod
    def check(cls, params: Any) -> None:  # noqa: ARG003
        DISTANCES.check(cls.distance, {})

    def compare(self, output: Picture, other: Picture | str) -> float | None:
        return _pixels(DISTANCES.get(self.distance, {}).between, output, other)


class LpipsVgg(LpipsAlex):
    """The same on VGG-16."""

    weights = ("lpips_vgg",)
    label = "LPIPS-VGG"
    distance: ClassVar[str] = "lpips_vgg"
    seconds = 0.6


class LpipsSqueeze(LpipsAlex):
    """The same on SqueezeNet 1.1, whose file is yours to bring."""

    weights = ("squeezenet",)
    label = "LPIPS-Squeeze"
    distance: ClassVar[str] = "lpips_squeeze"


class SFace(Weighted):
    """Cosine of SFace's identity vectors, −1..1; None where one of the two shows no face.

    Of an output's faces it is the one at the place of the other picture's largest.
    """

    version = 1
    weights = ("sface", "face_landmarker", "yunet")
    label = "SFace"
    areas: ClassVar[tuple[Area, ...]] = ("face",)
    aligns = True
    embedder: ClassVar[str] = "sface"
    seconds = 0.1

    def compare(self, output: Picture, other: Picture | str) -> float | None:
        assert isinstance(other, Picture)
        analyzer, embedder = ANALYZERS.get("mediapipe", {}), EMBEDDERS.get(self.embedder, {})
        wanted, found = next(iter(analyzer.analyze(other)), None), analyzer.analyze(output)
        place = None if wanted is None else matched(wanted.box, [face.box for face in found])
        if wanted is None or place is None:
            return None
        return cosine(embedder.embed(other, wanted), embedder.embed(output, found[place]))


class ArcFace(SFace):
    """The same of buffalo_l's ArcFace, which is installed by hand."""

    weights = ("buffalo_l", "face_landmarker", "yunet")
    label = "ArcFace"
    embedder: ClassVar[str] = "buffalo_l"


def _present(names: Sequence[str]) -> None:
    """Raise a WorkspaceError that says what to install, where a file is missing."""
    for name in names:
        if weights.state(name) == "missing":
            weights.path(name)


def _psnr(output: NDArray[np.uint8], other: NDArray[np.uint8]) -> float:
    error = float(np.square(output.astype(np.float64) - other).mean())
    return min(BEST_PSNR, float(10 * np.log10(255**2 / error))) if error else BEST_PSNR


def _ssim(output: NDArray[np.uint8], other: NDArray[np.uint8]) -> float:
    from skimage.metrics import structural_similarity

    measure: Any = structural_similarity  # untyped
    return float(
        measure(
            output, other, channel_axis=2, gaussian_weights=True, sigma=1.5, use_sample_covariance=False, data_range=255
        )
    )
