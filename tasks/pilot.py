"""The pilot gate: the first sources run through all stages; the build stops where they differ from what was expected.

Compared are survival and refusals, stage by stage, and triplets and dollars per source, with the forecast that was
saved for this run and edition, else with the last published edition of that name. The gate looks at commits and the
ledger alone, and changes no row.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from pydantic import ValidationError

from schemas.config import BuildConfig
from schemas.forecasts import Compared, Forecast, Number, Pilot, PilotFound
from schemas.outcomes import FailureKind, Status
from schemas.published import Manifest
from schemas.records import Record
from tasks.engine.errors import PilotStopped
from tasks.engine.execute import Executor
from tasks.engine.fingerprint import fingerprint
from tasks.engine.ledger import Spent
from tasks.engine.rows import Commit
from tasks.engine.store import Store
from tasks.metrics.interval import wilson

LAST: Final = "instruct"  # the last stage that a source passes without the others
REFUSING: Final = ("generate", "verify")
_NOTHING: Final = Number(value=None, basis="unknown")


class _Begun(Record):
    """Where the pilot of these settings began: the ledger's last row then."""

    settings: str
    ledger: int


@dataclass(frozen=True)
class Expected:
    """What the pilot is compared with, by the words of the number; see `PilotFound` for the rest."""

    against: str
    numbers: dict[str, Number]
    dollars: Number
    stale: bool = False


def settings_of(executor: Executor) -> str:
    """Digest of everything but the sources that decides a run's rows, up to selection, which costs nothing."""
    cuts = [executor.stages[name].cut_identity() for name in executor.order[:-1]]
    return fingerprint([executor.measure_ids[name] for name in executor.order[:-1]], cuts)


def forecast_file(config: BuildConfig) -> str:
    """Where the forecast of a run and edition is saved, below the workspace."""
    return f"runs/{config.name}/forecast-{config.edition}.json"


def pilot_file(config: BuildConfig) -> str:
    """Where what the pilot of a run and edition found is saved, below the workspace."""
    return f"runs/{config.name}/pilot-{config.edition}.json"


def kept_words(stage: str) -> str:
    return f"{stage}: kept of owed"


def refused_words(stage: str) -> str:
    return f"{stage}: refused of owed"


PER_SOURCE: Final = "triplets per source"
DOLLARS: Final = "dollars per source"


def begin(executor: Executor, config: BuildConfig, done: Sequence[dict[str, Commit]]) -> int:
    """How many first shards are the pilot; 0 where none is due. Notes where the ledger stands before it.

    There is none if it is off, if no model may run, if it would be the whole build, or if the rest is done already.

    Args:
        executor: The run, all of it screened.
        config: Its config.
        done: Per shard, its commits.
    """
    size = _shards_of_pilot(config.pilot.sources, done)
    if not executor.may_measure or not any(LAST not in commits for commits in done[size:]) or not size:
        return 0
    settings, path = settings_of(executor), f"runs/{config.name}/pilot-{config.edition}-begun.json"
    begun = executor.store.read_as(path, _Begun)
    if begun is None or begun.settings != settings:
        begun = _Begun(settings=settings, ledger=executor.context.call.last())
        executor.store.write_json(path, begun.model_dump(mode="json"))
    return size


def _shards_of_pilot(sources: int, done: Sequence[dict[str, Commit]]) -> int:
    """The fewest first shards that hold so many screened-in sources; 0 if no shard would be left behind them."""
    held = 0
    for place, commits in enumerate(done, 1):
        held += commits["screen"].statuses.get(Status.KEPT, 0)
        if held >= sources > 0:
            return place if place < len(done) else 0
    return 0


def check(executor: Executor, config: BuildConfig, done: Sequence[dict[str, Commit]], size: int) -> PilotFound:
    """Compare the finished pilot with what was expected, and save what it found.

    Args:
        executor: The run.
        config: Its config.
        done: Per shard, its commits; the first `size` are complete.
        size: Shards of the pilot.

    Raises:
        PilotStopped: A number is beyond the band, and the pilot is large enough to say so.
    """
    pilot = done[:size]
    sources = sum(commits["screen"].statuses.get(Status.KEPT, 0) for commits in pilot)
    expected = expectations(executor, config)
    dollars, answers = dollars_per_source(executor, config, sources, expected.dollars)
    counted = _counts(executor, config, done, size)
    shares = [_share(share, expected.numbers.get(share.what, _NOTHING), config.pilot) for share in counted]
    found = PilotFound(
        settings=settings_of(executor),
        against=expected.against,
        stale=expected.stale,
        sources=sources,
        shards=size,
        dollars_per_source=dollars,
        band=config.pilot.band,
        compared=(*shares, _cost(dollars, answers, expected.dollars, config.pilot.band)),
    )
    value = found.model_dump(mode="json")
    if executor.store.read_json(pilot_file(config)) != value:
        executor.store.write_json(pilot_file(config), value)
    beyond = [one for one in found.compared if one.beyond]
    if beyond:
        told = "; ".join(f"{one.what} {one.measured:.3g}, expected {one.expected:.3g} (n={one.rows})" for one in beyond)
        raise PilotStopped(
            f"the pilot of {sources} sources differs from the {expected.against} by more than "
            f"pilot.band={config.pilot.band:g}: {told}",
            f"run `fedbench forecast --run {config.name}`, which now rests on the pilot, and build again; "
            "or widen pilot.band; or build with --set pilot.sources=0. What is done stays done",
        )
    return found


@dataclass(frozen=True)
class _Share:
    """So many hits in so many trials; `most` is how many hits a trial can have."""

    what: str
    hits: int
    trials: int
    most: int = 1


def _counts(executor: Executor, config: BuildConfig, done: Sequence[dict[str, Commit]], size: int) -> list[_Share]:
    """The pilot's shares; screening's over all that is screened, since that came before."""
    counts = []
    for name in executor.order[:-1]:
        commits = [shard[name] for shard in (done if name == "screen" else done[:size])]
        owed = sum(commit.owed for commit in commits)
        statuses = {one: sum(commit.statuses.get(one, 0) for commit in commits) for one in Status}
        counts.append(_Share(kept_words(name), statuses[Status.KEPT], owed - statuses[Status.WAITING]))
        if name in REFUSING:
            refused = sum(commit.reasons.get(FailureKind.REFUSED, 0) for commit in commits)
            counts.append(_Share(refused_words(name), refused, owed))
    if not any(shard["review"].statuses.get(Status.WAITING) for shard in done[:size]):
        sources = sum(shard["screen"].statuses.get(Status.KEPT, 0) for shard in done[:size])
        triplets = sum(shard[LAST].statuses.get(Status.KEPT, 0) for shard in done[:size])
        counts.append(_Share(PER_SOURCE, triplets, sources, config.review.cut.keep_per_source))
    return counts


def _share(share: _Share, expected: Number, pilot: Pilot) -> Compared:
    """A share beside the expected one: beyond if the whole interval of the pilot's number is outside the band."""
    compared = Compared(
        what=share.what, unit="share", expected=expected.value, basis=expected.basis, measured=None, rows=share.trials
    )
    if not share.trials:
        return compared
    low, high = (share.most * edge for edge in wilson(share.hits, share.most * share.trials))
    beyond = False
    if expected.value is not None:
        allowed = max(pilot.band * expected.value, pilot.slack * share.most)
        beyond = high < expected.value - allowed or low > expected.value + allowed
    measured = share.hits / share.trials
    return compared.model_copy(update={"measured": measured, "low": low, "high": high, "beyond": beyond})


def _cost(measured: float | None, answers: int, expected: Number, band: float) -> Compared:
    beyond = False
    if measured is not None and expected.value is not None:
        beyond = abs(measured - expected.value) > band * expected.value
    return Compared(
        what=DOLLARS,
        unit="dollars",
        expected=expected.value,
        basis=expected.basis,
        measured=measured,
        rows=answers,
        beyond=beyond,
    )


def dollars_per_source(
    executor: Executor, config: BuildConfig, sources: int, expected: Number
) -> tuple[float | None, int]:
    """What a pilot's source cost behind screening, and on how many answers that rests; None where no price says it.

    An answer taken from the store counts at the price of those that were sent: another source will have to be paid.
    """
    begun = executor.store.read_as(f"runs/{config.name}/pilot-{config.edition}-begun.json", _Begun)
    spent: list[Spent] = executor.context.call.spent(begun.ledger) if begun else []
    prices = [one.price for one in spent]
    if not spent and expected.value:
        return None, 0
    if any(price is None for price in prices):
        return None, sum(one.answers for one in spent)
    total = sum(one.answers * (price or 0.0) for one, price in zip(spent, prices, strict=True))
    return total / sources, sum(one.answers for one in spent)


def expectations(executor: Executor, config: BuildConfig) -> Expected:
    """What the saved forecast of this run and edition says, else the last published edition, else nothing."""
    forecast = executor.store.read_as(forecast_file(config), Forecast)
    if forecast is not None:
        numbers = {PER_SOURCE: forecast.triplets_per_source}
        for stage in forecast.stages:
            numbers |= {kept_words(stage.stage): stage.rate, refused_words(stage.stage): stage.refused}
        stale = forecast.settings != settings_of(executor)
        return Expected("forecast", numbers, forecast.dollars_per_source, stale)
    edition = last_edition(executor.store, config.name)
    return _of_edition(edition) if edition else Expected("", {}, _NOTHING)


def last_edition(store: Store, name: str) -> Manifest | None:
    """The manifest of the edition that was published last, of those that can be read."""
    paths = store.root.glob(f"datasets/{name}/*/manifest.json")
    for path in sorted(paths, key=lambda path: (path.stat().st_mtime_ns, path), reverse=True):
        try:
            return Manifest.model_validate(json.loads(path.read_bytes()))
        except (ValidationError, ValueError):
            continue  # of another version of fedbench: nothing to compare with
    return None


def _of_edition(manifest: Manifest) -> Expected:
    numbers = {}
    counts = {count.stage: count for count in manifest.funnel}
    for name, count in counts.items():
        owed = count.owed - count.waiting
        if owed:
            numbers[kept_words(name)] = Number(value=count.kept / owed, basis="measured", rows=owed)
            refused = count.reasons.get(FailureKind.REFUSED, 0) / owed
            numbers[refused_words(name)] = Number(value=refused, basis="measured", rows=owed)
    if counts["screen"].kept and not counts["review"].waiting:
        sources = counts["screen"].kept
        numbers[PER_SOURCE] = Number(value=counts[LAST].kept / sources, basis="measured", rows=sources)
    return Expected(f"edition {manifest.edition}", numbers, _NOTHING)
