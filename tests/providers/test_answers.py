"""Every form of answer that is read, and every one that is not."""

from dataclasses import dataclass
from typing import Any, get_args

import pytest

from schemas.answers import CoarseForm, FineForm
from schemas.expressions import EXPRESSIONS, Expression, Polarity
from schemas.outcomes import Abstention
from tasks.providers.answers import (
    Heard,
    read_caption,
    read_choice,
    read_dense,
    read_expression,
    read_polarity,
    read_score,
    read_scores,
)
from tasks.providers.words import EXPRESSION_WORDS, POLARITY_WORDS

REFUSED, FILTERED, CUT = Abstention.REFUSED, Abstention.FILTERED, Abstention.TRUNCATED
NO, UNSURE = Abstention.UNPARSABLE, Abstention.CANNOT_TELL


@dataclass(frozen=True)
class Spoken:
    text: str | None
    finish: str | None = "stop"
    refusal: str | None = None


def outcome(heard: Heard[Any]) -> Any:
    """The value or the kind of abstention; exactly one of them, and a problem in words beside the latter."""
    assert (heard.value is None) == (heard.abstained is not None)
    assert bool(heard.problem) == (heard.abstained is not None)
    assert heard.mendable == (heard.abstained in (NO, CUT))
    return heard.value if heard.abstained is None else heard.abstained


VOTES: list[tuple[str | None, Any]] = [
    ('{"signs": "brows lowered", "expression": "anger"}', Expression.ANGER),
    ('{"expression": "happy", "confidence": 0.9}', Expression.HAPPY),
    ('Sure!\n```json\n{"expression": "Happy"}\n```\nLet me know.', Expression.HAPPY),
    ('```\n{"expression":"sad"}\n```', Expression.SAD),
    ("{'expression': 'happy', 'confidence': 0.9,}", Expression.HAPPY),
    ('{"expression": "happy",}', Expression.HAPPY),
    ('{"signs": "two\nlines", "expression": "happy"}', Expression.HAPPY),
    ('{"signs": "a } in \\"words\\" {", "expression": "fear"}', Expression.FEAR),
    ('[{"expression":"disgusted"}]', Expression.DISGUST),
    ('{"expression": ["sad"]}', Expression.SAD),
    ('{"Expression": "FEAR"}', Expression.FEAR),
    ('{" expression ": " “Fear”. "}', Expression.FEAR),
    ('{"emotion": "neutral"}', Expression.NEUTRAL),
    ('{"expression":"sad"} {"expression":"sadness"}', Expression.SAD),
    ('{"signs": "...", "expression": "the word"}\n{"signs": "teeth", "expression": "happy"}', Expression.HAPPY),
    ('{"表情": "开心"}', Expression.HAPPY),
    ('{"expression": "愤怒"}', Expression.ANGER),
    ("表情：愤怒", Expression.ANGER),
    ("**Happiness**.", Expression.HAPPY),
    ("angry", Expression.ANGER),
    ("The expression is surprised.", Expression.SURPRISE),
    ('{"expression": "cannot tell"}', UNSURE),
    ('{"expression": "Can’t tell."}', UNSURE),
    ('{"expression": "无法判断"}', UNSURE),
    ("cannot tell", UNSURE),
    # thoughts
    ('<think>brows {raised, maybe {"expression":"fear"}</think>{"expression":"surprise"}', Expression.SURPRISE),
    ('maybe {"expression":"fear"} hmm</think>{"expression":"surprise"}', Expression.SURPRISE),
    ('<thinking>{"expression":"fear"}</thinking>{"expression":"sad"}', Expression.SAD),
    ('◁think▷{"expression":"fear"}◁/think▷{"emotion": "neutral"}', Expression.NEUTRAL),
    ('<|begin_of_box|>{"expression":"angry"}<|end_of_box|>', Expression.ANGER),
    ("<|begin_of_box|>angry<|end_of_box|>", Expression.ANGER),
    ('<think>never closed {"expression":"fear"}', CUT),
    ('◁think▷never closed {"expression":"fear"}', CUT),
    ("<think>the end</think>", CUT),
    # what names no class, or two
    ('{"expression":"happy"}\n{"expression":"sad"}', NO),
    ('{"expression":"bored"}\n{"expression":"sad"}', NO),
    ('{"expression":"happy", "emotion": "sad"}', NO),
    ('{"expression":"happy", "expression": "sad"}', NO),
    ('{"expression":"cannot tell"} {"expression":"sad"}', NO),
    ('{"expression": ["sad", "fear"]}', NO),
    ('{"expression":"happy or surprised"}', NO),
    ('{"expression":"not happy"}', NO),
    ('{"expression":"bored"}', NO),
    ('{"expression":"contempt"}', NO),
    ('{"expression": null}', NO),
    ('{"expression": 3}', NO),
    ('{"expression": {"word": "sad"}}', NO),
    ('{"signs": "a smile"}', NO),
    ('{"expression": "sad"', NO),
    ('For example {"expression": "sad"}. Mine: {"expression": "hap', NO),
    ("He is not happy.", NO),
    ("The expression is not happy.", NO),
    ("The expression is happy or surprised.", NO),
    ("It could be fear or surprise; the mouth is open.", NO),
    ("happy sad", NO),
    # refusals
    ("I'm sorry, but I can't identify or infer the emotions of real people in images.", REFUSED),
    ("I cannot determine the emotional state of the person, who looks happy.", REFUSED),
    ("We’re unable to comment on this.", REFUSED),
    ("抱歉，我无法识别图中人物的情绪。", REFUSED),
    ('{"expression": "I\'m sorry, I can\'t help with that"}', REFUSED),
    ('{"error": "I cannot assist with real people"}', REFUSED),
    # nothing
    ("", NO),
    ("   \n", NO),
    (None, NO),
    ("<html><body>502 Bad Gateway</body></html>", NO),
]


@pytest.mark.parametrize(("text", "wanted"), VOTES)
def test_a_fine_vote(text: str | None, wanted: Any) -> None:
    assert outcome(read_expression(Spoken(text))) == wanted


@pytest.mark.parametrize(
    ("said", "wanted"),
    [
        (Spoken(None, "content_filter"), FILTERED),
        (Spoken("", "SAFETY"), FILTERED),
        (Spoken(None, refusal="I can't help with identifying people."), REFUSED),
        (Spoken('{"expression":"sad"}', refusal="no"), REFUSED),
        (Spoken('{"expression": "hap', "length"), CUT),
        (Spoken('For example {"expression": "sad"}. Mine: {"expression": "hap', "length"), CUT),
        (Spoken("", "length"), CUT),
        (Spoken("The brows are", "length"), CUT),
        (Spoken('{"expression":"sad"} Here is wh', "length"), Expression.SAD),
        (Spoken('{"expression":"sad"}', None), Expression.SAD),
    ],
)
def test_the_providers_own_words_come_first(said: Spoken, wanted: Any) -> None:
    assert outcome(read_expression(said)) == wanted


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ('{"signs": "a smile", "polarity": "positive"}', Polarity.POSITIVE),
        ('{"polarity": "Negative."}', Polarity.NEGATIVE),
        ('{"极性": "中性"}', Polarity.NEUTRAL),
        ('{"polarity": "消极"}', Polarity.NEGATIVE),
        ("negative", Polarity.NEGATIVE),
        ('{"polarity": "cannot tell"}', UNSURE),
        ('{"polarity": "happy"}', NO),
        ('{"expression": "positive"}', NO),
        ('{"polarity": "neutral to negative"}', NO),
        ('{"polarity": "positive"} {"polarity": "neutral"}', NO),
    ],
)
def test_a_coarse_vote(text: str, wanted: Any) -> None:
    assert outcome(read_polarity(Spoken(text))) == wanted


THREE = ("PQ", "SC", "GTA")
SCORES: list[tuple[str, Any]] = [
    ('{"PQ": 8, "SC": 7, "GTA": 6.5, "reason": "x"}', [8, 7, 6.5]),
    ('{"pq":"8/10","sc":"7 out of 10","gta":"6"}', [8, 7, 6]),
    ('{"scores":{"PQ":[8],"SC":{"score":7,"reason":"a"},"GTA":0}}', [8, 7, 0]),
    ("{'scores':{'PQ':[8],'SC':{'Score':7,},'GTA':0,}}", [8, 7, 0]),
    ("PQ: 8\nSC: 7\nGTA: 6", [8, 7, 6]),
    ("**PQ score**: 8 **SC score**: 7 **GTA score**: 6/10", [8, 7, 6]),
    ('Example: {"PQ": 1, "SC": 1, "GTA": 1}. Mine: {"PQ": 8, "SC": 7, "GTA": 6}', [8, 7, 6]),
    ('{"PQ": 8, "SC": 7, "GTA": 6, "reason": "He said \\"{ok}\\" ,}"}', [8, 7, 6]),
    ('{"reason": "line\nbreak", "PQ": 8, "SC": 7, "GTA": 6}', [8, 7, 6]),
    ('{"PQ": 85, "SC": 70, "GTA": 60}', NO),
    ('{"PQ": 10.1, "SC": 7, "GTA": 6}', NO),
    ('{"PQ": -1, "SC": 7, "GTA": 6}', NO),
    ("PQ: 85 SC: 7 GTA: 6", NO),
    ("PQ: 8/100 SC: 7 GTA: 6", NO),
    ("PQ: 8 PQ: 9 SC: 7 GTA: 6", NO),
    ('{"PQ": "8/100", "SC": 7, "GTA": 6}', NO),
    ('{"PQ": true, "SC": 7, "GTA": 6}', NO),
    ('{"PQ": NaN, "SC": 7, "GTA": 6}', NO),
    ('{"PQ": Infinity, "SC": 7, "GTA": 6}', NO),
    (f'{{"PQ": 1{"0" * 400}, "SC": 7, "GTA": 6}}', NO),
    ('{"PQ": 8, "SC": 7}', NO),
    ('{"PQ": null, "SC": 7, "GTA": 6}', NO),
    ('{"PQ": [8, 9], "SC": 7, "GTA": 6}', NO),
    ('{"PQ": "good", "SC": 7, "GTA": 6}', NO),
    ("[8, 7, 6]", NO),
    ("I'm unable to assess images of real people.", REFUSED),
]


@pytest.mark.parametrize(("text", "wanted"), SCORES)
def test_scores(text: str, wanted: Any) -> None:
    heard = outcome(read_scores(Spoken(text), THREE))
    assert (list(heard.values()) if isinstance(heard, dict) else heard) == wanted


def test_a_score_has_its_reason() -> None:
    said = Spoken('{"reason": "an example", "score": 1} {"reason": " one\neye", "score": "6.5/10"}')
    assert outcome(read_score(said)) == (6.5, "one eye")
    assert outcome(read_score(Spoken("Score: 6"))) == (6, "")
    assert outcome(read_score(Spoken('{"reason": "x", "score": 11}'))) is NO
    assert outcome(read_score(Spoken(None, "content_filter"))) is FILTERED


def test_a_cut_score_is_not_the_examples() -> None:
    said = Spoken('Like {"score": 1}. Mine: {"reason": "the', "length")
    assert outcome(read_scores(said, ("score",))) is CUT
    assert outcome(read_scores(Spoken('{"reason": "...", "score": "the number"}'), ("score",))) is NO
    assert outcome(read_scores(Spoken('{"reason": "", "score": 10}'), ("score",))) == {"score": 10}


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ('{"face": true, "caption": " The brows\nare raised. "}', "The brows are raised."),
        ('{"caption": "The brows are raised."}', "The brows are raised."),
        ('{"face": false, "caption": ""}', Abstention.NO_FACE),
        ('{"face": false, "caption": "The brows are raised."}', NO),
        ('{"face": true, "caption": ""}', NO),
        ('{"face": "no", "caption": ""}', NO),
        ('{"caption": "..."} {"caption": "The brows are raised."}', "The brows are raised."),
        ('{"caption": "one"} {"caption": "two"}', NO),
        ('{"caption": ""}', NO),
        ('{"caption": ["one"]}', NO),
        ('{"caption": "' + "x" * 41 + '"}', NO),
        ("The brows are raised.", NO),
        ("I can't describe real people.", REFUSED),
        ('{"caption": "I can\'t describe real people."}', REFUSED),
    ],
)
def test_a_caption(text: str, wanted: Any) -> None:
    assert outcome(read_caption(Spoken(text), 40)) == wanted


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ('{"faces": true, "differs": true, "instruction": "Open the jaw."}', "Open the jaw."),
        ('{"differs": true, "instruction": "Open the jaw."}', "Open the jaw."),
        ('{"faces": false, "differs": true, "instruction": ""}', Abstention.NO_FACE),
        ('{"faces": false, "differs": false, "instruction": ""}', Abstention.NO_FACE),
        ('{"faces": false, "differs": true, "instruction": "Open the jaw."}', NO),
        ('{"instruction": "Open the jaw."}', "Open the jaw."),
        ('{"differs": false, "instruction": ""}', ""),
        ('{"differs": false, "instruction": null}', ""),
        ('{"differs": false, "instruction": "Open the jaw."}', NO),
        ('{"differs": true, "instruction": ""}', NO),
        ('{"differs": "maybe", "instruction": "Open the jaw."}', NO),
        ('{"instruction": ""}', NO),
        ("", NO),
    ],
)
def test_a_dense_instruction(text: str, wanted: Any) -> None:
    assert outcome(read_dense(Spoken(text), 40)) == wanted


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ('{"reason": "jaw", "choice": "B"}', 1),
        ('{"choice": "picture c"}', 2),
        ('{"choice": "the letter"} {"choice": "A"}', 0),
        ("C", 2),
        ('{"choice": "D"}', NO),
        ('{"choice": "A"} {"choice": "B"}', NO),
        ("It is a smile, so the answer is A.", 0),
        ("The answer is A, not B.", NO),
        ('{"choice": "cannot tell"}', UNSURE),
        ("I'm sorry, I can't compare real people.", REFUSED),
    ],
)
def test_a_choice(text: str, wanted: Any) -> None:
    assert outcome(read_choice(Spoken(text), "ABC")) == wanted


def test_every_word_that_is_asked_for_is_read() -> None:
    forms = (
        (FineForm, "expression", EXPRESSIONS, EXPRESSION_WORDS),
        (CoarseForm, "polarity", Polarity, POLARITY_WORDS),
    )
    for form, field, classes, words in forms:
        asked = get_args(form.model_fields[field].annotation)
        assert sorted(asked) == sorted([*map(str, classes), "cannot tell"])
        assert set(words.values()) == set(classes)


@pytest.mark.parametrize(
    "piece", ["{", "}", "[", "-", "(", '{"a":', "{'a':", "<think>", "\\", '"', "{-", "A" * 50 + "{"]
)
def test_a_model_that_ran_wild_is_unreadable_and_soon(piece: str) -> None:
    for text in (piece * 30_000, "{" + piece * 30_000 + "}", "{'a':" + piece * 19_000 + "}"):
        assert outcome(read_expression(Spoken(text))) in (NO, CUT)
