"""Drift in words, and which scores stand side by side though judges gave them on different days. Pure."""

from collections.abc import Iterator, Sequence
from datetime import date

from schemas.judging import DriftCheck, DriftPart, JudgedOn


def drifted(check: DriftCheck) -> bool:
    """Whether any part's interval is off 0."""
    return any(part.drifted for part in check.parts)


def words_of(check: DriftCheck) -> str:
    """ "Ada judged 50 outputs of 2026-03-01 again on 2026-11-30: PQ +0.10 (-0.02 to +0.22), ...; flips 3 of 250"."""
    days = check.first if check.first == check.last else f"{check.first} to {check.last}"
    parts = ", ".join(f"{str(part.part).upper()} {_shift(part)}" for part in check.parts)
    flips, answers = sum(part.flips for part in check.parts), sum(part.answers for part in check.parts)
    told = [f"{check.judge} judged {check.outputs} outputs of {days} again on {check.on}: {parts}"]
    told += [f"flips {flips} of {answers}"]
    told += [f"{check.abstained} abstained"] if check.abstained else []
    told += [f"{check.unreached} out of reach"] if check.unreached else []
    return "; ".join([*told, "it drifted" if drifted(check) else "no drift seen"])


def _shift(part: DriftPart) -> str:
    if part.mean is None:
        return "–"
    if part.low is None:
        return f"{part.mean:+.2f} (too few people for an interval)"
    return f"{part.mean:+.2f} ({part.low:+.2f} to {part.high:+.2f})"


def unchecked(judged: Sequence[JudgedOn], checks: Sequence[DriftCheck], days: int) -> list[JudgedOn]:
    """Those whose answers are more than `days` older than the newest of their judge, without a check in between.

    A check counts where it asked again about answers so old, when the newest ones were given or since. Ours.

    Args:
        judged: What is compared.
        checks: Of these outputs.
        days: Apart from which answers are of different days.
    """
    newest: dict[str, date] = {}
    for one in judged:
        newest[one.judge] = max(date.fromisoformat(one.last), newest.get(one.judge, date.min))

    def is_old(one: JudgedOn) -> bool:
        return (newest[one.judge] - date.fromisoformat(one.first)).days > days

    def is_checked(one: JudgedOn) -> bool:
        return any(
            check.judge == one.judge
            and check.first <= one.last
            and (newest[one.judge] - date.fromisoformat(check.on)).days <= days
            for check in checks
        )

    return [one for one in judged if is_old(one) and not is_checked(one)]


def apart(judged: Sequence[JudgedOn], checks: Sequence[DriftCheck], days: int) -> Iterator[str]:
    """What stands side by side unchecked, in a line for each judge."""
    old = unchecked(judged, checks, days)
    for judge in dict.fromkeys(one.judge for one in old):
        mine = [one for one in old if one.judge == judge]
        who = ", ".join(dict.fromkeys(one.editor for one in mine))
        first, last = min(one.first for one in mine), max(one.last for one in judged if one.judge == judge)
        others = f"others up to {last}, and nobody looked whether it still answers so"
        yield f"{judge} judged {who} from {first} on, {others}"
