"""The loop that somebody would write by hand: the same models on the same photos, and nothing kept but pictures."""

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from numpy.typing import NDArray

import prompts
from schemas.config import BuildConfig
from schemas.expressions import Expression, others
from schemas.records import Ballots, Candidate, Fidelity, Key, Source, Vote
from schemas.sections import Adapter as Spec
from tasks.describers import DESCRIBERS
from tasks.editors import EDITORS, EditRequest
from tasks.engine.calls import Calls
from tasks.engine.decode import encode_png
from tasks.engine.fingerprint import sha256
from tasks.engine.images import Picture
from tasks.engine.shards import order
from tasks.engine.stage import Kept
from tasks.faces import ANALYZERS, EMBEDDERS, Face
from tasks.faces.geometry import face_mask, inter_eye_distance
from tasks.faces.quality import exposure_shares, second_face_ratio, sharpness
from tasks.generate import PROMPT
from tasks.metrics.background import background_rmse, registered_rmse
from tasks.metrics.change import expression_change
from tasks.metrics.identity import cosine
from tasks.metrics.registration import register
from tasks.metrics.unchanged import local_change
from tasks.pipeline import open_pools
from tasks.rank import below_floor, fused
from tasks.verify import verdict
from tasks.voters import VOTERS
from tasks.voters.ballots import to_vote
from tasks.voters.labels import label_of


class Bare:
    """All model work of a build in one pass over the sources, shared by as many threads.

    Each PNG is encoded, hashed (models remember faces by it) and written once, and its bytes are read back once;
    decisions are made with the pipeline's own functions, so that the same pictures are captioned.
    """

    def __init__(self, config: BuildConfig, folder: Path) -> None:
        self._config = config
        self._folder = folder
        self._calls = Calls(folder / "answers.sqlite", config.calls, config.name)  # local adapters leave it shut

    def __call__(self) -> list[str]:
        """Work through all sources; the digests of all edits, sorted."""
        self._folder.mkdir(parents=True)
        pools = open_pools(self._config)
        listed = order(self._config.seed, (source for pool in pools.values() for source in pool.list()))
        rows = listed[: self._config.limit]
        with ThreadPoolExecutor(self._config.workers) as threads:
            found = threads.map(lambda row: self._source(row, pools[row.key.pool].load(row).pixels), rows)
            return sorted(digest for digests in found for digest in digests)

    def _source(self, row: Source, pixels: NDArray[Any]) -> list[str]:
        config = self._config
        source = self._write(pixels)
        faces = _adapter(ANALYZERS, config.screen.measure.faces).analyze(source)
        if not faces:
            return []
        second_face_ratio(faces), inter_eye_distance(faces[0])
        exposure_shares(pixels, faces[0]), sharpness(pixels, faces[0])
        _adapter(EMBEDDERS, config.screen.measure.identity).embed(source, faces[0])
        label, _ = label_of(row, self._poll(config.screen.measure.label_panel, source) if row.label is None else ())
        if label is None:
            return []
        edits = self._edit(source, label)
        scores = {target: self._score(row.key, target, source, faces[0], edit) for target, edit in edits.items()}
        passed = sorted((-score, target) for target, score in scores.items() if score is not None)
        finalists = [edits[target] for _, target in passed[: config.rank.cut.top_k]]
        describer = _adapter(DESCRIBERS, config.caption.measure.describer)
        for finalist in finalists:
            describer.caption(finalist, self._calls)
        for chosen in finalists[:1]:
            describer.instruct(source, chosen, self._calls)
        for picture in (source, *edits.values()):
            self._path(picture.digest).read_bytes()
        return [edit.digest for edit in edits.values()]

    def _edit(self, source: Picture, label: Expression) -> dict[Expression, Picture]:
        requests = [
            EditRequest(source, label, target, prompts.render(PROMPT, source=label, target=target), 0)
            for target in others(label)
        ]
        pixels = _adapter(EDITORS, self._config.generate.measure.editor).edit(requests, self._calls)
        return {request.target: self._write(edit) for request, edit in zip(requests, pixels, strict=True)}

    def _score(self, key: Key, target: Expression, source: Picture, face: Face, edit: Picture) -> float | None:
        """Fidelity of an edit that passed, else None; everything is measured of every edit, as the pipeline does."""
        config = self._config
        motion = register(source.pixels, edit.pixels)
        local_change(source.pixels, edit.pixels)
        found = _adapter(ANALYZERS, config.verify.measure.faces).analyze(edit)
        votes = self._poll(config.verify.measure.panel, edit)
        if not found:
            return None
        embed = _adapter(EMBEDDERS, config.rank.measure.identity).embed
        ballots = Ballots(
            votes=votes, faces=len(found), change=expression_change(face.blendshapes, found[0].blendshapes)
        )
        before, after = (
            face_mask(source.pixels.shape, each, config.rank.measure.mask_dilation) for each in (face, found[0])
        )
        if motion:
            registered_rmse(source.pixels, edit.pixels, before, after, motion)
        fidelity = Fidelity(
            identity=cosine(embed(source, face), embed(edit, found[0])),
            background_rmse=background_rmse(source.pixels, edit.pixels, before | after),
        )
        candidate = Candidate.model_construct(key=Key(*key[:2], target, "warp", 0))
        passed = isinstance(verdict(candidate, ballots, config.verify.cut), Kept)
        return fused(fidelity, config.rank.cut) if passed and not below_floor(fidelity, config.rank.cut) else None

    def _poll(self, panel: Sequence[Spec], picture: Picture) -> tuple[Vote, ...]:
        votes = []
        for spec in panel:
            voter = _adapter(VOTERS, spec)
            votes.append(to_vote(spec, voter.granularity, voter.vote(picture, self._calls)))
        return tuple(votes)

    def _path(self, digest: str) -> Path:
        return self._folder / f"{digest}.png"

    def _write(self, pixels: NDArray[Any]) -> Picture:
        data = encode_png(pixels)
        digest = sha256(data)
        self._path(digest).write_bytes(data)
        return Picture(digest, pixels)


def _adapter(registry: Any, spec: Any) -> Any:
    return registry.get(spec.name, spec.params)
