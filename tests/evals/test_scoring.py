"""Scorers with known answers, written by hand: facts that are kept, changed, contradicted or made up."""

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evals.case_files import Language
from evals.scoring import cues
from evals.scoring.claims import claims, one_source, unsupported
from evals.scoring.dates import names_day
from evals.scoring.gold import Atom, FactChange, Gold, LogRow
from evals.scoring.matching import Fate, Judge, KeptRow
from evals.scoring.meaning import Meaning
from evals.scoring.scored import Scored, score
from evals.scoring.text import clauses, holds, sentences

AT = datetime(2026, 3, 4, 9, tzinfo=UTC)


def atom(fact: str, *exact: str, rows: tuple[str, ...] = ("r1",), **more: object) -> Atom:
    """Return an atom."""
    return Atom.model_validate({"fact": fact, "exact": exact, "rows": rows, **more})


def left(*texts: str) -> list[KeptRow]:
    """Return rows that cite the first row of the log."""
    return [KeptRow(f"o{number}", text, ("r1",)) for number, text in enumerate(texts, start=1)]


def scored(gold: Gold, rows: list[KeptRow], meaning: Meaning, *log: str, language: Language = "en") -> Scored:
    """Return the scores of rows for a log of these texts."""
    told = [LogRow(id=f"r{number}", at=AT, text=text) for number, text in enumerate(log, start=1)]
    return score(gold, told, rows, Judge(language, meaning))


# Of several rows ------------------------------------------------------------------------------------------------------

_DEPLOYS = atom("Deploys go to Fly.io, region fra.", "Fly.io", "fra")
_TOLD = (
    "Deploys go to Fly.io, region fra.",
    "Deploys go to Fly.io. The region is fra, and soup is served.",
    "Releases are shipped to Fly.io in fra.",
    "Deploys do not go to Fly.io, region fra.",
    "A blog claims that deploys go to Fly.io, region fra.",
    "Deploys went from Fly.io, region fra, to the box hel1-04.",
    "Deploys go to Fly.io, region ams.",
    "We had soup at Fly.io in fra.",
    "We had soup.",
)


@given(st.lists(st.tuples(st.sampled_from(_TOLD), st.sampled_from([(), ("r1",), ("r2",)])), max_size=6))
def test_the_verdict_on_a_fact_is_the_best_of_all_rows(
    meaning: Meaning, said: list[tuple[str, tuple[str, ...]]]
) -> None:
    rows = [KeptRow(f"o{number}", text, sources) for number, (text, sources) in enumerate(said)]
    by = Judge("en", meaning)
    alone = [verdict for row in rows if (verdict := by.judge(_DEPLOYS, [row])).row]
    together = by.judge(_DEPLOYS, rows)
    assert together == min(alone, key=by._order, default=together)
    assert (together.fate == "lost") is not bool(alone)


# Words ----------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "words", "there"),
    [
        ("listens on 8377.", "8377", True),
        ("listens on 18377", "8377", False),
        ("took 5.2 s", "5", False),
        ("took 5,2 s", "5", False),
        ("took 5, then 6", "5", True),
        ("用了900，03:12结束", "900", True),
        ("C-08用E7，C-80是对照", "C-80", True),
        ("see auth.tsx", "auth.ts", False),
        ("see `auth.ts`, line 4", "auth.ts", True),
        ("v1.2.3", "v1.2", False),
        ("no Fridays", "Friday", True),
        ("nach 14 Tagen", "Tage", True),
        ("Anna came", "Anne", False),
        ("FLY.IO", "fly.io", True),
    ],
)
def test_words_match_literally_and_not_inside_other_words(text: str, words: str, there: bool) -> None:
    assert holds(text, words, "de" if "Tag" in text else "en") is there


def test_a_text_is_split_into_sentences_and_clauses_but_not_at_abbreviations() -> None:
    assert sentences("It is open whether Dr. Ito agrees. Then we go. 今日は休み。明日行く。") == (
        "It is open whether Dr. Ito agrees.",
        "Then we go.",
        "今日は休み。",
        "明日行く。",
    )
    assert sentences("It lives for 36 h. Then it goes. J. Doe said so.") == (
        "It lives for 36 h.",
        "Then it goes.",
        "J. Doe said so.",
    )
    assert clauses("Use pnpm, not npm", "en") == ["Use pnpm", "not npm"]
    assert clauses("Use pnpm instead of npm", "en") == ["Use pnpm", "instead of npm"]


# Facts ----------------------------------------------------------------------------------------------------------------

_RULE = atom("Never deploy on a Friday.", "Friday")
_PORT = atom("The staging API listens on port 8377.", "8377")
_PNPM = atom("Use pnpm, not npm.", "pnpm")


@pytest.mark.parametrize(
    ("wanted", "text", "fate"),
    [
        (_PORT, "The staging API listens on port 8377.", "verbatim"),
        (_PORT, "Port 8377 is where the API of staging listens, behind nginx.", "verbatim"),
        (_PORT, "Staging's backend can be reached at :8377.", "by meaning"),
        (_PORT, "The staging API listens on port 8378.", "changed"),
        (_PORT, "The staging API does not listen on port 8377.", "contradicted"),
        (_PORT, "Whales sing in the bay.", "lost"),
        (_RULE, "Never deploy on Fridays, said the user.", "verbatim"),
        (_RULE, "Deploy on a Friday.", "contradicted"),
        (_RULE, "It is not true that one should never deploy on a Friday.", "contradicted"),
        (_RULE, "Always deploy on a Friday.", "contradicted"),
        (_PNPM, "pnpm is used instead of npm.", "verbatim"),
        (_PNPM, "Do not use pnpm.", "contradicted"),
        (_PNPM, "We deploy on Mondays; use pnpm.", "verbatim"),
        (atom("Signature checks are enabled."), "Signature checks are disabled.", "contradicted"),
    ],
)
def test_a_row_shows_the_fate_of_a_fact(wanted: Atom, text: str, fate: Fate, meaning: Meaning) -> None:
    assert Judge("en", meaning).judge(wanted, left("Whales sing.", text)).fate == fate


@pytest.mark.parametrize(
    ("fact", "exact", "text", "kept"),
    [
        # A denial in other words or in another position is the same denial.
        ("200 runs had no failure.", ("200",), "200 runs without a failure.", True),
        (
            "It failed in 1 of 9 runs on arm-3 and in none on x64-1.",
            ("1", "9"),
            "arm-3: 1 of 9 runs failed; x64-1: never.",
            True,
        ),
        (
            "No floats and no Decimal are allowed in the ledger.",
            (),
            "Both floats and Decimal are ruled out in the ledger.",
            True,
        ),
        (
            "heron-17 had a loss of 1.4 at step 400, and no NaN.",
            ("heron-17",),
            "heron-17 got to step 400 without a NaN, loss 1.4.",
            True,
        ),
        ("Rooms cost at most 130 EUR.", ("130 EUR",), "Rooms cost no more than 130 EUR.", True),
        ("The job is not started before 10:00.", ("10:00",), "The job starts no earlier than 10:00.", True),
        # An added or missing denial, or the opposite.
        ("200 runs had no failure.", ("200",), "200 runs had a failure.", False),
        (
            "The CI gets neither --forked nor retries.",
            ("--forked",),
            "The CI gets --forked and retries as a safety net.",
            False,
        ),
        ("Rooms cost at most 130 EUR.", ("130 EUR",), "Rooms cost at least 130 EUR.", False),
        ("Above 2 Gbit the uplink costs 4 cents.", ("2 Gbit",), "Up to 2 Gbit the uplink costs 4 cents.", False),
        (
            "The rate is never above 1e-4 without warm-up.",
            ("1e-4",),
            "Without warm-up the rate is never below 1e-4.",
            False,
        ),
        ("Never deploy on a Friday.", ("Friday",), "Deploy on a Friday.", False),
        # Pairs that belong together are torn apart.
        (
            "web-1 is 10.0.0.17, and web-2 is 10.0.0.71.",
            ("web-1", "web-2"),
            "web-1 has 10.0.0.17 and web-2 has 10.0.0.71.",
            True,
        ),
        (
            "web-1 is 10.0.0.17, and web-2 is 10.0.0.71.",
            ("web-1", "web-2"),
            "web-1 has 10.0.0.71 and web-2 has 10.0.0.17.",
            False,
        ),
        ("pro-eu takes 310 GB.", ("pro-eu", "310 GB"), "pro-eu has 4 TB; prod-eu stays at 310 GB.", False),
        ("pro-eu takes 310 GB.", ("pro-eu", "310 GB"), "prod-eu has 4 TB; pro-eu stays at 310 GB.", True),
        # A current value is reported as a former one.
        ("The batch size of Heron is 64.", ("64",), "The batch size of Heron went from 64 to 256.", False),
        ("The batch size of Heron is 64.", ("64",), "The batch size of Heron went from 32 to 64.", True),
        ("The batch size of Heron is 64.", ("64",), "The batch size of Heron is 64, down from 640.", True),
        # Units, flags and parts of words are neither limits nor denials.
        ("The job takes at most 10 minutes.", ("10",), "The job takes at most 10 min.", True),
        (
            "git commit --no-verify is used for the import.",
            ("--no-verify",),
            "For the import git commit --no-verify is used.",
            True,
        ),
        ("Release 2.0 is not deployed on a Friday.", ("2.0",), "Release 2.0 is deployed on a Friday.", False),
        # An opinion is stated as a fact.
        ("A blog claims that Loomcast 3 drops Markdown.", ("Loomcast 3",), "Loomcast 3 drops Markdown.", False),
        (
            "A blog claims that Loomcast 3 drops Markdown.",
            ("Loomcast 3",),
            "Loomcast 3 drops Markdown, according to a blog.",
            True,
        ),
        (
            "The assistant thinks that the curve looks undertrained.",
            (),
            "To the assistant's eye the curve looks undertrained.",
            True,
        ),
        ("No flush, db 4 included.", ("db 4",), "Flushing is prohibited, and that includes db 4.", True),
        ("No merge without Anne.", ("Anne",), "Merging is forbidden as long as Anne is away.", True),
        ("No merge is done without Anne.", ("Anne",), "Without Anne nobody does a merge.", True),
        ("Files of at most 20 MB are read.", ("20 MB",), "Files over 20 MB are turned away, not read.", True),
        (
            "For Porto the flight CV 518 is fine.",
            ("CV 518",),
            "Nothing speaks against the flight CV 518 to Porto.",
            True,
        ),
        ("The paper must be brought along.", (), "The paper must not be forgotten, it is to be brought along.", True),
        ("Strict mode is on in production.", (), "Strict mode is off in production.", False),
        ("Only Ben signs releases.", ("Ben",), "Nobody except Ben signs releases.", True),
        # Roles: who does what to whom.
        ("The disk is slower than the link.", (), "The link is slower than the disk.", False),
        ("postgres calls the archiver.", ("postgres",), "The archiver calls postgres.", False),
        ("Ben reviews the changes of Mara.", ("Ben", "Mara"), "Mara reviews the changes of Ben.", False),
        ("Ben reviews the changes of Mara.", ("Ben", "Mara"), "The changes of Mara are reviewed by Ben.", True),
        ("The token was revoked by Ben.", ("Ben",), "Ben revoked the token.", True),
        ("On Tuesday Ben updates the docs.", ("Ben",), "Ben updates the docs on Tuesday.", True),
    ],
)
def test_a_paraphrase_is_distinguished_from_a_change_of_meaning(
    fact: str, exact: tuple[str, ...], text: str, kept: bool, meaning: Meaning
) -> None:
    assert Judge("en", meaning).judge(atom(fact, *exact), left(text)).kept is kept


@pytest.mark.parametrize(
    ("language", "fact", "text", "kept"),
    [
        ("de", "Das Buchen nimmt niemand außer Jona ab.", "Außer Jona nimmt niemand das Buchen ab.", True),
        (
            "de",
            "Die Prüfung findet nicht vor November statt.",
            "Die Prüfung findet frühestens im November statt.",
            True,
        ),
        ("de", "Kein Laufen bis zum MRT am 6. August.", "Bis zum MRT am 6. August wird nicht gelaufen.", True),
        ("de", "Die 31 Abweichungen werden nicht nachgebucht.", "Die 31 Abweichungen werden nachgebucht.", False),
        ("de", "Nur Jona nimmt ab.", "Niemand außer Jona nimmt ab.", True),
        ("es", "Solo Ana firma.", "Nadie salvo Ana firma.", True),
        ("es", "Por página se admiten como máximo 100.", "Por página no se admiten más que 100.", True),
        ("es", "El panel no usa offset, usa cursor.", "El panel usa offset, no usa cursor.", False),
        ("zh", "正文不得超过30页。", "正文最多30页。", True),
        ("zh", "接口的时间戳用毫秒，不用秒。", "接口时间戳的单位是毫秒，弃用秒。", True),
        ("zh", "供应商必须签字。", "供应商不必签字。", False),
        ("ja", "再起動は手動でしなければならない。", "再起動は手動でする必要がある。", True),
        ("ja", "列名の変更は可能。", "列名の変更は不可能。", False),
        ("ja", "計測には旧型を使わず、新型を選ぶ。", "計測には旧型を使い、新型を選ぶ。", False),
        ("ja", "空行は必ずエラーにする。", "空行は例外なくエラーにする。", True),
        ("ja", "積算は最低64回。", "積算は多くても64回までとする。", False),
    ],
)
def test_a_paraphrase_is_distinguished_from_a_change_of_meaning_in_other_languages(
    language: Language, fact: str, text: str, kept: bool, meaning: Meaning
) -> None:
    assert Judge(language, meaning).judge(atom(fact), left(text)).kept is kept


@pytest.mark.parametrize(
    ("language", "fact", "kept", "turned"),
    [
        ("de", "Freitags wird nie ausgeliefert.", "Nie wird freitags ausgeliefert.", "Freitags wird ausgeliefert."),
        ("es", "Nunca se despliega los viernes.", "Los viernes nunca se despliega.", "Los viernes se despliega."),
        ("zh", "周五不部署生产环境。", "用户：周五不部署生产环境。", "周五部署生产环境。"),
        ("ja", "金曜日には本番へ出さない。", "金曜日には本番へ出さない、と決めた。", "金曜日には本番へ出す。"),
    ],
)
def test_a_denial_is_recognised_in_every_language(
    language: Language, fact: str, kept: str, turned: str, meaning: Meaning
) -> None:
    by = Judge(language, meaning)
    assert by.judge(atom(fact), left(kept)).kept
    assert not by.judge(atom(fact), left(turned)).kept


def test_a_row_that_cites_the_source_of_a_fact_decides_its_verdict(meaning: Meaning) -> None:
    rows = [
        KeptRow("other", "The staging API listens on port 8377, says a rumour.", ("r9",), "tool"),
        KeptRow("own", "Port 8377 is where the staging API listens.", ("r1",), "user"),
    ]
    verdict = Judge("en", meaning).judge(_PORT, rows)
    assert verdict.row is not None
    assert verdict.row.id == "own"


# Replaced values ------------------------------------------------------------------------------------------------------

_MOVED = FactChange(
    old=(atom("Deploys go to Fly.io.", "Fly.io"),), new=atom("Deploys go to the box hel1-04.", "hel1-04")
)
_LOG = ("Deploys go to Fly.io.", "Deploys go to the box hel1-04.")


@pytest.mark.parametrize(
    ("rows", "right"),
    [
        (["Deploys go to the box hel1-04."], True),
        (["Deploys go to the box hel1-04 (before: Fly.io)."], True),
        (["Deploys go to the box hel1-04.", "History of deploys: they go to Fly.io."], True),
        (["Deploys moved from Fly.io to the box hel1-04."], True),
        (["Deploys, first planned for Fly.io, go to the box hel1-04."], True),
        (["Deploys go to the box hel1-04.", "Deploys to Fly.io are history."], True),
        (["Deploys go to the box hel1-04.", "Deploys no longer go to Fly.io."], True),
        (["Deploys go to the box hel1-04.", "Deploys go to Fly.io."], False),
        (["Deploys go to Fly.io."], False),
        (["Deploys went somewhere."], False),
        (["Deploys go to the box hel1-04.", "Deploys go to Fly.io. They go to the region fra."], False),
    ],
)
def test_a_replaced_value_may_only_be_mentioned_as_past(rows: list[str], right: bool, meaning: Meaning) -> None:
    made = scored(Gold(replaced=(_MOVED,)), left(*rows), meaning, *_LOG)
    assert (made.figures["supersession"].share == 1.0) is right


def test_a_value_that_changed_twice_is_not_excused_by_its_first_change(meaning: Meaning) -> None:
    twice = FactChange(
        old=(atom("The limit is 10 MB.", "10 MB"), atom("The limit is 20 MB.", "20 MB")),
        new=atom("The limit is 50 MB.", "50 MB"),
    )
    log = ("The limit is 10 MB.", "The limit is 20 MB.", "The limit is 50 MB.")
    gold = Gold(replaced=(twice,))
    half = scored(gold, left("The limit is 50 MB.", "The limit was changed from 10 MB to 20 MB."), meaning, *log)
    whole = scored(gold, left("The limit is 50 MB, after 10 MB and 20 MB."), meaning, *log)
    assert (half.figures["supersession"].share, whole.figures["supersession"].share) == (0.0, 1.0)


# Open facts, unsettled facts, rulings ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "right"),
    [
        ("The move to ARM is put off until Q3.", True),
        ("The move to ARM has been postponed; it waits until Q3.", True),
        ("The move to ARM was completed in Q3.", False),
        ("The move to ARM comes in Q3.", True),
        ("The move to ARM is fixed for Q3.", True),
        ("The move to ARM has been put on the agenda for Q3.", True),
        ("The move to ARM happened in Q3.", False),
    ],
)
def test_a_deferral_stays_a_deferral(text: str, right: bool, meaning: Meaning) -> None:
    gold = Gold(open=(atom("The move to ARM is put off until Q3.", "ARM", "Q3"),))
    made = scored(gold, left(text), meaning, "The move to ARM is put off until Q3.")
    assert (made.figures["still open"].share == 1.0) is right


@pytest.mark.parametrize(
    ("text", "right"),
    [
        ("The flag --fast is used for beta customers only.", True),
        ("The flag --fast is used for beta customers.", False),
    ],
)
def test_a_limit_stays_a_limit(text: str, right: bool, meaning: Meaning) -> None:
    gold = Gold(open=(atom("The flag --fast is used for beta customers only.", "--fast"),))
    made = scored(gold, left(text), meaning, "The flag --fast is used for beta customers only.")
    assert (made.figures["still open"].share == 1.0) is right


@pytest.mark.parametrize(
    ("fact", "text", "right"),
    [
        # An undecided fact must stay undecided; "later" is not enough.
        ("Whether the office moves is decided in May.", "The office may or may not move: open until May.", True),
        ("Whether the office moves is decided in May.", "The office moves, as decided.", True),
        ("Whether the office moves is decided in May.", "The office will move in May.", False),
        ("Guests may not print for now.", "Guests may not print for the time being.", True),
        ("Guests may not print for now.", "Guests may not print.", False),
        ("Guests may not print until the firewall stands.", "Guests may not print.", False),
        ("The cards get new firmware in July.", "Firmware for the cards: pencilled in for July.", True),
        ("The tokenizer is planned for autumn.", "The tokenizer was finished as planned in autumn.", False),
        ("A night costs at most 130 EUR.", "A night does not exceed 130 EUR.", True),
        ("kiln-3 only has 768 MiB.", "The 768 MiB are an exception for kiln-3.", True),
        ("kiln-3 only has 768 MiB.", "kiln-3 has 768 MiB.", False),
    ],
)
def test_every_kind_of_reservation_must_stay(fact: str, text: str, right: bool, meaning: Meaning) -> None:
    made = scored(Gold(open=(atom(fact),)), left(text), meaning, fact)
    assert (made.figures["retention"].share, made.figures.get("still open") is not None) == (1.0, True)
    assert (made.figures["still open"].share == 1.0) is right


@pytest.mark.parametrize(
    ("text", "right"),
    [
        ("Jobs are restarted by hand, always.", True),
        ("Jobs are restarted by hand where possible.", False),
        ("Jobs are restarted by hand, though that was reopened.", False),
        ("Jobs behind the reverse proxy are always restarted by hand.", True),
    ],
)
def test_a_softened_or_reopened_ruling_is_a_fault(text: str, right: bool, meaning: Meaning) -> None:
    gold = Gold(asserted=(atom("Jobs are always restarted by hand."),))
    made = scored(gold, left(text), meaning, "Jobs are always restarted by hand.")
    assert (made.figures["ruling stands"].share == 1.0) is right


@pytest.mark.parametrize(
    ("text", "right"),
    [
        ("Ben suggested to move the store to Redis; nothing was decided.", True),
        ("Should we move the store to Redis?", True),
        ("If you ask Ben, the store moves to Redis.", True),
        ("The store may be moved to Redis.", True),
        ("The store moves to Redis.", False),
        ("The store moves to Redis by Friday.", False),
        ("Once a day the store moves to Redis.", False),
        ("Whales sing.", True),
    ],
)
def test_a_suggestion_must_not_become_a_fact(text: str, right: bool, meaning: Meaning) -> None:
    gold = Gold(unsettled=(atom("The store moves to Redis.", "Redis"),))
    made = scored(gold, left(text), meaning, "Ben: shall we move the store to Redis?")
    assert (made.figures["not taken for fact"].share == 1.0) is right


@pytest.mark.parametrize(
    ("said", "language", "right"),
    [
        ("The fix has been deployed.", "en", True),
        ("The fix has not been deployed.", "en", False),
        ("IPv6 waits for a fixed prefix.", "en", False),
        ("The release has been rescheduled to May.", "en", False),
        ("ARM is out of scope until Q3.", "en", False),
        ("Die Umstellung wurde auf Q3 verschoben.", "de", False),
        ("La versión quedó aplazada.", "es", False),
        ("La versión quedó por decidir.", "es", False),
        ("发布推迟了。", "zh", False),
        ("測定は延期しました。", "ja", False),
        ("測定は延期になった。", "ja", False),
        ("Die Umstellung wurde abgeschlossen.", "de", True),
        ("修复还没部署。", "zh", False),
        ("迁移已完成。", "zh", True),
        ("移行は完了した。", "ja", True),
        ("La migración ya está hecha.", "es", True),
    ],
)
def test_done_is_distinguished_from_not_done(said: str, language: Language, right: bool) -> None:
    assert cues.is_done(said, language) is right


# Rows -----------------------------------------------------------------------------------------------------------------


def test_quotations_identifiers_and_numbers_of_a_text_are_found_as_claims() -> None:
    found = claims('Ana Ruiz set ESKER_URL to "http on 8377" in auth.ts:45 on 2026-03-04, 1,200 times.')
    assert {(claim.kind, claim.words) for claim in found} >= {
        ("quotation", "http on 8377"),
        ("identifier", "ESKER_URL"),
        ("identifier", "auth.ts:45"),
        ("number", "1,200"),
    }


@pytest.mark.parametrize(
    ("text", "source"),
    [
        ("It runs on srv-1.", "It runs on srv-12."),
        ("See auth.ts:4.", "See auth.tsx:4."),
        ("It took 3.5 s.", "It took 13.52 s."),
        ("It was told to Ben.", "The benefit was told."),
        ("It was on 2019-03-04.", "It was on 2026-03-04."),
    ],
)
def test_a_part_of_a_longer_word_or_number_is_unsupported(text: str, source: str) -> None:
    assert unsupported(text, source)
    assert not unsupported(text, text)


@pytest.mark.parametrize(
    ("text", "from_nowhere"),
    [
        ("The service checkout-api runs 3 replicas.", []),
        ("On 4 March 2026 Maria Keller deployed it.", []),
        ("It was 1200 requests.", []),
        ("It was api/replicas, 3-5 of them.", []),
        ("It was api/whales, 3-9 of them.", ["3-9", "api/whales"]),
        # Parts from unrelated places of the log must not be joined.
        ("It is in api/requests, 3-1200 of them.", ["3-1200", "api/requests"]),
        ("The service checkout-api2 runs 4 replicas.", ["checkout-api2", "4"]),
        ("On 5 March Peter Keller deployed it.", ["5 march", "Peter Keller"]),
        ('"We never test."', ["We never test."]),
    ],
)
def test_claims_that_no_source_contains_are_named(text: str, from_nowhere: list[str]) -> None:
    log = ["checkout-api, an api, has 3 replicas, at times 3 to 5", "2026-03-04: Maria Keller deployed; 1,200 requests"]
    assert sorted(claim.words for claim in unsupported(text, one_source(log))) == sorted(from_nowhere)


@pytest.mark.parametrize(
    "text",
    [
        "on 2026-03-04",
        "on 4 March 2026",
        "March 4th",
        "am 4. März 2026",
        "el 4 de marzo de 2026",
        "2026年3月4日",
        "3月4日",
        "4 to 6 March",
    ],
)
def test_a_day_is_recognised_in_any_common_notation(text: str) -> None:
    assert names_day(text, AT.date())
    assert not names_day(text, AT.date().replace(day=7))
    assert not names_day(text, AT.date().replace(month=5))


def test_a_verb_is_not_a_month() -> None:
    assert not unsupported("Step 3 may fail.", "Step 3 may well fail.")
    assert unsupported("It fails on 3 May.", "Step 3 may well fail.")


def test_rows_that_repeat_or_cite_badly_are_found(meaning: Meaning) -> None:
    log = ("We use pnpm for the web client.", "The piano was tuned in May.")
    rows = [
        KeptRow("a", "We use pnpm for the web client.", ("r1",)),
        KeptRow("b", "The web client: we use pnpm for it.", ("r1",)),
        KeptRow("c", "The piano was tuned in May.", ("r1",)),
        KeptRow("d", "The piano was tuned.", ()),
        KeptRow("e", "The piano was tuned in May!", ("r7",)),
    ]
    figures = scored(Gold(), rows, meaning, *log).figures
    assert [fault.split(" ")[0] for fault in figures["sources"].faults] == ["c", "d", "e"]
    assert [fault.split(" ")[0] for fault in figures["said once"].faults] == ["b", "e"]


def test_speaker_and_date_are_read_from_the_row_that_keeps_the_fact(meaning: Meaning) -> None:
    gold = Gold(keep=(atom("We use pnpm.", "pnpm", by="user", dated="2026-03-04"),))
    log = "We use pnpm."
    right = KeptRow("o", "We use pnpm.", ("r1",), "user", AT)
    wrong = KeptRow("o", "We use pnpm.", ("r1",), "assistant", AT.replace(day=9))
    told = KeptRow("o", "User said on 4 March: we use pnpm.", ("r1",))
    good, bad, by_words = (scored(gold, [row], meaning, log).figures for row in (right, wrong, told))
    assert [good[name].share for name in ("attribution", "dates")] == [1.0, 1.0]
    assert [bad[name].share for name in ("attribution", "dates")] == [0.0, 0.0]
    assert [by_words[name].share for name in ("attribution", "dates")] == [1.0, 1.0]


@pytest.mark.parametrize(
    ("language", "noise", "text", "gone"),
    [
        ("en", "The user bets on cosmic rays.", "The user's money is on cosmic rays.", False),
        ("en", "The assistant praised the reviews.", "The reviews were found to be pleasantly clear.", False),
        ("en", "The assistant listed the editors that it knows.", "pnpm is what the web client is built with.", True),
        ("zh", "用户说先去厨房热饭。", "用户中途去厨房热了饭。", False),
        ("zh", "用户说先去厨房热饭。", "网页客户端用 pnpm 构建。", True),
        ("ja", "猫がキーボードに乗った。", "途中、猫がキーボードに上がる一幕もあった。", False),
    ],
)
def test_paraphrased_noise_is_noise(language: Language, noise: str, text: str, gone: bool, meaning: Meaning) -> None:
    gold = Gold(keep=(atom("pnpm is used."),), noise=(atom(noise),))
    figures = scored(gold, left(text), meaning, noise, language=language).figures
    assert (figures["noise gone"].share == 1.0) is gone


def test_a_row_with_sources_of_several_speakers_has_no_attribution_score(meaning: Meaning) -> None:
    gold = Gold(keep=(atom("We use pnpm.", "pnpm", by="user"),))
    log = [LogRow(id="r1", at=AT, text="We use pnpm."), LogRow(id="r2", at=AT, text="pnpm 9 is there.", by="tool")]
    by = Judge("en", meaning)
    several = score(gold, log, [KeptRow("o", "We use pnpm, 9 is there.", ("r1", "r2"), "tool")], by).figures
    from_source = score(gold, log, [KeptRow("o", "We use pnpm.", ("r1",))], by).figures
    wrong_source = score(gold, log, [KeptRow("o", "We use pnpm.", ("r2",))], by).figures
    assert "attribution" not in several
    assert (from_source["attribution"].share, wrong_source["attribution"].share) == (1.0, 0.0)


@pytest.mark.parametrize(
    ("text", "who"),
    [
        ("The user uses pnpm.", "user"),
        ("The assistant said that we use pnpm.", "assistant"),
        ("El agente usa pnpm.", None),
        ("用户使用 pnpm。", "user"),
        ("User-Agent is set by pnpm, which we use.", None),
        ("Tool versions are pinned by pnpm, which we use.", None),
    ],
)
def test_the_speaker_is_read_from_whole_words_at_the_beginning(text: str, who: str | None, meaning: Meaning) -> None:
    gold = Gold(keep=(atom("We use pnpm.", "pnpm", by="user"),))
    found = score(gold, [], [KeptRow("o", text)], Judge("en", meaning)).figures.get("attribution")
    assert (found.share if found else None) == (None if who is None else float(who == "user"))


@pytest.mark.parametrize("behind", ["All this was a lie.", "It is not true that one ever did so.", "Just kidding."])
def test_a_fact_that_its_own_row_takes_back_is_not_kept(behind: str, meaning: Meaning) -> None:
    fact = atom("The staging API listens on port 8377.", "8377")
    assert not Judge("en", meaning).judge(fact, left(f"The staging API listens on port 8377. {behind}")).kept


def test_long_lists_are_scored_in_linear_time(meaning: Meaning) -> None:
    # With a quadratic or cubic search these would take minutes.
    fact = atom("web-1 runs with 17 GB and web-2 with 71 GB.", "web-1", "web-2")
    pairs = "; ".join(f"ed-{number} at {number}, web-1 at 17, web-2 at 71" for number in range(600))
    assert Judge("en", meaning).judge(fact, left(pairs)).fate != "contradicted"
    assert unsupported("a" * 40_000, "b") == []


def test_a_contradicting_row_is_not_hidden_by_one_with_some_of_its_words(meaning: Meaning) -> None:
    fact = atom("The mutant S-131 shows no activity.", "S-131", rows=("r1",))
    turned = KeptRow("a", "The mutant S-131 shows activity.", ("r1",))
    beside = KeptRow("b", "S-113 is the wild type, S-131 the mutant.", ("r2",))
    assert Judge("en", meaning).judge(fact, [turned, beside]).fate == "contradicted"


def test_remaining_noise_and_invented_words_are_found(meaning: Meaning) -> None:
    gold = Gold(noise=(atom("Anycast was explained.", "Anycast"),), never=("Kubernetes",))
    log = "Anycast was explained."
    good = scored(gold, left("We use pnpm."), meaning, log).figures
    bad = scored(gold, left("Anycast was explained, and Kubernetes."), meaning, log).figures
    assert (good["noise gone"].share, good["never said"].share) == (1.0, 1.0)
    assert (bad["noise gone"].share, bad["never said"].share) == (0.0, 0.0)


def test_sizes_are_counted_and_scores_without_material_are_left_out(meaning: Meaning) -> None:
    gold = Gold(keep=(atom("We use pnpm.", "pnpm"), atom("We use Bun.", "Bun")))
    made = scored(gold, left("We use pnpm."), meaning, "We use pnpm for everything that we build here.", "We use Bun.")
    assert (made.kept, made.facts) == (1, 2)
    assert made.tokens_after < made.tokens_before
    assert made.per_thousand_tokens == 1_000 / made.tokens_after
    assert "supersession" not in made.figures
