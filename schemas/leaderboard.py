"""The lines of a leaderboard on disk: `leaderboard.parquet` has one for each editor, instruction and way of scoring."""

from schemas.records import Record
from schemas.scoring import Granularity


class LeaderboardRow(Record):
    """One line.

    Attributes:
        board: Number of the board it stands on, from 1: lines of different boards may not be compared.
        apart: Why not; empty on the first.
        score_name: "FED-Score" or "partial score".
        dataset, edition, granularity: What was scored.
        rank: From 1 on its board; None without a score.
        rank_low, rank_high: Where 95 % of the resamples rank it.
        editor, run, family, protocol, seed: Who, and how it was run.
        conflicts: What may flatter it.
        score: What ranks; `low`, `high` its 95 % interval; `n` rows of `owed`.
        score_all, score_scored: With failures as 0, and without them; `scored`, `failed`, `unscored` rows.
        score_kin_out: With failures as 0, without judges that are relatives of it or of the data set's makers, and
            without ground truths that relatives of it made; None where there is none, or nothing is left.
        identity, background, pq, sc, gta, reg: Means of the parts, 0..1.
        fidelity, alignment, gain: Of the dimensions.
        background_rmse: Mean, 0..255.
        mean_ratio, median_ratio, ratio_of_sums: Of the chosen gain. The paper's "REG" column is the mean one.
        noop_ratio, noop_n: Mean ratio of its re-encodings of unchanged faces, and of how many.
        truth_best, truth_mean: Over the ground truths of one source and target, failures as 0.
        judged_first, judged_last: Days (UTC) of the judges' answers about it; empty where they are unknown.
        drift_unchecked: Whether they are of other days than the newest on the board, and nobody asked again since.
        next_editor, next_difference, next_low, next_high, next_verdict, detectable, next_n: Against the next rank.
    """

    board: int
    apart: str
    score_name: str
    dataset: str
    edition: str
    granularity: Granularity
    rank: int | None
    rank_low: int | None
    rank_high: int | None
    editor: str
    run: str
    family: str
    protocol: str
    seed: int
    conflicts: tuple[str, ...]
    score: float | None
    low: float | None
    high: float | None
    n: int
    owed: int
    score_all: float | None
    score_scored: float | None
    scored: int
    failed: int
    unscored: int
    score_kin_out: float | None
    identity: float | None
    background: float | None
    pq: float | None
    sc: float | None
    gta: float | None
    reg: float | None
    fidelity: float | None
    alignment: float | None
    gain: float | None
    background_rmse: float | None
    mean_ratio: float | None
    median_ratio: float | None
    ratio_of_sums: float | None
    noop_ratio: float | None
    noop_n: int
    truth_best: float | None
    truth_mean: float | None
    judged_first: str
    judged_last: str
    drift_unchecked: bool
    next_editor: str
    next_difference: float | None
    next_low: float | None
    next_high: float | None
    next_verdict: str
    detectable: float | None
    next_n: int
