"""The language of a text, as far as its small words tell, so that its words are stemmed by the right rules."""

import re
import unicodedata
from collections import Counter
from collections.abc import Mapping

ENGLISH = "english"

# Words that say nothing about what a text is about: leaving them out halves the index, and a text that has several of
# them is in that language. Without accents, as they are compared. The keys are those of the stemmer;
# rows that are there keep the terms that they were written with.
STOP_WORDS: Mapping[str, frozenset[str]] = {
    language: frozenset(words.split())
    for language, words in {
        ENGLISH: "a about an and any anything are as at be because been both but by can could did do does each"
        " everything for from had has have he her his how i if in into is it its just many me much my no not of on or"
        " our please she should so some something than that the their them then there these they this those to us"
        " very was we were what when where which while who whose why will with would you your",
        "german": "aber als am an auch auf aus bei bin bis das dass dem den der des die doch du ein eine einem"
        " einen einer er es fur gibt hat haben hatte ich ihr im in ist ja kann kein keine mein mit nach"
        " nicht noch nur oder schon sein sich sie sind so um und uns unser von vor wann war warum was"
        " wenn wer wie wir wird wo wurde zu zum zur uber",
        "french": "a au aux avec ce ces cette dans de des du elle en est et etait ete il ils je la le les leur"
        " mais me mes mon ne nos notre nous on ont ou par pas plus pour qu quand que quel quelle qui sa"
        " se ses son sont sur ta tu un une vos votre vous y",
        "spanish": "al como con cual cuando de del donde el ella en era es esta estan este esto fue ha hay la las"
        " le lo los mas me mi muy no nos o para pero por porque que quien se ser si sin sobre son su sus"
        " tiene tu un una unos y ya yo",
        "italian": "al alla che chi ci come con cosa da dal dei del della delle di dove e era gli ha hanno i il in"
        " io la le lo ma mi nel nella non o per perche piu quale quando questa questo se si sono su sul"
        " tu un una uno",
        "portuguese": "a ainda ao aos as com como da das de do dos e ela ele em era essa esse esta este eu foi"
        " foram ha isso ja mais mas me meu minha na nao nas no nos o onde os ou para pela pelo por porque qual quando"
        " que quem se sem ser seu sua tem um uma voce",
        "dutch": "aan als bij dan dat de deze die dit een en er geen had heb hebben heeft het hij hoe ik in is"
        " je kan maar met mijn naar niet nog of om ons ook op te tot uit van voor waar wanneer was wat"
        " we wel wie wij worden ze zijn",
        "swedish": "alla att av bli de den det detta din du ett efter eller en for fran ha han har hon i inte jag"
        " kan man med men min mot nar och om pa sa sig sin som till upp ut vad var vi vid vilken",
        "russian": "а без был была были было в вам вас во вот все вы где да для до его ее если есть еще же за и из"
        " или им их к как когда кто ли мне мои мы на не нет но о об он она они от по при с со так там то"
        " только ты у уже что это этот я",
    }.items()
}
_WORD = re.compile(r"[^\W\d_]+")
# Enough to know a language by.
_MOST_CHARACTERS = 2_000
_FEWEST = 2


def without_accents(word: str) -> str:
    """Return a word without the marks above and below its letters."""
    if word.isascii():
        return word
    return "".join(c for c in unicodedata.normalize("NFD", word) if not unicodedata.combining(c))


def language_of(text: str) -> str | None:
    """Return the language of most small words of a text, or None where they do not tell; of several, the first here."""
    return next(iter(languages_of(text)), None)


def languages_of(text: str) -> list[str]:
    """Return the language of most small words of a text, all of them where they are in several.

    One word, however often it comes, tells nothing: it may be a name, or stand in several languages.
    """
    words = Counter(without_accents(word) for word in _WORD.findall(text[:_MOST_CHARACTERS].casefold()))
    small = {language: words.keys() & known for language, known in STOP_WORDS.items()}
    counts = {
        language: sum(words[word] for word in there) for language, there in small.items() if len(there) >= _FEWEST
    }
    most = max(counts.values(), default=0)
    return [language for language, count in counts.items() if count == most]
