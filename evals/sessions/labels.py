"""Label files: the facts of a real session that are worth a row, and the messages that are not.

The transcripts are not part of this repository, so labels have the words of their writer, and regular expressions that
recognise a row.
"""

import re
import tomllib
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

from pydantic import AfterValidator, Field, ValidationError, model_validator

from esker.server.core.errors import InvalidInput
from esker.server.core.invalid_values import problem_with
from evals.case_files import AnyCase, CaseText, Language, StrictPart
from evals.input import text_of

LABELS = Path(__file__).parents[1] / "labels"
"""The folder of our label files, one for each session."""

_FORM = "docs/evals.md describes the form of a label file."


def _compiled(key: str) -> str:
    try:
        re.compile(key)
    except re.error as error:
        raise ValueError(
            f"{key!r} is not a regular expression ({error}): mend it, or escape its special characters"
        ) from error
    return key


Key = Annotated[CaseText, AfterValidator(_compiled)]
MessageNumber = Annotated[int, Field(ge=1, strict=True)]
MessageNumbers = tuple[MessageNumber, ...]


def _all_in(keys: tuple[str, ...], text: str) -> bool:
    return all(re.search(key, text, re.IGNORECASE) for key in keys)


class LabelledFact(StrictPart):
    """A fact in a sentence, the keys of the rows that state it, and the messages that say it."""

    fact: CaseText
    keys: Annotated[tuple[Key, ...], Field(min_length=1)]
    messages: Annotated[MessageNumbers, Field(min_length=1)]

    def is_stated_by(self, text: str) -> bool:
        """Whether a text contains every key."""
        return _all_in(self.keys, text)

    @model_validator(mode="after")
    def _states_itself(self) -> "LabelledFact":
        if lacking := [key for key in self.keys if not _all_in((key,), self.fact)]:
            raise ValueError(f"its own sentence does not match the key {lacking[0]!r}: change the key or the sentence")
        return self


class WrongStatement(StrictPart):
    """A statement that is false at the end of the session; a row with all `keys` makes it, unless `unless` matches."""

    why: CaseText
    keys: Annotated[tuple[Key, ...], Field(min_length=1)]
    unless: tuple[Key, ...] = ()

    def is_made_by(self, text: str) -> bool:
        """Whether a text contains every key and none of the exceptions."""
        return _all_in(self.keys, text) and not any(_all_in((each,), text) for each in self.unless)


class JunkMessages(StrictPart):
    """The numbers of the messages that are not worth a row: orders of the moment, small talk, output of programs."""

    orders: MessageNumbers = ()
    chatter: MessageNumbers = ()
    noise: MessageNumbers = ()

    def kind_of(self, message: int) -> str | None:
        """Return why a message is not worth a row, or None if it may be."""
        kinds = {"orders": self.orders, "chatter": self.chatter, "noise": self.noise}
        return next((kind for kind, messages in kinds.items() if message in messages), None)


class SessionLabels(AnyCase):
    """The labels of a session. `transcript` is the path of its file below the folder of transcripts."""

    language: Language = "en"
    transcript: CaseText
    facts: Annotated[tuple[LabelledFact, ...], Field(min_length=1)]
    topics: tuple[LabelledFact, ...] = ()
    wrong: tuple[WrongStatement, ...] = ()
    junk: JunkMessages = JunkMessages()

    @model_validator(mode="after")
    def _fits_together(self) -> "SessionLabels":
        if faults := [*self._faults()]:
            raise ValueError("; ".join(faults))
        return self

    def _faults(self) -> Iterator[str]:
        counts = Counter(each.fact for each in (*self.facts, *self.topics))
        yield from (f"{fact!r} occurs twice: remove one" for fact, count in counts.items() if count > 1)
        for message in sorted(self.worthy):
            if kind := self.junk.kind_of(message):
                yield f"message {message} is in junk.{kind} and has a fact: remove one of them"
        for fact in (*self.facts, *self.topics):
            if wrong := next((each for each in self.wrong if each.is_made_by(fact.fact)), None):
                yield f"{fact.fact!r} would count as wrong ({wrong.why!r}): narrow the keys of that"

    @property
    def worthy(self) -> frozenset[int]:
        """The numbers of the messages that state a fact or a topic."""
        return frozenset(message for each in (*self.facts, *self.topics) for message in each.messages)

    def last_message(self) -> int:
        """Return the highest number of a message that the labels name."""
        return max((*self.worthy, *self.junk.orders, *self.junk.chatter, *self.junk.noise))


def read_labels(folder: Path) -> list[SessionLabels]:
    """Return the labels in a folder. Raises InvalidInput for a folder without any, and for an invalid file."""
    files = sorted(folder.glob("*.toml"))
    if not files:
        raise InvalidInput(f"{folder} has no label file (NAME.toml).", hint=_FORM)
    return [read_label_file(file) for file in files]


def read_label_file(path: Path) -> SessionLabels:
    """Return the labels in a file, named after it. Raises InvalidInput with the entry and what to do."""
    text = text_of(path)
    try:
        content = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise InvalidInput(f"{path.name} is not TOML: {error}.", hint=_FORM) from error
    about = " ".join(_first_comment(text))
    if not about:
        raise InvalidInput(f"{path.name} must begin with a comment that says whose session it is.", hint=_FORM)
    try:
        return SessionLabels.model_validate({**content, "case": path.stem, "about": about})
    except ValidationError as error:
        raise InvalidInput(f"{path.name}, {_problem(error, content)}.", hint=_FORM) from error


def _first_comment(text: str) -> Iterator[str]:
    for line in text.splitlines():
        if not line.startswith("#"):
            return
        yield line.lstrip("# ").strip()


def _problem(error: ValidationError, content: dict[str, Any]) -> str:
    """Return the entry and the text of the first problem: `facts 3 ("…"), keys: …`."""
    problem = error.errors()[0]
    place = list(problem["loc"])
    entry = "the file"
    if len(place) > 1 and isinstance(place[1], int):
        name, number = str(place[0]), place[1]
        said: dict[str, Any] = content[name][number]
        entry = f"{name} {number + 1} ({said.get('fact') or said.get('why') or said!r})"
        place = place[2:]
    return f"{entry}: {problem_with('.'.join(map(str, place)), problem)}"
