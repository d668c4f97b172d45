"""A multimodal model of transformers in this process: found, checked, loaded once, asked greedily.

Everything of torch is imported when a model is loaded, and nothing is ever downloaded.
"""

import importlib.util
import re
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from schemas.outcomes import FailureKind
from tasks.engine.errors import ConfigError, ItemFailed
from tasks.engine.fingerprint import sha256
from tasks.engine.loading import first_line, loading
from tasks.engine.weights import hash_file

EXTRA: Final = "install the model extra: `make torch`, or the versions of requirements/torch.txt"
_lock = threading.Lock()
_loaded: dict["Place", "Model"] = {}


@dataclass(frozen=True)
class Place:
    """Which model, where it lies, and how it is held.

    Attributes:
        model: Its id on the hub; of a model in a folder, what you call it.
        revision: The commit at the hub, 40 hexadecimal digits; of a folder, `digest_of` it.
        folder: Where it lies, if not in the hub's cache.
        dtype: "auto" (as stored), "bfloat16", "float16" or "float32".
        device: "auto" (a GPU if there is one), or torch's name for it: "cpu", "cuda:1".
    """

    model: str
    revision: str
    folder: str = ""
    dtype: str = "auto"
    device: str = "auto"

    def check(self) -> None:
        """Look whether the model could be loaded, without loading it; a folder's files are hashed once per process.

        Raises:
            ConfigError: A package or the model is missing, or the revision does not pin it.
        """
        for package in ("torch", "transformers"):
            if importlib.util.find_spec(package) is None:
                raise ConfigError(f"the model '{self.model}' needs {package}, which is not installed", EXTRA)
        if self.folder:
            if not (Path(self.folder) / "config.json").is_file():
                raise ConfigError(f"no model lies in {self.folder}: it has no config.json")
            digest = digest_of(Path(self.folder))
            if self.revision != digest:
                raise ConfigError(
                    f"the files in {self.folder} are not those of revision '{self.revision}' of '{self.model}'",
                    f"if they are what you mean: revision: {digest}",
                )
            return
        if not re.fullmatch("[0-9a-f]{40}", self.revision):
            raise ConfigError(
                f"revision '{self.revision}' of '{self.model}' can move",
                "give the commit at the hub, 40 hexadecimal digits, or the folder where the model lies",
            )
        from huggingface_hub import try_to_load_from_cache

        if not isinstance(try_to_load_from_cache(self.model, "config.json", revision=self.revision), str):
            raise ConfigError(
                f"the model '{self.model}' is not on this machine at revision {self.revision}",
                f"fetch it: hf download {self.model} --revision {self.revision}",
            )

    def load(self, kind: Any, *readers: Any, dtype: Any) -> tuple[Any, ...]:
        """The model, on its device, and what prepares its inputs: from safetensors alone, and nothing is downloaded.

        Args:
            kind: The class of transformers that loads the model.
            readers: Those that load processors and tokenizers.
            dtype: How the weights are held, as transformers takes it.

        Raises:
            ConfigError: It cannot be loaded, needs code from its repository, or lacks weights.
        """
        import torch
        from transformers.utils import logging

        logging.disable_progress_bar()
        gpu = "cuda" if torch.cuda.is_available() else "cpu"
        source, where = (self.folder, {}) if self.folder else (self.model, {"revision": self.revision})
        options = {"local_files_only": True, "trust_remote_code": False, **where}
        with loading(f"the model '{self.model}'"):
            loaded = [reader.from_pretrained(source, **options) for reader in readers]
            model, found = kind.from_pretrained(
                source, dtype=dtype, use_safetensors=True, output_loading_info=True, **options
            )
            model = model.eval().to(gpu if self.device == "auto" else self.device)
        if found["missing_keys"]:  # transformers would go on with random numbers in their place
            raise ConfigError(f"the model '{self.model}' lacks weights: {', '.join(sorted(found['missing_keys'])[:3])}")
        return (model, *loaded)


@dataclass(frozen=True, slots=True)
class Said:
    """What the model wrote, and whether it ended by itself ("stop") or ran into the limit of tokens ("length")."""

    text: str
    finish: str
    refusal: str = ""


class NotTaken(Exception):
    """The model's processor cannot make anything of this picture (too thin, too small)."""


class Model:
    """A loaded model; one thread at a time is served.

    Args:
        place: Which one; it is checked.

    Raises:
        ConfigError: It cannot be loaded, needs code from its repository, lacks weights, or takes no pictures in a chat.
    """

    def __init__(self, place: Place) -> None:
        place.check()
        import torch
        from transformers import AutoModelForImageTextToText, AutoProcessor

        self._torch: Any = torch
        self._lock = threading.Lock()
        self._model, self._processor = place.load(AutoModelForImageTextToText, AutoProcessor, dtype=place.dtype)
        try:
            self._inputs(np.full((64, 64, 3), 128, np.uint8), [{"text": "?"}])
        except (NotTaken, TypeError, AttributeError) as error:
            raise ConfigError(f"the model '{place.model}' takes no pictures in a chat: {first_line(error)}") from None

    def say(self, picture: NDArray[np.uint8], turns: Sequence[Mapping[str, str]], max_new_tokens: int) -> Said:
        """The likeliest answer, word for word (greedy; no sampling, no penalty for repetition).

        Args:
            picture: RGB (H, W, 3) uint8, shown with the first turn.
            turns: What was said so far, `text` by turns of the user and the model; the user's is the last.
            max_new_tokens: Where an answer is cut off.

        Raises:
            NotTaken: The picture cannot be shown to this model.
            ItemFailed: OUT_OF_MEMORY, retryable.
        """
        with self._lock, self._torch.inference_mode():
            inputs = self._inputs(picture, turns)
            try:
                tokens = self._model.generate(
                    **inputs,
                    max_new_tokens=max_new_tokens,
                    do_sample=False,
                    num_beams=1,
                    repetition_penalty=1.0,
                    temperature=None,
                    top_p=None,
                    top_k=None,
                )[0, inputs["input_ids"].shape[1] :]
            except self._torch.OutOfMemoryError as error:
                raise self._out_of_memory(error) from None
        cut = len(tokens) >= max_new_tokens and int(tokens[-1]) not in self._ends()
        return Said(self._processor.decode(tokens, skip_special_tokens=True), "length" if cut else "stop")

    def likelihoods(self, picture: NDArray[np.uint8], text: str, answers: Sequence[str]) -> list[float]:
        """Natural logarithm of the probability of each whole answer, were it the model's; every answer costs a pass.

        Raises:
            NotTaken, ItemFailed: As `say`.
        """
        with self._lock, self._torch.inference_mode():
            inputs = self._inputs(picture, [{"text": text}])
            try:
                return [self._likelihood(inputs, answer) for answer in answers]
            except self._torch.OutOfMemoryError as error:
                raise self._out_of_memory(error) from None

    def _likelihood(self, inputs: Mapping[str, Any], answer: str) -> float:
        torch = self._torch
        ids = inputs["input_ids"]
        tokens = self._processor.tokenizer(answer, add_special_tokens=False, return_tensors="pt").input_ids.to(ids)
        extended = {**inputs, "input_ids": torch.cat([ids, tokens], dim=1)}
        for name, values in inputs.items():  # masks and kinds of token: the answer is seen, and is text
            if name != "input_ids" and values.shape == ids.shape:
                more = torch.full_like(tokens, int(name == "attention_mask")).to(values)
                extended[name] = torch.cat([values, more], dim=1)
        logits = self._model(**extended).logits[0, ids.shape[1] - 1 : -1].float()
        return float(logits.log_softmax(-1).gather(1, tokens[0][:, None]).sum())

    def _inputs(self, picture: NDArray[np.uint8], turns: Sequence[Mapping[str, str]]) -> Any:
        from PIL import Image

        roles = ("user", "assistant")
        chat: list[dict[str, Any]] = [
            {"role": roles[place % 2], "content": [{"type": "text", "text": turn["text"]}]}
            for place, turn in enumerate(turns)
        ]
        chat[0]["content"].insert(0, {"type": "image", "image": Image.fromarray(picture)})
        try:
            inputs = self._processor.apply_chat_template(
                chat, add_generation_prompt=True, tokenize=True, return_dict=True, return_tensors="pt"
            )
        except ValueError as error:
            raise NotTaken(first_line(error)) from None
        return inputs.to(self._model.device, dtype=self._model.dtype)  # whole numbers keep their type

    def _ends(self) -> set[int]:
        ends = self._model.generation_config.eos_token_id
        return set(ends if isinstance(ends, list) else [ends])

    def _out_of_memory(self, error: Exception) -> ItemFailed:
        if self._torch.cuda.is_available():
            self._torch.cuda.empty_cache()
        return ItemFailed(FailureKind.OUT_OF_MEMORY, first_line(error), retryable=True)


def load(place: Place) -> Model:
    """The model, loaded once per process however many threads and voters ask for it."""
    with _lock:
        if place not in _loaded:
            _loaded[place] = Model(place)
        return _loaded[place]


def digest_of(folder: Path) -> str:
    """sha256 of the list of a folder's files as `sha256sum` prints it, in order of their names, without hidden ones."""
    names = sorted(
        path.relative_to(folder).as_posix()
        for path in folder.rglob("*")
        if path.is_file() and not any(part.startswith(".") for part in path.relative_to(folder).parts)
    )
    return sha256("".join(f"{hash_file(folder / name)}  {name}\n" for name in names).encode())
