"""Detects prompts that refer to earlier work, for which memory is asked before the model answers."""

import re

_DID = r"(?:discuss|decid|agree|said|say|talk|settl|used? to|did|mention|chose|choose|plan|left off|fix)\w*"
_PHRASES = (
    # English
    r"\b(?:do|did|can) you (?:still )?(?:remember|recall|know what)\b",
    r"\bremember (?:when|how|what|that|the|my|our|if)\b",
    r"\b(?:last|previous|earlier|other|prior) (?:time|session|conversation|chat|discussion|week|month)\b",
    r"\b(?:as|like|what|where|how|which|when) (?:did )?(?:we|you|i) (?:had |have |just |once |already )?" + _DID,
    r"\bdid (?:we|you|i) (?:ever |already )?(?:discuss|decide|agree|say|tell|talk|settle|choose|plan|fix|use)\b",
    r"\b(?:have|had) (?:we|you|i) (?:ever |already )?\w+[^.?!]{0,80}\b(?:before|already|yet)\b",
    r"\b(?:i|we) (?:told|asked) you\b",
    r"\b(?:we|you|i) (?:discussed|decided|agreed|talked about|settled on|mentioned|used to)\b",
    r"\b(?:pick up|continue|resume|carry on|go on) (?:where|from where|with what)\b",
    r"\bwhere (?:were we|did we (?:leave|stop))\b",
    r"\b(?:back then|yesterday|the other day|(?:a few|two|three|some) (?:days|weeks|months) ago)\b",
    r"\bmy (?:usual|preferred|favou?rite)\b|\bour (?:usual|convention|decision|agreement)\b",
    r"\bas (?:usual|always|before)\b",
    # German
    r"\b(?:erinnerst du|weißt du noch|letztes? mal|letzte[nr]? (?:woche|sitzung|monat)|wie besprochen)\b",
    r"\b(?:wie (?:immer|üblich)|hatten wir|haben wir (?:besprochen|beschlossen|vereinbart|entschieden))\b",
    r"\b(?:gestern|neulich|wo waren wir)\b",
    # French, Spanish
    r"\b(?:tu te souviens|la dernière fois|comme (?:convenu|d'habitude)|on avait|nous avions|hier)\b",
    r"\b(?:te acuerdas|la última vez|como (?:siempre|quedamos)|habíamos|ayer)\b",
    # Chinese, Japanese, Korean, Russian
    r"上次|之前|记得|昨天|前回|以前|覚えて|昨日|지난번|기억|어제",
    r"\b(?:помнишь|в прошлый раз|вчера|как обычно)\b",
)
_REFERENCE = re.compile("|".join(_PHRASES), re.IGNORECASE)
_MOST_CHARACTERS = 20_000


def refers_to_earlier_work(prompt: str) -> bool:
    """Return whether a prompt refers to something that was said or done in another session."""
    return bool(_REFERENCE.search(prompt[:_MOST_CHARACTERS]))
