"""Files of cases: one JSON document per line, so that a person can read, write and compare them."""

import hashlib
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Literal, TypeVar, get_args

from pydantic import BaseModel, ConfigDict, Field

from esker.server.core.errors import InvalidInput
from evals.input import models_of

Language = Literal["en", "zh", "ja", "de", "es"]
LANGUAGES: tuple[Language, ...] = get_args(Language)
Name = Annotated[str, Field(min_length=1, max_length=80, pattern=r"^[\w.-]+$")]
CaseText = Annotated[str, Field(min_length=1, max_length=20_000)]

OWN = Path(__file__).parent / "cases"
"""The folder of our cases, a file for each suite."""


class StrictPart(BaseModel):
    """A part of a case, which refuses unknown fields."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class AnyCase(StrictPart):
    """The fields of every case: name, language, and its purpose in a sentence."""

    case: Name
    language: Language
    about: CaseText


SomeCase = TypeVar("SomeCase", bound=AnyCase)


def read_cases(path: Path, model: type[SomeCase]) -> list[SomeCase]:
    """Return the cases of a file. Raises InvalidInput for an invalid line, with its number and the reason."""
    cases: dict[str, SomeCase] = {}
    for place, case in models_of(path, model):
        if case.case in cases:
            raise InvalidInput(f"{place}: duplicate case {case.case!r}.")
        cases[case.case] = case
    return list(cases.values())


def sha256(cases: Sequence[AnyCase]) -> str:
    """Return a hash that identifies these cases."""
    return hashlib.sha256("\n".join(case.model_dump_json() for case in cases).encode()).hexdigest()
