"""The message for an invalid value names it and the rule in our own words, wherever it was given."""

from datetime import datetime
from typing import Annotated, Any, Literal

import pytest
from pydantic import AfterValidator, AwareDatetime, BaseModel, ConfigDict, Field, ValidationError

from esker.server.core.invalid_values import problem_with


def _no_blank(value: str) -> str:
    if not value.strip():
        raise ValueError("a name must not be blank")
    return value


class Given(BaseModel):
    """One value of each kind."""

    model_config = ConfigDict(extra="forbid")

    limit: Annotated[int, Field(ge=1, le=50)] = 1
    share: Annotated[float, Field(gt=0, lt=1)] = 0.5
    since: datetime | None = None
    said_at: AwareDatetime | None = None
    kind: Literal["note", "manual"] = "note"
    name: Annotated[str, AfterValidator(_no_blank)] = "x"
    tags: Annotated[list[str], Field(max_length=2)] = Field(default_factory=list)
    whole: bool = True


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"limit": 0}, "limit must be at least 1"),
        ({"limit": 51}, "limit must be at most 50"),
        ({"limit": "many"}, "limit must be a whole number"),
        ({"limit": 1.5}, "limit must be a whole number"),
        ({"share": 0}, "share must be greater than 0.0"),
        ({"share": 1}, "share must be less than 1.0"),
        ({"since": "yesterday"}, "since must be a time such as 2026-03-01T14:30:00Z, or a date"),
        ({"said_at": "2020-01-01T00:00:00"}, "said_at must name a time zone, such as 2026-03-01T14:30:00Z"),
        ({"kind": "dream"}, "kind must be 'note' or 'manual'"),
        ({"name": " "}, "name: a name must not be blank"),
        ({"name": 5}, "name must be a text"),
        ({"tags": "ops"}, "tags must be a list"),
        ({"tags": ["a", "b", "c"]}, "tags must have at most 2 items"),
        ({"whole": "perhaps"}, "whole must be true or false"),
        ({"lmit": 3}, "lmit is unknown"),
    ],
)
def test_a_message_names_the_value_and_the_rule(given: dict[str, Any], message: str) -> None:
    with pytest.raises(ValidationError) as found:
        Given.model_validate(given)
    [detail] = found.value.errors(include_url=False, include_input=False)
    assert problem_with(str(detail["loc"][0]), detail) == message


def test_a_rule_about_the_whole_needs_no_name() -> None:
    with pytest.raises(ValidationError) as found:
        Given.model_validate([])
    assert problem_with("", found.value.errors()[0]) == "must be an object"
