"""Calls and results of tools in words for a person; what is stored and what a model reads stay as they are."""

import json
import re

from esker.server.core.json_input import Json
from esker.server.core.text.cutting import cut

# Maximum characters of an argument; all arguments of a call together have three times as many.
_CHARACTERS = 160

# A line of a message or a passage that `observer_text` made of a call; an excerpt may lack its end.
_CALL = re.compile(r"^((?:user|assistant|tool): )?\[toolCall ([^(\n]{1,200})\((.*)$", re.MULTILINE)
_RESULT = re.compile(r"^((?:user|assistant|tool): )?\[toolResult(?: ([^\n]{1,80}?))??( \(error\))?: ", re.MULTILINE)
_CUT_SHORT = re.compile(r" ?…(?: \[[\d,]+ more characters?\])?$")
# The parts of JSON by which one sees which strings and brackets are open where a text was cut.
_JSON_PART = re.compile(r'"(?:[^"\\]|\\(?:u[0-9a-fA-F]{4}|[^u]))*("?)|[\[\]{}]')


def readable(text: str, characters: int = _CHARACTERS) -> str:
    """Return the text of a message or a passage with its calls of tools, and the heads of their results, in words.

    `[toolCall Bash({"command": "make"})]` becomes `[calls Bash (command: make)]`, and `[toolResult Bash: …]` becomes
    `[Bash returned: …]`. An argument has at most `characters`.
    """
    if "[tool" not in text:
        return text
    return _RESULT.sub(_result_words, _CALL.sub(lambda line: _call_line(line, characters), text))


def call_words(name: str, arguments: Json, characters: int = _CHARACTERS) -> str:
    """Return a call of a tool in words: its name and its arguments, each of them in at most `characters`."""
    words = _words(arguments, characters)
    return f"{name} ({words})" if words else name


def _call_line(line: re.Match[str], characters: int) -> str:
    arguments = _CUT_SHORT.sub("", line[3].removesuffix(")]"))
    read = _read(arguments)
    return f"{line[1] or ''}[calls {call_words(line[2], arguments if read is None else read, characters)}]"


def _result_words(head: re.Match[str]) -> str:
    return f"{head[1] or ''}[{head[2] or 'a tool'} {'failed' if head[3] else 'returned'}: "


def _read(arguments: str) -> Json:
    """Return the value of arguments whose end may be missing; None if they cannot be read."""
    for whole in (arguments, _closed(arguments), _closed(arguments.rpartition(",")[0])):
        try:
            return json.loads(whole)
        except (ValueError, RecursionError):
            continue
    return None


def _closed(arguments: str) -> str:
    """Return JSON whose end is missing, with its open string and brackets closed."""
    ends = list[str]()
    for part in _JSON_PART.finditer(arguments):
        if part[0][0] == '"':
            if not part[1]:
                arguments = arguments[: part.end()] + '"'  # without half an escape
        elif part[0] in "[{":
            ends.append("]" if part[0] == "[" else "}")
        elif ends:
            ends.pop()
    return arguments + "".join(reversed(ends))


def _words(value: Json, characters: int) -> str:
    match value:
        case dict():
            return _short(
                "; ".join(f"{key}: {_short(_plain(item), characters)}" for key, item in value.items()), 3 * characters
            )
        case None:
            return ""
        case _:
            return _short(_plain(value), characters)


def _short(text: str, characters: int) -> str:
    """Return a text on one line, in at most so many characters."""
    return _CUT_SHORT.sub(" …", cut(" ".join(text.split()), characters))


def _plain(value: Json) -> str:
    match value:
        case str():
            return value
        case list() if all(isinstance(item, str) for item in value):
            return " ".join(map(str, value))
        case _:
            return json.dumps(value, ensure_ascii=False)
