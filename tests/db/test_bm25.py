"""BM25 by known answers: scores of a few rows, worked out here from the formula."""

import math

import pytest

from esker.server.core.records import Filter, Principal
from esker.server.db.database import Database
from esker.server.store.search import QueryTerms
from esker.server.usecases.ingest import IncomingMessage, ingest
from esker.server.usecases.open_session import SessionRequest, open_session
from esker.server.usecases.parts import Parts
from esker.server.usecases.remember import Note, remember
from tests.support.searching import by_keyword

# Every word is its own stem, so a row has as many terms as words.
ROWS = (
    "heron otter",
    "heron heron marmot badger walrus lemur",
    "otter lemur",
    "falcon",
    "lemur badger walrus heron",
)
MEAN = sum(len(row.split()) for row in ROWS) / len(ROWS)
# Assumed minimum of parts in a pool: a word in all of three texts is still rare in general.
LEAST_PARTS = 100
K1, B = 1.2, 0.75


def weight(term: str) -> float:
    """Return the inverse document frequency of a term."""
    held = sum(term in row.split() for row in ROWS)
    return math.log(1 + (LEAST_PARTS - held + 0.5) / (held + 0.5))


def bm25(row: str, terms: list[str]) -> float:
    """Return the score of a row by the formula."""
    words = row.split()
    norm = K1 * (1 - B + B * len(words) / MEAN)
    return sum(weight(term) * words.count(term) * (K1 + 1) / (words.count(term) + norm) for term in terms)


def ideal(terms: list[str], rarest: int) -> float:
    """Return the highest possible score of the rarest terms, each once."""
    return sum(sorted(map(weight, terms), reverse=True)[:rarest]) * (K1 + 1)


@pytest.mark.parametrize("narrow", [False, True])
@pytest.mark.parametrize(
    "terms",
    [
        ["heron"],
        ["otter", "falcon"],
        ["heron", "lemur", "badger", "walrus"],
        "heron otter lemur badger walrus marmot falcon".split(),
    ],
)
async def test_a_score_is_relative_to_the_best_score_of_the_rarest_words(
    parts: Parts, who: Principal, database: Database, terms: list[str], narrow: bool
) -> None:
    await remember(parts, who, [Note(row) for row in ROWS])
    async with database.tenant(who.pool_id) as connection:
        words = QueryTerms(terms, list(range(len(terms))))
        found = await by_keyword(connection, words, Filter(parts.clock()), 10, narrow=narrow)
        cursor = await connection.execute("SELECT id, content FROM memories")
        content = {str(row[0]): str(row[1]) for row in await cursor.fetchall()}
    expected = {row: bm25(row, terms) / ideal(terms, rarest=6) for row in ROWS if set(terms) & set(row.split())}
    scores = [found.signals[number].keyword for number in found.by_keyword]
    assert dict(zip([content[found.ids[number]] for number in found.by_keyword], scores, strict=True)) == pytest.approx(
        expected, abs=1e-6
    )
    assert scores == sorted(scores, reverse=True)


async def test_only_the_forms_of_a_word_that_occur_are_counted(
    parts: Parts, who: Principal, database: Database
) -> None:
    await remember(parts, who, [Note(row) for row in ROWS])
    async with database.tenant(who.pool_id) as connection:
        words = QueryTerms(["heron", "herons", "otter"], [0, 0, 1])
        found = await by_keyword(connection, words, Filter(parts.clock()), 1)
    assert found.signals[found.by_keyword[0]].keyword == pytest.approx(
        bm25("heron otter", ["heron", "otter"]) / ideal(["heron", "otter"], rarest=6), abs=1e-6
    )


async def test_a_long_text_is_found_by_its_best_part(parts: Parts, who: Principal, database: Database) -> None:
    filler = " ".join(f"word{n}" for n in range(60))
    long = f"{filler}\n\n{filler}\n\nheron {filler}\n\n{filler}"
    await remember(parts, who, [Note(long), Note(f"heron {filler}")])
    async with database.tenant(who.pool_id) as connection:
        found = await by_keyword(connection, QueryTerms(["heron"], [0]), Filter(parts.clock()), 10)
    best, second = (found.signals[number].keyword for number in found.by_keyword)
    assert second > 0.8 * best, "the text as a whole would be four times as long"


LONG = "heron otter lemur badger walrus marmot falcon glaplack vedroorg momex foodreb drafoolm gegift".split()


# Unknown words -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("narrow", [False, True])
@pytest.mark.parametrize(
    ("terms", "known", "unheard"),
    [
        (["heron", "otter"], ["heron", "otter"], 0),
        (["heron", "glaplack"], ["heron"], 1),
        (["heron", "otter", "glaplack", "vedroorg"], ["heron", "otter"], 2),
        # At most two unknown words count.
        (["heron", "glaplack", "vedroorg", "momex", "foodreb"], ["heron"], 2),
        # All words of a long question count, not only the rarest ones.
        (LONG, [*ROWS[1].split(), "otter", "falcon"], 2),
    ],
)
async def test_known_words_count_less_if_two_unknown_words_weigh_more(
    parts: Parts, who: Principal, database: Database, terms: list[str], known: list[str], unheard: int, narrow: bool
) -> None:
    await remember(parts, who, [Note(row) for row in ROWS])
    async with database.tenant(who.pool_id) as connection:
        words = QueryTerms(terms, list(range(len(terms))))
        weights = (await by_keyword(connection, words, Filter(parts.clock()), 10, narrow=narrow)).weights
    assert weights is not None
    weighs = sum(map(weight, set(known))), unheard * weight("glaplack")
    assert weights.word_factor == pytest.approx(min(1.0, (weighs[0] / weighs[1]) ** 1.5) if unheard else 1.0)


async def test_a_word_is_known_if_a_form_of_it_occurs_in_either_tier(
    parts: Parts, who: Principal, database: Database
) -> None:
    await remember(parts, who, [Note(row) for row in ROWS])
    session = await open_session(parts, who.pool_id, SessionRequest("api", "s1"))
    await ingest(parts, who.pool_id, session.id, [IncomingMessage("m1", "user", "glaplack vedroorg")])

    async def told(terms: list[str], words: list[int]) -> float:
        asked, what = QueryTerms(terms, words), Filter(parts.clock())
        async with database.tenant(who.pool_id) as connection:
            weights = (await by_keyword(connection, asked, what, 10)).weights
        assert weights is not None
        return weights.word_factor

    assert await told(["heron", "glaplack", "vedroorg"], [0, 1, 2]) == 1.0
    assert await told(["heron", "momex", "foodreb"], [0, 1, 2]) < 1.0
    assert await told(["heron", "otter", "otters", "momex"], [0, 1, 1, 2]) == 1.0


@pytest.mark.parametrize(
    "terms",
    [
        # A question in Chinese, and the terms of "Zbigniew's heron'll like the otter".
        ["客户", "户爱", "爱喝", "喝什", "什么"],
        ["zbigniew", "s", "heron", "ll", "otter"],
    ],
)
async def test_a_term_of_two_characters_is_never_an_unknown_word(
    parts: Parts, who: Principal, database: Database, terms: list[str]
) -> None:
    await remember(parts, who, [Note("客户喜欢辣的面条。"), Note("heron otter")])
    async with database.tenant(who.pool_id) as connection:
        words = QueryTerms(terms, list(range(len(terms))))
        weights = (await by_keyword(connection, words, Filter(parts.clock()), 10)).weights
    assert weights is not None
    assert weights.word_factor == 1.0
