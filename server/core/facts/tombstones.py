"""Tombstones: keyed hashes of what was forgotten, by which it is known when it comes back, without any of its words."""

import hashlib
import hmac
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from esker.server.core.conversation.records import Block
from esker.server.core.facts.contradiction import negates
from esker.server.core.facts.same_fact import fingerprint
from esker.server.core.text.folding import same_words_key
from esker.server.core.text.labels import without_label, without_notes
from esker.server.core.text.terms import terms

EVERYWHERE = "*"
"""In place of a project: a row that was forgotten in all of them."""
_LEAST_TERMS = 3
"""A row with fewer terms is known by its words alone: too many rows have the same two terms."""

_TELLING_TERMS = 8
"""A message with as many different terms is hardly ever written twice, other than "continue" or "yes, do that"."""


@dataclass(frozen=True, slots=True)
class Tombstone:
    """A hash of something forgotten: it holds for what was said up to `until` (None: whenever).

    `blanks`: a message with it loses its words; otherwise it is only left out of passages.
    """

    until: datetime | None
    blanks: bool

    def holds(self, said_at: datetime) -> bool:
        """Whether it holds for a text that was said then."""
        return self.until is None or said_at <= self.until


@dataclass(frozen=True, slots=True)
class Digests:
    """The keyed hashes of a pool. `longest` is the most terms of any words that were forgotten."""

    key: bytes
    longest: int

    def of_row(self, content: str, project: str | None) -> set[bytes]:
        """Return the hashes of a row in a project, or EVERYWHERE: of its words, and of its terms in any order."""
        row, place = fingerprint(content), project or ""
        found = {self._of("row", place, same_words_key(without_notes(without_label(content))))}
        if len(row.gist) >= _LEAST_TERMS:
            turned = "not" if negates(row) else ""
            found.add(self._of("gist", place, turned, *sorted(set(row.gist)), *row.exact))
        return found

    def of_id(self, record_id: str) -> bytes:
        """Return the hash of the id of a memory or a session."""
        return self._of("id", record_id)

    def name_for(self, place: str) -> str:
        """Return another name for a project or directory whose own name was forgotten; always the same one."""
        return f"forgotten-{self._of('place', place).hex()[:12]}"

    def of_message(self, content_hash: bytes) -> bytes:
        """Return the hash of a message by that of its role and content."""
        return self._of("message", content_hash.hex())

    def of_sent(self, content_hash: bytes, external_id: str) -> bytes:
        """Return the hash of a message under the id that its client gave it."""
        return self._of("sent", content_hash.hex(), external_id)

    def of_words(self, words: str) -> bytes | None:
        """Return the hash of words as they are found in a text; None for words without terms."""
        asked = terms(words)
        return self._of("words", *asked) if asked else None

    def in_text(self, text: str) -> set[bytes]:
        """Return the hashes of all words that a text contains, up to the longest that were forgotten."""
        found = terms(text) if self.longest else []
        runs = {
            tuple(found[start : start + length])
            for length in range(1, self.longest + 1)
            for start in range(len(found) - length + 1)
        }
        return {self._of("words", *run) for run in runs}

    def _of(self, kind: str, *parts: str) -> bytes:
        return hmac.digest(self.key, "\0".join((kind, *parts)).encode("utf-8", "surrogatepass"), hashlib.sha256)


def is_one_of_its_kind(text: str, blocks: Sequence[Block]) -> bool:
    """Whether an equal message is this one sent again: it has many words, or blocks with the id of a tool call."""
    called = any(block.get("id") or block.get("tool_use_id") for block in blocks)
    return called or len(set(terms(text))) >= _TELLING_TERMS


def length_of(words: Iterable[str]) -> int:
    """Return the most terms of any of some words."""
    return max((len(terms(one)) for one in words), default=0)


def holding(digests: Iterable[bytes], known: Mapping[bytes, Tombstone], said_at: datetime) -> Iterator[Tombstone]:
    """Yield the tombstones among some hashes that hold for a text that was said at a time."""
    for digest in digests:
        if (found := known.get(digest)) and found.holds(said_at):
            yield found
