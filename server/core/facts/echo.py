"""Which words tell a fact from all others, and which texts only repeat it.

"Understood, Xanadu it is" repeats that the vault is called Xanadu: it has to be forgotten with the fact, or the next
recall finds it in its place. "Xanadu's hinge needs oil" states another fact and is kept.
"""

import re
from collections.abc import Collection, Iterable
from collections.abc import Set as AbstractSet

from esker.server.core.facts.contradiction import negates, opposed
from esker.server.core.facts.identifiers import is_code_word
from esker.server.core.facts.same_fact import (
    SAME_WORDS,
    Fingerprint,
    fingerprint,
    gist_of,
    gist_of_plain_words,
    same_fact,
)
from esker.server.core.records import Kind
from esker.server.core.text.labels import without_label, without_notes, without_quotations
from esker.server.core.text.languages import STOP_WORDS
from esker.server.core.text.terms import Word, telling_words, terms
from esker.server.core.words.lists import all_words, words

_SHORTEST_NAME = 3
_SHORTEST_WORD = 4
# Share of the names of a fact that a text must say to repeat it, and share of a fact without one.
_HALF, _MOST_OF_IT = 1 / 2, 2 / 3
_SENTENCES = re.compile(r"(?<=[.!?。！？…])\s*|\n+")
# Characters of a message that are compared sentence by sentence.
_LONGEST = 20_000

_ORDINARY = frozenset(term for word in words("facts.ordinary") for term in terms(word))
# Words that a text may add and still say nothing else: acknowledgements, and the small words of all languages.
_ADDED = frozenset(term for word in words("facts.acknowledgements") for term in terms(word)).union(*STOP_WORDS.values())


def names_in(contents: Iterable[str]) -> frozenset[str]:
    """Return the names and identifiers in rows, as they are written, without ordinary words such as `Monday`."""
    return frozenset(
        word.spelled
        for content in contents
        for word in _words(content)
        if len(word.spelled) >= _SHORTEST_NAME and _is_name(word, fingerprint(content))
    )


def other_words(contents: Iterable[str]) -> frozenset[str]:
    """Return the words of rows that are not ordinary, as they are written: a reply that takes one up repeats it."""
    found = (word for content in contents for word in _words(content) if len(word.spelled) >= _SHORTEST_WORD)
    return frozenset(
        word.spelled for word in found if word.spelled.casefold() not in all_words() and word.terms[0] not in _ORDINARY
    )


def own_words(kind: Kind, content: str) -> str:
    """Return a memory without the words of others that it quotes; a note has only its own."""
    return without_quotations(content) if kind in ("observation", "reflection") else content


def repeats(text: str, facts: Iterable[str]) -> bool:
    """Whether a text says one of some facts and nothing else."""
    alike = _sharing_enough(gist_of_plain_words(text), map(fingerprint, facts))
    # For most texts a few words show that they repeat no fact, and the slower rest is skipped.
    alike = alike and _sharing_enough(frozenset(gist_of(text)), alike)
    return any(_says_only(fingerprint(text), fact) for fact in alike)


def repeats_somewhere(text: str, facts: Collection[str]) -> bool:
    """Whether a sentence of a text says one of some facts and nothing else."""
    return any(repeats(sentence, facts) for sentence in _SENTENCES.split(text[:_LONGEST]) if sentence.strip())


def _sharing_enough(gist: AbstractSet[str], facts: Iterable[Fingerprint]) -> list[Fingerprint]:
    """Return the facts that a text may repeat without saying anything else.

    `gist` is that of the text, or of a part of it. `SAME_WORDS` limits how many other terms it may have.
    """
    own = gist - _ADDED
    return [fact for fact in facts if len(own - frozenset(fact.gist)) <= (1 / SAME_WORDS - 1) * len(fact.terms)]


def _says_only(row: Fingerprint, fact: Fingerprint) -> bool:
    if same_fact(row, fact):
        return True
    said = frozenset(row.gist) - _ADDED
    if not said or not said <= frozenset(fact.gist) or negates(row) != negates(fact) or opposed(row, fact):
        return False
    if fact.particular:
        return len(fact.particular & said) >= _HALF * len(fact.particular)
    return len(said) >= _MOST_OF_IT * len(fact.subject)


def _words(content: str) -> list[Word]:
    return telling_words(without_notes(without_label(content)))


def _is_name(word: Word, row: Fingerprint) -> bool:
    if word.is_name or is_code_word(word.spelled):
        return len(word.spelled) >= _SHORTEST_WORD
    spelled = word.spelled.casefold()
    return spelled not in all_words() and next(iter(terms(spelled)), spelled) in row.names
