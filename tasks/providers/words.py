"""The words models use for a class, a doubt or a refusal, in English and Chinese."""

import re
import unicodedata
from typing import Any, Final

from schemas.expressions import Expression, Polarity

# Forms of the seven words and their plain synonyms. Words for another shade (contempt, anxious, calm) name no class.
EXPRESSION_WORDS: Final[dict[str, Expression]] = {
    word: expression
    for expression, words in {
        Expression.ANGER: "anger angry furious 愤怒 生气 恼怒",
        Expression.DISGUST: "disgust disgusted 厌恶 恶心 嫌恶",
        Expression.FEAR: "fear fearful afraid scared frightened 恐惧 害怕 惊恐 惧怕",
        Expression.HAPPY: "happy happiness joy joyful 高兴 开心 快乐 喜悦 愉快",
        Expression.NEUTRAL: "neutral expressionless 中性 无表情 平静",
        Expression.SAD: "sad sadness sorrow sorrowful 悲伤 难过 伤心",
        Expression.SURPRISE: "surprise surprised astonished astonishment 惊讶 吃惊 惊奇",
    }.items()
    for word in words.split()
}
POLARITY_WORDS: Final[dict[str, Polarity]] = {
    word: polarity
    for polarity, words in {
        Polarity.POSITIVE: "positive 正面 积极 正向",
        Polarity.NEUTRAL: "neutral 中性 中立",
        Polarity.NEGATIVE: "negative 负面 消极 负向",
    }.items()
    for word in words.split()
}
UNSURE: Final = frozenset(
    {"cannot tell", "can't tell", "can not tell", "cannot_tell", "unsure", "uncertain", "unknown"}
    | {"无法判断", "不确定", "看不清", "无法确定"}
)
# What the forms in our prompts hold; some models say the form before they fill it in.
PLACEHOLDERS: Final = frozenset({"the word", "the letter", "..."})

_REFUSAL: Final = re.compile(
    r"\b(?:i['’]?m|i am|we['’]?re|we are)\s+(?:really |very |so )?(?:sorry|unable|not able)\b"
    r"|^\W*(?:sorry|apologies|my apologies)\b"
    r"|\b(?:i|we)\s+(?:can['’]?t|cannot|can not|won['’]?t|will not|must decline|have to decline|decline)\b.{0,60}"
    r"\b(?:identify|infer|determine|analy[sz]e|assist|help|recogni[sz]e|provide|comment|describe|edit|assess|rate|judge)"
    r"|^\W*(?:抱歉|对不起)|无法(?:识别|判断|分析|提供|协助|评估)|不能(?:识别|判断|分析|提供|协助|评估)",
    re.IGNORECASE | re.DOTALL,
)


def plain(value: Any) -> str:
    """A label in the form the tables know: of a list of one its entry, no quotes, stars or stops, lower case."""
    if isinstance(value, list) and len(value) == 1:
        value = value[0]
    if not isinstance(value, str):
        return ""
    text = unicodedata.normalize("NFKC", value).replace("’", "'")
    return " ".join(text.strip().strip("\"'“”`*_.。!? ").lower().split()) or text.strip()


def is_refusal(text: str) -> bool:
    """Whether somebody declines to answer."""
    return _REFUSAL.search(text) is not None
