"""Read the requested object from the text that a language model wrote."""

import json
import re
from typing import TypeVar

from pydantic import BaseModel, ValidationError

from esker.server.core.errors import InvalidInput
from esker.server.core.json_input import Json, clean_json, clean_text, parse_json

AnswerModel = TypeVar("AnswerModel", bound=BaseModel)

_FENCED = re.compile(r"```(?:json)?\s*\n(.*?)```", re.DOTALL)
# If a thought does not end, all of the answer is thought, and a draft in it is not an answer.
_THOUGHT = re.compile(r"\A\s*<think(?:ing)?>(?:.*?</think(?:ing)?>|.*)", re.DOTALL)
# Templates that open the thought in the prompt leave only its end in the answer.
_END_OF_THOUGHT = re.compile(r"</think(?:ing)?>[ \t]{0,20}$", re.MULTILINE)
_BARE_LIST = re.compile(r"\[(?=\s{0,99}\{)")
_NO_SEPARATOR = re.compile(r"[^ \t\r\n,]")
_SHOWN = 200
# Maximum broken items that are read over; each costs time in proportion to the rest of the text.
_MOST_BROKEN = 100
_DECODER = json.JSONDecoder()


def read_answer(text: str, shape: type[AnswerModel]) -> AnswerModel:
    """Read an answer: plain JSON, JSON in a fence, or a JSON object within prose.

    Raises ValueError with the problem.
    """
    try:
        return shape.model_validate(parse_json(_body(text).encode("utf-8", "replace")))
    except InvalidInput as error:
        raise ValueError(f"not a JSON object ({error})") from None
    except ValidationError as error:
        raise ValueError(_problems(error)) from None


def object_of(text: str) -> dict[str, Json]:
    """Return the JSON object of an answer in any shape; an empty one if there is none."""
    try:
        found = parse_json(_body(text).encode("utf-8", "replace"))
    except InvalidInput:
        return {}
    return found if isinstance(found, dict) else {}


def items_of(text: str, key: str) -> list[Json]:
    """Return the items of every list `key` of an answer, or of a bare list of objects.

    A broken or cut-off item is returned as text, so that it can be counted; after too many of them reading stops.
    """
    text = without_thought(text)
    begin = re.compile(rf'"{re.escape(key)}"\s{{0,99}}:\s{{0,99}}\[')
    behind = re.compile(rf"(?<=\}}),(?=\s{{0,99}}\{{)|(?={begin.pattern})")
    items: list[Json] = []
    found = begin.search(text) or _BARE_LIST.search(text)
    broken = 0
    while found and broken < _MOST_BROKEN:
        more, end = _items_from(text, found.end(), behind)
        items += more
        broken += sum(isinstance(item, str) for item in more)
        found = begin.search(text, end)
    return items


def breaks_off(text: str, key: str) -> bool:
    """Whether an answer ends inside an item of its list `key`, whatever the model's server says about its end."""
    items = items_of(text, key)
    return bool(items) and isinstance(items[-1], str) and not text.rstrip("` \n").endswith(("}", "]"))


def is_half_bad(bad: int, items: int) -> bool:
    """Whether enough of the items of an answer are bad to ask again, which sends the whole request a second time."""
    return bad > 0 and 2 * bad >= items


def without_thought(text: str) -> str:
    """Return an answer without the thought that a model writes before it."""
    ends = [found.end() for found in _END_OF_THOUGHT.finditer(text)]
    return text[ends[-1] :] if ends else _THOUGHT.sub("", text)


def _body(text: str) -> str:
    """Return the part of an answer that is most likely its JSON object."""
    text = without_thought(text)
    fenced = _FENCED.search(text)
    return fenced[1] if fenced else text[text.find("{") : text.rfind("}") + 1]


def _problems(error: ValidationError) -> str:
    problems = error.errors(include_input=False, include_url=False)
    return "; ".join(f"{'.'.join(map(str, p['loc']))}: {p['msg']}" for p in problems[:5])


def _items_from(text: str, place: int, behind: re.Pattern[str]) -> tuple[list[Json], int]:
    """Return the items of the list whose bracket is before `place`, and where the list ends.

    `behind` finds where reading resumes after a broken item: the comma before the next object, or the next list.
    """
    items: list[Json] = []
    broken = 0
    while broken < _MOST_BROKEN and (begin := _NO_SEPARATOR.search(text, place)) and begin[0] != "]":
        place = begin.start()
        try:
            item, place = _DECODER.raw_decode(text, place)
            items.append(clean_json(item))
        except (ValueError, RecursionError, InvalidInput):
            further = behind.search(text, place)
            end = further.start() if further else len(text)
            items.append(clean_text(text[place:end][:_SHOWN]))
            place, broken = end, broken + 1
            if not further or not further[0]:
                break
    return items, place
