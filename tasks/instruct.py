"""Instruct: source and ground truth compared into a dense instruction, which another model has to follow back."""

from collections.abc import Iterator, Sequence
from functools import partial

from pydantic import BaseModel

from schemas.config import InstructMeasure
from schemas.outcomes import Abstention, BackCheck, Reason
from schemas.records import DenseText, GroundTruth, Key, Triplet
from tasks.describers import CHECKERS, DESCRIBERS
from tasks.engine.errors import ConfigError, ItemFailed
from tasks.engine.fingerprint import seed_of
from tasks.engine.stage import Context, Failed, Item, Kept, Outcome, Rejected, Stage


class Instruct(Stage[GroundTruth, DenseText]):
    """The return path of FED-Bench: what must move, and what must not. The check of it is ours.

    A model of another family is given the text and, shuffled, the ground truth, the source and the runner-up. If it
    chooses another picture than the ground truth, the text is written once more; if it does so again, the row says so.
    """

    name = "instruct"
    version = 2
    measurement = DenseText
    output = Triplet
    ignores = frozenset({"rank", "caption", "mode", "note", "ratings"})
    measure_params: InstructMeasure

    def __init__(self, measure_params: InstructMeasure, cut_params: BaseModel) -> None:
        super().__init__(measure_params, cut_params)
        if measure_params.checker is None:  # only a check looks at the runner-up
            self.ignores = self.ignores | {"runner_up"}  # type: ignore[misc]
        self._check_families()

    def _check_families(self) -> None:
        """A model's relative cannot vouch for what it wrote.

        Raises:
            ConfigError: Writer and checker are of one family, or nobody says of which.
        """
        writer, checker = self.measure_params.describer, self.measure_params.checker
        if checker is None:
            return
        families = DESCRIBERS.family(writer.name, writer.params), CHECKERS.family(checker.name, checker.params)
        if "" in families or families[0] == families[1]:
            told = " and ".join(family or "none named" for family in families)
            raise ConfigError(
                f"instruct.measure.checker must be a model of another family than the describer (families: {told})",
                "choose another one, or name the `family` of its routes",
            )

    def identities(self) -> list[object]:
        describer, checker = self.measure_params.describer, self.measure_params.checker
        checked_by = [CHECKERS.identity(checker.name, checker.params)] if checker else []
        return [DESCRIBERS.identity(describer.name, describer.params), *checked_by]

    def measure(self, rows: Sequence[GroundTruth], ctx: Context) -> Iterator[tuple[Key, DenseText | Failed]]:
        checker, outside = self.measure_params.checker, self._writes_outside()
        # A local writer's model belongs to this thread; what waits for others runs in many.
        texts = [None if outside else self._written(row, ctx) for row in rows]
        jobs = [partial(self._told, row, text, ctx) for row, text in zip(rows, texts, strict=True)]
        many = outside or (checker is not None and CHECKERS.remote(checker.name))
        yield from zip(
            (row.key for row in rows), ctx.call.gather(jobs) if many else [job() for job in jobs], strict=True
        )

    def _writes_outside(self) -> bool:
        return DESCRIBERS.remote(self.measure_params.describer.name)

    def _write(self, row: GroundTruth, ctx: Context, mistaken: str = "") -> str:
        spec = self.measure_params.describer
        describer = DESCRIBERS.get(spec.name, spec.params)
        return describer.instruct(ctx.images.get(row.source_image), ctx.images.get(row.image), ctx.call, mistaken)

    def _written(self, row: GroundTruth, ctx: Context) -> str | Failed:
        try:
            return self._write(row, ctx)
        except ItemFailed as error:
            return Failed(error.kind, str(error), error.retryable)

    def _told(self, row: GroundTruth, text: str | Failed | None, ctx: Context) -> DenseText | Failed:
        """A row's text with its check; written here where none is given yet."""
        first = self._written(row, ctx) if text is None else text
        if isinstance(first, Failed):
            return first
        if self.measure_params.checker is None or not first:
            return DenseText(text=first, back_check=BackCheck.NOT_CHECKED)
        try:
            return self._checked(row, first, ctx)
        except ItemFailed as error:
            return Failed(error.kind, str(error), error.retryable)

    def _checked(self, row: GroundTruth, first: str, ctx: Context) -> DenseText:
        check, words = self._check(row, first, ctx)
        if check is not BackCheck.FAILED or not self._writes_outside():  # who is local says the same again
            return DenseText(text=first, back_check=check, evidence=words)
        try:
            second = self._write(row, ctx, mistaken=first)
        except ItemFailed as error:
            if error.retryable:
                raise
            return DenseText(text=first, back_check=check, evidence=f"{words}; not rewritten: {error}")
        if second in ("", first):
            return DenseText(text=first, back_check=check, evidence=f"{words}; the writer had no other words")
        again, more = self._check(row, second, ctx)
        final = BackCheck.REWRITTEN if again is BackCheck.PASSED else again
        return DenseText(text=second, back_check=final, evidence=f"{words}; rewritten; then {more}")

    def _check(self, row: GroundTruth, text: str, ctx: Context) -> tuple[BackCheck, str]:
        """Whether the checker finds the ground truth by the text, and what it chose, in words."""
        spec = self.measure_params.checker
        assert spec is not None
        known = {row.image: "the ground truth", row.source_image: "the source"}
        if row.runner_up:
            known.setdefault(row.runner_up, "the runner-up")
        seed = ctx.seed(row.key)
        digests = sorted(known, key=lambda digest: seed_of(seed, digest))
        if len(digests) < 2:
            return BackCheck.ABSTAINED, "there is nothing to choose between"
        checker = CHECKERS.get(spec.name, spec.params)
        choice = checker.pick(text, [ctx.images.get(digest) for digest in digests], ctx.call)
        if choice.abstained is Abstention.CANNOT_TELL:
            return BackCheck.FAILED, "the checker cannot tell"
        if choice.place is None:
            return BackCheck.ABSTAINED, f"the checker abstains: {choice.abstained}"
        chosen = digests[choice.place]
        check = BackCheck.PASSED if chosen == row.image else BackCheck.FAILED
        return check, f"the checker chose {known[chosen]} of {len(digests)}"

    def cut(self, items: Sequence[Item[GroundTruth, DenseText]]) -> Iterator[tuple[Key, Outcome]]:
        for item in items:
            if item.measurement.text:
                yield item.key, Kept(_triplet(item.row, item.measurement), item.measurement.evidence)
            else:
                words = "nothing that can be told moved between source and ground truth"
                yield item.key, Rejected(Reason.NO_DIFFERENCE, words)


def _triplet(row: GroundTruth, dense: DenseText) -> Triplet:
    return Triplet(
        key=row.key,
        source_image=row.source_image,
        source_expression=row.source_expression,
        image=row.image,
        instruction=row.instruction,
        dense_instruction=dense.text,
        back_check=dense.back_check,
        caption=row.caption,
        rank=row.rank,
        mode=row.mode,
        note=row.note,
        ratings=row.ratings,
    )
