"""Rows that state the same fact are distinguished from rows that only sound alike."""

import time

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from esker.server.core.facts.same_fact import (
    SAME_MEANING,
    fingerprint,
    gist_of_plain_words,
    may_be_same_fact,
    same_fact,
    same_meaning,
    same_subject,
    terms_of,
)
from esker.server.providers.local_embedder import LocalEmbedder

PARAPHRASES = [
    ("The deploy needs Node 22", "Deploying requires Node 22"),
    ("Sessions live in Redis", "Sessions are stored in Redis"),
    ("Anna owns billing", "Billing is owned by Anna"),
    ("The API returns 404 for unknown users", "For unknown users the API returns a 404"),
    ("User wants short answers", "The user prefers short answers"),
    ("The login bug was caused by an expired token", "An expired token caused the login bug"),
    ("Customer data must not leave the EU", "Customer data must never leave the EU"),
    ("The worker polls every 10 seconds", "The worker polls once every 10 seconds"),
    ("The search index is rebuilt every Sunday", "Every Sunday the search index gets rebuilt"),
    ("User is vegetarian", "The user is a vegetarian"),
    ("The flaky test was fixed by freezing the clock", "Freezing the clock fixed the flaky test"),
    ("User plans a trip to Japan in spring", "In spring the user is planning a trip to Japan"),
]
DIFFERENT = [
    ("Sessions live in Redis", "The cache lives in Redis"),
    ("Anna owns billing", "Anna owns invoicing"),
    ("Anna owns billing", "Ben owns billing"),
    ("Anna manages Ben", "Anna is managed by Ben"),
    ("Anna was replaced by Ben", "Anna replaced Ben"),
    ("The deploy needs Node 22", "The deploy needs Node 20"),
    ("The deploy needs Node 22", "The build needs Node 22"),
    ("User prefers tabs over spaces", "User prefers spaces over tabs"),
    ("User loves mushrooms on pizza", "User hates mushrooms on pizza"),
    ("Caching is enabled in staging", "Caching is disabled in staging"),
    ("Caching is enabled in staging", "Caching is enabled in production"),
    ("Service A calls service B", "Service B calls service A"),
    ("The team moved from MySQL to Postgres", "The team moved from Postgres to MySQL"),
    ("The team moved the data to MySQL from Postgres", "The team moved the data from MySQL to Postgres"),
    ("User uses Vim instead of Emacs for notes", "User uses Emacs instead of Vim for notes"),
    ("Redis replaced Memcached", "Memcached replaced Redis"),
    ("Releases are cut on Fridays", "Releases are cut on Mondays"),
    ("Tests pass on Linux", "Tests fail on Linux"),
    ("Deploys happen before the stand-up", "Deploys happen after the stand-up"),
    ("The hook runs before the commit and after the merge", "The hook runs after the commit and before the merge"),
    ("The cache is on and the log is off", "The cache is off and the log is on"),
    ("Sign in is slow on mobile", "Sign out is slow on mobile"),
    ("Notes always sync at night for the team", "Notes sometimes sync at night for the team"),
    ("The worker retries three times", "The worker retries five times"),
    ("The frontend is written in Vue", "The backend is written in Vue"),
    ("User may deploy to production", "User may not deploy to production"),
    ("User no longer uses MySQL for billing", "User uses MySQL for billing"),
    ("The client does not retry and logs errors", "The client retries and does not log errors"),
    ("The invoice service depends on the tax service", "The tax service depends on the invoice service"),
    ("If the cache is cold, the API is slow", "If the API is slow, the cache is cold"),
    ("Build the image, then push the tag", "Push the tag, then build the image"),
    ("The script converts CSV to JSON", "The script converts JSON to CSV"),
    ("The message came from Anna", "The message came to Anna"),
    ("The payment API is down", "The API is down"),
    ("User likes tea", "User likes green tea"),
    ("The team wants to use Kafka", "The team uses Kafka"),
    ("Logs must be kept for a year", "Logs are kept for a year"),
    ("Staging uses the old API", "Staging used the old API"),
    ("Anna was the owner of billing", "Anna is the owner of billing"),
    ("User will move to Berlin", "User moved to Berlin"),
    ("The team will use Kafka", "The team uses Kafka"),
    ("The team wants to use Kafka for the billing events", "The team uses Kafka for the billing events"),
    ("User is Anna's new manager", "Anna is the new manager of the user"),
    ("Sign in is slow on mobile phones for new users", "Sign out is slow on mobile phones for new users"),
    ("The flag is on by default for new users", "The flag is off by default for new users"),
    ("The delay has to be <50 ms", "The delay has to be >50 ms"),
    ("User works for Lena", "User works with Lena"),
    ("Rust and Go are allowed", "Rust or Go is allowed"),
    ("User did the review of the API", "User does the review of the API"),
    ("His flat is in Rome", "Her flat is in Rome"),
    ("How the deploy works", "Why the deploy works"),
    ("This key is valid", "That key is valid"),
    ("The team that owns the app uses Go", "The team owns the app that uses Go"),
    ("Data flows into the lake", "Data flows from the lake"),
    ("The mail is sent to Lena by Tom", "The mail is sent to Tom by Lena"),
    ("Anna leads the IT team of the bank in Rome", "Anna leads the HR team of the bank in Rome"),
    ("Every change of the billing code must wait for Anna", "Every change of the billing code waits for Anna"),
    ("User is back from Rome", "User is back in Rome"),
    ("The job is slow if the disk is full", "The job is slow and the disk is full"),
    ("The offset is -5", "The offset is 5"),
    ("Ports 80 81 81 are open", "Ports 80 80 81 are open"),
    ("The null pointer is in auth.ts:45", "The null pointer is in auth.ts:54"),
    (
        "The nightly export job writes its monthly sales report to the bucket and mails the press team",
        "The nightly export job writes its monthly sales report to the bucket and mails the legal team",
    ),
    (
        "The nightly export job of the EU region writes its report into the finance bucket",
        "The nightly export job of the US region writes its report into the finance bucket",
    ),
    ("用户喜欢红茶", "用户喜欢绿茶"),
    ("用户今天没有去公司开会", "用户今天去公司开会"),
    ("ユーザーはコーヒーを飲まない", "ユーザーはコーヒーを飲む"),
    ("Der Nutzer nutzt kein Docker für die Entwicklung", "Der Nutzer nutzt Docker für die Entwicklung"),
    ("L'équipe n'utilise pas Docker en production", "L'équipe utilise Docker en production"),
    ("El equipo nunca usa Docker en producción", "El equipo usa Docker en producción"),
]
ALIKE = [
    ("User preference: Never use floats for money.", "never use floats for money"),
    ("The deploy needs Node 22", "Deploys need Node 22!"),
    ("The backup runs every night at 02:00", "Backups run every night at 02:00."),
    ("Don’t push to main on Fridays", "Do not push to main on Fridays"),
    ("Deploys can't run on Fridays at noon", "Deploys cannot run on Fridays at noon"),
    ("Blue tea", "blue  tea."),
    ("Ask US sales about Berlin prices", "ask US sales about Berlin prices!"),
    ("The deploy of Billing in Berlin needs Node 22", "The deploy of Billing in Berlin needs Node 22 on Linux"),
    ("用户每天早上在公司喝一杯不加糖的红茶", "用户每天早上都在公司喝一杯不加糖的红茶"),
]

WORDS = "anchor basket candle dragon engine forest garden harbour island jacket kettle ladder magnet needle".split()
words = st.lists(st.sampled_from(WORDS), min_size=1, max_size=14)
facts = st.one_of(
    st.text(), words.map(" ".join), st.sampled_from([text for pair in DIFFERENT + ALIKE for text in pair])
)


@pytest.mark.parametrize(("one", "other"), ALIKE)
def test_a_fact_in_nearly_the_same_words_is_the_same_fact(one: str, other: str) -> None:
    assert same_fact(fingerprint(one), fingerprint(other))
    assert same_fact(fingerprint(other), fingerprint(one))


@pytest.mark.parametrize(("one", "other"), DIFFERENT)
def test_facts_that_differ_in_substance_are_never_the_same_at_any_cosine(one: str, other: str) -> None:
    first, second = fingerprint(one), fingerprint(other)
    assert not same_fact(first, second)
    assert not same_fact(second, first)
    assert not same_meaning(first, second, 1.0)
    assert not same_meaning(second, first, 1.0)


@pytest.mark.parametrize(("one", "other"), [("Tea, blue", "Blue tea"), ("👍", "👎"), ("", "-"), ("Blue tea", "Blue")])
def test_few_words_have_to_be_the_same_in_the_same_order(one: str, other: str) -> None:
    assert not same_fact(fingerprint(one), fingerprint(other))


@pytest.mark.parametrize(("one", "other"), [("👍", "👎"), ("", "-"), ("the", "not")])
def test_texts_without_words_have_no_meaning_in_common(one: str, other: str) -> None:
    assert not same_meaning(fingerprint(one), fingerprint(other), 1.0)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("on", "off"),
        ("enabled", "disables"),
        ("allows", "forbids"),
        ("loves", "hated"),
        ("before", "after"),
        ("up", "down"),
        ("in", "out"),
        ("true", "false"),
        ("adding", "removed"),
        ("always", "sometimes"),
    ],
)
def test_opposites_are_two_sides_of_one_pair(one: str, other: str) -> None:
    [(pair, side)] = fingerprint(f"It was {one}").directions
    [(other_pair, other_side)] = fingerprint(f"It was {other}").directions
    assert pair == other_pair
    assert side != other_side


async def test_paraphrases_are_recognised_by_the_bundled_model(minilm: LocalEmbedder) -> None:
    await minilm.load()
    vectors = iter(await minilm.embed([text for pair in PARAPHRASES for text in pair]))
    missed: list[tuple[str, str]] = []
    for one, other in PARAPHRASES:
        cosine = sum(a * b for a, b in zip(next(vectors), next(vectors), strict=True))
        if not same_meaning(fingerprint(one), fingerprint(other), cosine):
            missed.append((one, other))
    assert missed == []


@pytest.mark.parametrize(("one", "other"), PARAPHRASES)
def test_no_paraphrase_is_recognised_below_the_threshold(one: str, other: str) -> None:
    first, second = fingerprint(one), fingerprint(other)
    assert same_meaning(second, first, SAME_MEANING)
    assert not same_meaning(first, second, SAME_MEANING - 0.01)


@given(facts)
def test_a_fact_is_the_same_as_itself(text: str) -> None:
    assert same_fact(fingerprint(text), fingerprint(text))


@given(facts, facts, st.floats(-1, 1))
def test_sameness_is_symmetric(one: str, other: str, cosine: float) -> None:
    first, second = fingerprint(one), fingerprint(other)
    assert same_fact(first, second) == same_fact(second, first)
    assert same_meaning(first, second, cosine) == same_meaning(second, first, cosine)


@given(words, st.text("0123456789", min_size=1, max_size=80), st.data())
def test_a_different_digit_makes_a_different_fact(said: list[str], number: str, data: st.DataObject) -> None:
    place = data.draw(st.integers(0, len(number) - 1))
    digit = data.draw(st.sampled_from("0123456789").filter(lambda drawn: drawn != number[place]))
    other = number[:place] + digit + number[place + 1 :]
    one, another = (fingerprint(" ".join([*said, "port", value])) for value in (number, other))
    assert not same_fact(one, another)
    assert not same_meaning(one, another, 1.0)


@given(words, st.sampled_from(["not", "never", "no", "without", "nicht", "jamais", "sin", "instead"]), st.data())
def test_a_negation_makes_a_different_fact(said: list[str], negation: str, data: st.DataObject) -> None:
    place = data.draw(st.integers(0, len(said)))
    one, other = fingerprint(" ".join(said)), fingerprint(" ".join([*said[:place], negation, *said[place:]]))
    assert not same_fact(one, other)
    assert not same_meaning(one, other, 1.0)


@given(words, words, words)
def test_swapped_sides_make_a_different_fact(said: list[str], source: list[str], target: list[str]) -> None:
    # "From tea to tea tea" has the same words in the same order the other way round.
    assume(source + target != target + source)
    before, there, here = " ".join(said), " ".join(source), " ".join(target)
    one, other = fingerprint(f"{before} from {there} to {here}"), fingerprint(f"{before} from {here} to {there}")
    assert not same_fact(one, other)


@given(facts, facts)
def test_the_share_of_a_subject_is_between_0_and_1(newer: str, older: str) -> None:
    assert 0 <= same_subject(fingerprint(newer), fingerprint(older)) <= 1


def test_the_row_that_a_change_replaces_is_nearest_to_its_subject() -> None:
    change = fingerprint("User now uses MySQL instead of Postgres for billing")
    replaced = same_subject(change, fingerprint("User uses Postgres for billing"))
    others = [
        "User uses Postgres for analytics",
        "Billing emails go out on Fridays",
        "MySQL is slow on the laptop",
        "Anna owns billing",
    ]
    assert replaced > 0.75
    assert replaced > max(same_subject(change, fingerprint(other)) for other in others) + 0.2
    assert same_subject(change, fingerprint("User prefers dark mode")) == 0


def test_a_shared_subject_weighs_more_by_name_and_by_the_older_row() -> None:
    newer = fingerprint("The job of Anna fails in the morning")
    assert same_subject(newer, newer) == 1
    of_name = same_subject(newer, fingerprint("Tests for Anna"))
    of_time = same_subject(newer, fingerprint("Tests in the morning"))
    assert of_name > of_time > 0
    narrow, broad = fingerprint("Importer"), fingerprint("The importer fails on large files in the morning at home")
    assert same_subject(broad, narrow) > same_subject(narrow, broad)


def test_a_row_is_compared_with_thousands_in_milliseconds() -> None:
    kinds = [*WORDS, "Node", "src/a.ts", "not"]
    rows = [fingerprint(f"{kinds[n % 17]} {kinds[n % 7]} {kinds[n % 5]} {kinds[n % 3]} {n % 11}") for n in range(5_000)]
    started = time.process_time()
    for row in rows:
        same_fact(rows[0], row)
        same_meaning(rows[0], row, 1.0)
        same_subject(rows[0], row)
    assert time.process_time() - started < 0.25


def test_plain_words_have_no_gist_that_their_text_lacks() -> None:
    text = "Assistant said: (\"Deploys\"); we cannot ship auth.ts:45, n' don't e2e naïve. (replaces: the port is 80)"
    gist = gist_of_plain_words(text)
    assert "deploy" in gist
    assert gist <= set(fingerprint(text).gist)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("Anna owns billing", "Anna owns billing."),
        ("It is on.", "It is on"),
        ("The deploy of the billing server needs Node 22", "The deploy of the billing server always needs Node 22"),
    ],
)
def test_rows_that_state_the_same_fact_are_not_told_apart_by_their_terms_alone(one: str, other: str) -> None:
    assert same_fact(fingerprint(one), fingerprint(other))
    assert may_be_same_fact(terms_of(one), terms_of(other))
    assert not may_be_same_fact(terms_of(one), terms_of("Sessions live in Redis"))
