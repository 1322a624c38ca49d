"""The rule that an invalid value breaks, as the end of a sentence whose subject is the value: "must be at least 1"."""

import re
from collections.abc import Mapping

from pydantic_core import ErrorDetails

_TIME = "must be a time such as 2026-03-01T14:30:00Z, or a date"
_RULES: Mapping[str, str] = {
    "missing": "is missing",
    "extra_forbidden": "is unknown",
    "int_parsing": "must be a whole number",
    "int_from_float": "must be a whole number",
    "int_type": "must be a whole number",
    "float_parsing": "must be a number",
    "float_type": "must be a number",
    "bool_parsing": "must be true or false",
    "bool_type": "must be true or false",
    "string_type": "must be a text",
    "list_type": "must be a list",
    "dict_type": "must be an object",
    "model_type": "must be an object",
    "model_attributes_type": "must be an object",
    "ip_any_network": "must be an address or a network such as 10.0.0.0/8, with zeros after its prefix",
    "timezone_aware": "must name a time zone, such as 2026-03-01T14:30:00Z",
}
_LIMITS: Mapping[str, str] = {
    "greater_than_equal": "must be at least {ge}",
    "greater_than": "must be greater than {gt}",
    "less_than_equal": "must be at most {le}",
    "less_than": "must be less than {lt}",
}
# The subject with which pydantic's messages begin, such as "Input ", and the count with which some end.
_SUBJECT = re.compile(r"^[A-Z]\w*(?: \w+)? should ")
_COUNT = re.compile(r" after validation.*$")


def problem_with(name: str, detail: ErrorDetails) -> str:
    """Return what is wrong with the value called `name` ("": the whole), without a full stop.

    `detail` is an error of pydantic with its context. A ValueError of our own has a sentence of its own.
    """
    rule = broken_rule(detail)
    if not name:
        return rule
    return f"{name}: {rule}" if detail["type"] == "value_error" else f"{name} {rule}"


def broken_rule(detail: ErrorDetails) -> str:
    """Return the rule that a value breaks, from an error of pydantic with its context."""
    kind = detail["type"]
    if kind.startswith(("datetime", "date_")):
        return _TIME
    if kind in _LIMITS:
        return _LIMITS[kind].format(**detail.get("ctx", {}))
    if kind == "value_error":
        return detail["msg"].removeprefix("Value error, ")
    return _RULES.get(kind) or _COUNT.sub("", _SUBJECT.sub("must ", detail["msg"]))
