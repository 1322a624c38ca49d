"""Echoes: sentences of a prompt that a model copies into its answer as if they were facts."""

import re
from itertools import chain

from esker.server.core.facts.same_fact import fingerprint, same_fact

_BLOCK_BREAK = re.compile(r"\n\s*\n|\n\s*[-*] ")
_SENTENCE_BREAK = re.compile(r"(?<=[.!?;])\s+")
_WORD = re.compile(r"\w+")
# A "sentence" without one is the number of a list item.
_LETTER = re.compile(r"[^\W\d_]")
# A copied clause has at least this many words; fewer in a row may be chance.
_LEAST_WORDS = 5


class Echoes:
    """The sentences of a prompt, against which each fact of an answer is held."""

    def __init__(self, *texts: str) -> None:
        self._words = "\n".join(map(_words, texts))
        every = chain.from_iterable(_sentences(block) for text in texts for block in _BLOCK_BREAK.split(text))
        self._sentences = [fingerprint(sentence) for sentence in every]

    def contain(self, text: str) -> bool:
        """Whether each sentence of a text is copied from the prompt, apart from case, punctuation and bullets."""
        sentences = _sentences(text)
        return bool(sentences) and all(map(self._is_copied, sentences))

    def _is_copied(self, sentence: str) -> bool:
        words = _words(sentence)
        if words.count(" ") > _LEAST_WORDS and words in self._words:
            return True
        mark = fingerprint(sentence)
        return any(same_fact(mark, each) for each in self._sentences)


def _words(text: str) -> str:
    """Return the words of a text with a space before and after each."""
    return f" {' '.join(_WORD.findall(text.casefold()))} "


def _sentences(text: str) -> list[str]:
    return [sentence for sentence in _SENTENCE_BREAK.split(text) if _LETTER.search(sentence)]
