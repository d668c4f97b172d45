"""The configuration of a build. Each stage has two halves: `measure` decides what models see, `cut` who passes.

Changing anything under `cut` re-decides a finished run without a model and without a call.
"""

from datetime import date
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field

from schemas.expressions import Expression


class Section(BaseModel):
    """Base of all parts: frozen, and an unknown key is an error."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)


class Adapter(Section):
    """An adapter by name, with its own parameters. In YAML the bare name will do."""

    name: str = Field(description="Name in the registry, see `fedbench doctor`.")
    params: dict[str, Any] = Field(default={}, description="The adapter's own parameters.")


def _bare_name(value: Any) -> Any:
    return {"name": value} if isinstance(value, str) else value


AdapterField = Annotated[Adapter, BeforeValidator(_bare_name)]


def _unique(value: tuple[Adapter, ...]) -> tuple[Adapter, ...]:
    seen = [adapter.model_dump_json() for adapter in value]
    if len(set(seen)) != len(seen):
        raise ValueError("the same adapter with the same parameters is listed twice")
    return value


Adapters = Annotated[tuple[AdapterField, ...], AfterValidator(_unique)]


class ScreenMeasure(Section):
    """What is measured of a source photo."""

    faces: AdapterField = Field(default=Adapter(name="mediapipe"), description="Face analyzer.")
    identity: AdapterField = Field(default=Adapter(name="sface"), description="Identity model.")
    label_panel: Adapters = Field(default=(), description="Voters that label unlabelled sources (fine answers).")
    check_labels: bool = Field(default=False, description="Whether the label panel also looks at labelled sources.")
    max_pixels: int = Field(default=50_000_000, ge=10_000, description="Larger pictures are not decoded.")


# What `screen.cut: strict` stands for. All numbers are ours.
SCREEN_PROFILES: dict[str, dict[str, float]] = {
    "lenient": {
        "max_second_face": 0.7,
        "min_inter_eye_px": 30,
        "max_yaw": 45,
        "max_pitch": 35,
        "min_sharpness": 30,
        "max_overexposed": 0.3,
        "max_underexposed": 0.3,
        "min_label_confidence": 0.5,
    },
    "default": {},
    "strict": {
        "max_second_face": 0.3,
        "min_inter_eye_px": 70,
        "max_yaw": 20,
        "max_pitch": 15,
        "min_sharpness": 100,
        "max_overexposed": 0.1,
        "max_underexposed": 0.1,
        "min_label_confidence": 0.8,
    },
}


class ScreenCut(Section):
    """Which sources pass. All numbers are ours, from ISO/IEC 29794-5 measures and practice."""

    max_second_face: float = Field(default=0.5, ge=0, le=1, description="Second face's size over the first's.")
    min_inter_eye_px: float = Field(default=40, ge=0, description="Pixels between the eyes, corrected for yaw.")
    max_yaw: float = Field(default=35, ge=0, le=180, description="Degrees.")
    max_pitch: float = Field(default=25, ge=0, le=180, description="Degrees.")
    min_sharpness: float = Field(default=50, ge=0, description="Laplacian variance of the face crop.")
    max_overexposed: float = Field(default=0.2, ge=0, le=1, description="Share of face pixels.")
    max_underexposed: float = Field(default=0.2, ge=0, le=1, description="Share of face pixels.")
    min_label_confidence: float = Field(default=0.7, ge=0, le=1, description="Where the pool gives one.")
    label_check: Literal["off", "polarity", "expression"] = Field(
        default="off", description="What the panel's majority must not contradict of a given label."
    )
    near_duplicate_bits: int = Field(default=6, ge=0, le=64, description="Perceptual hashes this close are one.")
    duplicates: bool = Field(default=True, description="Whether exact and near duplicates are rejected.")
    same_identity: float = Field(
        default=0.5,
        ge=-1,
        le=1,
        description="Cosine from which two faces are one person. Calibrated on `sface` as leak_identity is: 0 of 433 "
        "pairs of different people reach it; 38 of 38 pairs of photos of one person do, and 86 % of 496 pairs of "
        "frames of a video of strong expressions and hands before the face.",
    )
    leak_identity: float = Field(
        default=0.45,
        ge=-1,
        le=1,
        description="Cosine to an excluded source from which it is the same person. Calibrated on `sface` alone: 0 of "
        "433 pairs of different people reach it (171 of the 19 people of the sample photos, highest .428; 262 of "
        "another photo set, highest .341), so the false-accept rate per pair is below 0.7 % at 95 % confidence, if the "
        "pairs were independent; so few pairs prove no more. A normal fit (mean .094, deviation .087) gives 2e-5 per "
        "pair, which is 1.5 % of the sources against 747. Of pairs of one person 38 of 38 photos reach it, and 92 % of "
        "496 pairs of frames of a video of strong expressions and hands before the face.",
    )
    leak_duplicate_bits: int = Field(
        default=6, ge=0, le=64, description="Hash bits between a picture, or its mirror image, and an excluded one."
    )
    leak_face_bits: int = Field(
        default=6,
        ge=0,
        le=64,
        description="The same between aligned faces. Different people differ by 24 bits (deviation 4.4, least 10 in "
        "171 pairs), so this counts only together with leak_face_identity.",
    )
    leak_face_identity: float = Field(
        default=0.3,
        ge=-1,
        le=1,
        description="Cosine below which like faces are two people's all the same; 168 of 171 pairs of different people "
        "are below. Not asked where there are no two vectors of one model.",
    )
    max_per_clip: int | None = Field(default=2, ge=1, description="Sources per clip; null for no cap.")
    max_per_movie: int | None = Field(default=None, ge=1, description="Sources per movie; null for no cap.")
    max_per_identity: int | None = Field(default=5, ge=1, description="Sources per person; null for no cap.")


def _profile(value: Any) -> Any:
    if isinstance(value, str):
        if value not in SCREEN_PROFILES:
            raise ValueError(f"unknown profile '{value}', choose one of: {', '.join(SCREEN_PROFILES)}")
        return SCREEN_PROFILES[value]
    return value


class GenerateMeasure(Section):
    """How candidates are made."""

    editor: AdapterField = Field(default=Adapter(name="warp"), description="Image editor.")
    targets: tuple[Expression, ...] = Field(default=(), description="Only these targets; empty for all six.")
    attempts: int = Field(default=1, ge=1, le=10, description="Candidates per target.")


class GenerateCut(Section):
    """Which edits are candidates at all."""

    min_changed_pixels: float = Field(
        default=0.0005, ge=0, le=1, description="Share of pixels that differ from the source by more than 2 levels."
    )


class VerifyMeasure(Section):
    """Who votes, and the extra test that polarity cannot give."""

    panel: Adapters = Field(default=(Adapter(name="fer"), Adapter(name="blendshapes")), min_length=1)
    faces: AdapterField = Field(default=Adapter(name="mediapipe"), description="Face analyzer of the changed test.")


class VerifyCut(Section):
    """When a candidate shows its target."""

    majority: Literal["panel", "valid"] = Field(
        default="panel", description="More than half of the whole panel, or of those who answered."
    )
    min_votes: int = Field(default=1, ge=1, description="Fewer valid answers fail as insufficient_votes.")
    min_change: float = Field(default=0.25, ge=0, description="Blendshape distance from the source.")
    fine_agreement: float = Field(
        default=0.0, ge=0, le=1, description="Share of fine answers that must name the target itself; 0 is off."
    )


class RankMeasure(Section):
    """The two anchors of fidelity."""

    identity: AdapterField = Field(default=Adapter(name="sface"), description="Identity model.")
    faces: AdapterField = Field(default=Adapter(name="mediapipe"), description="Face analyzer for the masks.")
    mask_dilation: float = Field(default=0.35, ge=0, le=2, description="Widening of the faces, in inter-eye distances.")


class RankCut(Section):
    """How fidelity orders the candidates of a source."""

    identity_weight: float = Field(default=0.5, ge=0, le=1, description="The background gets the rest.")
    background_scale: float = Field(default=20.0, gt=0, description="RMSE (0-255) at which the score is 1/e.")
    min_identity: float = Field(default=0.4, ge=-1, le=1, description="Cosine below which it is somebody else.")
    max_background_rmse: float = Field(default=40.0, ge=0, le=255)
    top_k: int = Field(default=2, ge=1, le=60)


class DescriberMeasure(Section):
    """Who writes."""

    describer: AdapterField = Field(default=Adapter(name="blendshapes"))


class NoCut(Section):
    """A stage that decides nothing."""


class ReviewMeasure(Section):
    """Who decides between the finalists."""

    board: AdapterField = Field(default=Adapter(name="auto"))


class ReviewCut(Section):
    """How opinions become a decision."""

    keep_per_source: int = Field(default=1, ge=1, description="Ground truths per source, at most.")


class NoMeasure(Section):
    """A stage that measures nothing."""


class PublishCut(Section):
    """Which triplets the data set holds."""

    target: int | None = Field(default=None, ge=1, description="How many triplets; null for all survivors.")
    margin: float = Field(default=1.0, ge=1, description="The prefix must hold this many times the target.")


class Screen(Section):
    """Source screening."""

    measure: ScreenMeasure = ScreenMeasure()
    cut: Annotated[ScreenCut, BeforeValidator(_profile)] = Field(
        default=ScreenCut(), description="Thresholds, or the name of a profile: lenient, default, strict."
    )


class Generate(Section):
    """Candidate generation."""

    measure: GenerateMeasure = GenerateMeasure()
    cut: GenerateCut = GenerateCut()


class Verify(Section):
    """Expression verification."""

    measure: VerifyMeasure = VerifyMeasure()
    cut: VerifyCut = VerifyCut()


class Rank(Section):
    """Fidelity ranking."""

    measure: RankMeasure = RankMeasure()
    cut: RankCut = RankCut()


class Caption(Section):
    """Captions of the finalists."""

    measure: DescriberMeasure = DescriberMeasure()
    cut: NoCut = NoCut()


class Review(Section):
    """Human or automatic review."""

    measure: ReviewMeasure = ReviewMeasure()
    cut: ReviewCut = ReviewCut()


class Instruct(Section):
    """Dense instructions."""

    measure: DescriberMeasure = DescriberMeasure()
    cut: NoCut = NoCut()


class Publish(Section):
    """Selection, and what the card and a release say of it."""

    measure: NoMeasure = NoMeasure()
    cut: PublishCut = PublishCut()
    generated_on: date | None = Field(
        default=None, description="Day that the card gives for the ground truths; no clock is ever asked."
    )
    acknowledge_licences: tuple[str, ...] = Field(
        default=(), description="Pools whose pictures you may pass on although their licence forbids it in general."
    )


class BuildConfig(Section):
    """One build: sources in, a data set out. The defaults are those of the embedded adapters."""

    name: str = Field(default="demo", pattern=r"^[a-z0-9][a-z0-9-]{0,39}$", description="Run and data set name.")
    edition: str = Field(default="v1", pattern=r"^[a-z0-9][a-z0-9.-]{0,39}$", description="Edition of the data set.")
    split: Literal["train", "test"] = Field(default="train", description="Split the triplets are published as.")
    seed: int = Field(default=0, ge=0, description="Orders the sources and seeds every edit.")
    pools: Adapters = Field(default=(Adapter(name="samples"),), min_length=1, description="Where photos come from.")
    limit: int | None = Field(default=None, ge=1, description="Only this many sources; null for all.")
    shard_size: int = Field(default=64, ge=1, le=10_000, description="Sources per shard, for shards yet to open.")
    workers: int = Field(default=2, ge=1, le=256, description="Shards worked on at once.")
    max_failed: float = Field(default=0.05, ge=0, le=1, description="Share of failures a stage may have.")
    exclude: tuple[str, ...] = Field(
        default=(),
        description="What no source may share a clip, a picture or a person with, such as the benchmark: workspace "
        "runs (PATH or PATH#run), data sets, folders of images.",
    )
    acknowledge_external_api: bool = Field(
        default=False, description="Faces of pools that forbid redistribution may be sent to outside services."
    )
    screen: Screen = Screen()
    generate: Generate = Generate()
    verify: Verify = Verify()
    rank: Rank = Rank()
    caption: Caption = Caption()
    review: Review = Review()
    instruct: Instruct = Instruct()
    publish: Publish = Publish()


# Fields of BuildConfig that no fingerprint holds, and why.
NOT_FINGERPRINTED: dict[str, str] = {
    "name": "says where results lie, not what they are",
    "edition": "as name",
    "workers": "how many at once cannot change a result",
    "shard_size": "a key stays in its shard; the cut of new shards changes no row",
    "limit": "a longer prefix changes no earlier decision",
    "max_failed": "stops a run, changes no row",
    "acknowledge_external_api": "permits calls, changes no answer",
    "exclude": "paths of this machine; a digest of what they hold decides in screening and stands in the manifest",
}
