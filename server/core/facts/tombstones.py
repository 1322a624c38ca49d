"""Tombstones: keyed hashes that recognise forgotten texts when they come back, without keeping any of their words."""

import hashlib
import hmac
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from esker.server.core.conversation.records import Block
from esker.server.core.facts.contradiction import negates
from esker.server.core.facts.same_fact import fingerprint
from esker.server.core.ids import GATEWAY_IDS, is_turn_id
from esker.server.core.text.folding import same_words_key
from esker.server.core.text.labels import without_label, without_notes
from esker.server.core.text.terms import terms

FoundAs = Literal["words", "name"]
"""Forgotten `words`, or a `name` in a forgotten fact. Only a proof looks for names, since other facts may contain
them."""
EVERYWHERE = "*"
"""Stands for the project of a row that was forgotten in all projects."""
_LEAST_TERMS = 3
"""A row with fewer terms is recognised by its words alone: too many rows share two terms."""

_LENGTH_BITS = 16
_MOST_TERMS = (1 << _LENGTH_BITS) - 1
"""The most terms by which forgotten words are recognised; only the first ones of longer words count."""
_START_BYTES = 4
"""Bytes of the hash of a first term."""
_TELLING_TERMS = 8
"""Different terms from which a message counts as unique; short ones such as "yes, do that" are written often."""


@dataclass(frozen=True, slots=True)
class Tombstone:
    """A hash of something forgotten. It applies to texts said up to `until` (None: at any time).

    `blanks`: a message with it loses its words; otherwise it is only left out of passages.
    """

    until: datetime | None
    blanks: bool

    def holds(self, said_at: datetime) -> bool:
        """Whether the tombstone applies to a text that was said at this time."""
        return self.until is None or said_at <= self.until


@dataclass(frozen=True, slots=True)
class Digests:
    """The keyed hashes of a pool. `starts`: hash of a first term → numbers of terms of the forgotten words with it."""

    key: bytes
    starts: Mapping[int, frozenset[int]]

    @classmethod
    def stored(cls, key: bytes, starts: Iterable[int]) -> "Digests":
        """Return the hashes of a pool, from the results of `starts_of` for all forgotten words."""
        lengths: dict[int, set[int]] = {}
        for start in starts:
            lengths.setdefault(start >> _LENGTH_BITS, set()).add(start & _MOST_TERMS)
        return cls(key, {term: frozenset(found) for term, found in lengths.items()})

    def of_row(self, content: str, project: str | None) -> set[bytes]:
        """Return the hashes of a row in a project, or EVERYWHERE: of its words, and of its terms in any order."""
        return self.of_row_in(content, (project or "",))

    def of_row_in(self, content: str, places: Iterable[str]) -> set[bytes]:
        """Return the hashes of a row in some projects ("": in none); its terms are found once for all of them."""
        row, words = fingerprint(content), same_words_key(without_notes(without_label(content)))
        turned = "not" if negates(row) else ""
        gist = (turned, *sorted(set(row.gist)), *row.exact) if len(row.gist) >= _LEAST_TERMS else ()
        found: set[bytes] = set()
        for place in places:
            found.add(self._of("row", place, words))
            if gist:
                found.add(self._of("gist", place, *gist))
        return found

    def of_id(self, record_id: str) -> bytes:
        """Return the hash of the id of a memory or a session."""
        return self._of("id", record_id)

    def name_for(self, place: str) -> str:
        """Return another name for a project, a directory or an id that was forgotten; always the same one.

        That of a turn stays one of the gateway, which makes the ids of turns of their words.
        """
        digits = self.of_place(place).hex()
        return f"{GATEWAY_IDS}{digits[:32]}" if is_turn_id(place) else f"forgotten-{digits[:12]}"

    def of_place(self, place: str) -> bytes:
        """Return the hash of the name of a project or directory."""
        return self._of("place", place)

    def of_message(self, content_hash: bytes) -> bytes:
        """Return the hash of a message by that of its role and content."""
        return self._of("message", content_hash.hex())

    def of_sent(self, content_hash: bytes, external_id: str) -> bytes:
        """Return the hash of a message under the id that its client gave it."""
        return self._of("sent", content_hash.hex(), external_id)

    def of_words(self, words: str, found_as: FoundAs = "words") -> bytes | None:
        """Return the hash of words as they are found in a text; None for words without terms."""
        asked = terms(words)[:_MOST_TERMS]
        return self._of(found_as, *asked) if asked else None

    def starts_of(self, words: Iterable[str]) -> set[int]:
        """Return for words that are being forgotten how `in_text` finds them: their first term and their length."""
        asked = [found for one in words if (found := terms(one))]
        return {self._start(found[0]) << _LENGTH_BITS | min(len(found), _MOST_TERMS) for found in asked}

    def in_text(self, text: str, found_as: FoundAs = "words") -> set[bytes]:
        """Return the hashes of those words in a text that begin like forgotten ones and are as long."""
        found = terms(text) if self.starts else []
        lengths = {term: there for term in set(found) if (there := self.starts.get(self._start(term)))}
        runs = {
            tuple(found[start : start + length])
            for start, term in enumerate(found)
            for length in lengths.get(term, ())
            if start + length <= len(found)
        }
        return {self._of(found_as, *run) for run in runs}

    def _start(self, term: str) -> int:
        return int.from_bytes(self._of("start", term)[:_START_BYTES])

    def _of(self, kind: str, *parts: str) -> bytes:
        return hmac.digest(self.key, "\0".join((kind, *parts)).encode("utf-8", "surrogatepass"), hashlib.sha256)


def is_one_of_its_kind(text: str, blocks: Sequence[Block]) -> bool:
    """Whether an equal message is this one sent again: it has many words, or blocks with the id of a tool call."""
    called = any(block.get("id") or block.get("tool_use_id") for block in blocks)
    return called or len(set(terms(text))) >= _TELLING_TERMS


def holding(digests: Iterable[bytes], known: Mapping[bytes, Tombstone], said_at: datetime) -> Iterator[Tombstone]:
    """Yield the tombstones among some hashes that hold for a text that was said at a time."""
    for digest in digests:
        if (found := known.get(digest)) and found.holds(said_at):
            yield found
