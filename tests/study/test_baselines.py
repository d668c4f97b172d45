"""The numbers that ship, against runs: as they are, a little off, too far off, and of something else."""

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from flows.cli import app
from schemas.baselines import baselines
from schemas.score_config import ScoreCut, ScoreMeasure
from tests.commands import one_line
from tests.leaderboard.made_up import write
from tests.scoring.samples import row, rule

ROOT = Path(__file__).parents[2]


def scored(folder: Path, *, shift: float = 0.0, editors: int = 5, triplets: int = 16, **changes: Any) -> Path:
    """A run whose rows all have the means that ship, the cosine of one editor shifted."""
    held = []
    for editor, means in list(baselines().editors.items())[:editors]:
        moved = shift if editor == "lazy" else 0.0
        parts = rule(
            identity=min(1.0, means.id + moved),
            background_rmse=means.background_rmse,
            au_output=means.au_ratio,
            au_truth=1.0,
        )
        for place in range(triplets):
            key = {"source_id": f"{place:04d}", "triplet": f"p/{place:04d}:happy@t#0", "subject": f"{place}"}
            held.append(row(parts, (), partial=True, editor=editor, **key))
    settings = {"cut": ScoreCut(gain="au").model_dump(mode="json"), "limit": None}
    measure = ScoreMeasure().model_dump(mode="json")
    settings |= {"measure": measure | {"identity": {"name": changes.pop("identity", "sface"), "params": {}}}}
    write(folder, "base", held, partial=True, settings=settings, **changes)
    return folder


def said(folder: Path, *words: str) -> Any:
    return CliRunner().invoke(app, ["study", "baselines", "base", "-w", str(folder), *words], env={"COLUMNS": "80"})


def test_it_fits_or_says_what_does_not(tmp_path: Path) -> None:
    # The scores of equal rows are not the shipped means of unlike ones; the parts are.
    found = json.loads(said(scored(tmp_path / "a"), "--json").stdout)
    fits = {(one["editor"], one["column"]): one["fits"] for one in found["numbers"]}
    assert len(fits) == 20
    assert all(
        fits[editor, column] for editor in baselines().editors for column in ("id", "background_rmse", "au_ratio")
    )
    off = said(scored(tmp_path / "b", shift=-0.02))
    assert off.exit_code == 7
    wrong = [line.split()[1] for line in off.stdout.splitlines() if "OFF" in line and line.startswith("lazy")]
    assert "id" in wrong
    assert "this machine measures otherwise" in off.stdout


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"editors": 3}, "lacks the baselines copy, random_identity"),
        ({"triplets": 15}, "scored 15 triplets, the demo has 16"),
        ({"identity": "buffalo_l"}, "was scored otherwise than the baselines: identity"),
    ],
)
def test_another_run_is_refused_in_one_line(tmp_path: Path, changes: dict[str, Any], message: str) -> None:
    done = said(scored(tmp_path, **changes))
    assert done.exit_code == 2, done.output
    told, hint = one_line(done.stderr)
    assert message in told
    assert "docs/scoring.md" in hint


def test_the_docs_have_the_same_numbers() -> None:
    page = (ROOT / "docs/scoring.md").read_text()
    for editor, means in baselines().editors.items():
        cells = next(line for line in page.splitlines() if line.startswith(f"| {editor}")).split("|")[2:-1]
        told = [float(cell.strip()) for cell in cells]
        ours = [means.score, means.id, means.background_rmse, means.au_ratio]
        for said_, number, tolerance in zip(told, ours, (0.0005, 0.0005, 0.05, 0.005), strict=True):
            assert said_ == pytest.approx(number, abs=tolerance + 1e-9), editor
