"""What a run reads: texts, JSON documents, and files with one JSON document on a line."""

import json
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from esker.server.core.errors import InvalidInput

SomeModel = TypeVar("SomeModel", bound=BaseModel)


def text_of(path: Path) -> str:
    """Return the text of a file. Raises InvalidInput where it is none, cannot be read or is not UTF-8."""
    if path.exists() and not path.is_file():
        raise InvalidInput(f"{path} is no file.")
    try:
        return path.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise InvalidInput(f"{path} is not UTF-8, from byte {error.start:,} on.") from error
    except OSError as error:
        raise InvalidInput(f"{path} cannot be read: {error.strerror}.") from error


def json_of(path: Path) -> Any:
    """Return a document. Raises InvalidInput where there is none."""
    try:
        return json.loads(text_of(path))
    except (ValueError, RecursionError) as error:
        raise InvalidInput(f"{path} is not JSON: {error}.") from error


def lines_of(path: Path) -> Iterator[tuple[str, str]]:
    """Yield the lines of a file that are not blank, each behind its place in words. Raises InvalidInput.

    A line ends at a line feed alone: JSON may have other line breaks of Unicode in its texts.
    """
    for number, line in enumerate(text_of(path).split("\n"), start=1):
        if line.strip():
            yield f"{path.name}, line {number}", line


def models_of(path: Path, model: type[SomeModel]) -> Iterator[tuple[str, SomeModel]]:
    """Yield what the lines of a file hold, each behind its place. Raises InvalidInput for a line that holds none."""
    for place, line in lines_of(path):
        try:
            yield place, model.model_validate_json(line)
        except ValidationError as error:
            raise InvalidInput(f"{place}: {first_problem(error)}") from error


@contextmanager
def expected(what: str, path: Path, hint: str) -> Generator[None]:
    """Raise InvalidInput, with what a file or folder should be, where the block meets something else in it."""
    try:
        yield
    except ValidationError as error:
        raise InvalidInput(f"{path} is no {what}: {first_problem(error)}.", hint=hint) from error
    except KeyError as error:
        raise InvalidInput(f"{path} is no {what}: it has no {error}.", hint=hint) from error
    except (LookupError, TypeError, ValueError, AttributeError, OSError) as error:
        raise InvalidInput(f"{path} is no {what}: {error}.", hint=hint) from error


def first_problem(error: ValidationError) -> str:
    """Return the first thing that is wrong with a value: where in it, and what."""
    problem = error.errors()[0]
    where = ".".join(str(part) for part in problem["loc"])
    return f"{where}: {problem['msg']}" if where else problem["msg"]
