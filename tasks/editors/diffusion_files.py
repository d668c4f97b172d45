"""Where a diffusion editor's files lie, and whether they are all there; nothing is downloaded and nothing loaded."""

import importlib.util
import json
import re
from pathlib import Path
from typing import Any, Final

from tasks.editors.table import Lora
from tasks.engine.errors import ConfigError
from tasks.engine.weights import hash_file
from tasks.providers.in_process import EXTRA, digest_of

COMMIT: Final = re.compile("[0-9a-f]{40}")
_PICKLES: Final = (".bin", ".pt", ".pth", ".ckpt", ".pkl")
INDEX: Final = "model_index.json"


def packages(model: str, needed: tuple[str, ...]) -> None:
    """Refuse where one of the packages of the model extra is missing.

    Raises:
        ConfigError: With how to install it.
    """
    for package in needed:
        if importlib.util.find_spec(package) is None:
            raise ConfigError(f"the editor '{model}' needs {package}, which is not installed", EXTRA)


def pipeline_folder(repository: str, revision: str, folder: str) -> Path:
    """The folder of a pipeline as `save_pretrained` leaves it, all its parts checked to be there.

    Args:
        repository: Its id at the hub; of one in a folder, what the user calls it.
        revision: The commit at the hub, or the folder's digest (`digest_of`).
        folder: Where it lies, if not in the hub's cache.

    Raises:
        ConfigError: It is not there, not whole, not pinned, or kept as pickles.
    """
    if folder:
        found = Path(folder)
        if not (found / INDEX).is_file():
            raise ConfigError(f"no pipeline of diffusers lies in {folder}: it has no {INDEX}")
        digest = digest_of(found)
        if revision != digest:
            raise ConfigError(
                f"the files in {folder} are not those of revision '{revision}' of '{repository}'",
                f"if they are what you mean: revision: {digest}",
            )
    else:
        found = _cached(repository, revision, INDEX).parent
    for part in parts(index(found)):
        _whole(repository, found, part)
    return found


def lora_file(lora: Lora, folder: str) -> Path:
    """The file of a LoRA: in the hub's cache, or in `folder` if its revision is the sha256 of the file.

    Raises:
        ConfigError: It is not there, or not pinned.
    """
    if not folder or COMMIT.fullmatch(lora.revision):
        return _cached(lora.repository, lora.revision, lora.file)
    found = Path(folder) / lora.file
    if not found.is_file():
        raise ConfigError(f"no LoRA {lora.file} lies in {folder}")
    digest = hash_file(found)
    if lora.revision != digest:
        raise ConfigError(
            f"{found} is not revision '{lora.revision}' of '{lora.repository or lora.file}'",
            f"if it is what you mean: revision: {digest}",
        )
    return found


def index(folder: Path) -> dict[str, Any]:
    """What a pipeline is made of, as its folder says.

    Raises:
        ConfigError: The file is no JSON object.
    """
    try:
        values = json.loads((folder / INDEX).read_text(encoding="utf-8"))
    except ValueError:
        values = None
    if not isinstance(values, dict):
        raise ConfigError(f"{folder / INDEX} is no JSON object")
    return values


def parts(values: dict[str, Any]) -> dict[str, tuple[str, str]]:
    """Name → (library, class) of the parts that have files of their own."""
    named = {name: value for name, value in values.items() if isinstance(value, list) and not name.startswith("_")}
    return {name: (value[0], value[1]) for name, value in named.items() if len(value) == 2 and value[0] is not None}


def _whole(repository: str, folder: Path, part: str) -> None:
    files = [path for path in (folder / part).glob("*") if path.is_file()]
    names = {path.name for path in files}
    if not files:
        raise ConfigError(f"the editor '{repository}' lacks its part '{part}'", "fetch it again, wholly")
    weights = {name for name in names if name.endswith(".safetensors")}
    pickles = {name for name in names if name.endswith(_PICKLES)}
    if pickles and not weights:
        raise ConfigError(
            f"the part '{part}' of '{repository}' is kept as a pickle ({min(pickles)}), which could run anything",
            "convert it to safetensors: load it where you trust it, and save_pretrained(..., safe_serialization=True)",
        )
    for listing in (path for path in files if path.name.endswith(".safetensors.index.json")):
        shards = set(json.loads(listing.read_text(encoding="utf-8")).get("weight_map", {}).values())
        # A variant's listing (fp16) names files that a download may leave out as long as the plain ones are there.
        lost = shards - names
        if lost and not (weights - shards):
            raise ConfigError(f"the part '{part}' of '{repository}' lacks {min(lost)}", "fetch it again, wholly")


def _cached(repository: str, revision: str, file: str) -> Path:
    """A file of the hub's cache."""
    if not COMMIT.fullmatch(revision):
        raise ConfigError(
            f"revision '{revision}' of '{repository}' is no commit",
            "give the commit at the hub, 40 hexadecimal digits, or the folder where it lies",
        )
    from huggingface_hub import try_to_load_from_cache
    from huggingface_hub.errors import HFValidationError

    try:
        found = try_to_load_from_cache(repository, file, revision=revision)
    except HFValidationError:
        raise ConfigError(f"'{repository}' is no id of the hub, and no folder is given") from None
    if not isinstance(found, str):
        raise ConfigError(
            f"'{repository}' is not on this machine at revision {revision}",
            f"fetch it: hf download {repository} --revision {revision}",
        )
    return Path(found)
