"""Blind audits: people look at what was rejected automatically; it decides nothing and says what was lost."""

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from flows.cli import app
from schemas.expressions import Expression
from schemas.outcomes import Reason, Status
from schemas.records import Candidate, Key
from schemas.reviewing import Review
from schemas.reviews import AuditReviewed, ExtraKind, Question
from tasks.boards.answers import answers_for
from tasks.boards.audits import AuditTally, Left, audit_of, drawn, fell
from tasks.boards.blind import captioned, task
from tasks.boards.gold import decides_nothing, scores
from tasks.boards.questions import remember
from tasks.dataset.read import data_set
from tasks.dataset.verify import verify
from tasks.engine.store import Store
from tasks.extras import audits_of
from tasks.metrics.interval import wilson
from tasks.pipeline import open_run
from tasks.report.html import write_report
from tests import fakes
from tests.review.asking import answer, best, config, none, questions, say
from tests.review.test_gold import Copier
from tests.review.test_reading import SECRET
from tests.review.test_waiting import finished, waits


@pytest.fixture(autouse=True)
def world() -> fakes.World:
    return fakes.install()


def review(**fields: Any) -> Review:
    return Review.model_validate({"measure": {"board": "label_studio"}, "audit": 0.5} | fields)


def candidate(number: int, target: str = "happy") -> Candidate:
    return Candidate(
        key=Key("pool", f"source-{number}", target, "warp"),
        source_image="a" * 64,
        source_expression=Expression.NEUTRAL,
        image=f"{number:064d}",
        instruction=f"change the expression from neutral to {target}",
        seed=1,
        raw_width=8,
        raw_height=8,
        changed_pixels=0.5,
        local_change=9.0,
        motion=None,
    )


def test_a_coin_per_candidate_that_no_other_turns() -> None:
    keys = [candidate(number).key for number in range(2000)]
    few, many = ({key for key in keys if drawn(key, review(audit=share))} for share in (0.05, 0.2))
    assert 70 < len(few) < 130
    assert few < many
    assert {key for key in keys if drawn(key, review(audit=0.05, cut={"sample_seed": 1}))} != few
    assert not [key for key in keys if drawn(key, review(audit=0))]


def test_an_audit_looks_like_the_others_and_tells_whether_it_is_usable() -> None:
    row = candidate(3)
    pair, single = (audit_of(row, Copier(), single=single) for single in (False, True))
    for asked in (pair, single):
        assert decides_nothing(asked.digest)
        assert asked.extra
        assert (asked.extra.kind, asked.extra.picture) == (ExtraKind.AUDIT, row.image)
        assert not captioned(SECRET, asked, "ann1")
        shown = str(task(SECRET, asked, "ann1", "/at/"))
        assert not [word for word in ("audit", "warp", "source-3", asked.digest, row.image) if word in shown]
    assert [one.image for one in single.finalists] == [row.image]
    beside = next(one for one in pair.finalists if one.image != row.image)
    assert beside.image == f"copy-of-{row.source_image}", "nobody would choose it"
    assert beside.key.target not in ("happy", "neutral")
    assert beside.instruction.endswith(beside.key.target)
    both = [one.image for one in pair.finalists]
    rows = [answer(pair, "ann1", [row.image]), answer(pair, "ann2", both), answer(single, "ann3", [row.image])]
    found = scores(rows, {one.digest: one for one in (pair, single)}, ["ann1", "ann2", "ann3"])
    assert [(one["hits"], one["of"]) for one in found.values()] == [(1, 1), (0, 1), (0, 0)], "the copy tests them, too"


def test_what_was_lost_by_hand() -> None:
    rejected = (Status.REJECTED, Reason.NO_MAJORITY, "")
    kept: Left = (Status.KEPT, "", "")
    floor, behind = (Status.REJECTED, Reason.LOW_IDENTITY, ""), (Status.REJECTED, Reason.BELOW_TOP_K, "")
    settings = review(audit=0.5)
    chosen = [row for number in range(200) if drawn((row := candidate(number)).key, settings)][:20]
    left = [row for number in range(200) if not drawn((row := candidate(number)).key, settings)][:30]
    asked = [audit_of(row, Copier(), single=False) for row in chosen]
    # Of 20 audited that the votes rejected, 18 are decided, 3 of them usable.
    said = [answer(one, name, [one.extra.picture] if place < 3 else [])
            for place, one in enumerate(asked[:18]) if one.extra for name in ("ann1", "ann2")]  # fmt: skip
    said += [answer(asked[18], "ann1", []), answer(asked[19], "ann1", [], gone=True)]
    tally = AuditTally(settings, asked, said)
    for row in [*chosen, *left]:
        tally.add(row.key, row.image, {"verify": rejected})
    for number in range(300, 340):  # 40 passed: 10 judged, 8 of them usable; 2 out-voted, 1 waits, the rest fell or ran
        steps: dict[str, Left] = {"verify": kept, "rank": kept if number < 320 else behind}
        if number < 308:
            steps["review"] = (Status.KEPT, "", "2 of 3 people chose one")
        elif number < 310:
            steps["review"] = (Status.REJECTED, "not_chosen", "rank 1; (2 of 3 people found none usable)")
        elif number < 312:
            steps["review"] = (Status.REJECTED, "not_chosen", "rank 2; (2 of 3 people chose one)")
        elif number < 313:
            steps["review"] = (Status.WAITING, "", "1 of 3 people have answered")
        tally.add(candidate(number).key, "x", steps)
    tally.add(candidate(900).key, "x", {"verify": kept, "rank": floor})
    tally.add(candidate(901).key, "x", {})
    found = tally.found()
    assert found
    assert (found.rejected, found.decided, found.usable, found.passed) == (51, 18, 3, 41)
    assert (found.judged, found.judged_usable) == (10, 8)
    assert (found.low, found.high) == wilson(3, 18)
    assert [(one.stage, one.reason, one.rejected, one.decided, one.usable) for one in found.by] == [
        ("rank", "low_identity", 1, 0, 0),
        ("verify", "no_majority", 50, 18, 3),
    ]
    # 41 · 0.8 usable passed; 50 · 3/18 usable were lost.
    assert found.recall == pytest.approx(32.8 / (32.8 + 50 / 6))
    low, high = wilson(3, 18)
    assert found.recall_low == pytest.approx(32.8 / (32.8 + 50 * high))
    assert found.recall_high == pytest.approx(32.8 / (32.8 + 50 * low))
    assert fell({"verify": kept, "rank": behind}) is None, "a place behind the best two is no fault"
    assert AuditTally(Review()).found() is None


def audited(workspace: Path, *sets: str) -> list[Question]:
    run = open_run(workspace, config(*sets), extend=False)
    return audits_of(run.executor, run.config, run.executor.commits())


def test_audits_decide_nothing_and_are_told_everywhere(tmp_path: Path) -> None:
    sets = ("review.audit=0.5",)
    waits(tmp_path, *sets)
    store, real, asked = Store(tmp_path), questions(tmp_path, config(*sets)), audited(tmp_path, *sets)
    assert len(asked) > 3
    remember(store, [*real, *asked])
    assert audited(tmp_path, *sets) == asked, "what was asked is not made again"

    def status() -> str:
        return CliRunner().invoke(app, ["review", "status", "-w", str(tmp_path)]).output

    assert f"audit      {len(asked)} of " in status()
    assert "what was lost is not known" in status()
    owed = 3 * len(real) + 3 * len(asked)
    assert f"{owed} answers are owed" in status()
    say(tmp_path, asked, ann1=lambda one: [one.extra.picture] if one.extra else [], ann2=none)
    say(tmp_path, asked[:2], ann3=lambda one: [one.extra.picture] if one.extra else [])
    say(tmp_path, asked[2:], ann3=none)
    assert not any(answers_for(store, config(*sets)).to(one.digest) for one in asked)
    say(tmp_path, real, ann1=best, ann2=best)
    assert f"they would accept 2 of {len(asked)}" in status()
    built = finished(tmp_path, *sets)
    assert built.published
    assert built.published.triplets == len(real)
    assert verify(built.published.folder) == []
    found = data_set(built.published.folder).audit
    assert found
    assert (found.drawn, found.decided, found.usable) == (len(asked), len(asked), 2)
    assert (found.judged, found.judged_usable) == (len(real), len(real))
    card = (built.published.folder / "README.md").read_text()
    assert f"accepted 2 of the {len(asked)} on which they decided" in card
    assert "% of all usable edits pass" in card
    index = write_report(built.run, built.run.executor.commits(), "reports/x")
    assert "Blind audit" in index.read_text("utf-8")
    assert "of all usable edits pass" in index.read_text("utf-8")

    plain = tmp_path / "plain"
    waits(plain)
    say(plain, questions(plain, config()), ann1=best, ann2=best)
    without = finished(plain)
    rows = [name for name in built.tree() if name.endswith(".parquet")]
    assert rows
    assert [built.tree()[name] for name in rows] == [without.tree()[name] for name in rows]
    assert data_set(without.published.folder).audit is None  # type: ignore[union-attr]

    path = built.published.folder / "manifest.json"
    whole = path.read_text()
    for change in ({"usable": 3}, {"rejected": 1}, {"share": 0.5}, {"drawn": 1}, {"by": []}):
        lying = json.loads(whole)
        lying["audit"] |= change
        path.write_text(json.dumps(lying))
        assert any(fault.found.startswith("audit: ") for fault in verify(built.published.folder)), change
    path.write_text(json.dumps(json.loads(whole) | {"audit": None}))
    assert any("audits" in fault.found for fault in verify(built.published.folder))


def test_only_sources_that_people_look_at_are_audited(tmp_path: Path) -> None:
    sets = ("review.audit=0.5", "review.cut.sample=0.5")
    waits(tmp_path, *sets)
    some = {(one.key, one.extra.picture) for one in audited(tmp_path, *sets) if one.extra}
    every = {(one.key, one.extra.picture) for one in audited(tmp_path, "review.audit=0.5") if one.extra}
    assert some < every
    assert AuditReviewed.model_fields.keys() >= {"share", "low", "high"}
