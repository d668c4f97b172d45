"""A leaderboard as files and plain values: JSON, Parquet and Markdown. The same runs give the same bytes."""

import io
import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from typing import Any, Final

import pyarrow as pa
import pyarrow.parquet as pq

from schemas.leaderboard import LeaderboardRow
from schemas.paper_scores import paper_scores
from tasks.engine.store import Store, arrow_schema
from tasks.leaderboard.bootstrap import LEAST, RESAMPLES
from tasks.leaderboard.instructions import told_more
from tasks.leaderboard.ranking import Board, Ranked, protocol
from tasks.leaderboard.traits import traits
from tasks.metrics.drift_words import words_of
from tasks.metrics.score_summary import Mean

FOLDER: Final = "reports/leaderboards"
PARTS: Final = ("id", "bg", "pq", "sc", "gta", "reg")
HOW: Final = (
    f"Intervals are 95 %, from {RESAMPLES} draws of people; with fewer than {LEAST} none is told. A difference is over "
    "the rows that both editors have; no correction is made for the number of comparisons."
)


def write_files(found: Sequence[Board], store: Store, name: str, *, published: bool) -> str:
    """Write `leaderboard.json`, `.parquet` and `.md` below `reports/leaderboards/NAME`.

    Returns:
        The folder, relative to the workspace.

    Raises:
        WorkspaceError: The disk cannot be written.
    """
    folder = f"{FOLDER}/{name}"
    text = json.dumps(plain(found, published=published), indent=1, ensure_ascii=False)
    sink = io.BytesIO()
    rows = [row.model_dump() for row in lines(found)]
    pq.write_table(pa.Table.from_pylist(rows, schema=arrow_schema(LeaderboardRow)), sink, compression="zstd")
    store.write(f"{folder}/leaderboard.json", text.encode())
    store.write(f"{folder}/leaderboard.parquet", sink.getvalue())
    store.write(f"{folder}/leaderboard.md", markdown(found, published=published).encode())
    return folder


def plain(found: Sequence[Board], *, published: bool) -> dict[str, Any]:
    """For JSON."""
    told: dict[str, Any] = {"how": HOW, "boards": [_board(board) for board in found]}
    told["dense_minus_simple"] = [
        {"board": dense.title, "apart": dense.apart, "editors": [asdict(one) | {"words": one.words} for one in rows]}
        for dense, rows in told_more(found)
    ]
    return told | ({"published": paper_scores().model_dump(mode="json")} if published else {})


def _board(board: Board) -> dict[str, Any]:
    manifest = board.manifest
    return {
        "title": board.title,
        "score": manifest.score,
        "dataset": manifest.dataset,
        "edition": manifest.edition,
        "granularity": board.granularity,
        "triplets": manifest.triplets,
        "people": board.subjects,
        "ranked_by": board.rank_by,
        "seed": board.seed,
        "apart": board.apart,
        "settings": manifest.settings,
        "judges": [judge.model_dump(mode="json") for judge in manifest.judges],
        "rows": [_row(row, manifest.settings["cut"]["sigma"]) for row in board.rows],
        "drift": {
            "checks": [check.model_dump(mode="json") for check in board.judged.checks],
            "unchecked": board.judged.words,
        },
        "stability": [asdict(one) | {"editors": [row.label for row in board.rows]} for one in board.stability],
    }


def _row(row: Ranked, sigma: float) -> dict[str, Any]:
    entrant, parts = row.entrant, row.entrant.whole.parts
    return {
        "rank": row.rank,
        "rank_range": row.range,
        "editor": row.label,
        "run": entrant.run,
        "seed": entrant.seed,
        "used": entrant.used.model_dump(mode="json"),
        "score": asdict(row.score) | {"low": row.low, "high": row.high},
        "next": None if row.next is None else asdict(row.next) | {"verdict": row.next.verdict},
        "without_relatives": None if entrant.kin is None else asdict(entrant.kin),
        "judges": [one.plain() for one in entrant.judges],
        "traits": traits(entrant.ratios, sigma, parts["identity"].value, parts["no_face"]),
        "whole": asdict(entrant.whole),
        "by_target": {name: asdict(mean) for name, mean in row.by_target.items()},
        "by_source": {name: asdict(mean) for name, mean in row.by_source.items()},
    }


def lines(found: Sequence[Board]) -> Iterator[LeaderboardRow]:
    """The flat lines, board by board, by rank."""
    for number, board in enumerate(found, 1):
        for place, row in enumerate(board.rows):
            after = board.rows[place + 1].label if place + 1 < len(board.rows) else ""
            yield _line(number, board, row, after)


def _line(number: int, board: Board, row: Ranked, after: str) -> LeaderboardRow:
    entrant, whole, step = row.entrant, row.entrant.whole, row.next
    parts = {name: mean.value for name, mean in whole.parts.items()}
    cut, days = board.manifest.settings["cut"], board.judged.of(entrant) or ("", "")
    return LeaderboardRow(
        board=number,
        apart=board.apart,
        score_name=board.manifest.score,
        dataset=board.manifest.dataset,
        edition=board.manifest.edition,
        granularity=board.granularity,
        rank=row.rank,
        rank_low=row.range[0] if row.range else None,
        rank_high=row.range[1] if row.range else None,
        editor=row.label,
        run=entrant.run,
        family=entrant.used.family,
        protocol=protocol(entrant),
        seed=entrant.seed,
        conflicts=entrant.used.conflicts,
        score=row.score.value,
        low=row.low,
        high=row.high,
        n=row.score.n,
        owed=whole.owed,
        score_all=whole.score_all.value,
        score_scored=whole.score.value,
        scored=whole.scored,
        failed=whole.failed,
        unscored=whole.unscored,
        score_kin_out=entrant.kin.value if entrant.kin else None,
        identity=parts["id"],
        background=parts["bg"],
        pq=parts["pq"],
        sc=parts["sc"],
        gta=parts["gta"],
        reg=parts["reg"],
        fidelity=parts["fidelity"],
        alignment=parts["alignment"],
        gain=parts["gain"],
        background_rmse=parts["background_rmse"],
        mean_ratio=parts[f"{cut['gain']}_ratio"],
        median_ratio=whole.median_ratio,
        ratio_of_sums=whole.ratio_of_sums,
        noop_ratio=parts["noop_ratio"],
        noop_n=whole.parts["noop_ratio"].n,
        truth_best=whole.truth_best.value,
        truth_mean=whole.truth_mean.value,
        judged_first=days[0],
        judged_last=days[1],
        drift_unchecked=board.judged.is_unchecked(entrant),
        next_editor=after,
        next_difference=step.value if step else None,
        next_low=step.low if step else None,
        next_high=step.high if step else None,
        next_verdict=step.verdict if step else "",
        detectable=step.detectable if step else None,
        next_n=step.n if step else 0,
    )


def markdown(found: Sequence[Board], *, published: bool) -> str:
    """One table per board."""
    text = ["# Leaderboard", "", HOW, ""]
    for board in found:
        text += [f"## {board.title}", ""]
        if board.apart:
            text += [f"Not ranked with the above: {_cell(board.apart)}.", ""]
        text += ["| rank | editor | score | 95 % | n | without failed | failed | unscored | to the next |"]
        text += ["|---|---|---|---|---|---|---|---|---|"]
        text += [_md_row(row) for row in board.rows]
        text += ["", *(f"Drift: {_cell(words)}.\n" for words in drift_words(board))]
    if published:
        text += [*_md_published(), ""]
    return "\n".join(text)


def drift_words(board: Board) -> list[str]:
    """Checks of judges, then what stands side by side unchecked."""
    return [*map(words_of, board.judged.checks), *board.judged.words]


def _md_row(row: Ranked) -> str:
    whole = row.entrant.whole
    cells = [
        "–" if row.rank is None else str(row.rank),
        row.label + (" *" if row.entrant.used.conflicts else ""),
        number(row.score),
        "–" if row.low is None else f"{row.low:.4f} to {row.high:.4f}",
        str(row.score.n),
        f"{number(whole.score)} (n {whole.score.n})",
        str(whole.failed),
        str(whole.unscored),
        step_words(row),
    ]
    return "| " + " | ".join(_cell(cell) for cell in cells) + " |"


def _md_published() -> list[str]:
    paper = paper_scores()
    head = "| editor | dense | mean r | ID | GTA (0–10) | simple | mean r |"
    text = [f"## Published figures, not ours: {paper.source}", "", head, "|---|---|---|---|---|---|---|"]
    for row in paper.rows:
        dense, simple = row.dense, row.simple
        cells = f"{dense.score:.3f} | {dense.mean_ratio:.2f} | {dense.id:.2f} | {dense.gta:.1f}"
        text.append(f"| {row.editor} | {cells} | {simple.score:.3f} | {simple.mean_ratio:.2f} |")
    return text


def step_words(row: Ranked) -> str:
    """The difference to the next rank in words: "better by .0312 (.0101 to .0533; .0310 would show)"."""
    step = row.next
    if step is None or step.value is None:
        return "–" if step is None else "no shared row"
    if step.low is None:
        return f"{step.value:+.4f}, {step.verdict}"
    return f"{step.verdict}: {step.value:+.4f} ({step.low:+.4f} to {step.high:+.4f}; {step.detectable:.4f} would show)"


def number(mean: Mean) -> str:
    """Four digits, or a dash."""
    return "–" if mean.value is None else f"{mean.value:.4f}"


def _cell(text: str) -> str:
    """Text in a Markdown table: no pipe, no line break, no markup of its own."""
    safe = " ".join(text.split())
    return "".join(f"\\{letter}" if letter in "|\\`*_<>[]" else letter for letter in safe)
