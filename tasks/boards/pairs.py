"""Pairs of a study in Label Studio: the question that each makes, its screen, its answers, and where they lie."""

import io
import random
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any, Final, TypeVar

import pyarrow as pa
import pyarrow.parquet as pq

import prompts
from schemas.records import Finalist, Key, Record
from schemas.reviews import Answer, Question
from schemas.studies import Aspect, Chosen, PairAnswer, Side, StudyPair
from tasks.boards.blind import PLAYED, in_order, share
from tasks.boards.collecting import said, seconds_of
from tasks.boards.projects import Desk
from tasks.boards.simulate import Behaviour
from tasks.engine.fingerprint import fingerprint
from tasks.engine.store import Store, arrow_schema

ROOT: Final = "studies"
PAIRS, ANSWERS = "pairs.parquet", "answers.parquet"
GUIDE, SCREEN = "pair_guide", "pair_screen"
# Digests are hexadecimal, so that none of a review's question begins so.
MARK: Final = "pair"
SAME: Final = "same"
R = TypeVar("R", bound=Record)


def run_of(study: str) -> str:
    """What marks a study's projects; no build's run has a blank in its name."""
    return f"study {study}"


def question_of_pair(pair: StudyPair) -> Question:
    """What people are asked of a pair: its two outputs in the place of finalists, without captions."""
    guide = prompts.version_of(GUIDE)
    digest = fingerprint("pair", pair.model_dump(mode="json", exclude={"truth_image", "subject"}), guide)
    finalists = tuple(
        Finalist(
            key=Key(pair.key.pool, pair.key.source_id, pair.target, editor, 0),
            source_image=pair.source_image,
            source_expression=pair.source_expression,
            image=image,
            instruction=pair.instruction,
            rank=rank,
            score=0.0,
        )
        for rank, (editor, image) in enumerate(((pair.a, pair.a_image), (pair.b, pair.b_image)), 1)
    )
    return Question(digest=MARK + digest[len(MARK) :], key=pair.key, guide=guide, finalists=finalists)


class PairDesk(Desk):
    """Asks everybody about every pair: a study wants all opinions, not a decision."""

    def wants(self, name: str, answers: Sequence[Answer | PairAnswer]) -> bool:
        return True

    def settings(self, name: str, mark: str, *, single: bool) -> dict[str, Any]:
        study = self.run.removeprefix(run_of(""))
        return super().settings(name, mark, single=single) | {
            "title": f"{study[:30]} · {name[:15]}",
            "description": f"Study {study}, by {name}. fedbench finds it by {mark}; leave that here.",
            "label_config": prompts.render(SCREEN),
            "expert_instruction": prompts.render(GUIDE),
        }


def parsed_pair(
    question: Question, annotation: Mapping[str, Any], key: bytes, name: str
) -> tuple[PairAnswer | None, str]:
    """An annotation as an answer, left and right brought back to a and b; or None, and why it is none."""
    shown = in_order(key, question, name)
    straight = shown[0].image == question.finalists[0].image
    sides = {"left": Side.A, "right": Side.B} if straight else {"left": Side.B, "right": Side.A}
    sides |= {SAME: Side.SAME}
    found: dict[str, Side] = {}
    comment = ""
    for control, choices, text in said(annotation):
        if control == "comment":
            comment = text
        elif len(choices) == 1 and choices[0] in sides:
            found[control] = sides[choices[0]]
    lacking = [aspect for aspect in Aspect if aspect not in found]
    if lacking:
        return None, f"it says nothing on {', '.join(lacking)}"
    return PairAnswer(
        question=question.digest,
        key=question.key,
        annotator=name,
        choices=tuple(Chosen(aspect=aspect, side=found[aspect]) for aspect in Aspect),
        first=shown[0].image,
        guide=question.guide,
        seconds=seconds_of(annotation),
        played=comment == PLAYED,
        given=str(annotation["updated_at"]),
    ), ""


def annotate(question: Question, name: str, key: bytes, luck: random.Random, how: Behaviour) -> dict[str, Any]:
    """What somebody played says: by a coin of the pair's own, the same for all, but for noise and bias."""
    sides = {one.image: side for one, side in zip(in_order(key, question, name), ("left", "right"), strict=True)}
    said = {"from_name": "comment", "to_name": "src_image", "type": "textarea", "value": {"text": [PLAYED]}}
    result: list[dict[str, Any]] = [said]
    for aspect in Aspect:
        coin = share(b"played", "pair", str(how.seed), question.digest, aspect)
        word = SAME if coin < 0.1 else sides[question.finalists[0 if coin < 0.55 else 1].image]
        dice = luck.random()
        if dice < how.noise:
            word = luck.choice(["left", "right", SAME])
        elif dice < how.noise + how.bias:
            word = "left"
        value = {"choices": [word]}
        result.append({"from_name": str(aspect), "to_name": "src_image", "type": "choices", "value": value})
    return {"result": result, "lead_time": round(luck.lognormvariate(2.8, 0.4), 1)}


def studies(store: Store) -> list[str]:
    """The studies of a workspace, by name."""
    return [name.split("/")[1] for name in store.names(f"{ROOT}/*/{PAIRS}")]


def read_study_pairs(store: Store, study: str) -> list[StudyPair]:
    """Its pairs, in the order of their choice; empty where there is no such study."""
    return _read(store, study, PAIRS, StudyPair)


def write_study_pairs(store: Store, study: str, pairs: Sequence[StudyPair]) -> None:
    _write(store, study, PAIRS, StudyPair, pairs)


def answers_to(store: Store, study: str) -> dict[tuple[str, str], PairAnswer]:
    """All answers by question and annotator, those that were taken back as `gone`."""
    return {(one.question, one.annotator): one for one in _read(store, study, ANSWERS, PairAnswer)}


def keep_answers(store: Store, study: str, rows: Iterable[PairAnswer]) -> int:
    """Keep what differs from what is known; how many answers that are."""
    known = answers_to(store, study)
    fresh = {(row.question, row.annotator): row for row in rows if known.get((row.question, row.annotator)) != row}
    if fresh:
        _write(store, study, ANSWERS, PairAnswer, [row for _, row in sorted((known | fresh).items())])
    return len(fresh)


def forget_pairs(store: Store, keys: Collection[Key]) -> None:
    """Delete the pairs about these sources from every study, and the answers to them."""
    for study in studies(store):
        pairs, answers = read_study_pairs(store, study), list(answers_to(store, study).values())
        if ({one.key for one in pairs} | {one.key for one in answers}) & set(keys):
            _write(store, study, ANSWERS, PairAnswer, [one for one in answers if one.key not in keys])
            write_study_pairs(store, study, [one for one in pairs if one.key not in keys])


def _read(store: Store, study: str, name: str, record: type[R]) -> list[R]:
    folder = f"{ROOT}/{study}"
    return store.read_part(folder, name, record) if store.exists(f"{folder}/{name}") else []


def _write(store: Store, study: str, name: str, record: type[R], rows: Sequence[R]) -> None:
    sink = io.BytesIO()
    pq.write_table(pa.Table.from_pylist([row.model_dump() for row in rows], schema=arrow_schema(record)), sink)
    store.write(f"{ROOT}/{study}/{name}", sink.getvalue())
