"""Pictures and texts as vectors, by encoders of transformers: found, checked, loaded once, one at a time.

Everything of torch is imported when a model is loaded, and nothing is ever downloaded.
"""

import threading
from typing import Any, Final, Literal

import numpy as np
from numpy.typing import NDArray

from tasks.engine.errors import ConfigError
from tasks.engine.images import Picture
from tasks.faces.memo import Memo
from tasks.providers.in_process import Place

Space = Literal["joint", "class token"]
Vector = NDArray[np.float64]
_lock = threading.Lock()
_loaded: dict[tuple[Place, Space], "Encoder"] = {}
_HELD: Final = 4096  # vectors of a model: sources and ground truths come again with every output


class Encoder:
    """A loaded model.

    Args:
        place: Which one; it is checked.
        space: "joint" is CLIP's, of pictures and texts; "class token" is that of a vision transformer.

    Raises:
        ConfigError: It cannot be loaded, needs code from its repository, lacks weights, or has no such space.
    """

    def __init__(self, place: Place, space: Space) -> None:
        place.check()
        import torch
        from transformers import AutoImageProcessor, AutoModel, AutoTokenizer

        torch.set_num_threads(1)
        self._torch: Any = torch
        self._place, self._space = place, space
        self._vectors: Memo[Vector] = Memo(_HELD)
        readers = (AutoImageProcessor, AutoTokenizer) if space == "joint" else (AutoImageProcessor,)
        self._model, self._processor, *rest = place.load(AutoModel, *readers, dtype=torch.float32)
        self._tokenizer: Any = rest[0] if rest else None
        if space == "joint" and not hasattr(self._model, "get_image_features"):
            raise ConfigError(f"the model '{place.model}' has no vectors of pictures and texts: it is no CLIP")

    def picture(self, shown: Picture) -> Vector:
        """(D,) float64 of length 1; remembered by the picture's digest."""
        return self._vectors.get(("picture", shown.digest), lambda: self._picture(shown.pixels))

    def text(self, words: str) -> Vector:
        """(D,) float64 of length 1, in the space of the pictures; a long text is cut where the model's ends."""
        return self._vectors.get(("text", words), lambda: self._text(words))

    def _picture(self, pixels: NDArray[np.uint8]) -> Vector:
        from PIL import Image

        inputs = self._processor(images=Image.fromarray(pixels), return_tensors="pt")
        with self._torch.inference_mode():
            inputs = inputs.to(self._model.device)
            if self._space == "joint":
                return _unit(self._model.get_image_features(**inputs).pooler_output)
            hidden = self._model(**inputs).last_hidden_state
        if hidden.ndim != 3:
            raise ConfigError(f"the model '{self._place.model}' has no class token: it is no vision transformer")
        return _unit(hidden[:, 0])

    def _text(self, words: str) -> Vector:
        most = self._model.config.text_config.max_position_embeddings
        inputs = self._tokenizer(words, truncation=True, padding="max_length", max_length=most, return_tensors="pt")
        with self._torch.inference_mode():
            return _unit(self._model.get_text_features(**inputs.to(self._model.device)).pooler_output)


def _unit(tensor: Any) -> Vector:
    vector = np.asarray(tensor[0].float().cpu().numpy(), np.float64)
    return np.asarray(vector / np.linalg.norm(vector), np.float64)


def load(place: Place, space: Space) -> Encoder:
    """The encoder, loaded once per process however many metrics ask for it."""
    with _lock:
        if (place, space) not in _loaded:
            _loaded[place, space] = Encoder(place, space)
        return _loaded[place, space]
