"""The page of a leaderboard: HTML that opens from disk, without network or script; pictures lie beside it."""

from collections.abc import Sequence
from pathlib import Path
from typing import Final

from schemas.expressions import EXPRESSIONS
from schemas.paper_scores import paper_scores
from schemas.scoring import PARTIAL_SCORE, Part
from tasks.engine.images import ImageStore
from tasks.engine.store import Store
from tasks.leaderboard import plots
from tasks.leaderboard.bootstrap import LEAST
from tasks.leaderboard.files import HOW, drift_words
from tasks.leaderboard.gallery import Sample
from tasks.leaderboard.instructions import told_more
from tasks.leaderboard.ranking import Board, protocol
from tasks.leaderboard.traits import traits
from tasks.report.html import environment
from tasks.report.thumbs import Thumbs

GALLERIES: Final = 12  # editors of a board that are shown in pictures


def write_page(found: Sequence[Board], store: Store, folder: str, *, published: bool) -> Path:
    """Write `index.html` and the thumbnails it shows.

    Args:
        found: The boards.
        store: The workspace; pictures that are not in it are left out, and the page says so.
        folder: Relative to it.
        published: Whether the paper's table stands beside.

    Raises:
        WorkspaceError: The disk cannot be written, or a picture is damaged.
    """
    images = ImageStore(store)
    thumbs = Thumbs(store, images, folder)
    held = [sample for board in found for row in board.rows[:GALLERIES] for sample in _samples(row.entrant.samples)]
    digests = {digest for one in held for digest in (one.source, one.output, one.truth)}
    here = {digest for digest in digests if digest and store.exists(images.path(digest))}
    thumbs.make(sorted(here))
    text = (
        environment()
        .get_template("leaderboard.html.j2")
        .render(
            boards=found,
            paper=paper_scores() if published else None,
            thumbs=thumbs,
            here=here,
            how=HOW,
            drift_words=drift_words,
            least=LEAST,
            galleries=GALLERIES,
            plots=plots,
            protocol=protocol,
            traits=traits,
            told_more=list(told_more(found)),
            partial=PARTIAL_SCORE,
            parts=[str(part) for part in Part],
            expressions=EXPRESSIONS,
        )
    )
    store.write(f"{folder}/index.html", text.encode())
    return store.path(f"{folder}/index.html")


def _samples(samples: dict[str, list[Sample]]) -> list[Sample]:
    return [one for held in samples.values() for one in held]
