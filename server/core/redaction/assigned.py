"""Values that are assigned to the name of a secret: settings, code, JSON, XML, tables, calls and options."""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from typing import NamedTuple

from esker.server.core.redaction.names import Strength, strength_of, word_set, word_table, words_of
from esker.server.core.redaction.patterns import Pattern
from esker.server.core.redaction.scan import Scan, places
from esker.server.core.redaction.spans import MASK, Span
from esker.server.core.redaction.values import SHORTEST, Form, is_placeholder, is_secret, is_uuid, looks_random

# Characters of a value that are read before it is judged; one that is masked is masked to its end.
_LONGEST_VALUE = 512
_LONGEST_QUOTED = 4096

_LEAST_BELOW = 20

_LONGEST_NAME = 60
_IN_NAME = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_.-")
_REST_OF_NAME = Pattern(rf"[\w-]{{0,{_LONGEST_NAME}}}+(?:\.[\w-]{{1,{_LONGEST_NAME}}}+){{0,4}}+", re.ASCII)
_WORD_BEFORE = Pattern(r"[A-Za-z]{2,20}[ -]\Z")

# Only one of these follows a name that has a value.
_MAY_FOLLOW = Pattern(r"[\\\"'`\])*_ \t]{0,12}+(?:[:：=＝→⇒>|,({\n-]|</|\w)")

CONDITIONS = (":?", ":+")
"""Signs behind a variable of a shell, as in `${PASSWORD:?missing}`; no value follows them."""

_CLOSED = r"\\{0,8}+[\"'`]?[\])]{0,2}+[*_`]{0,3}+(?:[ \t]?\([^()\n]{1,40}\))?[*_]{0,3}+"
_ASSIGN = Pattern(
    rf"{_CLOSED}[ \t]{{0,40}}+(?P<sign>:=|=>|->|={{1,3}}+|[:：＝→⇒])(?!//)[*_]{{0,3}}+(?P<space>[ \t]{{0,80}}+)"
    r"(?:(?:[&*]?'?[A-Za-z][\w.\[\]|?<>' ]{0,40}=[ \t]{0,9}+)(?=[\"'`]))?"
)
_PAIR = Pattern(
    r"\\{0,8}[\"']?[\s,;/{]{1,60}(?:[\w-]{1,20}=\"[^\"\n]{0,60}\"\s{1,4}){0,2}(?:-{1,2}\s{0,8})?\\{0,8}[\"']?"
    r"(?:value|val|content|secretValue|default|body|secret-string)\\{0,8}[\"']?(?:\s{0,8}[:=]\s{0,8}|[ \t]{1,4})",
    re.IGNORECASE,
)
_CALL = Pattern(r"\(\s{0,20}(?=[\"'`])")
_NEXT = Pattern(r"\\{0,8}+[\"'`]\s{0,20},\s{0,40}(?=\\{0,8}[\"'`])")
_CELL = Pattern(r"[*_`]{0,3}\s?(?P<bar>[|\t])[ \t]{0,40}[*_`]{0,3}(?P<value>[^|\n\t`*]{1,400})")
_ROW = Pattern(r"[|\n][ \t*_`]{0,40}(?:[\w-]{1,20} ){0,3}\Z")
_SPACE = Pattern(r"[\"'`]?[ \t]{1,40}(?=[^\s])")
_BELOW = Pattern(
    r"(?:(?P<sign>[*_]{0,3}\s?[:：][*_]{0,3}[ \t]{0,8}(?:[|>][+-]?)?[ \t]{0,4})?\r?\n|\"\r?\n\r?\n)"
    r"[ \t>|+-]{0,20}(?P<value>[^\s`]{6,200})[ \t]*(?=\r?\n|\Z)"
)
_PLIST = Pattern(r"</key>\s{0,40}<string>(?P<value>[^<\n]{1,4096})")
_LIST = Pattern(r"\[\s{0,20}(?=[^\]\n]{6,4000}\])")
_ELEMENT = Pattern(r"(?:[ \t][^<>\n]{0,200})?>\s{0,80}(?P<value>[^<\n]{1,4096})")

_OPENING = Pattern(r"(?P<prefix>[A-Za-z@$]{0,2}+)(?P<slashes>\\{0,8}+)(?P<quote>\"\"\"|'''|[\"'`“„«「『‘])")
_CLOSING = {"“": "”", "„": "“", "«": "»", "「": "」", "『": "』", "‘": "’"}
_BARE = Pattern(rf"[^\s\"'`,;<>(){{}}\[\]|\\&”»」，。、]{{1,{_LONGEST_VALUE}}}+")
_LINE = Pattern(rf"[^\s\"'`;|&<>”»」，。、！？；]{{1,{_LONGEST_VALUE}}}+")
_MORE = Pattern(r"[^\s\"'`,;<>(){}\[\]|\\&]*+")
_LINE_START = Pattern(
    r"(?:[ \t+>-]{0,40}|[ \t]{0,20}\d{1,6}[ \t:|]{1,8})"
    r"(?:(?:export|set|local|declare(?: -\w+)?|readonly|env|typeset|Environment=|ENV|ARG)[ \t]{0,4})?[\"']?\Z"
)
_SETTER = Pattern(
    r"(?i)(?:\bset -\w{1,4}|\bconfig set|\bsetx|\bsetenv|\bENV|\bARG|\bSetEnv|\bfastcgi_param|\benv)[ \t]{1,8}\Z"
)
_TYPE_NAME = Pattern(r"(?:[A-Z][a-z]+){1,6}\Z|_?[a-z]+(?:_[a-z]+)+\W{0,3}\Z")
_CALLED = Pattern(r"[A-Za-z_][\w.]{0,60}[(\[]")


class Value(NamedTuple):
    """A value behind a name: its place, how it is written, and whether code follows it."""

    start: int
    end: int
    form: Form
    code: bool = False


class _Name(NamedTuple):
    start: int
    end: int
    text: str


_Rule = Callable[[str, _Name, Strength], Value | None]


@cache
def _stems() -> tuple[str, ...]:
    """Return the fewest literal texts of which each name of a secret contains one."""
    lists = word_table("identifiers")
    words = {word for name in ("passwords", "tokens", "keys", "endings") for word in lists[name]}
    return tuple(word for word in sorted(words) if not any(other in word for other in words if other != word))


def assigned(scan: Scan) -> Iterator[Span]:
    """Yield the values that are assigned to names of secrets."""
    text = scan.text
    done = 0
    for name in _names(scan):
        if name.start < done:
            continue
        value = _secret_behind(text, name)
        if value is not None:
            done = _end(text, value)
            yield Span(value.start, done)


def _names(scan: Scan) -> Iterator[_Name]:
    """Yield the identifiers that contain a name of a secret, in order."""
    text, words = scan.text, " ".join(scan.words)
    stems = [stem for stem in _stems() if stem in words]
    ends = 0
    for place in sorted(place for stem in stems for place in places(scan.lowered, stem)):
        if place < ends:
            continue
        start = place
        while start > ends and place - start < _LONGEST_NAME and text[start - 1] in _IN_NAME:
            start -= 1
        found = _REST_OF_NAME.match(text, place)
        ends = found.end() if found else place + 1
        yield _Name(start, ends, text[start:ends].lstrip(".-"))


def _end(text: str, value: Value) -> int:
    """Return the end of a value, also if it is longer than what was read of it."""
    if value.end - value.start < _LONGEST_VALUE:
        return value.end
    more = _MORE.match(text, value.end)
    return more.end() if more else value.end


def _secret_behind(text: str, name: _Name) -> Value | None:
    if not _MAY_FOLLOW.match(text, name.end) or text.startswith(CONDITIONS, name.end):
        return None
    strength = _strength(text, name)
    if strength is Strength.NOTHING:
        return None
    for rule in _rules(text, name):
        value = rule(text, name, strength)
        if value is not None:
            return value
    return None


def _strength(text: str, name: _Name) -> Strength:
    return strength_of(_whole_name(text, name))


def _whole_name(text: str, name: _Name) -> str:
    """Return a name with the word before it, if it says little by itself, as in `Heroku key`."""
    if name.text.lower() not in ("key", "keys", "auth"):
        return name.text
    before = text[max(0, name.start - 22) : name.start]
    word = _WORD_BEFORE.search(before) if before.endswith((" ", "-")) else None
    return (word[0] if word else "") + name.text


def _assignment(text: str, name: _Name, strength: Strength) -> Value | None:
    found = _ASSIGN.match(text, name.end)
    if not found or text.startswith(MASK, found.end()):
        return None
    opened = _LIST.match(text, found.end())
    if opened:
        return _list(text, opened.end(), strength)
    line = _is_setting(text, name, found)
    value = read_value(text, found.end(), line=line)
    if value is None:
        return None
    if value.form is Form.LINE and not _fills_line(text, name, value):
        value = read_value(text, found.end())
    if value and value.form is Form.QUOTED and text[name.start] == "-" and strength is Strength.PASSWORD:
        return None if is_placeholder(text[value.start : value.end]) else value
    return value if value and _may_be_assigned(text, name, value, strength) else None


def _may_be_assigned(text: str, name: _Name, value: Value, strength: Strength) -> bool:
    return _accepted(text, value, strength, value.form) or _is_named_uuid(text, name, value)


def _is_named_uuid(text: str, name: _Name, value: Value) -> bool:
    """Whether a value is a UUID that is called a key, and not an identifier.

    A setting such as `SHOP_KEY` says that in capitals, and any name with that of a maker, such as `herokuKey`.
    """
    words = words_of(_whole_name(text, name))
    return (
        is_uuid(text[value.start : value.end])
        and len(words) > 1
        and words[-1] == "key"
        and (name.text.isupper() or not word_set("identifiers", "makers").isdisjoint(words))
        and word_set("unnamed", "harmless").isdisjoint(words)
        and word_set("identifiers", "of_records").isdisjoint(words)
    )


def _list(text: str, place: int, strength: Strength) -> Value | None:
    """Return all items of a list whose first one is a secret."""
    first = read_value(text, place)
    if first is None or not _accepted(text, first, strength, first.form):
        return None
    end = text.find("]", first.end, first.end + _LONGEST_QUOTED)
    return first if end < 0 else Value(place, end, Form.QUOTED)


def _accepted(text: str, value: Value, strength: Strength, form: Form) -> bool:
    return not (value.code and form is not Form.LINE) and is_secret(text[value.start : value.end], strength, form)


def _is_setting(text: str, name: _Name, sign: re.Match[str]) -> bool:
    """Whether an assignment is a line of a file of settings, of which the value may have any characters."""
    if sign["sign"] == "=" and not sign["space"]:
        return True
    starts = text[max(0, name.start - 48) : name.start].rpartition("\n")[2]
    return sign["sign"] in ":=" and _LINE_START.match(starts) is not None


def _fills_line(text: str, name: _Name, value: Value) -> bool:
    """Whether a value is all that its line assigns, and not a word of code such as `password: UserPassword`."""
    if name.text.isupper() and text[value.start - 1] == "=":
        return True
    rest = text[value.end : value.end + 2]
    word = text[value.start : value.end]
    alone = not rest or rest[0] in "\r\n"
    return alone and word[0] not in "[{(" and not _CALLED.match(word) and not _TYPE_NAME.match(word)


def read_value(text: str, place: int, line: bool = False) -> Value | None:
    """Return the value that begins at a place: a text in quotes, else a word or, on a `line`, all of it."""
    opening = _OPENING.match(text, place)
    if opening:
        return _quoted(text, opening)
    found = (_LINE if line else _BARE).match(text, place)
    if not found:
        return None
    end = found.end()
    while end > place + 1 and text[end - 1] in (".,:" if line else ".,;:?"):
        end -= 1
    return Value(place, end, Form.LINE if line else Form.BARE, text[found.end() : found.end() + 1] in tuple("([{"))


def _quoted(text: str, opening: re.Match[str]) -> Value | None:
    quote, slashes = opening["quote"], len(opening["slashes"])
    closing, start = _CLOSING.get(quote, quote), opening.end()
    place = text.find(closing, start, start + _LONGEST_QUOTED)
    while place >= 0:
        before = place
        while before > start and text[before - 1] == "\\":
            before -= 1
        if place - before == slashes or (slashes == 0 and (place - before) % 2 == 0):
            place = before if slashes else place
            break
        place = text.find(closing, place + 1, start + _LONGEST_QUOTED)
    end = place if place >= 0 else min(start + _LONGEST_QUOTED, len(text))
    newline = text.find("\n", start, end)
    if newline >= 0 and len(quote) == 1:
        end = newline
    interpolated = ("f" in opening["prefix"] or "$" in opening["prefix"] or quote == "`") and "{" in text[start:end]
    return None if interpolated or end == start else Value(start, end, Form.QUOTED)


def _element(text: str, name: _Name, strength: Strength) -> Value | None:
    """Return the content of an XML element, or of one whose attribute holds the name."""
    before = text[name.start - 1 : name.start]
    if before == ">" and (found := _PLIST.match(text, name.end)):
        return _named_group(text, found, strength, Form.QUOTED)
    if before not in ("<", ":", '"') or ">" not in text[name.end : name.end + 200]:
        return None
    found = _ELEMENT.match(text, name.end + (before == '"'))
    return _named_group(text, found, strength, Form.QUOTED) if found else None


def _named_group(text: str, found: re.Match[str], strength: Strength, form: Form) -> Value | None:
    value = Value(found.start("value"), found.start("value") + len(found["value"].rstrip()), form)
    return value if _accepted(text, value, strength, form) else None


def _pair(text: str, name: _Name, strength: Strength) -> Value | None:
    """Return the value of `name: API_TOKEN, value: …`."""
    found = _PAIR.match(text, name.end)
    value = read_value(text, found.end(), line=True) if found else None
    spaced = found is not None and found[0][-1] in " \t" and ":" not in found[0] and "=" not in found[0]
    form = Form.BARE if value and spaced else value.form if value else Form.BARE
    return value if value and _accepted(text, value, strength, form) else None


def _call(text: str, name: _Name, strength: Strength) -> Value | None:
    """Return the argument of `setPassword("…")`, and not of `getPassword("…")`."""
    found = _CALL.match(text, name.end)
    if not found or words_of(name.text)[0] in word_set("identifiers", "readers"):
        return None
    value = read_value(text, found.end())
    return value if value and _accepted(text, value, strength, Form.BARE) else None


def _next_argument(text: str, name: _Name, strength: Strength) -> Value | None:
    """Return the argument behind a quoted name, as in `define("DB_PASSWORD", "…")`."""
    found = _NEXT.match(text, name.end)
    value = read_value(text, found.end()) if found else None
    if value is None or " " in text[value.start : value.end]:
        return None
    return value if _accepted(text, value, strength, Form.BARE) else None


def _cell(text: str, name: _Name, strength: Strength) -> Value | None:
    """Return the table cell behind a cell that holds the name."""
    found = _CELL.match(text, name.end)
    if found and found["bar"] == "|" and not _ROW.search(text[max(0, name.start - 200) : name.start]):
        return None
    value = _named_group(text, found, strength, Form.BARE) if found else None
    return value if value and " " not in text[value.start : value.end] else None


def _spaced(text: str, name: _Name, strength: Strength) -> Value | None:
    """Return the value of an option or a setting behind a space, or a random word behind the name."""
    found = _SPACE.match(text, name.end)
    if not found:
        return None
    before = text[max(0, name.start - 20) : name.start]
    setter = before.endswith((" ", "\t")) and bool(_SETTER.search(before))
    value = read_value(text, found.end(), line=setter)
    if value is None:
        return None
    word = text[value.start : value.end]
    if setter:
        return value if _may_be_assigned(text, name, value, strength) else None
    if text[max(0, name.start - 2) : name.start].endswith("-") or text[name.start] == "-":
        return value if word[0] != "-" and _accepted(text, value, strength, value.form) else None
    if value.code or strength is Strength.KEY:
        return None
    if is_uuid(word):
        return value
    alone = _begins_line(text, name) and text[value.end : value.end + 1] in ("", "\n", "\r")
    return value if (alone and looks_random(word, SHORTEST)) or _is_random_word(word, strength) else None


def _begins_line(text: str, name: _Name) -> bool:
    return not text[max(0, name.start - 48) : name.start].rpartition("\n")[2].strip()


def _is_random_word(word: str, strength: Strength) -> bool:
    upper, lower = any(sign.isupper() for sign in word), any(sign.islower() for sign in word)
    plain = (
        not is_placeholder(word)
        and " " not in word
        and "/" not in word[:2]
        and "=" not in word[:-2]
        and ":" not in word
    )
    return plain and looks_random(word, 20 if not (upper and lower) else 8 if strength is Strength.PASSWORD else 12)


def _line_below(text: str, name: _Name, strength: Strength) -> Value | None:
    """Return the value on the line below `Password:`."""
    found = _BELOW.match(text, name.end)
    if not found or strength is Strength.KEY or found["value"].endswith((":", ",")):
        return None
    if found["sign"] is None and found[0][0] != '"':
        return _below_setting(name, found)
    value = _named_group(text, found, strength, Form.PROSE)
    return value if value and ":" not in found["value"] else None


def _below_setting(name: _Name, found: re.Match[str]) -> Value | None:
    """Return the random word on the line below `API_TOKEN`, which no sign follows."""
    word = found["value"]
    listed = name.text.isupper() and "_" in name.text
    random = len(word) >= _LEAST_BELOW and (is_uuid(word) or (looks_random(word, _LEAST_BELOW) and word.isalnum()))
    return Value(found.start("value"), found.end("value"), Form.PROSE) if listed and random else None


def _rules(text: str, name: _Name) -> Sequence[_Rule]:
    """Return the rules for what follows a name, and for the element that begins before it."""
    sign = text[name.end]
    if name.start and text[name.start - 1] in _OPENS_ELEMENT:
        return _IN_ELEMENT.get(sign, (_element,))
    return _BEHIND.get(sign, ())


_OPENS_ELEMENT = frozenset('<>:"')
# The rules by the character behind a name, in the order in which they are tried.
_IN_ELEMENT: Mapping[str, Sequence[_Rule]] = {
    "\\": (_assignment, _element, _pair, _next_argument),
    '"': (_assignment, _element, _pair, _next_argument, _spaced, _line_below),
    "'": (_assignment, _element, _pair, _next_argument, _spaced),
    "`": (_assignment, _element, _next_argument, _cell, _spaced),
    "(": (_assignment, _element, _call),
    "|": (_element, _cell),
    "\n": (_element, _pair, _cell, _line_below),
    **dict.fromkeys(" \t", (_assignment, _element, _pair, _cell, _spaced, _line_below)),
    **dict.fromkeys("*_", (_assignment, _element, _cell, _line_below)),
    **dict.fromkeys(":：", (_assignment, _element, _line_below)),
    **dict.fromkeys("])=＝→⇒-", (_assignment, _element)),
    **dict.fromkeys(",{", (_element, _pair)),
}
_BEHIND: Mapping[str, Sequence[_Rule]] = {
    sign: tuple(rule for rule in rules if rule is not _element) for sign, rules in _IN_ELEMENT.items()
}
