"""Input files: texts, JSON documents, and files with one JSON document per line."""

import json
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from esker.server.core.errors import InvalidInput
from esker.server.core.invalid_values import problem_with

SomeModel = TypeVar("SomeModel", bound=BaseModel)


def text_of(path: Path) -> str:
    """Return the text of a file. Raises InvalidInput if it is not a file, cannot be read or is not UTF-8."""
    if path.exists() and not path.is_file():
        raise InvalidInput(f"{path} is not a file.")
    try:
        return path.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise InvalidInput(f"{path} is not UTF-8, from byte {error.start:,} on.") from error
    except OSError as error:
        raise InvalidInput(f"{path} cannot be read: {error.strerror}.") from error


def json_of(path: Path) -> Any:
    """Return the document in a file. Raises InvalidInput."""
    try:
        return json.loads(text_of(path))
    except (ValueError, RecursionError) as error:
        raise InvalidInput(f"{path} is not JSON: {error}.") from error


def lines_of(path: Path) -> Iterator[tuple[str, str]]:
    """Yield the place (file and number) and the text of each line that is not blank. Raises InvalidInput.

    Only a line feed ends a line: JSON strings may contain other line breaks of Unicode.
    """
    for number, line in enumerate(text_of(path).split("\n"), start=1):
        if line.strip():
            yield f"{path.name}, line {number}", line


def models_of(path: Path, model: type[SomeModel]) -> Iterator[tuple[str, SomeModel]]:
    """Yield the place and the parsed model of each line. Raises InvalidInput for an invalid line."""
    for place, line in lines_of(path):
        try:
            yield place, model.model_validate_json(line)
        except ValidationError as error:
            raise InvalidInput(f"{place}: {first_problem(error)}") from error


@contextmanager
def expected(what: str, path: Path, hint: str) -> Generator[None]:
    """Turn errors of reading a file or folder into InvalidInput that says what it should be."""
    try:
        yield
    except ValidationError as error:
        raise InvalidInput(f"{path} is not a {what}: {first_problem(error)}.", hint=hint) from error
    except KeyError as error:
        raise InvalidInput(f"{path} is not a {what}: {error} is missing.", hint=hint) from error
    except (LookupError, TypeError, ValueError, AttributeError, OSError) as error:
        raise InvalidInput(f"{path} is not a {what}: {error}.", hint=hint) from error


def first_problem(error: ValidationError) -> str:
    """Return the place and the text of the first problem."""
    problem = error.errors()[0]
    return problem_with(".".join(map(str, problem["loc"])), problem)
