"""What a build is expected to take and give: the assumptions behind it, what a forecast says, and what a pilot found.

None of it changes a row: it is never part of a fingerprint, and nothing of it is published.
"""

from typing import Literal

from pydantic import Field

from schemas.records import Record
from schemas.sections import Section


class Pilot(Section):
    """The first sources go through all stages; the build stops if they turn out otherwise than expected."""

    sources: int = Field(
        default=50, ge=0, description="Screened-in sources of the pilot, rounded up to whole shards; 0 is off."
    )
    band: float = Field(
        default=0.5, ge=0, description="How far a number may be from the expected one, relative to it (ours)."
    )
    slack: float = Field(
        default=0.05,
        ge=0,
        le=1,
        description="Difference of a share that is always allowed, however small the share (ours).",
    )


class Assumptions(Section):
    """What a forecast takes where nothing was measured yet. All numbers are ours, and guesses."""

    screen: float = Field(default=0.7, ge=0, le=1, description="Share of photos that screening keeps.")
    generate: float = Field(default=0.95, ge=0, le=1, description="Share of edits that come out.")
    verify: float = Field(default=0.6, ge=0, le=1, description="Share of edits that the panel lets pass.")
    rank: float = Field(default=0.9, ge=0, le=1, description="Share of those above the floors, before top_k.")
    caption: float = Field(default=1.0, ge=0, le=1, description="Share of finalists that get a caption.")
    review: float = Field(default=0.9, ge=0, le=1, description="Share of finalists that do, before keep_per_source.")
    instruct: float = Field(default=0.95, ge=0, le=1, description="Share of ground truths that get an instruction.")
    refused: float = Field(default=0.02, ge=0, le=1, description="Share of edits that an outside editor refuses.")
    picture_mb: float = Field(default=0.2, gt=0, description="Megabytes of a stored picture.")
    annotator_seconds: float = Field(default=45, ge=0, description="A person's seconds per comparison of finalists.")
    annotators: int = Field(default=3, ge=1, description="People who make each comparison.")


# Where a number comes from. "given" is a fact of config or pool; "unknown" goes with a value of None.
Basis = Literal["given", "measured", "assumed", "unknown"]


class Number(Record):
    """A number with its basis. `rows` says on how many rows a measured one rests (0 where that makes no sense)."""

    value: float | None
    basis: Basis
    rows: int = 0


class SourceCount(Record):
    """Sources that a pool lists with a label ("" for none)."""

    pool: str
    label: str
    sources: int


class StageForecast(Record):
    """What one stage is expected to do in the whole build.

    Attributes:
        owed, kept: Rows in and out.
        done: Owed rows that are measured already.
        due: Rows that a model has yet to see.
        basis: Of these counts: measured only if all rates up to here are.
        rate: Kept over owed, waiting rows left out, 0..1.
        rests_on: The run whose rows gave the measured rates; empty if they are assumed.
        refused: Rows failed as refused over owed, 0..1.
        seconds: Per owed row.
        hours: Of one worker, for the due rows.
        device: Where: cpu, gpu, or outside for what mostly waits for a service.
    """

    stage: str
    owed: int
    kept: int
    done: int
    due: int
    basis: Basis
    rate: Number
    refused: Number
    rests_on: str
    seconds: Number
    hours: float | None
    device: str


class AskForecast(Record):
    """How often one adapter is expected to be asked.

    Attributes:
        role: "label", "edit", "vote", "caption", "review" or "instruct".
        model: As the ledger calls it; empty for an adapter that makes no calls.
        answers: In the whole build.
        due: Of these, not there yet.
        basis: Of both.
        outside: Whether asking sends pictures away.
        price: Dollars per answer.
    """

    stage: str
    role: str
    adapter: str
    model: str
    answers: int
    due: int
    basis: Basis
    outside: bool
    price: Number


class Forecast(Record):
    """What a build is expected to take and give.

    Attributes:
        settings: Digest of what decides its rows: tells whether it was made for these settings.
        listed: By pool and label.
        sources: Used, after `limit`.
        dollars: Yet to be spent; `known_dollars` is the part whose price is known.
        spent: By this run so far, in dollars, as far as prices were known.
        dollars_per_source: Of the stages behind screening, per source that screening keeps.
        hours: Of one worker, by device; None where a stage's time is unknown. `wall_hours` on all workers together.
        gigabytes: On disk at the end: stored pictures, and once more in the data set.
        annotator_hours: People's time.
        needed: Triplets that `target` × `margin` asks for; None without a target.
        triplets: Expected at the end: of `target` if there is one and it can be reached.
        triplets_per_source: Triplets before selection, per source that screening keeps.
        reachable: Whether the expected triplets of all sources are enough; None without a target.
        sources_needed: How many sources that takes, in plan order; more than `sources` if it is not reachable, None
            where no number would do.
    """

    name: str
    edition: str
    settings: str
    listed: tuple[SourceCount, ...]
    sources: int
    stages: tuple[StageForecast, ...]
    asks: tuple[AskForecast, ...]
    dollars: Number
    known_dollars: float
    unpriced: tuple[str, ...]
    spent: float
    dollars_per_source: Number
    hours: dict[str, float] | None
    wall_hours: float | None
    gigabytes: Number
    annotator_hours: Number
    target: int | None
    needed: int | None
    triplets: int
    triplets_per_source: Number
    reachable: bool | None
    sources_needed: int | None


class Compared(Record):
    """One number of the pilot beside the expected one.

    Attributes:
        what: "verify: kept of owed".
        unit: "share", "dollars".
        expected: None where nothing is known.
        basis: Of the expected one.
        measured: None where the pilot cannot say.
        rows: On how many rows the pilot's number rests.
        low, high: 95 % interval of the pilot's number; None where it has none.
        beyond: Whether it is beyond the band, and the pilot large enough to say so.
    """

    what: str
    unit: str
    expected: float | None
    basis: str
    measured: float | None
    rows: int
    low: float | None = None
    high: float | None = None
    beyond: bool = False


class PilotFound(Record):
    """What the pilot of a run found.

    Attributes:
        settings: Digest of what decides its rows.
        against: What it was compared with: "forecast", "edition v1", or empty for nothing.
        stale: Whether that forecast was made under other settings.
        sources: Screened-in sources of the pilot.
        shards: Shards of the pilot.
        dollars_per_source: Measured; None where an answer had no price.
        band: That was allowed.
        compared: Every number.
    """

    settings: str
    against: str
    stale: bool
    sources: int
    shards: int
    dollars_per_source: float | None
    band: float
    compared: tuple[Compared, ...]
