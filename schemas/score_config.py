"""The configuration of a scoring run. `measure` decides what is measured; `cut` what makes a score of it.

Changing anything under `cut` runs no model and asks nothing again.
"""

from typing import Final, Literal, Self

from pydantic import Field, model_validator

from schemas.panels import ModelField
from schemas.routes import CallSettings
from schemas.scoring import FED_SCORE, PARTIAL_SCORE, Granularity
from schemas.sections import Adapter, AdapterField, Section

NORMALISERS = Literal["exp20", "exp10", "linear255", "linear50"]


class ScoredEditor(Section):
    """An editor that is scored."""

    called: str = Field(min_length=1, max_length=80, description="What rows and tables call it.")
    adapter: AdapterField = Field(description="Editor by name; '{granularity}' in a text parameter is filled in.")


class ScoreMeasure(Section):
    """How the parts are measured."""

    identity: AdapterField = Field(
        default=Adapter(name="sface"), description="Identity model. Ours; publish buffalo_l."
    )
    faces: AdapterField = Field(default=Adapter(name="mediapipe"), description="Face analyzer.")
    distance: AdapterField | None = Field(
        default=Adapter(name="lpips"), description="Perceptual distance of REG; null where the gain is `au`."
    )
    mask_dilation: float = Field(default=0.35, ge=0, le=2, description="Widening of the faces, in inter-eye distances.")
    box_margin: float = Field(default=1.2, ge=1, le=3, description="REG's square box against the source's face. Ours.")
    box_side: int = Field(default=256, ge=64, le=1024, description="Pixels its crops are brought to. Ours.")


class ScoreJudging(Section):
    """How judges are asked."""

    orders: Literal["both", "given"] = Field(
        default="both",
        description="Orders of the two pictures in SC and GTA: both, averaged, so that a judge's taste for a place "
        "cancels out; given (the paper's, 3 questions instead of 5).",
    )
    repeats: int = Field(default=1, ge=1, le=20, description="How often each question is asked; the mean counts. Ours.")


class ScoreNoop(Section):
    """The editor's re-encoding of faces that are to stay as they are."""

    sources: int = Field(default=50, ge=0, description="Of so many sources, by a fixed shuffle; 0 for none. Ours.")
    outside: bool = Field(default=False, description="Ask editors outside for it, too: it is paid like an edit.")


class ScoreDrift(Section):
    """Whether judges still answer as they did."""

    when: Literal["auto", "now", "never"] = Field(
        default="auto",
        description="Judge stored outputs again where old answers stand beside new questions (auto), now, or never.",
    )
    outputs: int = Field(default=50, ge=0, description="Stored outputs that are judged again; 0 for none.")
    days: int = Field(
        default=1, ge=0, description="Answers more days apart than this are of different days, and need it. Ours."
    )


class ScoreCut(Section):
    """What makes a score of the parts. All of it is ours where the paper is silent."""

    normaliser: NORMALISERS = Field(default="exp20", description="What makes BG of the RMSE.")
    background: Literal["raw", "registered"] = Field(
        default="raw", description="RMSE as the output lies, or once shift and zoom are undone, where they can be told."
    )
    own_face: bool = Field(default=False, description="Whether the output's own face is in BG's mask, too.")
    gain: Literal["lpips", "au"] = Field(default="lpips", description="REG (paper), or REG-AU from blendshapes.")
    sigma: float = Field(default=0.5, gt=0, description="Tolerance of the gain around 1 (paper).")
    min_lpips: float = Field(default=0.005, ge=0, description="Ground truths that differ less are degenerate. Ours.")
    min_au: float = Field(default=0.1, ge=0, description="The same of the blendshape distance. Ours.")
    min_judges: int = Field(default=1, ge=1, description="Judges that must answer on a part. Ours.")


class ScoreConfig(Section):
    """One scoring run: a published data set and editors in, a table of scores out."""

    name: str = Field(pattern=r"^[a-z0-9][a-z0-9.-]{0,79}$", description="Name of the run.")
    dataset: str = Field(description="Folder of a published data set with its pictures.")
    editors: tuple[ScoredEditor, ...] = Field(min_length=1, description="Whose outputs are scored.")
    granularities: tuple[Granularity, ...] = Field(
        default=(Granularity.SIMPLE, Granularity.DENSE), min_length=1, description="Instructions the editors get."
    )
    judges: tuple[ModelField, ...] = Field(
        default=(), description="Models that give PQ, SC and GTA; none for a partial score."
    )
    seed: int = Field(default=0, ge=0, description="Seeds every edit.")
    limit: int | None = Field(default=None, ge=1, description="Only the triplets of so many sources; null for all.")
    shard_size: int = Field(default=64, ge=1, le=10_000, description="Sources per shard.")
    workers: int = Field(default=2, ge=1, le=256, description="Shards worked on at once.")
    max_failed: float = Field(
        default=0.05, ge=0, le=1, description="Share of outputs that may fail by accident. Refusals do not count."
    )
    acknowledge_external_api: bool = Field(
        default=False, description="Faces of pools that forbid redistribution may be sent to outside services."
    )
    calls: CallSettings = CallSettings()
    measure: ScoreMeasure = ScoreMeasure()
    judging: ScoreJudging = ScoreJudging()
    noop: ScoreNoop = ScoreNoop()
    drift: ScoreDrift = ScoreDrift()
    cut: ScoreCut = ScoreCut()

    @property
    def score(self) -> str:
        """What the result may be called."""
        return FED_SCORE if self.judges else PARTIAL_SCORE

    @model_validator(mode="after")
    def _told_apart(self) -> Self:
        names = [editor.called for editor in self.editors]
        judges = [judge.label for judge in self.judges]
        for kind, held in (("editors", names), ("judges", judges)):
            for name in held:
                if held.count(name) > 1:
                    raise ValueError(f"two {kind} are called '{name}'; give one another name")
        if len(set(self.granularities)) != len(self.granularities):
            raise ValueError("a granularity stands twice")
        if self.cut.gain == "lpips" and self.measure.distance is None:
            raise ValueError("cut.gain is lpips, and measure.distance is null: choose a distance, or gain: au")
        return self


# Fields of ScoreConfig that change no row, and why; the manifest leaves them out.
NOT_IN_SCORES: Final[dict[str, str]] = {
    "dataset": "a path of this machine; the manifest has name, edition and the digest of the rows",
    "workers": "how many at once cannot change a result",
    "shard_size": "what is worked on together cannot change a result",
    "max_failed": "stops a run, changes no row",
    "acknowledge_external_api": "permits calls, changes no answer",
    "drift": "asks again beside the scores, and never replaces an answer",
    "calls": "how often, how fast and for how much is asked; the answers stay what they are",
}
