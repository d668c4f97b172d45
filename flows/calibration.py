"""What `fedbench panel calibration` prints."""

from pathlib import Path

from rich.table import Table

from flows.accuracy import share
from flows.console import OUT, opened, print_json
from schemas.expressions import Polarity
from tasks.engine.dossier import lives
from tasks.report.funnel import because
from tasks.report.lean import GROUPINGS, RULES, Group
from tasks.report.voices import Voices


def show_calibration(workspace: Path, name: str | None, *, as_json: bool) -> None:
    """A run's voters, its pass rates, and which way voters lean in every group."""
    run = opened(workspace, name)
    voices = Voices(run.config.verify.measure.panel, run.config.verify.cut)
    commits = run.executor.commits()
    for shard, done in zip(run.executor.shards, commits, strict=True):
        for life in lives(run.executor, shard, done):
            voices.add(life)
    due = sum("verify" not in done for done in commits)
    if as_json:
        print_json({"run": run.config.name, "shards": len(commits), "shards_without_verdicts": due} | voices.plain())
        return
    OUT.print(_voters(voices))
    OUT.print(_groups(voices))
    if due or not commits:
        OUT.print(f"{due} of {len(commits)} shards have no verdicts yet, or none that still hold: fedbench build")
    if voices.groups.every.shown and voices.groups.unknown():
        OUT.print(f"No pool says anything about {', '.join(voices.groups.unknown())}.")


def _voters(voices: Voices) -> Table:
    table = Table("voter", "asked for", box=None, header_style="bold", pad_edge=False)
    for column in ("asked", "agrees with majority", "names target", "agrees with people"):
        table.add_column(column, justify="right")
    table.add_column("abstained", overflow="fold")
    for voice in voices.voices:
        people = f"{_percent(voice.people_share)} of {voice.reviewed}" if voices.chosen else "nobody reviewed"
        table.add_row(
            voice.title,
            voice.granularity,
            f"{voice.asked:,}",
            f"{_percent(voice.agreement)} of {voice.decided:,}",
            _percent(voice.target_share),
            people,
            because(dict(voice.abstained)) or "–",
        )
    return table


def _groups(voices: Voices) -> Table:
    """A line per group: pass rates, and each voter's strongest leaning in points of its answers."""
    table = Table("edits", box=None, header_style="bold", pad_edge=False)
    # What a terminal of 80 columns can hold beside a panel of five: polarities by their first three letters.
    for column in ("n", *(f"pass: {rule}" for rule in RULES), *(voice.title for voice in voices.voices)):
        table.add_column(column, justify="right")
    for group in [voices.groups.every, *(group for by in GROUPINGS for group in voices.groups.of(by))]:
        rates = (share(group.passing(rule)) for rule in RULES)
        table.add_row(f"{group.by} {group.value}".strip(), f"{group.shown:,}", *rates, *_leanings(group))
    table.caption = "Below a voter: the polarity it names too often or too seldom by most, against what was asked for."
    table.caption_justify = "left"
    return table


def _leanings(group: Group) -> list[str]:
    told = []
    for leaning in group.voters:
        biases = {side: bias for side in Polarity if (bias := leaning.bias(side)) is not None}
        most = max(biases, key=lambda side: abs(biases[side]), default=None)
        if most is None:
            told.append("silent")
        else:
            told.append(f"{most[:3]} {100 * biases[most]:+.0f}" if abs(biases[most]) >= 0.005 else "even")
    return told


def _percent(value: float | None) -> str:
    return "–" if value is None else f"{100 * value:.1f} %"
