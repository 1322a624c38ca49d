"""The extractive reflector: fewer rows, fewer words, and nothing else."""

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from esker.server.core.conversation.trust import at_least_as_trusted, lowest_trust
from esker.server.core.facts.condensing import judge
from esker.server.core.facts.records import Reflected, ReflectionTask
from esker.server.core.facts.same_fact import fingerprint, same_fact
from esker.server.core.records import Memory
from esker.server.core.text.tokens import estimate_tokens
from esker.server.providers.extractive.hindsight import Hindsight
from esker.server.providers.extractive.joining import JOINED_TOKENS
from esker.server.providers.extractive.reflector import reflect
from tests.support.records import observation

ROOMY = 100_000
DIALOGUES = Path(__file__).parents[1] / "cases" / "changes.jsonl"
THINGS = "server client page table index queue worker cache token login export import build deploy hook layer".split()
PAIRS = [(one, other) for one in THINGS for other in THINGS]


def log(*rows: tuple[str, str, str, str]) -> list[Memory]:
    """Return observations from (content, priority, category, trust), one message each."""
    return [
        observation(content, seq, priority=priority, category=category, trust=trust)
        for seq, (content, priority, category, trust) in enumerate(rows, start=1)
    ]


def condensed(rows: Sequence[Memory], target: int = ROOMY, **changes: Any) -> Reflected:
    """Condense rows."""
    return reflect(ReflectionTask(tuple(rows), target, "UTC", "session", **changes))


RULE = ("User preference: Never use floats for money.", "high", "preference", "user")
ASKED = ("User asked: Fix the login.", "low", "fact", "user")
FAILED = ("`make test` failed: KeyError: 'id' — cause: the id was renamed.", "medium", "issue", "tool")
CHANGED = ("Changed src/login.py — asked: Fix the login.", "low", "state_change", "assistant")
FIXED = ("Outcome: Fixed the login.", "medium", "outcome", "assistant")


def test_a_persons_ruling_stays_verbatim_in_a_row_of_its_own() -> None:
    rows = log(ASKED, RULE, FAILED, CHANGED, FIXED)
    drafts = condensed(rows).drafts
    [rule] = [draft for draft in drafts if "floats" in draft.content]
    assert rule.content == RULE[0]
    assert rule.source_ids == (rows[1].id,)
    assert (rule.priority, rule.category) == ("high", "preference")


def test_a_request_is_merged_into_its_outcome_and_the_rows_between_stay_separate() -> None:
    rows = log(ASKED, FAILED, CHANGED, FIXED)
    drafts = condensed(rows).drafts
    assert [draft.content for draft in drafts] == [FAILED[0], CHANGED[0], FIXED[0]]
    assert drafts[2].source_ids == (rows[3].id, rows[0].id)


def test_repeats_become_one_row_with_the_latest_wording_and_all_sources() -> None:
    rows = log(RULE, FAILED, FIXED, ("User preference: never use floats for money!", "high", "preference", "user"))
    [rule] = [draft for draft in condensed(rows).drafts if "floats" in draft.content]
    assert rule.content == "User preference: never use floats for money!"
    assert rule.source_ids == (rows[0].id, rows[3].id)


def test_a_question_without_an_outcome_is_left_out_and_named() -> None:
    rows = log(RULE, ASKED)
    reflected = condensed(rows)
    assert [draft.content for draft in reflected.drafts] == [RULE[0]]
    assert reflected.dropped_ids == (rows[1].id,)


def test_a_persons_statement_is_kept_whatever_its_outcome() -> None:
    wrote = ("User said: also german comments in code are fine but identifiers stay english", "low", "fact", "user")
    asked = (
        "User asked: yes do both but the aggregate should be 15 min not hourly, the harbour pilots need that",
        "low",
        "fact",
        "user",
    )
    changed = ("Changed src/a.ts", "low", "state_change", "assistant")
    said = [draft.content for draft in condensed(log(RULE, wrote, changed, asked, changed)).drafts]
    assert any("identifiers stay english" in text for text in said)
    assert any("15 min not hourly" in text for text in said)
    assert not any("src/a.ts" in text for text in said)


def test_rows_that_must_all_be_kept_are_unchanged() -> None:
    assert condensed(log(RULE)).drafts == ()
    assert condensed([]).drafts == ()


def test_a_ruling_that_is_repeated_counts_from_its_latest_statement() -> None:
    first, other = ruling("User decision: the shop is on port 80."), ruling("User decision: the shop moved to port 81.")
    assert left(first, other, first) == [first[0]]


def test_the_least_important_rows_are_dropped_first_when_space_is_short() -> None:
    open_ends = [(f"Assistant left open: step {n} of the plan.", "low", "next_step", "assistant") for n in range(20)]
    reflected = condensed(log(RULE, *open_ends), 60)
    contents = [draft.content for draft in reflected.drafts]
    assert RULE[0] in contents
    assert "step 19" in contents[-1]
    assert not any("step 0 " in content for content in contents)
    assert sum(estimate_tokens(content) for content in contents) <= 60


# Older values --------------------------------------------------------------------------------------------------------


def ruling(text: str, category: str = "decision") -> tuple[str, str, str, str]:
    return (text, "high", category, "user")


def left(*rows: tuple[str, str, str, str], **changes: Any) -> list[str]:
    """Return the texts that are left of rows; a row is added that goes, so that there is something to condense."""
    return [draft.content for draft in condensed(log(*rows, ASKED), **changes).drafts]


OTHER_VALUES = {
    "a unit": (
        "The ceiling for the kitchen is 18,500 EUR.",
        "The ceiling for the kitchen is 19,800 EUR, hob included.",
    ),
    "a key": ("In the worker MAX_TRIES is 3.", "MAX_TRIES=5 in the worker from this release on."),
    "a file": ("The settings of plugins live in cobalt.yaml.", "The settings of plugins are in cobalt.toml."),
    "a name in code": ("The hook for each page is called on_page.", "The hook for each page is called page_ready."),
    "a day": ("The launch of the shop is on 14 May 2026.", "The launch of the shop is now on 21 May 2026."),
    "a version": ("The target kernel of the fleet is 6.6.31.", "The target kernel of the fleet is 6.6.34."),
    "in German": (
        "Der Importer bleibt bis zum 30.09.2026 parallel.",
        "Der Importer bleibt parallel bis zum 16.10.2026.",
    ),
    "in Spanish": (
        "Producción guarda las copias 35 días.",
        "Producción guarda las copias 60 días, lo exige el contrato.",
    ),
    "in Chinese": ("稿件RSC-4471的截止日是6月5日。", "稿件RSC-4471的截止日改为6月30日。"),
    "in Japanese": ("波長の補正値は+0.35 nm。", "波長の補正値は+0.12 nmに変更。"),
    "a change told in other words": (
        "The ceiling for the kitchen renovation is 18,500 EUR.",
        "User raised the ceiling for the kitchen to 19,800 EUR.",
    ),
    "a value that is left": ("Deploys go to Fly.io, region fra.", "Leave Fly.io; deploys go to the box hel1-04."),
    "a number of the same noun": (
        "checkout-eu goes to build 7709.",
        "Build 7714 is innocent, checkout-eu goes to it again.",
    ),
    "a subject in the last clause": (
        "La mudanza a Olmo 14 es el 29 de agosto de 2026.",
        "La furgoneta no está libre, la mudanza pasa al 31 de agosto de 2026.",
    ),
    "a verb of asking that asks nobody": (
        "Loom 3 asks for Python 3.10.",
        "User decision: Loom 3 asks for Python 3.11.",
    ),
}


@pytest.mark.parametrize("name", OTHER_VALUES)
def test_the_newest_value_replaces_an_older_one_and_cites_it(name: str) -> None:
    old, new = (ruling(f"User decision: {text}") for text in OTHER_VALUES[name])
    rows = log(old, RULE, new)
    drafts = condensed(rows).drafts
    assert [draft.content for draft in drafts] == [RULE[0], new[0]]
    assert drafts[1].source_ids == (rows[2].id, rows[0].id)


def test_a_value_that_changed_twice_leaves_the_last_one_that_cites_both() -> None:
    rows = log(*(ruling(f"User decision: printers at Fennel Street are in VLAN {number}.") for number in (30, 35, 38)))
    [draft] = condensed(rows).drafts
    assert draft.content == rows[2].content
    assert {*draft.source_ids} == {row.id for row in rows}


OTHER_THINGS = {
    "another name": ("In Tallow PAGE_SIZE is 50.", "In Quarry PAGE_SIZE is 200."),
    "another identifier": ("The share of api-gw-1 is 100 %.", "The share of api-gw-11 is 50 %."),
    "another number as the subject": ("VLAN 20 is for desks in the office.", "VLAN 30 is for printers in the office."),
    "an identifier as the subject": ("The backup of db-a1 is weekly.", "The backup of db-b1 is monthly."),
    "a limit to one case": ("The worker has 512 MiB of memory.", "The worker has 768 MiB of memory on kiln-3 only."),
    "another unit": ("The proxy timeout is 30 s.", "The proxy timeout of health checks is 300 ms."),
    "a row that says more": ("The rate is 3e-4, batch size 64, seed 1207.", "The rate is 2e-4 from now on."),
    "another number of the same noun": ("VLAN 20 is for desks.", "VLAN 30 is for desks and printers."),
    "another part of a thing": ("The colours of the theme are hex.", "The names of the colours changed to English."),
    "a person and a path of theirs": (
        "Anna Brodt reviews what is under src/parser.",
        "Anne Brandt reviews what is under db/migrations.",
    ),
    "a question that is reported": (
        "The deploy of the shop keeps copies for 60 days.",
        "User asked what would happen with 14 days for the copies of the shop.",
    ),
    "another page": ("The admin page is on port 9000.", "The metrics page moved to port 9100."),
    "another place": (
        "The importer sends batches of 100.",
        "The importer sends batches of 50 in the newsletter job now.",
    ),
    "an environment in French": (
        "Les logs sont conservés 30 jours.",
        "Sur la recette, les logs sont conservés 7 jours maintenant.",
    ),
    "a narrower case": ("The upload limit is 10 MB.", "The upload limit for guests is 5 MB."),
    "a condition": ("The gateway timeout is 30 seconds.", "If the gateway timeout is 45 seconds, the export works."),
    "a question": ("The base delay is 400 ms.", "Should the base delay be 200 ms?"),
}


@pytest.mark.parametrize("name", OTHER_THINGS)
def test_a_ruling_on_something_else_replaces_nothing(name: str) -> None:
    first, second = (ruling(f"User decision: {text}") for text in OTHER_THINGS[name])
    assert left(first, second) == [first[0], second[0]]


@pytest.mark.parametrize("trust", ["assistant", "tool", "external"])
def test_only_the_user_replaces_a_ruling_of_the_user(trust: str) -> None:
    old = ruling("User decision: the target kernel of the fleet is 6.6.31.")
    said = ("The target kernel of the fleet is 6.6.34.", "high", "decision", trust)
    assert left(old, said) == [old[0], said[0]]


def test_a_stale_copy_of_an_older_value_is_dropped_and_lends_its_trust_to_no_row() -> None:
    old = ruling("User decision: the crown fitting is on 17 March 2026 at 09:00.")
    new = ruling("User corrected: the crown fitting is now on 19 March 2026 at 15:45.", "state_change")
    rows = log(old, new, ("calendar: Crown fitting, 17 March 2026 09:00", "medium", "fact", "tool"))
    reflected = condensed(rows)
    assert [draft.content for draft in reflected.drafts] == [new[0]]
    assert reflected.drafts[0].source_ids == (rows[1].id, rows[0].id)
    assert reflected.dropped_ids == (rows[2].id,)


TAKEN_BACK = {
    "a value that was a mistake": ("The assay goes to pH 8.0.", "pH 8.0 was a mistake, the assay stays at pH 7.6."),
    "a decision": (
        "The query layer of Ferrybook goes to diesel.",
        "User takes that back: the query layer is sqlx again.",
    ),
    "in German": ("Der Export läuft über den Cron-Server.", "Der Export über den Cron-Server war ein Fehler."),
}


@pytest.mark.parametrize("name", TAKEN_BACK)
def test_a_ruling_that_is_taken_back_is_dropped(name: str) -> None:
    old, new = (ruling(text) for text in TAKEN_BACK[name])
    assert left(old, new) == [new[0]]


def test_a_withdrawal_takes_back_the_latest_ruling_on_the_thing_and_nothing_else() -> None:
    first = ruling("The query layer of Ferrybook is tested against Postgres.")
    other = ruling("The colours of the theme are hex.")
    latest = ruling("The query layer of Ferrybook goes to diesel.")
    back = ruling("User takes that back: the query layer of Ferrybook stays as it was.")
    assert left(first, latest, other, back) == [first[0], other[0], back[0]]


@pytest.mark.parametrize("category", ["decision", "state_change"])
def test_a_dialogue_in_which_nothing_changes_outdates_no_ruling(category: str) -> None:
    wrong: list[tuple[str, ...]] = []
    for line in DIALOGUES.read_text(encoding="utf-8").splitlines():
        dialogue = json.loads(line)
        rows = log(*map(ruling, dialogue["earlier"]), ruling(dialogue["later"], category))
        if dialogue["outcome"] == "kept" and Hindsight({}).outdated(rows):
            wrong.append((*dialogue["earlier"], dialogue["later"]))
    assert wrong == []


def test_a_question_is_dropped_when_a_later_row_answers_it_and_stays_otherwise() -> None:
    asked = ("User asked: does the search index of the shop need a rebuild?", "medium", "next_step", "user")
    answer = ("The search index of the shop needs no rebuild.", "medium", "fact", "assistant")
    other = ("The login page of the blog is slow.", "medium", "fact", "assistant")
    assert left(asked, answer) == [answer[0]]
    assert left(asked, other) == [asked[0], other[0]]
    assert left(answer, asked) == [answer[0], asked[0]]


def test_an_open_matter_is_dropped_when_a_later_row_reports_its_end() -> None:
    open_matter = ("Assistant: the invoices and tariffs are next to move.", "medium", "next_step", "assistant")
    ended = ("The invoices and tariffs are moved.", "medium", "outcome", "assistant")
    assert left(open_matter, ended) == [ended[0]]
    urgent = (open_matter[0], "high", "next_step", "assistant")
    assert left(urgent, ended) == [urgent[0], ended[0]]


def test_a_row_is_compared_with_twenty_others_at_most() -> None:
    rows = log(
        *((f"The {a} of the {b} takes {n} seconds.", "medium", "fact", "tool") for n, (a, b) in enumerate(PAIRS))
    )
    compared = 0

    def counted(newer: Any, older: Any) -> bool:
        nonlocal compared
        compared += 1
        return False

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("esker.server.providers.extractive.hindsight.outdates", counted)
        Hindsight({}).outdated(rows)
    assert compared <= 20 * len(rows)


def test_a_date_that_another_clause_moves_is_outdated_in_chinese() -> None:
    moved = ("医院来电，白内障手术改到3月25日上午，还是先做右眼。", "high", "state_change", "user")
    assert left(ruling("妈妈的白内障手术定在3月18日上午。"), moved) == [moved[0]]


def test_a_repeat_by_a_tool_lends_its_trust_to_no_ruling() -> None:
    rule = "Uploads are never larger than 20 MB."
    rows = log((rule, "medium", "preference", "tool"), (rule, "medium", "preference", "user"))
    reflected = condensed(rows)
    assert [draft.source_ids for draft in reflected.drafts] == [(rows[1].id,)]
    assert reflected.dropped_ids == (rows[0].id,)


def test_a_suspicion_is_dropped_when_the_cause_is_found() -> None:
    suspected = ("Assistant suspects the clock of the runner of being the cause.", "medium", "fact", "assistant")
    found = ("Assistant found the cause: test_locale leaves LC_ALL set.", "high", "fact", "assistant")
    assert left(suspected, found) == [found[0]]
    assert left(found, suspected) == [found[0], suspected[0]]


def test_a_tools_report_on_a_wrong_suspicion_is_dropped_with_it() -> None:
    suspected = ("Assistant suspects the job on port 5433 of being the cause.", "medium", "fact", "assistant")
    tried = ("50 runs with port 5433 reserved: 6 failures.", "medium", "fact", "tool")
    other = ("50 runs in their own processes: 0 failures.", "medium", "fact", "tool")
    found = ("Assistant found the cause: test_locale leaves LC_ALL set.", "high", "fact", "assistant")
    assert left(suspected, tried, other, found) == [other[0], found[0]]
    assert left(suspected, tried, other) == [suspected[0], tried[0], other[0]]


def test_a_choice_that_is_left_open_is_dropped_when_the_user_makes_it() -> None:
    for undecided, made in (
        ("User: induction or gas is undecided.", "User decision: induction, the model IH-64."),
        ("レンタカーを借りるかどうかは未定。", "今回レンタカーは借りない。バスで行く。"),
    ):
        choice = (undecided, "medium", "next_step", "user")
        assert left(choice, ruling(made)) == [made]
        assert left(choice, (made, "medium", "fact", "assistant"))[0] == undecided
        assert left(choice, ruling("User decision: the worktop is oak.")) == [
            undecided,
            "User decision: the worktop is oak.",
        ]


def test_a_decision_about_a_person_settles_no_choice_about_them() -> None:
    choice = ("User: whether Fenwick Street moves is undecided.", "medium", "next_step", "user")
    about = ruling("User decision: the footage at Fenwick Street is kept.")
    assert left(choice, about) == [choice[0], about[0]]


def test_a_failure_is_dropped_when_an_outcome_says_that_it_works() -> None:
    failed = ("pytest: test_total fails, 98.00 expected, got 97.99.", "high", "issue", "tool")
    works = ("Outcome: test_total passes since commit e0b47d2.", "medium", "outcome", "assistant")
    other = ("Outcome: test_sums passes since commit e0b47d2.", "medium", "outcome", "assistant")
    begun = ("Outcome: test_total has a smaller input since commit e0b47d2.", "medium", "outcome", "assistant")
    assert left(failed, works) == [works[0]]
    assert left(failed, other) == [failed[0], other[0]]
    assert left(failed, begun) == [failed[0], begun[0]]


def test_a_status_is_dropped_when_a_tool_reports_a_later_one_of_the_same_thing() -> None:
    status = ("checkout-eu answers 503 to 61 % of the requests.", "medium", "issue", "tool")
    later = ("checkout-eu at 03:04 UTC: 0.2 % errors.", "medium", "outcome", "tool")
    other = ("checkout-us at 03:04 UTC: 0.2 % errors.", "medium", "outcome", "tool")
    assert left(status, later) == [later[0]]
    assert left(status, other) == [status[0], other[0]]


def test_a_statement_of_the_assistant_is_dropped_when_the_user_says_no_to_it() -> None:
    said = ("Assistant found: H2 is confirmed at the 5 % level.", "medium", "outcome", "assistant")
    no = ("User: no, with four hypotheses H2 is not significant.", "high", "issue", "user")
    agrees = ("User: with four hypotheses H2 is not significant.", "high", "issue", "user")
    begins = ("User: no hypothesis but H2 was tested.", "high", "issue", "user")
    assert left(said, begins) == [said[0], begins[0]]
    elsewhere = ("User: no, the report has three pages.", "high", "issue", "user")
    assert left(said, no) == [no[0]]
    assert left(said, agrees) == [said[0], agrees[0]]
    assert left(said, elsewhere) == [said[0], elsewhere[0]]


def test_a_report_that_the_user_calls_wrong_is_dropped() -> None:
    report = ("Agreement script, round 2: kappa 0.71.", "medium", "outcome", "tool")
    wrong = ("User: the kappa of round 2 is wrong, Vera was counted twice.", "high", "issue", "user")
    by_assistant = (wrong[0], "high", "issue", "assistant")
    found = (report[0], "medium", "issue", "tool")
    other = ("Agreement script, round 3: kappa 0.71.", "medium", "outcome", "tool")
    assert left(report, wrong) == [wrong[0]]
    assert left(found, wrong) == [found[0], wrong[0]]
    assert left(other, wrong) == [other[0], wrong[0]]
    assert left(report, by_assistant) == [report[0], by_assistant[0]]


@pytest.mark.parametrize(
    ("said", "ruled"),
    [
        ("Freezer F2 reports -80 °C.", "User: do not believe F2's display; the probe shows -61 °C."),
        ("Die Hotline behauptete, der Vertrag laufe bis August.", "User: Es gilt der Brief, nicht die Hotline."),
        ("Web de La Encina: toda la carta es apta.", "User: nada de fritos, aunque la web diga otra cosa."),
        ("恒温箱屏幕显示25.0 °C。", "恒温箱的屏幕不准，热电偶实测28.4 °C。"),
        ("SP-20の画面：「校正OK」。", "画面の表示は信用しない。ずれが残っている。"),
    ],
)
def test_a_report_is_dropped_when_the_user_does_not_believe_its_source(said: str, ruled: str) -> None:
    told, other = (said, "medium", "fact", "external"), ("The lab is closed on Fridays.", "medium", "fact", "external")
    assert left(told, other, ruling(ruled)) == [other[0], ruled]
    assert left((*told[:3], "assistant"), ruling(ruled)) == [said, ruled]
    assert left(told, (ruled, "high", "fact", "assistant")) == [said, ruled]


def test_a_changed_name_is_outdated_by_the_same_sentence_with_another_unless_both_can_be_true() -> None:
    old, new = (
        (f"結果：10月{day}日、本番の primary は {name} になった。", "medium", "outcome", "assistant")
        for day, name in ((3, "db-a2"), (6, "db-b1"))
    )
    assert left(old, new) == [new[0]]
    one, other = (
        (f"The export module of the shop uses {name}.", "medium", "fact", "assistant")
        for name in ("on_page", "on_draft")
    )
    assert left(one, other) == [one[0], other[0]]


# Questions and offers ------------------------------------------------------------------------------------------------

PASSED_OVER = [
    ("User asked: would waves of 8 do any harm?", "medium", "next_step", "user"),
    ("User fragte, ob vier Stellen besser wären.", "medium", "fact", "user"),
    ("Assistant proposed to reboot the nodes through the script.", "medium", "next_step", "assistant"),
    ("アシスタントは、自動推定を先に済ませる案を出した。", "medium", "next_step", "assistant"),
]


@pytest.mark.parametrize("row", PASSED_OVER, ids=lambda row: row[0])
def test_a_question_or_an_offer_is_dropped_once_the_user_went_on(row: tuple[str, str, str, str]) -> None:
    assert left(row, RULE) == [RULE[0]]
    assert left(RULE, row) == [RULE[0], row[0]]
    assert left((row[0], "high", *row[2:]), RULE) == [row[0], RULE[0]]
    [asked, went_on] = log(row, RULE)
    condensed_before = replace(went_on, kind="reflection")
    assert row[0] in [draft.content for draft in condensed([asked, condensed_before, *log(NOISE[0])]).drafts]


def test_an_offer_that_gives_a_cause_stays() -> None:
    offered = (
        "Assistant schlug vor, die Probe wegzulassen, weil die Prüfsummen stimmen.",
        "medium",
        "next_step",
        "assistant",
    )
    assert left(offered, RULE) == [offered[0], RULE[0]]
    asked = ("User fragte, ob die Probe wegfallen kann, weil die Prüfsummen stimmen.", "medium", "fact", "user")
    assert left(asked, RULE) == [RULE[0]]


def test_a_question_of_the_assistant_is_dropped_once_a_later_session_took_place_and_one_of_the_user_stays() -> None:
    for text, trust, kept in (
        ("Assistant asked whether the order should be reversed.", "assistant", []),
        ("User asked: would the other order be better?", "user", ["User asked: would the other order be better?"]),
    ):
        asked, found = log((text, "medium", "fact", trust), ("The build takes 40 s.", "medium", "fact", "tool"))
        rows = [asked, replace(found, session_id="another"), *log(ASKED)]
        assert [draft.content for draft in condensed(rows).drafts] == [*kept, found.content]


def test_a_ruling_that_quotes_a_question_is_not_a_question() -> None:
    agreed = ("User agreed (“yes”) to: The import is unused. Shall I remove it?", "medium", "decision", "user")
    done = ("Assistant found: The paths were wrong. — asked: where were we?", "medium", "fact", "assistant")
    assert left(agreed, done, RULE) == [agreed[0], done[0], RULE[0]]


# Restatements --------------------------------------------------------------------------------------------------------


def test_a_restatement_that_the_user_calls_one_is_merged_into_the_earlier_row() -> None:
    first = ("User: an aisle seat for me, a window seat for Nuria.", "medium", "preference", "user")
    again = ("User: as always, aisle for me, Nuria gets the window.", "medium", "fact", "user")
    rows = log(first, again, ASKED)
    [kept] = condensed(rows).drafts
    assert (kept.content, kept.category) == (first[0], "preference")
    assert kept.source_ids == (rows[0].id, rows[1].id)
    unmarked = ("User: the aisle for me, Nuria gets the window.", "medium", "fact", "user")
    assert left(first, unmarked) == [first[0], unmarked[0]]
    more = ("User: as always, aisle seat 14 for me, Nuria gets the window.", "medium", "fact", "user")
    assert left(first, more) == [first[0], more[0]]
    denied = ("User: as always, no aisle for me, Nuria gets the window.", "medium", "fact", "user")
    assert left(first, denied) == [denied[0]]
    besides = ("User: as always, Nuria gets the window and a book, and lunch comes from the bakery.", *again[1:])
    assert left(first, besides) == [first[0], besides[0]]
    pointing = ("ユーザー：その話は先日のとおり。", "medium", "fact", "user")
    primary = ("ユーザー：本番の primary は db-a1。", "medium", "fact", "user")
    assert left(primary, pointing) == [primary[0], pointing[0]]
    by_assistants = [(text, priority, category, "assistant") for text, priority, category, _ in (first, again)]
    assert left(*by_assistants) == [first[0], again[0]]
    assert left(first, by_assistants[1]) == [first[0], again[0]]


# Parts of a report ---------------------------------------------------------------------------------------------------


def report(*texts: str, **changes: Any) -> list[Memory]:
    """Return statements of one message of the assistant."""
    rows = log(*((text, "medium", "fact", "assistant") for text in texts))
    return [replace(row, said_at=rows[0].said_at, **changes) for row in rows]


def test_parts_of_a_report_become_one_row_that_names_heading_and_request_once() -> None:
    rows = report(
        "Assistant found: Model sizes: tiny.en has 75 MB. — asked: which model is best?",
        "Assistant found: Model sizes: large has 3 GB. — asked: which model is best?",
        "Assistant found: Licence: MIT. — asked: which model is best?",
    )
    drafts = condensed(rows).drafts
    assert [draft.content for draft in drafts] == [
        "Assistant found: Model sizes: tiny.en has 75 MB; large has 3 GB. — asked: which model is best?",
        rows[2].content,
    ]
    assert drafts[0].source_ids == (rows[0].id, rows[1].id)


@pytest.mark.parametrize("changes", [{"trust": "user"}, {"kind": "reflection"}, {"kind": "note"}])
def test_statements_of_a_person_and_condensed_ones_are_not_joined(changes: dict[str, Any]) -> None:
    rows = report("User said: Sizes: tiny has 75 MB.", "User said: Sizes: large has 3 GB.", **changes)
    assert [draft.content for draft in condensed([*rows, *log(ASKED)]).drafts] == [row.content for row in rows]


def test_a_long_statement_before_a_colon_is_not_a_heading() -> None:
    said = "Assistant found: The session is a signed token that lives for 15 minutes and is never renewed by a request"
    rows = report(f"{said}: this throws people out.", f"{said}: a slow booking is lost.")
    assert [draft.content for draft in condensed([*rows, *log(ASKED)]).drafts] == [row.content for row in rows]


def test_statements_with_the_words_that_they_answer_are_not_joined() -> None:
    asked = " (in answer to: “How large is it?”)"
    rows = report(*(f"Assistant found: Sizes: {name} has 75 MB.{asked}" for name in ("tiny", "large")))
    assert [draft.content for draft in condensed([*rows, *log(ASKED)]).drafts] == [row.content for row in rows]


def test_statements_of_two_messages_are_not_joined_and_keep_their_dates() -> None:
    rows = log(*((f"Sizes: the {name} has 75 MB.", "medium", "fact", "assistant") for name in ("base", "draft")))
    assert [draft.content for draft in condensed([*rows, *log(ASKED)]).drafts] == [row.content for row in rows]


# Noise ---------------------------------------------------------------------------------------------------------------

NOISE = [
    ("Test run of packages/web: 318 passed, 2 skipped.", "low", "outcome", "tool"),
    ("df on thistle-08: /var is 44 % full.", "low", "fact", "tool"),
    ("Assistant explained what a thundering herd is.", "low", "fact", "assistant"),
    ("Assistant retries the connection to thistle-12, attempt 8.", "low", "next_step", "assistant"),
    ("Assistant changed nine files for that.", "low", "state_change", "assistant"),
    ("User: lovely, thanks, off to find some coffee now.", "low", "fact", "user"),
    ("User: Gummistiefel sind nass, egal.", "low", "fact", "user"),
    ("ユーザー：今日は雨がひどいね。", "low", "fact", "user"),
    ("Assistant told how an 802.1Q tag is built.", "low", "fact", "assistant"),
    ("助手解释了 Unix 时间为什么从 1970 年开始。", "low", "fact", "assistant"),
    ("User: great, another PDF, bring me forty more of them.", "low", "fact", "user"),
    ("The brother thinks that they should give notice at once.", "low", "fact", "external"),
]


@pytest.mark.parametrize("row", NOISE, ids=lambda row: row[0])
def test_a_row_for_the_moment_is_dropped(row: tuple[str, str, str, str]) -> None:
    assert left(RULE, row) == [RULE[0]]


@pytest.mark.parametrize(
    "row",
    [
        ("Assistant found: the portal's entry was never edited.", "low", "fact", "assistant"),
        ("Assistant left open: the docs.", "low", "next_step", "assistant"),
        ("Committed: fix the login", "low", "outcome", "assistant"),
        ("Assistant reads the limit out of sender/config.py.", "low", "fact", "assistant"),
        ("User said: the export of Marejada is the largest.", "low", "fact", "user"),
        ("The search index is rebuilt at night.", "low", "fact", "user"),
        ("The retry loop doubles the delay.", "low", "fact", "assistant"),
        CHANGED,
        ("`make test` failed: KeyError: 'id'", "low", "issue", "tool"),
        ("User reported: It crashes now and then, and I would like to know why.", "low", "issue", "user"),
    ],
    ids=lambda row: row[0],
)
def test_a_detail_that_can_be_looked_up_stays(row: tuple[str, str, str, str]) -> None:
    assert left(RULE, row) == [RULE[0], row[0]]


def test_a_failure_without_a_cause_is_dropped_when_the_work_came_to_an_outcome() -> None:
    failed = ("`make test` failed: KeyError: 'id'", "low", "issue", "tool")
    assert left(failed, FIXED) == [FIXED[0]]
    assert left(FIXED, failed) == [FIXED[0], failed[0]]


def test_a_note_is_never_taken_for_noise() -> None:
    note = replace(log(NOISE[2])[0], kind="note")
    assert [draft.content for draft in condensed([note, *log(ASKED)]).drafts] == [note.content]


# Many changes of one file --------------------------------------------------------------------------------------------


def edits(count: int) -> list[tuple[str, str, str, str]]:
    return [
        (
            f"Changed src/theme/dark.json — asked: make grey number {n} a little brighter",
            "low",
            "state_change",
            "assistant",
        )
        for n in range(1, count + 1)
    ]


def test_eleven_changes_of_one_file_become_one_row_with_every_purpose_and_are_accepted() -> None:
    rows = log(*edits(11), FIXED)
    reflected = condensed(rows)
    changed, fixed = reflected.drafts
    assert changed.content.count("src/theme/dark.json") == 1
    assert all(f"grey number {n} " in changed.content for n in range(1, 12))
    assert changed.source_ids == tuple(row.id for row in rows[:-1])
    assert fixed.content == FIXED[0]
    assert judge(rows, reflected, ROOMY).problem is None


def test_a_row_of_changes_is_bounded_and_a_reflection_is_not_extended() -> None:
    drafts = condensed(log(*edits(200))).drafts
    assert len(drafts) < 50
    assert max(estimate_tokens(draft.content) for draft in drafts) <= JOINED_TOKENS
    first = replace(log(edits(1)[0])[0], kind="reflection")
    contents = [draft.content for draft in condensed([first, *log(*edits(3)[1:])]).drafts]
    assert contents[0] == first.content
    assert len(contents) == 2


# Any rows ------------------------------------------------------------------------------------------------------------

any_row = st.builds(
    lambda words, priority, category, trust: (" ".join(words) + ".", priority, category, trust),
    st.lists(
        st.sampled_from(
            "use pnpm never floats Redis fails tests pass done 部署 ECONNRESET port is 80 81 MAX=3 MAX=4 now".split()
        ),
        min_size=1,
        max_size=9,
    ),
    st.sampled_from(["high", "medium", "low"]),
    st.sampled_from(["decision", "preference", "fact", "issue", "next_step", "outcome", "state_change"]),
    st.sampled_from(["user", "assistant", "tool"]),
)


@given(st.lists(any_row, max_size=25), st.integers(min_value=10, max_value=400))
def test_a_reflection_is_smaller_and_accounts_for_every_row(rows: list[tuple[str, str, str, str]], target: int) -> None:
    before = log(*rows)
    reflected = condensed(before, target)
    if not reflected.drafts:
        return
    cited = [source for draft in reflected.drafts for source in draft.source_ids]
    assert len(cited) == len(set(cited))
    assert {*cited, *reflected.dropped_ids} == {row.id for row in before}
    assert sum(estimate_tokens(draft.content) for draft in reflected.drafts) < sum(row.tokens for row in before)


@given(st.lists(any_row, min_size=1, max_size=15))
def test_every_row_of_a_reflection_is_a_source_word_for_word(rows: list[tuple[str, str, str, str]]) -> None:
    before = {row.id: row for row in log(*rows)}
    for draft in condensed(list(before.values())).drafts:
        assert draft.content in {before[source].content for source in draft.source_ids}


@given(st.lists(any_row, min_size=1, max_size=15))
def test_no_row_of_high_priority_is_lost_unless_a_later_one_repeats_or_contradicts_it(
    rows: list[tuple[str, str, str, str]],
) -> None:
    before = log(*rows)
    reflected = condensed(before)
    texts = {draft.content for draft in reflected.drafts}
    outdated_ids = Hindsight({}).outdated(before).keys()
    cited = {source for draft in reflected.drafts for source in draft.source_ids}
    for row in before:
        if row.priority == "high" and reflected.drafts:
            stays = row.content in texts or row.id in cited or row.id in outdated_ids
            assert stays or any(is_said_by(other, row) for other in before if other.id != row.id)


def is_said_by(other: Memory, row: Memory) -> bool:
    """Whether a row that is trusted as much says the same, so that it stays alone."""
    same = same_fact(fingerprint(other.content), fingerprint(row.content))
    return same and at_least_as_trusted(other.trust, row.trust)


def written(before: Sequence[Memory], reflected: Reflected) -> list[Memory]:
    """Return the rows that a reflection becomes, by time."""
    by_id = {row.id: row for row in before}
    rows = [
        replace(
            max((by_id[source] for source in draft.source_ids), key=lambda row: row.said_at),
            id=f"ref_{place:03}",
            kind="reflection",
            content=draft.content,
            priority=draft.priority,
            category=draft.category,
            trust=lowest_trust(by_id[source].trust for source in draft.source_ids),
            source_seqs=[],
            tokens=estimate_tokens(draft.content),
        )
        for place, draft in enumerate(reflected.drafts)
    ]
    return sorted(rows, key=lambda row: (row.said_at, row.id))


RULINGS = [
    ruling(text) for pair in (*OTHER_VALUES.values(), *OTHER_THINGS.values(), *TAKEN_BACK.values()) for text in pair
]


STATES = [
    ("checkout-eu answers 503 to 61 % of the requests.", "medium", "issue", "tool"),
    ("checkout-eu at 03:04 UTC: 0.2 % errors, it works.", "medium", "outcome", "tool"),
    ("User: induction or gas is undecided.", "medium", "next_step", "user"),
    ("User decision: induction, the model IH-64.", "high", "decision", "user"),
    ("User: no, checkout-eu is not undecided.", "medium", "issue", "user"),
    ("User: as I said, induction is wrong for checkout-eu.", "medium", "fact", "user"),
    ("Assistant suspects checkout-eu of being the cause.", "medium", "fact", "assistant"),
    ("Assistant found the cause: test_locale leaves LC_ALL set.", "medium", "fact", "assistant"),
]


@given(
    st.lists(
        st.one_of(any_row, st.sampled_from([*edits(4), *NOISE, *RULINGS, *PASSED_OVER, *STATES, RULE, FAILED, FIXED])),
        max_size=20,
    )
)
def test_reflecting_a_reflection_changes_nothing(rows: list[tuple[str, str, str, str]]) -> None:
    before = log(*rows)
    once = written(before, condensed(before))
    assert condensed(once).drafts == ()


DONE = ("Outcome: `export.py` writes CSV now, and `test_export.py` passes.", "medium", "outcome", "assistant")


@pytest.mark.parametrize(
    "step",
    [
        ("Committed: Write the CSV export", "low", "outcome", "assistant"),
        ("Assistant found: `export.py` writes one file for each day.", "low", "fact", "assistant"),
        ("Outcome: `export.py` writes CSV now.", "medium", "outcome", "assistant"),
    ],
)
def test_a_step_is_left_out_once_later_rows_tell_of_all_that_it_names(step: tuple[str, str, str, str]) -> None:
    assert [draft.content for draft in condensed(log(step, RULE, DONE)).drafts] == [RULE[0], DONE[0]]


@pytest.mark.parametrize(
    "told",
    [
        ("Assistant found: `export.py` is slow because it reads each day twice.", "low", "fact", "assistant"),
        ("Assistant found: `export.py` asks `rates.py` for the currency.", "low", "fact", "assistant"),
        ("Assistant found: `export.py` needs at least 2 GB on the build server.", "medium", "fact", "assistant"),
        ("User said: it looks like the tool reads the folder with the --from switch.", "low", "fact", "user"),
    ],
)
def test_a_row_that_tells_a_cause_or_names_something_of_its_own_stays(told: tuple[str, str, str, str]) -> None:
    drafts = condensed(log(told, ASKED, RULE, DONE)).drafts
    assert told[0] in {draft.content for draft in drafts}
