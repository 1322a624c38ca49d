"""Masks secrets before anything is stored, hashed, embedded, logged or shown to a model.

Known key formats are matched by their own prefix; the rest by their context (an assignment to a name such as
`password`, "the password is …", an Authorization header, the credentials of a URL, a PEM block). An unquoted value
must look like a secret: it has a letter and a digit, and is not a path, call or type. A mask names the kind of the
secret and contains no part of its value. Masking twice changes nothing.
"""

import hashlib
import re
from collections.abc import Iterator, Mapping
from functools import cache
from itertools import islice
from typing import cast

from esker.server.core.json_input import Json, clean_text
from esker.server.core.words.lists import any_of, language_file

_FORMATS: tuple[tuple[str, str, str], ...] = (
    # kind, a literal that every match contains, pattern
    ("anthropic-key", "sk-ant-", r"\bsk-ant-[A-Za-z0-9_-]{8,}"),
    ("esker-key", "esk_", r"\besk_[A-Za-z0-9_-]{24,}"),
    ("openai-key", "sk-", r"\bsk-(?:proj-|svcacct-|admin-|or-v1-)?[A-Za-z0-9_-]{20,}"),
    ("github-token", "gh", r"\bgh[pousr]_[A-Za-z0-9]{20,}"),
    ("github-token", "github_pat_", r"\bgithub_pat_[A-Za-z0-9_]{22,}"),
    ("gitlab-token", "gl", r"\bgl(?:pat|dt|ptt|rt|soat|cbt|ft)-[A-Za-z0-9_-]{16,}"),
    ("aws-key-id", "A", r"\b(?:AKIA|ASIA|AGPA|AIDA|AROA|ANPA)[A-Z0-9]{16}\b"),
    ("google-key", "AIza", r"\bAIza[A-Za-z0-9_-]{35}"),
    ("google-token", "ya29.", r"\bya29\.[A-Za-z0-9_-]{20,}"),
    ("google-secret", "GOCSPX-", r"\bGOCSPX-[A-Za-z0-9_-]{20,}"),
    ("slack-token", "xox", r"\bxox[abeoprs]-[A-Za-z0-9-]{10,}"),
    ("slack-token", "xapp-", r"\bxapp-[0-9]-[A-Za-z0-9-]{10,}"),
    ("slack-webhook", "hooks.slack.com", r"https://hooks\.slack\.com/(?:services|workflows)/[A-Za-z0-9/_-]{20,}"),
    ("discord-webhook", "/api/webhooks/", r"https://(?:\w+\.)?discord(?:app)?\.com/api/webhooks/\d+/[A-Za-z0-9_-]{20,}"),
    ("telegram-token", ":AA", r"\b\d{8,10}:AA[A-Za-z0-9_-]{32,}"),
    ("stripe-key", "k_", r"\b(?:sk|rk|pk)_(?:live|test)_[A-Za-z0-9]{16,}"),
    ("stripe-secret", "whsec_", r"\bwhsec_[A-Za-z0-9+/=]{24,}"),
    ("sendgrid-key", "SG.", r"\bSG\.[A-Za-z0-9_-]{16,}\.[A-Za-z0-9_-]{16,}"),
    ("mailgun-key", "key-", r"\bkey-[0-9a-f]{32}\b"),
    ("twilio-key", "SK", r"\bSK[0-9a-f]{32}\b"),
    ("twilio-account", "AC", r"\bAC[0-9a-f]{32}\b"),
    ("npm-token", "npm_", r"\bnpm_[A-Za-z0-9]{36}"),
    ("pypi-token", "pypi-", r"\bpypi-[A-Za-z0-9_-]{50,}"),
    ("hugging-face-token", "hf_", r"\bhf_[A-Za-z0-9]{30,}"),
    ("groq-key", "gsk_", r"\bgsk_[A-Za-z0-9]{40,}"),
    ("xai-key", "xai-", r"\bxai-[A-Za-z0-9]{40,}"),
    ("replicate-token", "r8_", r"\br8_[A-Za-z0-9]{30,}"),
    ("digitalocean-token", "_v1_", r"\bdo[opr]_v1_[0-9a-f]{64}"),
    ("databricks-token", "dapi", r"\bdapi[0-9a-f]{32}"),
    ("shopify-token", "shp", r"\bshp(?:at|ca|pa|ss)_[0-9a-fA-F]{32}"),
    ("atlassian-token", "ATATT3", r"\bATATT3[A-Za-z0-9_=-]{40,}"),
    ("linear-key", "lin_", r"\blin_(?:api|oauth)_[A-Za-z0-9]{32,}"),
    ("notion-token", "ntn_", r"\bntn_[A-Za-z0-9]{40,}"),
    ("notion-token", "secret_", r"\bsecret_[A-Za-z0-9]{40,}"),
    ("vault-token", "hv", r"\bhv[sbr]\.[A-Za-z0-9_-]{24,}"),
    ("age-key", "AGE-SECRET-KEY-1", r"\bAGE-SECRET-KEY-1[0-9A-Z]{50,}"),
    ("jwt", "eyJ", r"\beyJ[A-Za-z0-9_-]{8,}\.eyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}"),
)  # fmt: skip
_PRIVATE_KEY = re.compile(r"-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY[A-Z ]{0,6}-----[\s\S]*?(?:---END.*---|\Z)")
# A key may follow an underscore directly, where \b does not match.
_KNOWN = tuple(
    (literal, re.compile(re.sub(r"^\\b", r"(?<![A-Za-z0-9])", pattern)), f"[redacted:{kind}]")
    for kind, literal, pattern in _FORMATS
)

_NAMES = ("password", "passwd", "passphrase", "pwd", "secret", "token", "key", "credential", "pepper", "salt")
_NAME = r"(?:pass(?:word|wd|phrase)|secret|token|(?:api|access|private)[_ -]?key|credential|pwd|pepper)s?"
_SECRET_NAME = re.compile(rf"{_NAME}\Z", re.IGNORECASE)
_NOT_MASKED = r"(?!\[redacted:)"
_AUTHORIZATION = re.compile(
    rf"(?i)(authorization[\"']?\s*[:=]\s*[\"']?(?:bearer|basic|token)\s+){_NOT_MASKED}[^\s\"',;]{{8,}}"
)
_URL_PASSWORD = re.compile(rf"(://[^\s:/@\"']{{0,200}}:){_NOT_MASKED}[^\s/@\"']{{1,200}}(?=@)")
_ASSIGNED = re.compile(rf"(?i)({_NAME}[\"']?\s*(?::=|=>|[:=])\s*[\"'`]){_NOT_MASKED}[^\"'`\s]{{6,}}(?=[\"'`])")
_EXPORTED = re.compile(
    r"(?m)(^[ \t]*(?:export\s+|set\s+)?[A-Z0-9_]{0,60}"
    rf"(?:KEY|TOKEN|SECRET|PASSWORD|PASSWD|PWD|PEPPER|SALT)[A-Z0-9_]{{0,60}}=){_NOT_MASKED}[^\s\"'$(]{{6,}}"
)


_UNQUOTED = re.compile(
    rf"(?i)(?P<name>(?:(?<![a-z])|(?-i:(?<=[a-z])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z]))){_NAME}[\"']?(?:\s*(?::=|=>|[:=])\s*|\s+is:?\s+))(?P<value>[^\s\"'`,;(){{}}<>\[\]$]{{6,200}})(?![(\[])"
)
# Secrets in the arguments of a program, recognised by the option before them. An unquoted value ends with its word.
_VALUE = r"(?P<value>\"[^\"\n]{6,200}\"|'[^'\n]{6,200}'|[^\s\"'`;|&]{6,200})"
_OPTION = re.compile(
    r"(?i)(?P<name>(?:^|\s)--(?:password|passwd|passphrase|token|secret|api-?key|access-?key|auth-?token)(?P<by>[= ]))"
    + _NOT_MASKED
    + _VALUE
)
_CURL = re.compile(r"\bcurl\b(?:[^\n|&;\\]|\\[\s\S]){1,4000}")
_CURL_USER = re.compile(rf"(?P<name>\s(?:-u|--user)[= ]?[\"']?[^\s:\"']{{1,100}}:){_NOT_MASKED}{_VALUE}")
_COOKIE = re.compile(r"(?im)(?:^|[\"'])[ \t]*(?:set-)?cookie:[^\n]{1,8000}")
_COOKIE_VALUE = re.compile(
    rf"(?i)(?P<name>[\w.-]{{0,40}}(?:sess|sid|auth|token|jwt|csrf)[\w.-]{{0,40}}=){_NOT_MASKED}(?P<value>[^;\s\"']{{6,}})"
)
_NETRC = re.compile(
    rf"(?i)(?P<name>\bmachine\s+\S{{1,200}}\s+login\s+\S{{1,200}}\s+password\s+){_NOT_MASKED}(?P<value>\S{{6,200}})"
)
# Values after the name of a secret that are not secrets: links, paths, attributes, dates, versions, names of formats.
_HARMLESS = re.compile(
    r"(?i)https?:|[/~.]|[a-z_]\w*(?:\.[a-z_]\w*)+$|\d{4}-\d\d|v?\d+(?:\.\d+)+|\d+[a-z]{0,2}(?:-\d+[a-z]{0,2})?$"
    r"|(?:base|sha|md|utf|oauth|rsa|aes|hs|rs|es|ed|p)-?\d+\b"
)

# Characters that are masked at once: matching blocks every other thread.
_PART = 262_144
_BREAK = re.compile(r"\s(?=\S)")
_MOST_BREAKS = 200
_LONGEST_NAME = 400
_LONGEST_ERROR = 500


@cache
def _passwords() -> tuple[str, ...]:
    """Return the words for a password in all languages, in small letters."""
    return tuple({word.lower() for words in _password_words("names").values() for word in words})


@cache
def _in_prose() -> re.Pattern[str]:
    """Return the pattern of a password in a sentence of any language, such as "das Passwort lautet …"."""
    names, verbs = _password_words("names"), _password_words("verbs")
    named = "|".join(
        rf"{any_of(some)}(?:\s*[:：=]\s*|\s*{any_of(verbs[language])}(?:[:：]?\s+|(?<![a-z]))|\s*(?=[\"“«「]))"
        for language, some in names.items()
    )
    value = r"[^\s\"'`”»」,;，。、(){}<>\[\]$]{6,200}"
    return re.compile(rf"(?i)(?<![a-z])(?P<name>(?:{named})(?:[\"'`“«「]\s?)?){_NOT_MASKED}(?P<value>{value})(?![(\[])")


def _password_words(table: str) -> Mapping[str, list[str]]:
    return cast(Mapping[str, Mapping[str, list[str]]], language_file("passwords"))[table]


def redact(text: str) -> str:
    """Return `text` with every secret that is recognised replaced by `[redacted:<kind>]`."""
    if "PRIVATE KEY" in text:
        text = _PRIVATE_KEY.sub("[redacted:private-key]", text)
    return _redact(text) if len(text) <= _PART else "".join(_redact(part) for part in _parts(text))


def _parts(text: str) -> Iterator[str]:
    """Yield parts of a long text, cut between two words and, if possible, away from names that precede secrets."""
    start = 0
    while len(text) - start > _PART:
        places = [found.start() for found in islice(_BREAK.finditer(text, start + _PART), _MOST_BREAKS)]
        end = next((place for place in places if not _announces(text, place)), max(places, default=len(text)))
        yield text[start:end]
        start = end
    yield text[start:]


def _announces(text: str, place: int) -> bool:
    before = text[max(0, place - 80) : place].lower()
    return any(name in before for name in (*_NAMES, *_passwords(), "authorization", "cookie", "curl", "machine", "://"))


def _redact(text: str) -> str:
    for literal, pattern, mask in _KNOWN:
        if literal in text:
            text = pattern.sub(mask, text)
    if "://" in text:
        text = _URL_PASSWORD.sub(r"\1[redacted:url-password]", text)
    lowered = text.lower()
    if "authorization" in lowered:
        text = _AUTHORIZATION.sub(r"\1[redacted:authorization]", text)
    if any(name in lowered for name in _NAMES):
        text = _EXPORTED.sub(r"\1[redacted:secret]", _ASSIGNED.sub(r"\1[redacted:secret]", text))
        text = _UNQUOTED.sub(_mask_if_it_looks_like_one, text)
    text = _redact_prose(text, lowered)
    if "--" in text:
        text = _OPTION.sub(_mask_option, text)
    if "curl" in lowered:
        text = _CURL.sub(lambda command: _CURL_USER.sub(_mask, command[0]), text)
    if "cookie:" in lowered:
        text = _COOKIE.sub(lambda line: _COOKIE_VALUE.sub(_mask, line[0]), text)
    if "machine" in lowered:
        text = _NETRC.sub(_mask_if_it_looks_like_one, text)
    return text


def _redact_prose(text: str, lowered: str) -> str:
    named = any(name in lowered for name in _passwords())
    return _in_prose().sub(_mask_if_it_looks_like_one, text) if named else text


def _mask(match: re.Match[str]) -> str:
    return f"{match['name']}[redacted:secret]"


def _mask_if_it_looks_like_one(match: re.Match[str]) -> str:
    return _mask(match) if _looks_secret(match["value"]) else match[0]


def _mask_option(match: re.Match[str]) -> str:
    """Mask the value of an option, unless it is a variable, a placeholder or possibly the next word of prose."""
    value = match["value"]
    if value.strip("\"'")[:1] in "$<{[%@" or "[redacted:" in value:
        return match[0]
    sure = match["by"] == "=" or value[0] in "\"'"
    return _mask(match) if sure or _looks_secret(value) else match[0]


def _looks_secret(value: str) -> bool:
    """Whether an unquoted word looks like a secret: letters and digits, and not a known harmless form."""
    return bool(re.search(r"[A-Za-z]", value) and re.search(r"\d", value) and not _HARMLESS.match(value))


def redact_json(value: Json) -> Json:
    """Return `value` with every string redacted; the data of base64 sources, such as images, is left alone."""
    match value:
        case str():
            return redact(value)
        case list():
            return [redact_json(item) for item in value]
        case {"type": "base64", "data": str(data)}:
            rest = {key: item for key, item in value.items() if key != "data"}
            return {redact(key): _redact_member(key, item) for key, item in rest.items()} | {"data": data}
        case dict():
            return {redact(key): _redact_member(key, item) for key, item in value.items()}
        case _:
            return value


def _redact_member(key: str, item: Json) -> Json:
    if not _SECRET_NAME.search(key):
        return redact_json(item)
    if isinstance(item, list):
        return [_redact_member(key, part) for part in item]
    counts = key.lower().endswith("tokens") and isinstance(item, str) and (" " in item or item.isdigit())
    if isinstance(item, str) and len(item) >= 6 and "[redacted:" not in item and not counts:
        return "[redacted:secret]"
    return redact_json(item)


def redact_name(name: str) -> str:
    """Return a client's own name for a thing, redacted; a hash is appended, so that different names stay different."""
    masked = redact(name)
    return name if masked == name else f"{masked[:_LONGEST_NAME]}#{hashlib.sha256(name.encode()).hexdigest()[:16]}"


def error_text(error: Exception) -> str:
    """Return an error's message, masked and truncated: it may contain text from users or other programs."""
    return redact(clean_text(str(error)[:_LONGEST_ERROR]))
