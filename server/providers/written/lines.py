"""Lines: what a line shows without its bullet, emphasis and entities, and what these tell about it."""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from esker.server.providers.written.marks import ANY_SIGN, DONE_SIGNS, RANKS, SIGNS, read_marks

_ENTITIES = {"lt": "<", "gt": ">", "amp": "&", "quot": '"', "apos": "'", "#39": "'"}
_ENTITY = re.compile(r"&(lt|gt|amp|quot|apos|#39);")
# Code keeps its stars. What stands before or behind a star tells a glob or `**kwargs` from emphasis.
_EMPHASIS = re.compile(
    r"(?P<code>`[^`]{1,300}`)"
    r"|(?<![A-Za-z0-9_*/])(?P<stars>\*{2,3})(?=[^\s/])(?P<inner>[^*]++)(?<=[^\s/])(?P=stars)(?![A-Za-z0-9_*/])"
)
_WRAPPED = re.compile(r"([*_]{1,3})(?=[^\s/.])([^*_]++)(?<=[^\s/])\1$")
_QUOTED = re.compile(r"(?:>\s?){1,3}(?=\S)")
_BULLET = re.compile(
    r"[•●◦▪‣·⁃■]\s*"
    rf"|[-*+–—](?:\s+|(?={ANY_SIGN}|\[[ xX]?\]))"
    r"|\(?\d{1,3}(?:[.)）](?:\s+|(?=[^\x00-\x7f]))|[、．]\s*)"
)
_ARROW = re.compile(r"(?:[→⇒↳➜➔]|[├└][─-]{0,3}|[-=]{1,2}>)\s*")
_RANKED = re.compile(
    rf"[{''.join(SIGNS)}]|(?:{RANKS})(?: PRIORITY)?\s?[:：]"
    r"|[\[【](?i:critical|high|important|medium|note|info|low)[\]】]"
)
_MARKED = re.compile(rf"[{DONE_SIGNS}]|DONE\s?[:：]|\[(?i:x|done)\]|(?i:fact|observation) ?#?\d{{1,3}}\s?[:：]")
# A fence, a tag or a ruler alone on its line.
_MARKUP = re.compile(r"(?:```[\w-]{0,20}|~~~\w{0,20}|</?[A-Za-z][\w:-]{0,40}(?:\s[^<>]{0,400})?>|[-=*_ ]{1,200})?")


@dataclass(frozen=True, slots=True)
class WrittenLine:
    """A line without bullet and emphasis. `bold` says that all of it was emphasised."""

    text: str
    indent: int = 0
    bullet: bool = False
    arrow: bool = False
    bold: bool = False

    @property
    def ranked(self) -> bool:
        """Tell whether it begins with a priority."""
        return bool(_RANKED.match(self.text))

    @property
    def marked(self) -> bool:
        """Tell whether it is a fact by its looks, also without a bullet."""
        return self.ranked or bool(_MARKED.match(self.text))


def shown(lines: Iterable[str]) -> Iterator[WrittenLine]:
    """Yield what lines show, without those that are blank or markup."""
    return (_line(raw) for raw in lines if not _MARKUP.fullmatch(raw.strip()))


def unquoted(text: str) -> str:
    """Return a text without the quotation marks around all of it."""
    for opening, closing in ('""', "“”"):
        inner = text[1:-1]
        if text.startswith(opening) and text.endswith(closing) and opening not in inner and closing not in inner:
            return inner.strip()
    return text


def _line(raw: str) -> WrittenLine:
    raw = _ENTITY.sub(lambda entity: _ENTITIES[entity[1]], raw)
    text = raw.strip()
    if quoted := _QUOTED.match(text):
        raw = text = text[quoted.end() :]
    indent = sum(4 if character == "\t" else 1 for character in raw[: len(raw) - len(raw.lstrip())])
    emphasised = _EMPHASIS.fullmatch(text.rstrip(":：")) or _WRAPPED.match(text)
    text = _unwrapped(_EMPHASIS.sub(_plain, text))
    bare = text
    for _ in range(2):
        bullet = _BULLET.match(bare)
        bare = bare[bullet.end() :] if bullet else bare
    arrow = _ARROW.match(bare)
    bare = bare[arrow.end() :] if arrow else bare
    return WrittenLine(_unwrapped(bare), indent, bare != text and not arrow, bool(arrow), bool(emphasised))


def _plain(emphasis: re.Match[str]) -> str:
    """Return what was emphasised; marks at the beginning of a line get the colon that their emphasis stood for."""
    if emphasis["code"]:
        return emphasis[0]
    inner, behind = emphasis["inner"], emphasis.string[emphasis.end() : emphasis.end() + 3]
    leads = emphasis.start() < 16 and not any(letter.isalpha() for letter in emphasis.string[: emphasis.start()])
    if leads and behind.startswith(" ") and behind.strip()[:1] not in "-–—:：|" and read_marks(inner, square=True):
        return inner if inner.endswith((":", "：")) else f"{inner}:"
    return inner


def _unwrapped(text: str) -> str:
    wrapped = _WRAPPED.match(text)
    return wrapped[2] if wrapped else text
