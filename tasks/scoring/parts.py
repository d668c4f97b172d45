"""Measure: the rule parts of every output, against its source and its ground truth. No judge, no threshold."""

import math
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from schemas.records import Key
from schemas.score_config import ScoreMeasure
from schemas.score_steps import Made
from schemas.scoring import PartStatus, RuleParts
from tasks.distances import DISTANCES
from tasks.engine.images import Picture
from tasks.engine.stage import Context, Failed
from tasks.faces import ANALYZERS, EMBEDDERS, Face
from tasks.faces.geometry import context_box, crop, face_mask, landmark_box
from tasks.faces.memo import Memo
from tasks.metrics.background import background_rmse, registered_rmse
from tasks.metrics.change import expression_change
from tasks.metrics.gain import direction
from tasks.metrics.identity import cosine, matched
from tasks.metrics.registration import register, resized
from tasks.scoring.steps import Step

# What belongs to source and ground truth alone is the same for every editor: the distance between them.
_truths: Memo[float | None] = Memo(65_536)


class ScoreParts(Step[Made, RuleParts]):
    """ID, BG and the distances of REG. What changes inside the mask moves BG by nothing: it is the triplet's mask."""

    name = "score_parts"
    measurement = RuleParts
    output = RuleParts
    ignores = frozenset({"instruction", "seed", "raw_width", "raw_height"})
    measure_params: ScoreMeasure

    def identities(self) -> list[Any]:
        return used(self.measure_params)

    def measure(self, rows: Sequence[Made], ctx: Context) -> Iterator[tuple[Key, RuleParts | Failed]]:
        for row in rows:
            source = ctx.images.get(row.source_image)
            truth = ctx.images.get(row.truth_image)
            if truth.pixels.shape != source.pixels.shape:
                truth = Picture(f"{truth.digest} resized", resized(truth.pixels, source.pixels.shape))
            yield row.key, self._parts(source, truth, ctx.images.get(row.image))

    def _parts(self, source: Picture, truth: Picture, output: Picture) -> RuleParts:
        analyzer = ANALYZERS.get(self.measure_params.faces.name, self.measure_params.faces.params)
        found = analyzer.analyze(output)
        before = next(iter(analyzer.analyze(source)), None)
        if before is None:
            return _unmeasured(len(found))
        face, wanted = face_at(before, found), face_at(before, analyzer.analyze(truth))
        spec = self.measure_params.identity
        embedder = EMBEDDERS.get(spec.name, spec.params)
        return RuleParts(
            identity=cosine(embedder.embed(source, before), embedder.embed(output, face)) if face else None,
            identity_status=PartStatus.OK if face else PartStatus.NO_FACE,
            faces=len(found),
            **self._background(source, output, before, wanted, face),
            **self._gain(source, truth, output, before),
            au_output=expression_change(before.blendshapes, face.blendshapes) if face else None,
            au_truth=expression_change(before.blendshapes, wanted.blendshapes) if wanted else None,
            au_direction=direction(before.blendshapes, face.blendshapes, wanted.blendshapes)
            if face and wanted
            else None,
        )

    def _background(
        self, source: Picture, output: Picture, before: Face, wanted: Face | None, face: Face | None
    ) -> dict[str, Any]:
        """RMSE outside the triplet's mask, and outside that and the output's own face."""
        motion = register(source.pixels, output.pixels)
        names = ("background_rmse", "registered_rmse", "background_own_rmse", "registered_own_rmse")
        values: dict[str, float | None] = dict.fromkeys(names)
        if wanted is None:
            return values | {"background_status": PartStatus.NO_REFERENCE, "motion": motion}
        shape, widened = source.pixels.shape, self.measure_params.mask_dilation
        mask = face_mask(shape, before, widened) | face_mask(shape, wanted, widened)
        nothing = np.zeros(shape[:2], np.bool_)
        for names_of, own in ((names[:2], nothing), (names[2:], face_mask(shape, face, widened) if face else nothing)):
            values[names_of[0]] = _number(background_rmse(source.pixels, output.pixels, mask | own))
            if motion:
                values[names_of[1]] = _number(registered_rmse(source.pixels, output.pixels, mask, own, motion))
        status = PartStatus.NO_BACKGROUND if values["background_rmse"] is None else PartStatus.OK
        return values | {"background_status": status, "motion": motion}

    def _gain(self, source: Picture, truth: Picture, output: Picture, before: Face) -> dict[str, Any]:
        params = self.measure_params
        key = (params.model_dump_json(), source.digest, truth.digest)
        return {
            "lpips_output": face_distance(params, source, output, before),
            "lpips_truth": _truths.get(key, lambda: face_distance(params, source, truth, before)),
        }


def face_distance(params: ScoreMeasure, source: Picture, other: Picture, before: Face) -> float | None:
    """The perceptual distance inside one box, that of the source's face, so that a face that moved shows as moved.

    Returns:
        The distance, ≥ 0; None where the run measures none.
    """
    if params.distance is None:
        return None
    distance = DISTANCES.get(params.distance.name, params.distance.params)
    square = context_box(landmark_box(before), params.box_margin)
    return distance.between(*(crop(shown.pixels, square, params.box_side) for shown in (source, other)))


def used(params: ScoreMeasure) -> list[Any]:
    """What measures: face analyzer, identity model and distance, with versions and weights."""
    distance = params.distance
    return [
        ANALYZERS.identity(params.faces.name, params.faces.params),
        EMBEDDERS.identity(params.identity.name, params.identity.params),
        *([DISTANCES.identity(distance.name, distance.params)] if distance else []),
    ]


def face_at(source: Face, faces: Sequence[Face]) -> Face | None:
    """The face in the source's place; None where there is none at all."""
    place = matched(source.box, [face.box for face in faces])
    return None if place is None else faces[place]


def _number(value: float) -> float | None:
    return None if math.isnan(value) else value


def _unmeasured(faces: int) -> RuleParts:
    """Of a triplet whose source shows no face to this analyzer."""
    values: dict[str, Any] = dict.fromkeys(RuleParts.model_fields)
    absent = {"identity_status": PartStatus.NO_REFERENCE, "background_status": PartStatus.NO_REFERENCE}
    return RuleParts(**values | absent | {"faces": faces})
