"""The configuration of a build. Each stage has two halves: `measure` decides what models see, `cut` who passes.

Changing anything under `cut` measures nothing again: a model runs only for rows that newly reach it.
"""

from datetime import date
from typing import Literal, Self

from pydantic import Field, model_validator

from schemas.expressions import Expression
from schemas.forecasts import Assumptions, Pilot
from schemas.hosted import EditorField
from schemas.panels import ModelField, Panel
from schemas.reviewing import Review
from schemas.routes import CallSettings
from schemas.scaling import RaySettings, Runner
from schemas.screening import Screen
from schemas.sections import Adapter, AdapterField, Adapters, Section


class TopUp(Section):
    """Further candidates for one cell of source × target expression. Entries that name one cell add up."""

    source: Expression | None = Field(default=None, description="What the sources show; null for any.")
    target: Expression = Field(description="What they shall show.")
    editor: EditorField | None = Field(default=None, description="A second editor; null for the first once more.")
    called: str = Field(
        default="",
        pattern=r"^([a-z0-9][a-z0-9_-]{0,39})?$",
        description="What rows call a second editor; its own name if empty.",
    )
    attempts: int = Field(default=1, ge=1, le=10, description="How many candidates per source.")

    def __str__(self) -> str:
        by = f" by {self.called or self.editor.name}" if self.editor else ""
        return f"{self.attempts} × {self.source or 'any'} to {self.target}{by}"


class GenerateMeasure(Section):
    """How candidates are made."""

    editor: EditorField = Field(default=Adapter(name="warp"), description="Image editor.")
    targets: tuple[Expression, ...] = Field(default=(), description="Only these targets; empty for all six.")
    attempts: int = Field(default=1, ge=1, le=10, description="Candidates per target.")
    top_up: tuple[TopUp, ...] = Field(default=(), description="Further candidates for short cells.")

    @property
    def editors(self) -> dict[str, Adapter]:
        """All editors, the first one first, by the name that rows call them."""
        more = {entry.called or entry.editor.name: entry.editor for entry in self.top_up if entry.editor}
        return {self.editor.name: self.editor} | more

    @model_validator(mode="after")
    def _top_ups_are_owed_and_told_apart(self) -> Self:
        known = {self.editor.name: self.editor}
        for place, entry in enumerate(self.top_up):
            where = f"top_up.{place}"
            if entry.source is entry.target:
                raise ValueError(f"{where}: {entry.target} is no change from {entry.source}")
            if self.targets and entry.target not in self.targets:
                raise ValueError(f"{where}: {entry.target} is not among generate.measure.targets")
            if entry.editor is None and entry.called:
                raise ValueError(f"{where}: `called` names a second editor, and there is none")
            if entry.editor is not None:
                name = entry.called or entry.editor.name
                if known.setdefault(name, entry.editor) != entry.editor:
                    raise ValueError(
                        f"{where}: two editors with other parameters are both called '{name}', so no row could tell "
                        "them apart; name this one with `called`"
                    )
        return self


class GenerateCut(Section):
    """Which edits are candidates at all."""

    min_changed_pixels: float = Field(
        default=0.0005, ge=0, le=1, description="Share of pixels that differ from the source by more than 2 levels."
    )
    min_local_change: float = Field(
        default=4.5, ge=0, le=255, description="Largest blurred difference, in levels; a re-encoded source has less."
    )
    max_shift: float = Field(default=4.0, ge=0, description="Pixels from which the whole picture counts as moved.")
    max_zoom: float = Field(default=0.02, ge=0, description="The same of its zoom and its stretch, as a share.")
    max_turn: float = Field(default=1.0, ge=0, description="The same of its turn, in degrees.")
    moved: Literal["flag", "reject"] = Field(default="flag", description="What becomes of moved pictures.")


class VerifyMeasure(Section):
    """Who votes, and the extra test that polarity cannot give."""

    panel: Panel = Field(
        default=(Adapter(name="fer"), Adapter(name="blendshapes")),
        min_length=1,
        description="Voters, or the name of a panel that ships: paper-coarse, current, ...",
    )
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
    background: Literal["raw", "registered"] = Field(
        default="raw", description="RMSE as the edit lies, or once shift and zoom are undone, where they can be told."
    )
    top_k: int = Field(default=2, ge=1, le=60)


class DescriberMeasure(Section):
    """Who writes."""

    describer: ModelField = Field(default=Adapter(name="blendshapes"))


class InstructMeasure(DescriberMeasure):
    """Who writes the dense instruction, and who checks it."""

    checker: ModelField | None = Field(
        default=None, description="Model of another family that must find the ground truth by the text; null for none."
    )


class NoCut(Section):
    """A stage that decides nothing."""


class NoMeasure(Section):
    """A stage that measures nothing."""


class PublishCut(Section):
    """Which triplets the data set holds."""

    target: int | None = Field(default=None, ge=1, description="How many triplets; null for all survivors.")
    margin: float = Field(default=1.0, ge=1, description="The prefix must hold this many times the target.")
    core: str = Field(
        default="",
        pattern=r"^([a-z0-9][a-z0-9.-]{0,39})?$",
        description="An earlier edition: those of its triplets that still survive are taken first. Empty for none.",
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


class Instruct(Section):
    """Dense instructions."""

    measure: InstructMeasure = InstructMeasure()
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
    mode: Literal["replay", "refresh"] = Field(
        default="replay",
        description="Where models or prompts changed since an edition was published: take its answers and ask for the "
        "missing ones alone, or ask again.",
    )
    split: Literal["train", "test"] = Field(default="train", description="Split the triplets are published as.")
    seed: int = Field(default=0, ge=0, description="Orders the sources and seeds every edit.")
    pools: Adapters = Field(default=(Adapter(name="samples"),), min_length=1, description="Where photos come from.")
    limit: int | None = Field(default=None, ge=1, description="Only this many sources; null for all.")
    shard_size: int = Field(default=64, ge=1, le=10_000, description="Sources per shard, for shards yet to open.")
    workers: int = Field(default=2, ge=1, le=256, description="Shards worked on at once.")
    runner: Runner = Field(
        default="threads",
        description="Where shards are worked on: in threads of this process, in processes of this machine, or on Ray.",
    )
    ray: RaySettings = RaySettings()
    max_failed: float = Field(default=0.05, ge=0, le=1, description="Share of failures a stage may have.")
    exclude: tuple[str, ...] = Field(
        default=(),
        description="What no source may share a clip, a picture or a person with, such as the benchmark: workspace "
        "runs (PATH or PATH#run), data sets, folders of images.",
    )
    acknowledge_external_api: bool = Field(
        default=False, description="Faces of pools that forbid redistribution may be sent to outside services."
    )
    calls: CallSettings = CallSettings()
    screen: Screen = Screen()
    generate: Generate = Generate()
    verify: Verify = Verify()
    rank: Rank = Rank()
    caption: Caption = Caption()
    review: Review = Review()
    instruct: Instruct = Instruct()
    publish: Publish = Publish()
    pilot: Pilot = Pilot()
    forecast: Assumptions = Assumptions()

    @model_validator(mode="after")
    def _people_compare_two(self) -> Self:
        if self.review.asks_people:
            if self.rank.cut.top_k > 2:
                raise ValueError(f"rank.cut.top_k: people compare two finalists, not {self.rank.cut.top_k}")
            if len(self.review.cut.annotators) < self.review.cut.votes:
                raise ValueError("review.cut.annotators: fewer people than review.cut.votes")
        return self


# Fields of BuildConfig that no fingerprint holds, and why.
NOT_FINGERPRINTED: dict[str, str] = {
    "name": "says where results lie, not what they are",
    "edition": "as name",
    "mode": "says whose stored answers count; the identities of those taken are in the fingerprint and the manifest",
    "workers": "how many at once cannot change a result",
    "runner": "where a shard is worked on cannot change a result",
    "ray": "as runner",
    "shard_size": "a key stays in its shard; the cut of new shards changes no row",
    "limit": "a longer prefix changes no earlier decision",
    "max_failed": "stops a run, changes no row",
    "pilot": "stops a run, changes no row",
    "forecast": "guesses what a build takes, changes no row",
    "acknowledge_external_api": "permits calls, changes no answer",
    "calls": "how often, how fast and for how much is asked; the answers stay what they are",
    "exclude": "paths of this machine; a digest of what they hold decides in screening and stands in the manifest",
}
