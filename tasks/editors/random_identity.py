"""A baseline that gives somebody else's photo: it may show the target, and loses the person and the background."""

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Final

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, Field

from schemas.outcomes import FailureKind
from schemas.records import Key, Source
from tasks.editors import EditRequest
from tasks.engine.calls import Calls
from tasks.engine.errors import ConfigError, ItemFailed, UnreadableImage
from tasks.engine.fingerprint import fingerprint
from tasks.engine.images import Picture
from tasks.engine.registry import Adapter
from tasks.faces import ANALYZERS, EMBEDDERS
from tasks.metrics.identity import cosine
from tasks.sources import POOLS, SourcePool

TRIES: Final = 20  # photos looked at before an edit fails


class RandomIdentityEditor(Adapter):
    """Another person's photo, drawn by the seed; generate stretches it to the source's size, like any output.

    Never a photo of the same face as far as SFace can tell, nor, where source and photos are of one pool, one that the
    pool's hints (identity, clip) say is of the same person. Only photos with a face are given. Whatever ranks it above
    an editor rewards an expression on anybody's face.
    """

    class Params(BaseModel, extra="forbid", frozen=True):
        """Whose photos.

        Attributes:
            pool: Where they come from: samples, folder, sfew, dfew or rafdb.
            root: The folder such a pool lies in; empty for samples. Its photos are known by their keys: one that is
                replaced under its name is not noticed.
            same_identity: Cosine (SFace) from which a face counts as the source's own; the default is its authors'.
        """

        pool: str = "samples"
        root: str = ""
        same_identity: float = Field(default=0.363, ge=-1, le=1)

    version = 1
    weights = ("face_landmarker", "sface", "yunet")
    local = ("root",)
    needs_face = False
    heeds_target = False
    seconds = 0.1
    params: Params

    @classmethod
    def check(cls, params: Params) -> None:
        """Raise the pool's own ConfigError, or one where it lists fewer than two photos."""
        if len(_listed(params)) < 2:
            raise ConfigError("editor 'random_identity': its pool has fewer than two photos", "give another `root`")

    @classmethod
    def contents(cls, params: Params) -> str:
        """Digest of the photos' keys; empty where they cannot be listed, which `check` says."""
        try:
            return fingerprint([list(key) for key in sorted(_listed(params))])
        except ConfigError:
            return ""

    @cached_property
    def _people(self) -> Mapping[Key, Source]:
        return _listed(self.params)

    def edit(self, requests: Sequence[EditRequest], call: Calls) -> Sequence[NDArray[np.uint8] | ItemFailed]:
        """A photo for each request; NO_FACE where none of the first ones drawn can be taken."""
        return [self._drawn(request) for request in requests]

    def _drawn(self, request: EditRequest) -> NDArray[np.uint8] | ItemFailed:
        own = self._people.get(request.key.source())
        keys = sorted(key for key, other in self._people.items() if own is None or not _same_person(own, other))
        for place in np.random.default_rng(request.seed).permutation(len(keys))[:TRIES]:
            source = self._people[keys[int(place)]]
            try:
                loaded = _pool(self.params).load(source)
            except UnreadableImage:
                continue
            shown = Picture(f"{source.key} {loaded.file_sha256}", loaded.pixels)
            if self._is_another(request.source, shown):
                return loaded.pixels
        return ItemFailed(FailureKind.NO_FACE, f"none of {min(TRIES, len(keys))} photos shows another person's face")

    def _is_another(self, source: Picture, shown: Picture) -> bool:
        """Whether a face is shown, and not the source's."""
        analyzer, embedder = ANALYZERS.get("mediapipe", {}), EMBEDDERS.get("sface", {})
        theirs, own = analyzer.analyze(shown), analyzer.analyze(source)
        if not theirs or np.array_equal(shown.pixels, source.pixels):
            return False
        if not own:
            return True
        return cosine(embedder.embed(shown, theirs[0]), embedder.embed(source, own[0])) < self.params.same_identity


def _same_person(one: Source, other: Source) -> bool:
    hints = ((one.identity, other.identity), (one.clip, other.clip))
    return one.key == other.key or any(mine and mine == yours for mine, yours in hints)


def _pool(params: RandomIdentityEditor.Params) -> SourcePool:
    given = {"root": params.root} if params.root else {}
    return POOLS.get(params.pool, given)


def _listed(params: RandomIdentityEditor.Params) -> dict[Key, Source]:
    return {source.key: source for source in _pool(params).list()}
