"""The extractive observer: statements and actions become facts, each with its sources."""

import time
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from esker.server.core.budgets import MAX_OBSERVATION_TOKENS
from esker.server.core.conversation.records import ROLES, Role
from esker.server.core.facts.records import Fact, TranscriptSlice
from esker.server.core.json_input import Json
from esker.server.core.records import Category, Priority
from esker.server.core.text.tokens import estimate_tokens
from esker.server.providers.extractive import observer
from esker.server.providers.extractive.observer import observe
from esker.server.providers.extractive.sentences import sentences
from tests.support.records import call, conversation, observation, result


def facts(shown: TranscriptSlice) -> list[Fact]:
    """Return the facts of a slice."""
    return list(observe(shown).facts)


def the_fact(*words: str, among: list[Fact]) -> Fact:
    """Return the one fact that contains all these words."""
    [found] = [fact for fact in among if all(word in fact.content for word in words)]
    return found


@pytest.mark.parametrize(
    ("said", "category", "priority"),
    [
        ("I always want pnpm in this repository, never npm.", "preference", "high"),
        ("please don't touch the generated files", "preference", "high"),
        ("i would only want e2e tests for AgentSession", "preference", "high"),
        ("Tests must not talk to the network.", "preference", "high"),
        ("We decided to name migrations by timestamp.", "decision", "high"),
        ("Let's go with Redis for the sessions.", "decision", "high"),
        ("No, that's wrong, the port is 8377.", "decision", "high"),
        ("Actually I meant the staging database.", "decision", "high"),
        ("The login page is broken on Safari.", "issue", "medium"),
        ("My sister lives in Rotterdam.", "fact", "medium"),
        ("Our staging server runs Debian 12.", "fact", "medium"),
        ("No emojis in commit messages.", "preference", "high"),
        ("TypeScript only please.", "preference", "high"),
        ("I usually code in Rust.", "preference", "high"),
        ("ok so the port should be 9000", "decision", "high"),
        ("Skip the docs.", "decision", "high"),
        ("Skip the docs for now.", "decision", "medium"),
        ("Release is every second Tuesday.", "fact", "medium"),
        ("Sarah owns the billing service.", "fact", "medium"),
        ("Name feature branches like feat/<ticket>-<slug>.", "decision", "high"),
        ("Our routes look like /users/{id}/orders/{order}.", "fact", "low"),
        ("Commit messages are written in English.", "fact", "medium"),
        ("Build-Logs liegen in S3.", "fact", "low"),
        ("Para la base de datos usamos Sequelize.", "fact", "medium"),
        ("Go back to Loguru in the worker.", "decision", "high"),
        ("Wir benutzen ab jetzt nur noch pnpm.", "preference", "high"),
        ("The CSV import works now.", "outcome", "medium"),
        ("Ich bevorzuge kurze Antworten.", "preference", "high"),
        ("Wir haben uns für Postgres entschieden.", "decision", "high"),
        ("Je préfère le thé vert.", "preference", "high"),
        ("Hemos decidido usar Kafka.", "decision", "high"),
        ("我们总是用 pnpm。", "preference", "high"),
        ("テストは必ず実行してください。", "preference", "high"),
    ],
)
def test_a_persons_assertion_is_kept_verbatim(said: str, category: Category, priority: Priority) -> None:
    [fact] = [fact for fact in facts(conversation(("user", said))) if said.rstrip(".。") in fact.content]
    assert (fact.category, fact.priority, fact.trust, fact.source_seqs) == (category, priority, "user", (1,))


@pytest.mark.parametrize(
    "said",
    [
        "Should we always use pnpm?",
        "why do we never test the importer?",
        "Would it be better to go with Redis instead of Postgres?",
    ],
)
def test_a_question_asserts_nothing(said: str) -> None:
    for fact in facts(conversation(("user", said))):
        assert fact.priority == "low"
        assert fact.content.startswith("User asked")


@pytest.mark.parametrize(
    "said",
    [
        "Database Schema & Setup (Migrations and Seeds)",
        "Mill Group Concerts Marketing Agency",
        "WE BUILD\nEVENTS\nTHAT SELL",
    ],
)
def test_a_heading_states_nothing(said: str) -> None:
    assert facts(conversation(("user", said))) == []
    rule = facts(conversation(("user", f"{said}\n\nNEVER PUSH TO `main`")))
    assert [fact.category for fact in rule] == ["preference"]


@pytest.mark.parametrize(
    "said",
    [
        "En app.py, buscá la sección del login.",
        "También mostrá el valor de USERS_FILE.",
        "Cerrá Vite y ejecutá el bat.",
    ],
)
def test_an_order_in_the_spanish_of_argentina_leaves_no_fact(said: str) -> None:
    assert facts(conversation(("user", said))) == []


def test_a_denied_or_planned_action_is_not_an_outcome() -> None:
    said = facts(
        conversation(
            ("user", "How far is it?"),
            ("assistant", "The fix is not deployed yet. It will be merged once the review is done."),
        )
    )
    assert not [fact for fact in said if fact.category == "outcome"]


def test_a_failure_is_kept_with_its_command_and_its_cause() -> None:
    [failure] = [
        fact
        for fact in facts(
            conversation(
                ("user", "Run the tests"),
                ("assistant", call("Bash", command="pnpm test")),
                ("user", result("3 passed\nError: read ECONNRESET\n", error=True)),
                ("assistant", "The root cause is that Redis drops silent sockets after 30 seconds."),
            )
        )
        if fact.category == "issue"
    ]
    assert "`pnpm test` failed: Error: read ECONNRESET" in failure.content
    assert "Redis drops silent sockets" in failure.content
    assert failure.source_seqs == (2, 3, 4)
    assert (failure.trust, failure.priority) == ("tool", "medium")


def test_an_agents_failed_attempts_are_not_facts() -> None:
    stumble = conversation(
        ("user", "Fix it"),
        ("assistant", call("Edit", file_path="/a.py")),
        ("user", result("Error: String to replace not found in file.", error=True)),
    )
    assert not [fact for fact in facts(stumble) if fact.category == "issue"]


def test_files_and_commits_of_a_turn_are_kept() -> None:
    found = facts(
        conversation(
            ("user", "Add a retry to the client"),
            ("assistant", call("Edit", "t1", file_path="src/client.ts")),
            ("assistant", call("Write", "t2", file_path="test/client.test.ts")),
            ("assistant", call("Bash", "t3", command='git add -A && git commit -m "Retry three times"')),
        )
    )
    changed = the_fact("src/client.ts", "test/client.test.ts", among=found)
    assert "Add a retry to the client" in changed.content
    assert changed.category == "state_change"
    assert the_fact("Committed: Retry three times", among=found).source_seqs == (4,)


def test_a_yes_is_kept_with_the_question_that_it_answers() -> None:
    found = facts(
        conversation(
            ("user", "People are logged out."),
            ("assistant", "I suggest moving sessions into Redis for 24 hours. Shall I do that?"),
            ("user", "Yes, do that."),
        )
    )
    agreed = the_fact("User agreed", among=found)
    assert "moving sessions into Redis for 24 hours" in agreed.content
    assert (agreed.category, agreed.source_seqs) == ("decision", (2, 3))


def test_an_answer_is_kept_with_its_question() -> None:
    found = facts(
        conversation(
            ("user", "Plan the refunds"),
            ("assistant", "Until when may a passenger ask for a refund?"),
            ("user", "Until two hours before departure."),
        )
    )
    assert "Until when may a passenger ask for a refund?" in the_fact("two hours before departure", among=found).content


def test_a_sentence_that_refers_to_another_is_kept_with_it() -> None:
    [fact] = facts(conversation(("user", "Let's keep the secret in Vault. Not today though, it waits for next week.")))
    assert fact.content.endswith("Vault. Not today though, it waits for next week.")


def test_an_image_is_mentioned() -> None:
    image: Json = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "AAAA"}}
    text: Json = {"type": "text", "text": "Our tablets show this: the Pay button is cut off."}
    [fact] = facts(conversation(("user", [text, image])))
    assert "(with an image): Our tablets show this: the Pay button is cut off." in fact.content
    question: Json = {"type": "text", "text": "What is missing in this sidebar of the staging page?"}
    [asked] = facts(conversation(("user", [image, question])))
    assert asked.content == f"User showed an image: {question['text']}"
    assert facts(conversation(("user", [image]))) == []


def test_a_fact_that_the_session_already_has_is_not_kept_again() -> None:
    once = facts(conversation(("user", "Never use floats for money.")))
    again = conversation(("user", "Never use floats for money."), previous=tuple(fact.content for fact in once))
    assert facts(again) == []


def test_injected_context_is_not_observed() -> None:
    pack = "<global_observations>\n* 🔴 2026-03-02 User preference: Always use tabs.\n</global_observations>"
    reminder = "<system-reminder>Never mention this reminder.</system-reminder>"
    assert facts(conversation(("user", pack), ("user", reminder), ("system", "You must always be brief."))) == []


def test_the_task_and_the_title_come_from_the_request() -> None:
    observed = observe(
        conversation(
            ("user", "Good morning. Please look into the sign-in code."),
            ("assistant", "Done: sessions last 24 hours. Next: rotate the cookie secret."),
            ("user", "Fix the footer on tablets."),
        )
    )
    assert observed.thread_title == "Please look into the sign-in code."
    assert observed.current_task == "Fix the footer on tablets."
    assert "rotate the cookie secret" in (observed.suggested_continuation or "")


texts = st.text(max_size=300) | st.lists(
    st.sampled_from(
        ["Always use", "never", "we decided", "Error: x", "```", "\n- ", "fixed.", "? ", "because", "好的。", "yes"]
    )
).map(" ".join)
turns: st.SearchStrategy[tuple[Role, str]] = st.tuples(st.sampled_from(ROLES), texts)


@given(st.lists(turns, min_size=1, max_size=8))
def test_every_fact_is_grounded_in_the_messages_that_it_cites(said: list[tuple[Role, str]]) -> None:
    shown = conversation(*said)
    by_seq = {message.seq: message for message in shown.messages}
    for fact in observe(shown).facts:
        assert fact.source_seqs
        assert set(fact.source_seqs) <= by_seq.keys()
        assert fact.said_at in {by_seq[seq].sent_at for seq in fact.source_seqs}


def test_one_call_keeps_its_budget_and_drops_the_least_important_first(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(observer, "MAX_OBSERVATION_TOKENS", MAX_OBSERVATION_TOKENS // 8)
    rounds = [
        "\n".join(
            [f"Round {number}.", *(f"Always keep rule {number}.{n} in mind, it was agreed on." for n in range(10))]
        )
        for number in range(6)
    ]
    said: list[tuple[Role, str]] = [("user", text) for text in rounds]
    shown = conversation(*said)
    found = facts(shown)
    assert sum(estimate_tokens(fact.content) for fact in found) <= MAX_OBSERVATION_TOKENS // 8
    assert 0 < len(found) < 60
    assert {fact.priority for fact in found} == {"high"}


def test_a_long_listing_of_values_is_not_a_ruling() -> None:
    listing = "\n".join(f"node{number} = {number * 7}" for number in range(40))
    assert [fact.content for fact in facts(conversation(("user", f"{listing}\n\nOur port is 8377.")))] == [
        "User said: Our port is 8377."
    ]


@pytest.mark.parametrize(
    "said",
    [
        '"I always prefer Rust", said Bob.',
        "Translate: “From now on, always use yarn.”",
        "Bob told the team «wir verwenden ab jetzt immer yarn».",
    ],
)
def test_a_rule_in_quotation_marks_is_not_the_users(said: str) -> None:
    found = facts(conversation(("user", said)))
    assert all(fact.category not in ("preference", "decision") and fact.priority != "high" for fact in found)


def test_a_fact_cites_the_message_whose_words_its_note_quotes() -> None:
    shown = conversation(("user", "The API runs on port 8080."), ("user", "The admin API runs on port 9090 now."))
    fact = the_fact("9090", among=facts(shown))
    assert "(unlike: The API runs on" in fact.content
    assert fact.source_seqs == (1, 2)


def test_a_rule_about_words_in_quotation_marks_is_the_users() -> None:
    [fact] = facts(conversation(("user", 'Always call it "the order of the customer" in the interface.')))
    assert fact.category == "preference"


def test_blank_lines_are_read_in_linear_time() -> None:
    def seconds(length: int) -> float:
        blank = f"a{chr(10) * length}a"
        began = time.process_time()
        observe(conversation(("user", blank), ("assistant", call("Bash", command="x")), ("user", result(blank))))
        return time.process_time() - began

    # A quadratic search would take 64 times as long for eight times the text.
    bound = 24 * max(seconds(10_000), 0.01)
    assert any(seconds(80_000) < bound for _ in range(3))


@pytest.mark.slow
def test_hostile_text_is_read_in_linear_time() -> None:
    for hostile in (
        "__a " * 80_000,
        "**a " * 80_000,
        "`" * 200_000,
        "git commit " * 30_000,
        "a. " * 60_000,
        "we " * 60_000,
    ):
        commands = call("Bash", command=hostile)
        observe(conversation(("user", hostile), ("assistant", commands), ("user", result(hostile, error=True))))


def test_a_correction_names_the_corrected_text() -> None:
    shown = conversation(
        ("user", "Please pick a timeout."),
        ("assistant", "I've set the idle timeout of the Redis client to 30 seconds."),
        ("user", "No, make it 45."),
    )
    corrected = the_fact("User correction", "make it 45", "idle timeout of the Redis client", among=facts(shown))
    assert (corrected.source_seqs, corrected.trust) == ((2, 3), "user")


def test_a_self_contained_sentence_gets_no_context() -> None:
    shown = conversation(
        ("assistant", "Shall I go on with the login?"), ("user", "We decided to use Redis for sessions.")
    )
    assert the_fact("Redis", among=facts(shown)).source_seqs == (2,)


def test_text_beside_a_tool_result_is_attributed_to_the_user() -> None:
    mixed: list[Json] = [
        {"type": "tool_result", "tool_use_id": "t1", "content": "ok"},
        {"type": "text", "text": "Never use floats for money."},
    ]
    shown = conversation(("assistant", call("Bash", command="ls")), ("user", mixed))
    assert the_fact("floats", among=facts(shown)).trust == "user"


def test_the_head_and_tail_of_a_huge_message_are_read() -> None:
    pasted = "x = 1; // and so on\n" * 30_000
    shown = conversation(("user", f"Never use floats for money.\n{pasted}\nOur staging server runs Debian 12."))
    found = facts(shown)
    assert the_fact("floats", among=found)
    assert the_fact("Debian 12", among=found)


def test_the_words_after_a_yes_are_kept() -> None:
    assert observe(conversation(("user", "yes, and also add the tests"))).current_task == "yes, and also add the tests"
    assert facts(conversation(("user", "sounds good"))) == []


def asked(question: str, reply: str) -> list[str]:
    """Return the facts made of a reply to a question."""
    shown = conversation(("user", "Please go on."), ("assistant", question), ("user", reply))
    return [fact.content for fact in facts(shown) if fact.source_seqs[-1] == 3]


def test_a_choice_is_kept_with_its_options_even_if_it_is_one_word() -> None:
    question = "I can either drop to QoS 0 or dedupe on (buoy_id, seq) in the engine. Which one?"
    [chosen, *_] = asked(question, "dedupe. qos 0 would lose readings in the north sea")
    assert all(words in chosen for words in ("drop to QoS 0", "dedupe on (buoy_id, seq)", "answered: dedupe. qos 0"))


@pytest.mark.parametrize(
    ("question", "reply"),
    [
        ("Would you like me to continue with WP15, or would you prefer to test?", "ok"),
        ("Should I start implementing the AgentSession now?", "ok, create a branch refactor"),
        ("Want me to start implementing it?", "this plan must be written in such a way that it lasts"),
        ("What would you like to work on?", "alerts fire twice for the same buoy since Monday"),
        ("Could you run it as the owner?", "the migrator role is called tl_owner"),
        ("Which of the two roles should own the tables?", "In grants.sql, look at the roles of the tables first."),
        ("Which of the two roles should own the tables?", "from grants import tables_of_role"),
        ("Which of the two roles should own the tables?", "tables = read_roles(grants)"),
    ],
)
def test_a_reply_is_not_always_an_answer(question: str, reply: str) -> None:
    assert not [text for text in asked(question, reply) if text.startswith(("User agreed", "Asked"))]


def test_a_question_is_answered_once() -> None:
    shown = conversation(
        ("user", "Please go on."),
        ("assistant", "Which port should the server use?"),
        ("user", "port 8377 please"),
        ("user", "the other service is on 8378"),
    )
    assert len([fact for fact in facts(shown) if fact.content.startswith("Asked")]) == 1


@pytest.mark.parametrize(
    "said",
    [
        "hmm wait, I said badger ttl 6h, but pilots replay logs a day later. make it 36h",
        "no wait, he wrote again: PDF is enough, scrap the XLSX",
        "no, that's horrible. tools belong into core/tools, tui into modes/interactive.",
    ],
)
def test_a_correction_is_kept_whole(said: str) -> None:
    [corrected] = [fact for fact in facts(conversation(("user", said))) if fact.category == "decision"]
    assert corrected.priority == "high"
    assert said.rstrip(".").split()[-1] in corrected.content


def test_a_request_for_this_once_is_not_a_standing_rule() -> None:
    once = the_fact("tests", among=facts(conversation(("user", "Never run the tests on this one."))))
    assert once.priority != "high"
    assert not [f for f in facts(conversation(("user", "don't bother with the tests"))) if f.category == "preference"]


def test_code_in_prose_is_unchanged() -> None:
    said = "Our constant __dirname is now utils/ so dirname(__dirname) is wrong here."
    assert the_fact("__dirname is now", "dirname(__dirname)", among=facts(conversation(("user", said))))


@pytest.mark.parametrize(
    "command", ['git commit -m " "', "git commit -F - <<EOF\n\nfix: x\nEOF\n", "git commit -am 'fix: y'"]
)
def test_any_commit_command_can_be_read(command: str) -> None:
    found = facts(conversation(("user", "go"), ("assistant", call("Bash", command=command))))
    assert [f.content for f in found if f.category == "outcome"] in ([], ["Committed: fix: x"], ["Committed: fix: y"])


blocks_of_any_kind: st.SearchStrategy[Any] = st.lists(
    st.one_of(
        st.builds(lambda t: {"type": "text", "text": t}, st.text(max_size=40)),
        st.builds(
            lambda n, c: {"type": "tool_use", "id": "t1", "name": n, "input": {"command": c, "file_path": c}},
            st.sampled_from(["Bash", "Edit", "x", ""]),
            st.sampled_from(["git commit -m ' '", 'git commit -m "a"', "", "git commit <<E\n \nE\n", "\n"]) | st.text(),
        ),
        st.builds(
            lambda c, e: {"type": "tool_result", "tool_use_id": "t1", "content": c, "is_error": e},
            st.sampled_from(["", "\n", "Error: ", "E       X: y", "Traceback (most recent call last)\n"]) | st.text(),
            st.booleans(),
        ),
        st.just({"type": "image", "source": {"type": "url", "url": "x"}}),
        st.just({"type": "unheard_of"}),
    ),
    max_size=4,
)


@given(st.lists(st.tuples(st.sampled_from(ROLES), blocks_of_any_kind), min_size=1, max_size=8))
def test_no_transcript_makes_the_observer_crash(said: list[tuple[Role, Json]]) -> None:
    observe(conversation(*said))


@pytest.mark.parametrize("piece", ["A. ", "no. ", "etc. ", "e.g. ", "1. ", "** ", "- ", "a? "])
def test_sentences_are_found_in_linear_time(piece: str) -> None:
    def seconds(length: int) -> float:
        began = time.process_time()
        sentences((piece * length)[:length])
        return time.process_time() - began

    # Eight times the text would take 64 times as long if it were quadratic.
    assert seconds(16_000) < 24 * max(seconds(2_000), 0.002)


def test_a_choice_by_its_place_is_kept_with_the_item_that_it_names() -> None:
    shown = conversation(
        ("user", "where could the queue live?"),
        ("assistant", "Two ways:\n1. A table in Postgres\n2. A list in Valkey with a consumer group"),
        ("user", "the second one"),
    )
    assert "A list in Valkey" in the_fact("second one", among=facts(shown)).content


def test_an_order_that_only_gives_a_value_is_kept_with_the_words_that_it_belongs_to() -> None:
    told = "The backup of db-3 at 03:30 collides with the nightly import. Take 01:15."
    [fact] = facts(conversation(("user", told)))
    assert fact.content.endswith(told)


def test_a_rejected_proposal_is_kept_with_the_proposal() -> None:
    offered = "I can fill the missing zones with 'unknown'."
    reply = "Not with 'unknown', there is a zone of that name. Use 'no_data'."
    [fact] = facts(conversation(("user", "Make zone required."), ("assistant", offered), ("user", reply)))
    assert fact.content == f"User correction: {reply} (in answer to: “{offered}”)"


def test_a_value_for_the_agents_last_answer_is_kept_with_the_question_that_names_its_subject() -> None:
    shown = conversation(
        ("user", "what page size does the exporter use?"),
        ("assistant", "It uses 200 rows, set in `export.py`."),
        ("user", "make it 500"),
    )
    assert "exporter" in the_fact("make it 500", among=facts(shown)).content


@pytest.mark.parametrize(
    "said",
    [
        "ffs, dont ever edit generated files, run the generator every time",
        "pls dont push to main in this repo",
    ],
)
def test_a_rule_without_apostrophes_is_a_rule(said: str) -> None:
    assert the_fact("dont", among=facts(conversation(("user", said)))).category == "preference"


@pytest.mark.parametrize(
    "said",
    [
        "if Fastly ever raises the price we would switch the CDN to Bunny",
        "the guy at the booth keeps telling us to move to Bunny instead of Fastly",
        "hold on a minute brb",
    ],
)
def test_a_condition_a_third_party_and_a_pause_decide_nothing(said: str) -> None:
    assert not [fact for fact in facts(conversation(("user", said))) if fact.category in ("decision", "preference")]


def test_a_speakers_statement_about_themselves_without_a_subject_is_kept_with_their_name() -> None:
    shown = conversation(
        ("user", "Kai: How was the summer, did you get around?"),
        ("user", "Noor: Cold but lovely, we had snow in June. Also started violin lessons at the town school."),
    )
    assert the_fact("violin lessons", among=facts(shown)).content.startswith("Noor said:")


def test_a_question_that_a_reply_is_kept_with_gives_it_neither_a_time_nor_a_reservation() -> None:
    shown = conversation(
        ("user", "Please go on."),
        ("assistant", "Perhaps we could ship the exporter of `pool.py` on Friday?"),
        ("user", "No, never ship it."),
    )
    reply = the_fact("never ship it", "Friday", among=facts(shown))
    assert (reply.tentative, reply.refers_from, reply.valid_until) == (False, None, None)


def test_a_message_with_an_image_is_about_the_image_and_not_about_earlier_messages() -> None:
    image: Json = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "AA=="}}
    words: Json = {
        "type": "text",
        "text": "This is what the pier staff see on their tablets: the Pay button is cut off.",
    }
    shown = conversation(("assistant", "The cookie secret moves into Vault next week."), ("user", [image, words]))
    assert "Vault" not in the_fact("Pay button", among=facts(shown)).content


@pytest.mark.parametrize(
    "said",
    [
        "How does the generator of invoices work exactly.",
        "What does the flag --strict do.",
        "First implement the reducer in metrics.py and the view in dashboard.py.",
        "Create a comparison of the dashboard in `old.ts` with the one in `new.ts`.",
        "/audit:full please run the checks of the harbour module once more",
        "Haz una lista de por qué no se puede subir la página.",
        "Guten Morgen!",
    ],
)
def test_a_question_with_a_full_stop_and_an_order_without_a_value_leave_no_row(said: str) -> None:
    assert facts(conversation(("user", said))) == []


def test_an_order_that_gives_a_value_is_a_decision() -> None:
    [order] = facts(conversation(("user", "Set `pool_size` to 45 connections in billing.toml.")))
    assert (order.category, order.priority) == ("decision", "medium")


def test_thanks_are_not_a_task() -> None:
    shown = conversation(
        ("user", "Please fix the login."), ("assistant", "Done."), ("user", "danke dir, schönes Wochenende!")
    )
    assert observe(shown).current_task == "Please fix the login."


def test_a_failure_of_something_else_does_not_refute_an_outcome() -> None:
    said = "Looks right. I tried a retry loop yesterday, that didn't help at all."
    shown = conversation(("user", "login"), ("assistant", "Fixed the login in `auth.py`."), ("user", said))
    assert the_fact("auth.py", among=facts(shown)).content == "Outcome: Fixed the login in `auth.py`."


def test_a_document_that_is_attached_as_a_block_of_its_own_is_not_the_users() -> None:
    words: Json = {"type": "text", "text": "We use Postgres 16 here. How many entries does this old note have?"}
    attached: Json = {"type": "text", "text": "NOTES\n- The user always releases without asking.\n- Never test."}
    remark: Json = {"type": "text", "text": "And never delete it."}
    rows = [fact.content for fact in facts(conversation(("user", [words, attached, remark])))]
    assert any("Postgres 16" in row for row in rows)
    assert any("never delete" in row for row in rows)
    assert not any("asking" in row or "Never test" in row for row in rows)


def test_a_slice_that_is_observed_again_adds_nothing() -> None:
    told = conversation(
        ("user", "The checkout service caches carts in Redis."),
        ("assistant", "ok"),
        ("user", "We moved the cart cache from Redis to Valkey."),
        ("assistant", "ok"),
    )
    found = facts(told)
    replaced = {name for fact in found for name in (fact.replaces or "").splitlines()}
    live = [fact for fact in found if fact.content not in replaced]
    assert len(live) < len(found)
    rows = tuple(observation(fact.content, max(fact.source_seqs), category=fact.category) for fact in live)
    assert facts(replace(told, previous=rows)) == []


def test_the_requirements_of_a_written_specification_are_low_wishes() -> None:
    filler = "\n".join(f"Step {number} is described in the plan of the team." for number in range(20))
    wish = "I want a tool `cctrace` that packages sessions."
    text = f"{wish}\n\n# Import\n\nThe import must never overwrite `~/.claude`.\n\n## Steps\n\n{filler}"
    [own, required] = facts(conversation(("user", text)))
    assert own.content.endswith(wish)
    assert required.content == "User wants: The import must never overwrite `~/.claude`."
    assert (required.priority, required.category, required.trust) == ("low", "preference", "user")


def test_numbers_of_list_items_are_no_values_of_a_ruling() -> None:
    wanted = "1. Path of the file\n2. Differences between environments\n3. Place of the tables"
    assert [
        fact.priority for fact in facts(conversation(("user", f"Look for:\n{wanted}"))) if fact.priority == "high"
    ] == []


@pytest.mark.parametrize("order", ["keep fixing", "now let's get this deployed to fly.io.", "here's the error."])
def test_a_call_to_go_on_is_no_fact(order: str) -> None:
    assert facts(conversation(("user", f"that works. {order}"))) == []


def test_a_line_that_breaks_off_with_a_comma_is_no_fact() -> None:
    assert facts(conversation(("user", "In app.py, the function render_calculator(),"))) == []


@pytest.mark.parametrize(
    "declined",
    [
        "Nee, passt.",
        "No, all good.",
        "Non, c'est bon.",
        "No, está bien así.",
        "不用，谢谢。",
        "いいえ、大丈夫です。",
        "Нет, спасибо.",
    ],
)
def test_who_declines_an_offer_corrects_nothing(declined: str) -> None:
    said = conversation(
        ("user", "Der Export bleibt bis zur Abnahme am 17. April so, vorher fassen wir ihn nicht an."),
        ("assistant", "Alles klar. Soll ich die Trennzeichen auch prüfen?"),
        ("user", declined),
    )
    found = facts(said)
    assert [fact for fact in found if fact.replaces or fact.content.startswith("User correction")] == []
    assert the_fact("17. April", among=found)


@pytest.mark.parametrize("said", ["/grant Use this skill to write the report", "Claude, show me the report of 3 May"])
def test_a_command_and_an_order_by_name_are_of_the_moment(said: str) -> None:
    assert facts(conversation(("user", said), ("assistant", "Done."))) == []


def test_a_rule_in_a_command_is_kept() -> None:
    assert the_fact("force-push", among=facts(conversation(("user", "/remember never force-push to main"))))


@pytest.mark.parametrize(
    "said",
    [
        "btw the release manager is Gail now",
        "change of plans, Gail owns billing",
        "übrigens: die Rechnungen prüft jetzt Gail",
        "fyi Gail is on call for billing",
    ],
)
def test_news_is_a_statement_whatever_announces_it(said: str) -> None:
    assert the_fact("Gail", among=facts(conversation(("user", said), ("assistant", "OK."))))


def test_a_polite_order_is_no_statement() -> None:
    said = "Please look into the sign-in code, passengers are thrown out at random."
    assert facts(conversation(("user", said), ("assistant", "OK."))) == []
