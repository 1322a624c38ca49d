"""Words around a time in a question, which tell that it is one: "in March" is, "Who is April?" is not."""

import re

from esker.server.core.dates.calendar import WEEKDAYS
from esker.server.core.dates.months import MONTHS

_LONGEST_LEAD = 32
_BEFORE_MONTH = r"in|im|en|during|on|au mois de|au mois d'|en el mes de|the month of|early|late|mid|year|jahr|année|año"
_LIMITS = (
    r"since|until|till|through|before|after|from|seit|bis|vor|nach|ab|von|zwischen|between|depuis|jusqu'(?:à|en|au)"
    r"|avant|après|entre|dès|desde|hasta|antes de|después de|a partir de|à partir de|prior to|around|about|um"
    r"|vers|hacia"
)
_BEFORE_DAY = r"on|for|für|pour|para|am|vom|zum|le|du|au|el|del|al|of|at|over|à|dem|den|der"
_IN_RANGE = (
    r"(?:between|from|zwischen|von|vom|entre|de|du|del|desde)\s[^,.;?!]{1,24}\s"
    r"(?:and|to|until|till|through|und|bis(?: zum)?|et|à|au|y|a|al|hasta)"
)
_BESIDE = (
    rf"(?:on|in|since|before|after|am|im|seit|en|le|el)\s(?:{'|'.join((*MONTHS, *WEEKDAYS))}|\d{{4}})\s"
    r"(?:and|or|und|oder|et|ou|y|o)"
)


def _leads(words: str) -> re.Pattern[str]:
    return re.compile(rf"(?:\b(?:{words})|{_IN_RANGE}|\b{_BESIDE})\s(?:the\s|le\s|el\s|dem\s)?$", re.IGNORECASE)


LED = _leads(f"{_BEFORE_MONTH}|{_LIMITS}|{_BEFORE_DAY}")
# Not "of" and "for": April and June are also people.
LED_MONTH = _leads(f"{_BEFORE_MONTH}|{_LIMITS}")
LED_YEAR = _leads(f"{_BEFORE_MONTH}|{_LIMITS}|of")
# Before these, "may" and "march" are months even in small letters.
SURELY_LED = re.compile(r"\b(?:in|during|last|this|next)\s$", re.IGNORECASE)
LED_IN_GERMAN = re.compile(r"\b(?:am|ab|bis|dem|der|nach|seit|vom|vor|zum)\s$", re.IGNORECASE)
# "The April 7 call", "Ann's July 8 workshop".
OF_A_NAME = re.compile(r"(?:\bthe|['’]s)\s$", re.IGNORECASE)
BY = re.compile(r"\bby\s$", re.IGNORECASE)
# What may follow a number that is a year or a day, and no quantity.
_ALONE_BEHIND = re.compile(
    # "2001 A Space Odyssey" is a title.
    r"(?!\s(?-i:A|The|Der|Die|Das|Le|La|El)\s(?-i:[A-ZÀ-Ý]))"
    r"\s*(?:$|['’]s\b|[?.!,;:)\]–—-]|[^\x00-\x7fÀ-ÿ]"
    r"|(?:and|or|we|i|you|they|he|she|it|the|our|my|your|did|do|does|was|were|is|are|had|have|has|what|who|when|where|how"
    r"|why|which|that|with|for|on|in|by|to|at|about|until|till|through|und|oder|bis|haben|hat|war|wir|ich|wer|wie|die|der"
    r"|das|mit|für|et|ou|au|à|nous|on|avec|pour|avons|a|y|o|al|hasta|que|qué|con|para)\b)",
    re.IGNORECASE,
)

# Days of a month by their number alone: "on the 5th", "am 5.", "jusqu'au 5", "desde el 5".
LED_NUMBER = _leads(rf"on|by|since|until|till|through|before|after|from|between|of|{'|'.join(WEEKDAYS)}")
LED_ROMANCE_NUMBER = re.compile(
    r"(?:\b(?:depuis|avant|après|dès) le|\bjusqu'au|\b(?:desde|hasta|para) el|\b(?:antes|después) del)\s$",
    re.IGNORECASE,
)
LED_GERMAN_NUMBER = re.compile(r"\b(?:am|ab dem|(?:seit|vor|nach) dem|(?:bis )?zum|vom)\s$", re.IGNORECASE)
LED_HOLIDAY = re.compile(rf"\b(?:{_LIMITS}|at|on|over|by|for|zu|an|für|à|pour|en|para)\s$", re.IGNORECASE)


def led(match: re.Match[str], *leads: re.Pattern[str]) -> bool:
    """Tell whether one of some words stands right before an expression."""
    start = match.start()
    return any(lead.search(match.string, max(0, start - _LONGEST_LEAD), start) for lead in leads)


def stands_alone(match: re.Match[str]) -> bool:
    """Tell whether what follows a number lets it be a year or a day."""
    return _ALONE_BEHIND.match(match.string, match.end()) is not None
