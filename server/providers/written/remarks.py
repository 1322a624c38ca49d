"""Remarks: what a model writes that is no fact, since it says that there is none or speaks to whoever asked."""

import re

from esker.server.core.text.scripts import CJK

_NO_WORDS = frozenset("no nothing none nil null empty".split())
_NOTHING_WORDS = frozenset(
    "new more further additional other notable noteworthy significant relevant important durable key meaningful"
    " worth to keeping keep record recorded recording note noting remember remembering observe observation observations"
    " fact facts information memory memories update updates detail details here found made needed this in conversation"
    " transcript session slice the from for of are were is was be that report add added extract extracted save saving"
    " store storing at time any all i there s found see have and or".split()
)
_NOTHING_CJK = re.compile(
    r"(?:暂无|无|没有)(?:新|的|值得|需要|可|任何|重要|记录|保存|保留|观察|内容|事实|信息|记忆|更新){0,12}"
)
_LONGEST_NOTHING = 120
_REFUSAL = re.compile(
    r"\bI(?:'m|’m| am) (?:unable|not able)"
    r"|\bI (?:can(?:no|'|’)t|can not|don(?:'|’)t have|do not have|would need|need)\b"
    r"|\bI can (?:help|assist)|\bas an ai\b|\bplease (?:provide|share|clarify|specify|let me know)|\bcould you\b"
    r"|\bwould you (?:like|prefer)|\bdo you want|\bhow (?:can|may) i\b|我无法|请提供|您(?:想|需要|希望)",
    re.IGNORECASE,
)
_ADDRESSED = re.compile(
    r"(?:would|could|should|do|can|may|shall|will|are|did|have) (?:you|i|we)\b"
    r"|(?:what|which|how|where|when|why|who)\b.*\?$"
    r"|please\b|let me\b|I(?:'ll|’ll|'m|’m| can| cannot| will| would| am| do not| don['’]t)\b|您|请(?:提供|告)|需要我",
    re.IGNORECASE,
)
_JSON = re.compile(r"\s*(?:```\w{0,20}\s*)?[\[{]\s*[\"{]")
_WORDS = re.compile(r"\w+")
_CJK = re.compile(f"[{CJK}]")


def says_nothing(text: str) -> bool:
    """Tell whether a line says, and says only, that there is nothing to write down."""
    if len(text) > _LONGEST_NOTHING:
        return False
    bare = text.strip(" \t()（）[]【】<>.。!！-—*_\"'")
    if bare.casefold() == "n/a" or _NOTHING_CJK.fullmatch(bare):
        return True
    words = re.findall(r"[a-z]+", bare.casefold())
    plain = re.fullmatch(r"[A-Za-z\s',’-]+", bare)
    return bool(plain) and any(word in _NO_WORDS for word in words[:4]) and set(words) <= _NO_WORDS | _NOTHING_WORDS


def refuses(line: str) -> bool:
    """Tell whether a line before a list says that the work was not done: the list then holds no facts."""
    return bool(_REFUSAL.search(line))


def is_addressed(text: str) -> bool:
    """Tell whether a text speaks to whoever asked."""
    return bool(_ADDRESSED.match(text))


def is_json(text: str) -> bool:
    """Tell whether a text begins like JSON, which is read elsewhere."""
    return bool(_JSON.match(text))


def is_statement(text: str) -> bool:
    """Tell whether a text says something: no question, and more than a word."""
    if text.rstrip("\"'”’») ").endswith(("?", "？")):
        return False
    return len(_WORDS.findall(text)) >= 2 or len(_CJK.findall(text)) >= 4
