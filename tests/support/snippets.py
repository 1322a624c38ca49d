"""The snippets of the documentation, and the commands in them."""

import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass

from docs_site.reference.commands import commands_of
from esker.server.cli.verbs import VERBS
from tests.support.processes import ROOT

_BLOCK = re.compile(r"^( *)```(\w+)\n(.*?)^ *```$", re.DOTALL | re.MULTILINE)
_INLINE = re.compile(r"`((?:esker|make|python -m evals) [^`]+)`")
# Variables for a command, or a program that runs it somewhere, may come before it.
_COMMAND = re.compile(
    r"(?:\w+=\S*\s+)*(?:(?:runuser|kubectl)\s.*\s--\s+|docker compose run --rm server\s+)?"
    r"(?:\S*/bin/)?(esker|make|python -m evals)\s+(.+)"
)
_ENDS = re.compile(r"[|;&()\n]|\s#.*")


@dataclass(frozen=True, slots=True)
class Snippet:
    """A block of code on a page."""

    page: str
    language: str
    text: str


def pages() -> dict[str, str]:
    """Return the text of the pages that show snippets, by their path from the root."""
    paths = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
    return {path.relative_to(ROOT).as_posix(): path.read_text(encoding="utf-8") for path in paths}


def snippets() -> list[Snippet]:
    """Return every snippet of every page."""
    return [
        Snippet(name, language, "".join(line.removeprefix(indent) for line in text.splitlines(keepends=True)))
        for name, page in pages().items()
        for indent, language, text in _BLOCK.findall(page)
    ]


def commands_in(script: str) -> Iterator[list[str]]:
    """Yield the words of each command of Esker, of the evals and of make in a script."""
    for part in _ENDS.split(script.replace("\\\n", " ")):
        if found := _COMMAND.fullmatch(part.strip()):
            yield [found[1], *shlex.split(_closed(found[2]))]


def inline_commands(page: str) -> Iterator[list[str]]:
    """Yield the words of the commands that a page names in its prose."""
    prose = _BLOCK.sub("", page)
    for text in _INLINE.findall(prose):
        yield from commands_in(text.replace("\\|", " "))


def _closed(words: str) -> str:
    """Return words without a quotation mark that has no other end."""
    return re.sub(r"[\"']", "", words) if words.count('"') % 2 or words.count("'") % 2 else words


def unknown_words(command: list[str]) -> list[str]:
    """Return the verb or the options of an `esker` command that do not exist."""
    _, verb, *rest = command
    rest = rest[: rest.index("--")] if "--" in rest else rest  # another program's words follow
    if verb.startswith("-"):
        return []
    if verb not in VERBS:
        return [verb]
    known = dict(commands_of(verb))
    named = max((name for name in known if _begins(name, [verb, *rest])), key=len, default=None)
    options = [word.partition("=")[0].strip("[]") for word in rest if word.strip("[]").startswith("--")]
    accepted = {"--help"}
    for name, of_name in known.items():
        if named is None or name == named:
            accepted |= {option for each in of_name.params for option in (*each.opts, *each.secondary_opts)}
    return [option for option in options if option not in accepted]


def _begins(name: str, words: list[str]) -> bool:
    wanted = name.split()[1:]
    return words[: len(wanted)] == wanted
