"""From what a language model wrote to the object that it was asked for."""

import json
import re
from collections.abc import Iterator
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from server.core.errors import InvalidInput
from server.core.json_input import parse_json

Answer = TypeVar("Answer", bound=BaseModel)

_FENCED = re.compile(r"```(?:json)?\s*\n(.*?)```", re.DOTALL)
_THOUGHT = re.compile(r"\A\s*<think(?:ing)?>.*?</think(?:ing)?>", re.DOTALL)
_DECODER = json.JSONDecoder()


def read_answer(text: str, shape: type[Answer]) -> Answer:
    """Read an answer: plain JSON, JSON in a fence, or the JSON object that stands in some prose.

    Raises ValueError with what is wrong.
    """
    text = _THOUGHT.sub("", text)
    fenced = _FENCED.search(text)
    body = fenced[1] if fenced else text[text.find("{") : text.rfind("}") + 1]
    try:
        return shape.model_validate(parse_json(body.encode("utf-8", "replace")))
    except InvalidInput as error:
        raise ValueError(f"not a JSON object ({error})") from None
    except ValidationError as error:
        raise ValueError(_problems(error)) from None


def items_of(text: str, key: str) -> list[Any]:
    """Return the items of a JSON object's list `key`, or of a bare list; of one that was cut off the whole ones."""
    begin = re.search(rf'"{re.escape(key)}"\s*:\s*\[', text) or re.search(r"\A[^{\[]*\[", text)
    return list(_whole_items(text, begin.end())) if begin else []


def _problems(error: ValidationError) -> str:
    problems = error.errors(include_input=False, include_url=False)
    return "; ".join(f"{'.'.join(map(str, p['loc']))}: {p['msg']}" for p in problems[:5])


def _whole_items(text: str, place: int) -> Iterator[Any]:
    while place < len(text):
        while place < len(text) and text[place] in " \t\r\n,":
            place += 1
        try:
            item, place = _DECODER.raw_decode(text, place)
        except (ValueError, RecursionError):
            return
        yield item
