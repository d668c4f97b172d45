"""Rank: identity and background against the source, fused on fixed scales; the best few go on."""

import math
from collections.abc import Iterator, Sequence

from schemas.config import RankCut, RankMeasure
from schemas.outcomes import Reason
from schemas.records import Candidate, Fidelity, Finalist, Key, Motion
from tasks.engine.images import Picture
from tasks.engine.stage import Context, Failed, Item, Kept, Outcome, Rejected, Scope, Stage
from tasks.faces import ANALYZERS, EMBEDDERS, Face
from tasks.faces.geometry import face_mask
from tasks.metrics.background import background_rmse, registered_rmse
from tasks.metrics.identity import cosine


class Rank(Stage[Candidate, Fidelity]):
    """Dual-anchor fidelity (FED-Bench). Measures every candidate, so that the votes' threshold can move freely."""

    name = "rank"
    scope = Scope.SOURCE
    measurement = Fidelity
    output = Finalist
    reads = "generate"
    measure_params: RankMeasure
    cut_params: RankCut

    def identities(self) -> list[object]:
        faces, identity = self.measure_params.faces, self.measure_params.identity
        return [ANALYZERS.identity(faces.name, faces.params), EMBEDDERS.identity(identity.name, identity.params)]

    def measure(self, rows: Sequence[Candidate], ctx: Context) -> Iterator[tuple[Key, Fidelity | Failed]]:
        spec = self.measure_params.faces
        analyzer = ANALYZERS.get(spec.name, spec.params)
        for row in rows:
            source, candidate = ctx.images.get(row.source_image), ctx.images.get(row.image)
            source_faces, faces = analyzer.analyze(source), analyzer.analyze(candidate)
            if source_faces and faces:
                yield row.key, self._fidelity(source, source_faces[0], candidate, faces[0], row.motion)
            else:
                yield row.key, Fidelity()

    def _fidelity(
        self, source: Picture, source_face: Face, candidate: Picture, face: Face, motion: Motion | None
    ) -> Fidelity:
        spec = self.measure_params.identity
        embedder = EMBEDDERS.get(spec.name, spec.params)
        before, after = (
            face_mask(source.pixels.shape, each, self.measure_params.mask_dilation) for each in (source_face, face)
        )
        raw = background_rmse(source.pixels, candidate.pixels, before | after)
        registered = registered_rmse(source.pixels, candidate.pixels, before, after, motion) if motion else math.nan
        return Fidelity(
            identity=cosine(embedder.embed(source, source_face), embedder.embed(candidate, face)),
            background_rmse=None if math.isnan(raw) else raw,
            registered_rmse=None if math.isnan(raw) or math.isnan(registered) else registered,
        )

    def cut(self, items: Sequence[Item[Candidate, Fidelity]]) -> Iterator[tuple[Key, Outcome]]:
        scores = {}
        for item in items:
            outcome = below_floor(item.measurement, self.cut_params)
            if outcome is None:
                scores[item.key] = fused(item.measurement, self.cut_params)
            else:
                yield item.key, outcome
        places = {key: place for place, key in enumerate(sorted(scores, key=lambda key: (-scores[key], key)), 1)}
        for item in items:
            if item.key in places:
                yield item.key, self._placed(item, places[item.key], scores[item.key], len(places))

    def _placed(self, item: Item[Candidate, Fidelity], place: int, score: float, of: int) -> Outcome:
        words = f"place {place} of {of}, score {score:.4f}"
        if place > self.cut_params.top_k:
            return Rejected(Reason.BELOW_TOP_K, f"{words}; the best {self.cut_params.top_k} go on")
        row = item.row
        return Kept(
            Finalist(
                key=row.key,
                source_image=row.source_image,
                source_expression=row.source_expression,
                image=row.image,
                instruction=row.instruction,
                rank=place,
                score=score,
            ),
            words,
        )


def below_floor(fidelity: Fidelity, cut: RankCut) -> Rejected | None:
    """The rejection of a candidate that is too far from its source at all, or None."""
    if fidelity.identity is None:
        return Rejected(Reason.FACE_LOST, "no face to compare")
    rmse = background(fidelity, cut)
    if rmse is None:
        return Rejected(Reason.NO_BACKGROUND, "the widened faces cover the whole picture")
    if fidelity.identity < cut.min_identity:
        return Rejected(Reason.LOW_IDENTITY, f"cosine {fidelity.identity:.3f}, needs {cut.min_identity:g}")
    if rmse > cut.max_background_rmse:
        return Rejected(Reason.BACKGROUND_CHANGED, f"RMSE {rmse:.2f}, at most {cut.max_background_rmse:g}")
    return None


def background(fidelity: Fidelity, cut: RankCut) -> float | None:
    """The RMSE that counts: raw, or `registered` where the motion can be told and else raw again; None without one."""
    if cut.background == "registered" and fidelity.registered_rmse is not None:
        return fidelity.registered_rmse
    return fidelity.background_rmse


def fused(fidelity: Fidelity, cut: RankCut) -> float:
    """The fused score, 0..1: w · max(0, cosine) + (1 − w) · exp(−RMSE / scale).

    FED-Bench normalises each and fuses them; the fixed scales and equal weights are ours: a min-max over two
    survivors would only say which is which. Both measures must be there.
    """
    rmse = background(fidelity, cut)
    assert fidelity.identity is not None
    assert rmse is not None
    kept = math.exp(-rmse / cut.background_scale)
    return cut.identity_weight * max(0.0, fidelity.identity) + (1 - cut.identity_weight) * kept
