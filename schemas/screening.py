"""The config of screening: what is measured of a photo, which photos pass, and what a profile's name stands for."""

from typing import Annotated, Any, Literal, Self

from pydantic import BeforeValidator, Field, model_validator

from schemas.panels import Panel
from schemas.sections import Adapter, AdapterField, Section


class ScreenMeasure(Section):
    """What is measured of a source photo."""

    faces: AdapterField = Field(default=Adapter(name="mediapipe"), description="Face analyzer.")
    identity: AdapterField = Field(default=Adapter(name="sface"), description="Identity model.")
    label_panel: Panel = Field(
        default=(), description="Voters that label unlabelled sources (fine answers), or the name of a fine panel."
    )
    check_labels: bool = Field(default=False, description="Whether the label panel also looks at labelled sources.")


# What `screen.cut: strict` stands for. All numbers are ours.
SCREEN_PROFILES: dict[str, dict[str, float]] = {
    "lenient": {
        "max_second_face": 0.7,
        "min_inter_eye_px": 30,
        "max_yaw": 45,
        "max_pitch": 35,
        "max_roll": 60,
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
        "max_roll": 25,
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
    max_roll: float = Field(default=45, ge=0, le=180, description="Degrees; a photo on its side or head is beyond.")
    min_sharpness: float = Field(default=50, ge=0, description="Laplacian variance of the face crop.")
    max_overexposed: float = Field(default=0.2, ge=0, le=1, description="Share of face pixels.")
    max_underexposed: float = Field(default=0.2, ge=0, le=1, description="Share of face pixels.")
    min_label_confidence: float = Field(default=0.7, ge=0, le=1, description="Where the pool gives one.")
    label_check: Literal["none", "polarity", "expression"] = Field(
        default="none", description="What the panel's majority must not contradict of a given label."
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


class Screen(Section):
    """Source screening."""

    @model_validator(mode="after")
    def _checked_labels_were_looked_at(self) -> Self:
        if self.cut.label_check != "none" and not self.measure.check_labels:
            raise ValueError("cut.label_check needs measure.check_labels: nobody looks at labelled photos without it")
        return self

    measure: ScreenMeasure = ScreenMeasure()
    cut: Annotated[ScreenCut, BeforeValidator(_profile)] = Field(
        default=ScreenCut(), description="Thresholds, or the name of a profile: lenient, default, strict."
    )
