"""Contact sheets: one source and its candidates as a template shows them, made of their lives."""

from dataclasses import dataclass, field
from typing import Any

from schemas.config import RankCut
from schemas.expressions import POLARITY, Expression
from schemas.outcomes import Status
from schemas.records import Ballots, Candidate, Fidelity, Finalist, GroundTruth, Photo, SourceFacts, Triplet, Vote
from tasks.engine.dossier import Life, SourceLife
from tasks.rank import fused
from tasks.report.funnel import words


@dataclass(frozen=True)
class Word:
    """A voter's answer: `answer` is what it named or why it abstained; `polarity` is empty for an abstention, and
    `agrees` None; `confidence` is in 0..1 where it has one."""

    voter: str
    answer: str
    polarity: str
    confidence: float | None
    agrees: bool | None


@dataclass(frozen=True)
class Card:
    """One candidate.

    Attributes:
        key: In a person's words.
        state: "truth", "finalist", "waiting", "failed", "out" or "due", for its frame.
        image: Digest of its picture; None where there is none.
        verdict: The arithmetic of the vote, or what the verdict rests on.
        identity, background, change, score: Cosine -1..1, RMSE 0-255, blendshape distance, fused score 0..1.
        rank: 1 is best; None for those that are no finalists.
        end, why: Where it ended and the evidence.
        caption: Of a finalist.
        moved: What stands out of its geometry.
    """

    key: str
    target: Expression
    attempt: int
    state: str
    published: bool
    image: str | None
    words: list[Word]
    verdict: str
    identity: float | None
    background: float | None
    change: float | None
    score: float | None
    rank: int | None
    end: str
    why: str
    caption: str
    moved: str = ""


@dataclass(frozen=True)
class Truth:
    """A ground truth's texts. `dense` is empty where none is written yet."""

    target: Expression
    image: str
    mode: str
    note: str
    simple: str
    dense: str
    back_check: str
    published: bool


@dataclass
class Sheet:
    """One source. `number` is its place in the plan, from 1; `state` is "kept", "rejected", "failed" or "due"."""

    number: int
    key: str
    state: str
    image: str | None
    width: int
    height: int
    expression: str = ""
    label: str = ""
    end: str = ""
    why: str = ""
    facts: list[tuple[str, str]] = field(default_factory=list)
    words: list[Word] = field(default_factory=list)
    cards: list[Card] = field(default_factory=list)
    truths: list[Truth] = field(default_factory=list)

    @property
    def anchor(self) -> str:
        return f"source-{self.number}"

    def pictures(self) -> list[str]:
        """Digests of all pictures it shows."""
        return [one for one in (self.image, *(card.image for card in self.cards)) if one]


def sheet(number: int, life: SourceLife, cut: RankCut) -> Sheet:
    """The contact sheet of a source.

    Args:
        number: Its place in the plan, from 1.
        life: What became of it and its candidates.
        cut: How the run fuses identity and background.
    """
    facts, photo = life.measured.get("screen"), life.outputs.get("screen")
    known = facts if isinstance(facts, SourceFacts) else SourceFacts()
    made = Sheet(number, str(life.key), "due", known.image, known.width, known.height, facts=_facts(known))
    made.words = [_word(vote, None) for vote in known.votes]
    if life.steps:
        stage, step = life.end
        made.state = str(step.status)
        made.end, made.why = _end(stage, life), step.evidence
    if isinstance(photo, Photo):
        made.expression = str(photo.expression)
        made.label = "label given by the pool" if photo.label_source == "given" else "labelled by the panel"
    elif life.source.label is not None:
        made.expression, made.label = str(life.source.label), "label given by the pool"
    made.cards = [_card(candidate, cut) for candidate in life.candidates]
    made.truths = [truth for candidate in life.candidates if (truth := _truth(candidate)) is not None]
    return made


def _card(life: Life, cut: RankCut) -> Card:
    target = Expression(life.key.target)
    made, ballots = life.measured.get("generate"), life.measured.get("verify")
    fidelity, finalist = life.measured.get("rank"), life.outputs.get("caption") or life.outputs.get("rank")
    stage, step = life.end
    told = stage == "verify"  # the verdict's line says it already
    return Card(
        key=str(life.key),
        target=target,
        attempt=life.key.attempt,
        state=_state(life),
        published=life.reached("publish"),
        image=made.image if isinstance(made, Candidate) else None,
        words=[_word(vote, target) for vote in ballots.votes] if isinstance(ballots, Ballots) else [],
        verdict=life.steps["verify"].evidence if "verify" in life.steps else "",
        identity=fidelity.identity if isinstance(fidelity, Fidelity) else None,
        background=fidelity.background_rmse if isinstance(fidelity, Fidelity) else None,
        change=ballots.change if isinstance(ballots, Ballots) else None,
        score=_score(fidelity, cut),
        rank=finalist.rank if isinstance(finalist, Finalist) else None,
        end=_end(stage, life),
        why="" if told else step.evidence,
        caption=finalist.caption if isinstance(finalist, Finalist) else "",
        moved=life.steps["generate"].evidence if "generate" in life.steps and stage != "generate" else "",
    )


def _truth(life: Life) -> Truth | None:
    truth, triplet = life.outputs.get("review"), life.outputs.get("instruct")
    if not isinstance(truth, GroundTruth):
        return None
    written = triplet if isinstance(triplet, Triplet) else None
    return Truth(
        target=Expression(life.key.target),
        image=truth.image,
        mode=truth.mode,
        note=truth.note,
        simple=truth.instruction,
        dense=written.dense_instruction if written else "",
        back_check=words(written.back_check) if written else "",
        published=life.reached("publish"),
    )


def _state(life: Life) -> str:
    status = life.end[1].status
    if life.reached("review"):
        return "truth"
    if status in (Status.WAITING, Status.FAILED):
        return str(status)
    if life.reached("rank"):
        return "finalist"
    return "due" if status is Status.KEPT else "out"


def _end(stage: str, life: Life) -> str:
    """Where a row ended, in words: "verify: no majority"."""
    step = life.end[1]
    if step.status is Status.KEPT:
        return {"publish": "published", "screen": "admitted"}.get(stage, f"passed {stage}; the next stage is due")
    if step.status is Status.WAITING:
        return f"{stage}: waiting for people"
    accident = "failed, " if step.status is Status.FAILED else ""
    return f"{stage}: {accident}{words(step.reason)}"


def _score(fidelity: Any, cut: RankCut) -> float | None:
    if not isinstance(fidelity, Fidelity) or fidelity.identity is None or fidelity.background_rmse is None:
        return None
    return fused(fidelity, cut)


def _word(vote: Vote, target: Expression | None) -> Word:
    if vote.abstained is not None:
        return Word(vote.voter, f"abstains: {words(vote.abstained)}", "", None, None)
    return Word(
        voter=vote.voter,
        answer=str(vote.expression or vote.polarity),
        polarity=str(vote.polarity or ""),
        confidence=vote.confidence,
        agrees=vote.polarity is POLARITY[target] if target else None,
    )


def _facts(facts: SourceFacts) -> list[tuple[str, str]]:
    """What screening measured, as (name, value with unit)."""
    if not facts.image:
        return []
    measured = (
        ("eye distance", facts.inter_eye, "{:.0f} px"),
        ("yaw", facts.yaw, "{:+.0f}°"),
        ("pitch", facts.pitch, "{:+.0f}°"),
        ("sharpness", facts.sharpness, "{:.0f}"),
    )
    size = [("size", f"{facts.width} × {facts.height}"), ("faces", str(facts.faces))]
    return size + [(name, form.format(value).replace("-", "−")) for name, value, form in measured if value is not None]
