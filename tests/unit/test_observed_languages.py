"""The extractive observer in every language: the same kinds of sentences become the same kinds of facts."""

import tomllib
from pathlib import Path

import pytest

from esker.server.core.conversation.records import Role
from esker.server.core.facts.records import Fact
from esker.server.core.text import labels
from esker.server.core.words.lists import LANGUAGES
from esker.server.providers.extractive.observer import observe
from tests.support.records import conversation

SENTENCES = tomllib.loads(Path(__file__).with_name("observed_languages.toml").read_text(encoding="utf-8"))
# Sentences of an agent; the others are the users'.
_NOT_FOUND = ("plea", "advice", "thinking", "restarted", "prediction", "alternative")
_REPORTED = ("done", "report", "was_missing", "is_missing", *_NOT_FOUND)
_NO_FACT = ("order", "order_to_show", "order_at_place", "order_to_look", "leaves_alone", "question", "supposition")
_SAYS_NOTHING = ("verdict", "preface")
# In every language, the assistant's message before a correction is this one. It leaves a fact of its own.
_BEFORE = "The retry limit is 3."


def _facts(language: str, kind: str) -> list[Fact]:
    text = SENTENCES[language][kind]
    if kind in _REPORTED:
        return list(observe(conversation(("user", "auth.py"), ("assistant", text))).facts)
    before: list[tuple[Role, str]] = [("assistant", _BEFORE)] if kind == "correction" else []
    shown = conversation(*before, ("user", text))
    return [fact for fact in observe(shown).facts if fact.source_seqs[-1] == len(shown.messages)]


def test_every_language_of_the_word_files_has_sentences() -> None:
    assert SENTENCES.keys() == set(LANGUAGES)


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize(
    ("kind", "label", "category", "priority"),
    [
        ("rule", labels.PREFERENCE, "preference", "high"),
        ("ban", labels.PREFERENCE, "preference", "high"),
        ("decision", labels.DECISION, "decision", "high"),
        ("correction", labels.CORRECTION, "decision", "high"),
        ("wish", labels.WANTS, "preference", "medium"),
        ("done", labels.OUTCOME, "outcome", "medium"),
    ],
)
def test_a_statement_becomes_a_fact_of_its_kind(
    language: str, kind: str, label: str, category: str, priority: str
) -> None:
    [fact] = _facts(language, kind)
    assert fact.content.startswith(label)
    assert (fact.category, fact.priority) == (category, priority)


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize(
    "kind",
    [
        "order",
        "order_to_show",
        "order_at_place",
        "order_to_look",
        "leaves_alone",
        "question",
        "supposition",
        "verdict",
        "preface",
    ],
)
def test_orders_of_the_moment_questions_and_suppositions_leave_no_fact(language: str, kind: str) -> None:
    assert _facts(language, kind) == []


@pytest.mark.parametrize("language", LANGUAGES)
def test_a_practice_of_the_users_is_a_fact(language: str) -> None:
    [fact] = _facts(language, "practice")
    assert fact.content == f"{labels.SAID}: {SENTENCES[language]['practice']}"
    assert fact.category == "fact"


@pytest.mark.parametrize("language", LANGUAGES)
def test_temporary_work_leaves_no_outcome(language: str) -> None:
    lasting = conversation(("user", "Log the durations."), ("assistant", "Added a timer to `run()` in `worker.py`."))
    assert [fact.category for fact in observe(lasting).facts] == ["outcome"]
    wish, report = SENTENCES[language]["temporary"], "Added a timer to `run()` in `worker.py`."
    assert observe(conversation(("user", wish), ("assistant", report))).facts == ()


@pytest.mark.parametrize("language", LANGUAGES)
def test_an_outcome_quotes_the_user_who_says_that_it_did_not_help(language: str) -> None:
    words = SENTENCES[language]["still_fails"]
    shown = conversation(("user", "auth.py"), ("assistant", "Fixed the login in `auth.py`."), ("user", words))
    [outcome] = [fact for fact in observe(shown).facts if fact.category == "outcome"]
    assert outcome.content == f"Outcome: Fixed the login in `auth.py`. (but then: “{words}”)"
    assert outcome.source_seqs == (2, 3)


@pytest.mark.parametrize("language", LANGUAGES)
def test_outcomes_of_all_turns_quote_the_user_who_threw_the_work_away(language: str) -> None:
    words = SENTENCES[language]["discards"]
    first: list[tuple[Role, str]] = [("user", "auth.py"), ("assistant", "Fixed the login in `auth.py`.")]
    second: list[tuple[Role, str]] = [("user", "run.py"), ("assistant", "Added a timer to `run()` in `worker.py`.")]
    outcomes = [fact for fact in observe(conversation(*first, *second, ("user", words))).facts if fact.trust != "user"]
    assert [(fact.category, fact.priority) for fact in outcomes] == [("outcome", "low")] * 2
    assert all(fact.content.endswith(f" (but then: “{words}”)") for fact in outcomes)


@pytest.mark.parametrize("language", LANGUAGES)
def test_a_suggestion_that_the_agent_adopts_is_the_users_decision(language: str) -> None:
    words = SENTENCES[language]["suggestion"]
    agreed = observe(conversation(("user", words), ("assistant", "Good idea."))).facts
    assert [fact.content for fact in agreed] == [f"User suggested: {words} (adopted by the assistant)"]
    assert [(fact.category, fact.trust, fact.source_seqs) for fact in agreed] == [("decision", "user", (1, 2))]
    assert observe(conversation(("user", words), ("assistant", "No."))).facts == ()
    assert observe(conversation(("user", words), ("assistant", "Good question."))).facts == ()


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("kind", ["third_party", "log"])
def test_the_words_of_others_never_become_a_ruling_of_the_user(language: str, kind: str) -> None:
    assert all(fact.priority == "low" and fact.category == "fact" for fact in _facts(language, kind))


@pytest.mark.parametrize("language", LANGUAGES)
def test_a_report_says_what_was_done_and_what_is_left(language: str) -> None:
    done, left = _facts(language, "report")
    assert (done.category, left.category) == ("outcome", "next_step")
    assert "auth.py" in done.content
    assert "30" in done.content
    assert left.content.startswith(labels.LEFT_OPEN)
    assert "billing.py" in left.content


@pytest.mark.parametrize("language", LANGUAGES)
def test_only_work_that_is_still_missing_is_left_open(language: str) -> None:
    assert [fact.category for fact in _facts(language, "is_missing")] == ["next_step"]
    assert all(fact.category != "next_step" for fact in _facts(language, "was_missing"))


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("kind", _NOT_FOUND)
def test_advice_considerations_and_restarts_of_an_agent_are_not_findings(language: str, kind: str) -> None:
    assert _facts(language, kind) == []


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("kind", ["anything_else", "plea"])
def test_a_courtesy_at_the_end_of_an_answer_is_not_answered(language: str, kind: str) -> None:
    courtesy = SENTENCES[language][kind]
    reply = SENTENCES[language]["was_missing"]
    shown = conversation(("user", "auth.py"), ("assistant", f"{_BEFORE} {courtesy}"), ("user", reply))
    assert all(courtesy not in fact.content for fact in observe(shown).facts)


@pytest.mark.parametrize("language", LANGUAGES)
def test_an_order_that_changes_a_value_is_a_decision(language: str) -> None:
    [fact] = _facts(language, "change")
    assert (fact.category, fact.priority in ("high", "medium")) == ("decision", True)
    assert "250" in fact.content
