"""Tells secrets from other values behind the name of a secret: placeholders, references, types and code."""

import re
from enum import Enum

from esker.server.core.redaction.names import Strength, word_set
from esker.server.core.redaction.patterns import Pattern
from esker.server.core.redaction.randomness import is_random
from esker.server.core.redaction.spans import MASK

SHORTEST = 6
"""Shorter values are not masked: too many of them are words, numbers and states."""

# Only so much of a value is judged.
_JUDGED = 400
# Characters that tell of most values that they are more than one or two signs in turn.
_FIRST = 12

_PLACEHOLDER = Pattern(
    r"""(?xi)
      \$\{ | \$\( | \$\$?\w+\Z | \$env:\w+\Z | \$\{?\w+\}?[:/@] | \#\{ | @[\w.]+@\Z  # variables of shells and templates
    | < | \{\{ | \{[\w.\[\]'" ]*\}\Z | %\( | %\w{1,40}%\Z | %[sdv]\Z | ![A-Za-z]\w*(?:\s|\Z)
    | \*+\Z | [x.*•_\#-]+\Z | \.{3} | x{4} | .{0,10}x{8} | .{0,24}(?:\.{3}|…)\Z
    | (?:enter|insert|put|add|set|use|replace|your)[-_ ](?!.*\d\d) | (?:my|the|some|any|new)[-_](?!.*\d\d)
    | your(?:[A-Z]|\Z) | \[(?:redacted|masked|hidden|filtered|removed|secret)\b
    | (?:env|vault|ssm|secret|op|file|arn|ref|sops|keyring|awssm|gcpsm)[:/]{1,3}[\w./-]
    """
)
_REFERENCE = Pattern(
    r"""(?xi)
      https?:// | (?:~|\.{1,2}|\$HOME)?/(?:[\w.@-]{1,60}/){1,30}[\w.@*-]{0,60}\Z | /[a-z_.-]{2,30}\Z | ~/
    | [a-z]:[\\/]{1,2}\w
    | [\w./-]{1,200}\.(?:pem|key|crt|cer|json|ya?ml|toml|txt|env|md|py|ts|js|go|rs|conf|cfg|ini|html?|sh)(?::\d+){0,2}\Z
    """
)
_CODE = Pattern(r"[A-Za-z_]\w*(?:(?:\.|->|::|\?\.)[A-Za-z_]\w*)+[\w.]*\Z")
# Dates, versions, sizes, names of formats, an identifier with one digit at its end.
_MEASURE = Pattern(
    r"(?i)\d{4}-\d\d|v?\d+(?:\.\d+)+\Z|\d+[a-z%]{0,3}(?:[-/]\d*[a-z]{0,7})?\Z|(?:base|sha|md|utf|oauth|rsa|aes|hs|rs|es|ed|p|argon)-?\d{1,5}(?:id|[a-z])?(?:[-_][a-z0-9]{1,8})*\Z"
    r"|(?-i:[A-Za-z]?[a-z]+(?:[_-][a-z]+)*[_-]?v?\d)\Z"
)
_SHA_OR_UUID = Pattern(r"(?i)[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}\Z")
_DIGIT = re.compile(r"[0-9]")
_LATIN = re.compile(r"[A-Za-z]")
_UNUSUAL = Pattern(r"[!#$%^&*+=?~|]")
# Letters of a password change between capitals and small ones more often than in a name of code.
_SCRAMBLED = Pattern(r"(?=[A-Za-z]{8,}\Z)[A-Za-z]*?[a-z][A-Z]{1,4}[a-z]{1,2}[A-Z]")
_LEAST_PART = 16
_KUBERNETES_TOKEN = Pattern(r"[a-z0-9]{6}\.(?=[a-z]*\d)[a-z0-9]{16}\Z")
_HUMAN = Pattern(r"[a-z]{3,}(?:-[a-z]{2,}){2,}\Z")


class Form(Enum):
    """How a value is written."""

    QUOTED = "in quotes"
    LINE = "the rest of a line in a file of settings"
    BARE = "a word behind a colon or an equals sign"
    PROSE = "a word in a sentence"


def is_secret(value: str, strength: Strength, form: Form) -> bool:
    """Whether a value behind a name of this strength is a secret."""
    value = value[:_JUDGED].removeprefix("base64:")
    if (
        len(value) < SHORTEST
        or value[0] == " "
        or is_placeholder(value)
        or value.lower() in word_set("values", "types")
    ):
        return False
    if strength is Strength.NOTHING:
        return False
    if form is Form.QUOTED:
        return _quoted(value, strength)
    return _unquoted(value, strength, form)


def is_placeholder(value: str) -> bool:
    """Whether a value only shows where a secret belongs, or is a mask."""
    value = value[:_JUDGED]
    return MASK in value or bool(_PLACEHOLDER.match(value)) or (len(set(value[:_FIRST])) < 3 and len(set(value)) < 3)


def looks_random(value: str, least: int) -> bool:
    """Whether a word has at least so many characters, a letter and a digit, and is not a UUID, a version or a date."""
    return len(value) >= least and _mixed(value) and not _MEASURE.match(value) and not _SHA_OR_UUID.match(value)


def is_uuid(value: str) -> bool:
    """Whether a word is a UUID, which is a secret only behind a name that says so."""
    return bool(_SHA_OR_UUID.match(value))


def _mixed(value: str) -> bool:
    return bool(_DIGIT.search(value) and _LATIN.search(value))


def _quoted(value: str, strength: Strength) -> bool:
    if value.endswith(":") or (_REFERENCE.match(value) and not _long_random(value)):
        return False
    if " " in value:
        words = set(re.findall(r"\w+", value.lower()))
        spoken = words & word_set("values", "instructions") or value[-1] in ".?!:"
        return strength is Strength.PASSWORD and len(words) <= 12 and not spoken
    if strength is Strength.PASSWORD:
        return True
    if strength is Strength.TOKEN:
        return _mixed(value) or len(value) >= 20 or value.isalnum()
    return looks_random(value, 8) and not _is_code(value) and len(set(value)) > 7 and ":" not in value


def _is_code(value: str) -> bool:
    """Whether a value is an attribute such as `settings.api_key`, and not a token of parts with full stops."""
    return bool(_CODE.match(value)) and not any(
        len(part) >= _LEAST_PART and is_random(part) for part in value.split(".")
    )


def _long_random(value: str) -> bool:
    found = re.search(r"[A-Za-z0-9+]{16,}", value)
    return bool(found and _mixed(found[0]) and found[0].lower() != found[0])


def _unquoted(value: str, strength: Strength, form: Form) -> bool:
    if _KUBERNETES_TOKEN.match(value):
        return strength is not Strength.KEY
    if (_REFERENCE.match(value) and not _long_random(value)) or _is_code(value):
        return False
    if strength is Strength.KEY:
        return looks_random(value, 16 if form is Form.PROSE else 12) and len(set(value)) > 7 and ":" not in value
    if form is Form.LINE:
        return not value.isdigit() or strength is Strength.PASSWORD
    if _mixed(value):
        return not _MEASURE.match(value) or (form is Form.BARE and bool(re.search(r"\d\d\Z", value)))
    unusual = _UNUSUAL.search(value.strip("*_")) or _HUMAN.match(value) or _SCRAMBLED.match(value)
    return strength is Strength.PASSWORD and bool(unusual)


def is_last_word(value: str) -> bool:
    """Whether a word of letters at the end of "the password is …" is a password and not a description."""
    word = value.lower()
    return len(word) >= 10 and word.isalpha() and not word.endswith(tuple(word_set("values", "endings")))
