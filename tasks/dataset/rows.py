"""From the lives of sources to published rows."""

from typing import Any

from schemas.config import GenerateCut
from schemas.outcomes import Reason, Status
from schemas.published import SCHEMA_VERSION, ImageCell, RejectedRow, TripletRow
from schemas.records import Ballots, Candidate, Fidelity, Key, Motion, Photo, Record, Triplet
from schemas.reviews import ASKED, Quality, ReviewCell
from tasks.engine.dossier import Life, SourceLife
from tasks.engine.fingerprint import canonical, sha256
from tasks.engine.images import ImageStore
from tasks.engine.tombstones import WORDS
from tasks.generate import how_moved

_PICTURES = {"source", "ground_truth", "image", "row_sha256"}


def row_digest(row: Record) -> str:
    """sha256 over all columns of a published row but its pictures (whose hashes are columns) and itself."""
    return sha256(canonical(row.model_dump(mode="json", exclude=_PICTURES)))


def _signed(row: Any) -> Any:
    return row.model_copy(update={"row_sha256": row_digest(row)})


def _identity(key: Key) -> dict[str, Any]:
    return {**key._asdict(), "id": str(key), "schema_version": SCHEMA_VERSION, "row_sha256": ""}


def _cell(images: ImageStore, digest: str, key: Key, role: str) -> ImageCell:
    return ImageCell(bytes=images.read(digest), path=f"{key}/{role}.png".replace(":", "/"))


def _moved(motion: Motion | None, cut: GenerateCut) -> bool | None:
    return None if motion is None else bool(how_moved(motion, cut))


def triplet_row(source: SourceLife, life: Life, images: ImageStore, cut: GenerateCut) -> TripletRow:
    """The published row of a life that publish kept."""
    photo: Photo = source.outputs["screen"]
    candidate: Candidate = life.outputs["generate"]
    ballots: Ballots = life.measured["verify"]
    fidelity: Fidelity = life.measured["rank"]
    triplet: Triplet = life.outputs["publish"]
    row = TripletRow(
        **_identity(life.key),
        source_expression=photo.expression,
        target_expression=life.key.target,
        instruction=triplet.instruction,
        dense_instruction=triplet.dense_instruction,
        back_check=triplet.back_check,
        caption=triplet.caption,
        votes=ballots.votes,
        verdict=life.steps["verify"].evidence,
        change=ballots.change,
        identity=fidelity.identity,
        background_rmse=fidelity.background_rmse,
        registered_rmse=fidelity.registered_rmse,
        motion=candidate.motion,
        moved=_moved(candidate.motion, cut),
        raw_width=candidate.raw_width,
        raw_height=candidate.raw_height,
        editor_model=candidate.model,
        watermark=candidate.watermark,
        score=life.outputs["rank"].score,
        rank=triplet.rank,
        review=_review_cell(triplet),
        label_source=photo.label_source,
        subject=photo.subject,
        clip=photo.clip,
        movie=photo.movie,
        source_split=photo.split,
        traits=photo.traits,
        licence=photo.licence,
        seed=candidate.seed,
        synthetic=True,
        source_file_sha256=photo.file_sha256,
        source_pixel_sha256=photo.pixel_sha256,
        source_sha256=photo.image,
        ground_truth_sha256=candidate.image,
        source=_cell(images, photo.image, source.key, "source"),
        ground_truth=_cell(images, candidate.image, life.key, "ground_truth"),
    )
    return _signed(row)  # type: ignore[no-any-return]


def _review_cell(triplet: Triplet) -> ReviewCell:
    means = {str(quality): None for quality in ASKED} | {one.quality: one.mean for one in triplet.ratings}
    return ReviewCell(
        mode=triplet.mode,
        note=triplet.note,
        raters=max((one.people for one in triplet.ratings), default=0),
        natural=means[Quality.NATURAL],
        aligned=means[Quality.ALIGNED],
        identity=means[Quality.IDENTITY],
        background=means[Quality.BACKGROUND],
    )


def tombstone_row(key: Key, licence: str) -> RejectedRow:
    """What a data set keeps of a withdrawn source: that it was one, and under which licence it is counted."""
    row = RejectedRow(
        **_identity(key),
        stage="screen",
        status=Status.REJECTED,
        reason=Reason.WITHDRAWN,
        evidence=WORDS,
        source_expression="",
        instruction="",
        votes=(),
        change=None,
        identity=None,
        background_rmse=None,
        registered_rmse=None,
        motion=None,
        moved=None,
        licence=licence,
        image_sha256="",
        image=None,
    )
    return _signed(row)  # type: ignore[no-any-return]


def rejected_row(source: SourceLife, life: Life, images: ImageStore, cut: GenerateCut) -> RejectedRow:
    """The published row of a life that ended before the data set."""
    stage, step = life.end
    photo: Photo | None = source.outputs.get("screen")
    candidate = life.measured.get("generate") if life.key.target else None
    ballots, fidelity = life.measured.get("verify"), life.measured.get("rank")
    edit = candidate if isinstance(candidate, Candidate) else None
    row = RejectedRow(
        **_identity(life.key),
        stage=stage,
        status=step.status,
        reason=step.reason,
        evidence=step.evidence,
        source_expression=photo.expression if photo else (source.source.label or ""),
        instruction=edit.instruction if edit else "",
        votes=ballots.votes if isinstance(ballots, Ballots) else (),
        change=ballots.change if isinstance(ballots, Ballots) else None,
        identity=fidelity.identity if isinstance(fidelity, Fidelity) else None,
        background_rmse=fidelity.background_rmse if isinstance(fidelity, Fidelity) else None,
        registered_rmse=fidelity.registered_rmse if isinstance(fidelity, Fidelity) else None,
        motion=edit.motion if edit else None,
        moved=_moved(edit.motion, cut) if edit else None,
        licence=source.source.licence,
        image_sha256=edit.image if edit else "",
        image=_cell(images, edit.image, life.key, "candidate") if edit else None,
    )
    return _signed(row)  # type: ignore[no-any-return]
