"""The published table: what its digits must agree on, and what they tell of how they were made."""

import pytest

from schemas.paper_scores import paper_scores
from tasks.metrics.gain import s_reg

ROWS = {row.editor: row for row in paper_scores().rows}


def test_it_is_the_table_of_18_in_its_order() -> None:
    assert len(paper_scores().rows) == len(ROWS) == 18
    dense = [row.dense.score for row in paper_scores().rows]
    assert dense == sorted(dense, reverse=True)


def place(editor: str, granularity: str) -> int:
    scores = {name: getattr(row, granularity).score for name, row in ROWS.items()}
    return 1 + sum(other > scores[editor] for other in scores.values())


def test_the_ranks_that_its_text_tells_follow_from_its_rows() -> None:
    for granularity in ("dense", "simple"):
        top = ("Qwen-image-edit-plus", "SeedDream 4.0", "FLUX.2 Pro")
        assert [place(editor, granularity) for editor in top] == [1, 2, 3]
    # Fine-tuning moves Kontext-Dev from 10th to 5th, and from 14th to 7th.
    assert (place("FLUX-Kontext-Dev", "dense"), place("FLUX-Kontext-FED", "dense")) == (10, 5)
    assert (place("FLUX-Kontext-Dev", "simple"), place("FLUX-Kontext-FED", "simple")) == (14, 7)


@pytest.mark.parametrize("editor", ROWS)
def test_no_mean_of_products_exceeds_the_mean_of_a_dimension(editor: str) -> None:
    # Whatever BG, PQ and SC are (≤ 1): score ≤ mean fidelity ≤ (ID + 2) / 3, and ≤ mean alignment ≤ (1 + GTA / 10) / 2.
    dense = ROWS[editor].dense
    assert dense.id is not None
    assert dense.gta is not None
    assert dense.score <= min((dense.id + 2) / 3, (1 + dense.gta / 10) / 2)


def test_its_reg_column_is_the_mean_ratio_and_its_scores_are_means_of_products() -> None:
    # A gain is ≤ 1; most of the column is above.
    assert sum(row.dense.mean_ratio > 1 for row in ROWS.values()) > 9
    # InstructPix2Pix, simple: as a product of means the other two dimensions would have to make .0035 / S_reg(2.42),
    # rounding in its favour. Their most is (ID + 1 + PQ) / 3 · (1 + GTA) / 2 with ID .08, PQ 0, GTA 0.
    worst = ROWS["InstructPix2Pix"]
    assert worst.dense.id is not None
    needed = (worst.simple.score - 0.0005) / s_reg(worst.simple.mean_ratio - 0.005)
    assert needed > (worst.dense.id + 1 + 0) / 3 * 0.5
