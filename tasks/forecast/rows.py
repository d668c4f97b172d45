"""The rows a build is expected to see: what its sources become, stage by stage, at measured or assumed rates."""

from collections import Counter
from dataclasses import dataclass

from schemas.expressions import EXPRESSIONS
from schemas.forecasts import Basis, Number
from schemas.outcomes import Status
from schemas.records import Key, Photo, Source
from tasks.forecast.asks import device
from tasks.forecast.measured import Survival, survival, survival_elsewhere
from tasks.pilot import REFUSING
from tasks.pipeline import CANDIDATES, Run


@dataclass
class Flow:
    """Expected rows of a stage, as fractions: `to_measure` are those its models see, `due` of them not yet.

    `basis` says whether all rates up to here are measured.
    """

    owed: float
    kept: float
    to_measure: float
    due: float
    rate: Number
    refused: Number
    rests_on: str
    basis: Basis


class Rows:
    """What a run's sources are expected to become; everything it reads is read once.

    Args:
        run: Opened for looking at, or for building.
    """

    def __init__(self, run: Run) -> None:
        self.run, self.config, self.executor = run, run.config, run.executor
        self.sources = sources_of(run)
        self.own = survival(run)
        self.others = [] if self._complete(self.own) else survival_elsewhere(run)

    def _complete(self, found: Survival) -> bool:
        return all(found.balances[name].settled for name in self.executor.order[:-1])

    def resting_on(self, stage: str) -> Survival | None:
        """Whose rows give a stage's rates: the run's own, else those of the best measured other one; else nobody's."""
        return next((one for one in (self.own, *self.others) if one.balances[stage].settled), None)

    def edits_per_source(self) -> dict[str, float]:
        """How many edits an admitted source owes, by editor: counted on known photos, else on the pools' labels."""
        stage = self.executor.stages["generate"]
        photos = next((one.outputs("screen") for one in (self.own, *self.others) if one.balances["screen"].kept), [])
        labels: Counter[str] = Counter(str(photo.expression) for photo in photos)
        labels = labels or Counter(str(source.label) for source in self.sources if source.label)
        labels = labels or Counter(map(str, EXPRESSIONS))
        owed: Counter[str] = Counter()
        for label, count in labels.items():
            for key in stage.owes(_photo(label)):
                owed[key.editor] += count
        return {editor: count / labels.total() for editor, count in owed.items()}

    def edits_due(self, photos: float, used: int) -> dict[str, float]:
        """Edits yet to be made for the first `used` sources, by editor: those known to be due, and of sources to come.

        Args:
            photos: How many of those sources screening is expected to keep.
            used: How many sources.
        """
        due: Counter[str] = Counter()
        place = kept = 0
        for shard, result in zip(self.own.shards, self.own.results, strict=True):
            if place < used:
                due.update(key.editor for key in result.unmeasured["generate"])
                kept += sum(outcome.status is Status.KEPT for outcome in result.outcomes["screen"].values())
                place += len(shard.sources)
        to_come = max(0.0, photos - kept)
        return {editor: due[editor] + to_come * each for editor, each in self.edits_per_source().items()}

    def screening(self) -> Flow:
        """All sources are screened, whatever the target."""
        balance, total = self.own.balances["screen"], len(self.sources)
        rate, rests_on = self._rate("screen")
        due = max(0, total - balance.decided)
        kept = balance.kept + (rate.value or 0.0) * due
        basis: Basis = rate.basis if due else "measured"
        return Flow(total, kept, total, due, rate, Number(value=0.0, basis="given"), rests_on, basis)

    def _rate(self, stage: str) -> tuple[Number, str]:
        found = self.resting_on(stage)
        if found and (rate := found.balances[stage].rate):
            return rate, found.run
        return Number(value=getattr(self.config.forecast, stage), basis="assumed"), ""

    def candidates(self, photos: float, basis: Basis, used: int) -> dict[str, Flow]:
        """What becomes of the admitted ones of the first `used` sources; `basis` is that of their number, `photos`."""
        flows: dict[str, Flow] = {}
        owed = photos * sum(self.edits_per_source().values())
        for name in CANDIDATES:
            rate, rests_on = self._rate(name)
            kept = owed * (rate.value or 0.0)
            most = {"rank": self.config.rank.cut.top_k, "review": self.config.review.cut.keep_per_source}.get(name)
            # Also of measured rates: after a threshold moved, of some sources only one finalist is measured.
            if most is not None and kept > most * photos:
                kept = most * photos
                rate = rate.model_copy(update={"value": kept / owed})
            reads = self.executor.stages[name].reads
            to_measure = flows[reads].kept if reads else owed
            balance = self.own.balances[name]
            open_share = max(0.0, 1 - balance.decided / owed) if owed else 0.0
            basis = basis if rate.basis == "measured" else "assumed"
            due, refused = to_measure * open_share, self._refused(name)
            if name == "generate":
                due = sum(self.edits_due(photos, used).values())
            flows[name] = Flow(owed, kept, to_measure, due, rate, refused, rests_on, basis)
            owed = kept
        return flows

    def _refused(self, stage: str) -> Number:
        found = self.resting_on(stage)
        if found and (refusals := found.balances[stage].refusals):
            return refusals
        outside = stage in REFUSING and device(self.executor.stages[stage]) == "outside"
        return Number(value=self.config.forecast.refused if outside else 0.0, basis="assumed")

    def compared(self, photos: float, finalists: float) -> float:
        """How many sources have finalists: as many as so far, else one for each finalist, at most every source."""
        found = self.resting_on("review")
        if found and (admitted := len(found.sources("generate"))):
            return photos * len(found.sources("review")) / admitted
        return min(photos, finalists)


def sources_of(run: Run) -> list[Source]:
    """The sources a build would use: those planned, then those listed since, up to the limit."""
    planned = [source for shard in run.executor.shards for source in shard.sources]
    keys = {source.key for source in planned}
    fresh = [source for source in run.listed if source.key not in keys]
    return [*planned, *fresh][: run.config.limit]


def _photo(expression: str) -> Photo:
    """A photo of that expression: its stage says how many edits it would owe."""
    blank = dict.fromkeys(Photo.model_fields, "")
    values = {"key": Key("", ""), "width": 0, "height": 0, "expression": expression, "traits": ()}
    return Photo.model_validate(blank | values)
