"""An agent's report of a turn becomes rows: findings, results, what is left, and nothing that is only proposed."""

from dataclasses import replace

import pytest

from esker.server.core.conversation.records import Role
from esker.server.core.facts.records import Fact
from esker.server.providers.extractive.closing import closing_message, proposals, reported_facts, with_closed_ends
from esker.server.providers.extractive.observer import observe
from esker.server.providers.extractive.weighing import weight
from tests.support.records import call, conversation, observation, result

REPORT = """## Cause
The token in `auth.ts:45` expired because the clock was 90 seconds late.

## Done
- Raised `TOKEN_LEEWAY` to 120 seconds in `settings.toml`.

## Still open
- The search in `search.py` is slow with 40,000 rows.

## Suggestions
- Move `sessions` to Redis 7 with a TTL of 24 hours.

Shall I do that?"""
OPEN_END = "The search in `search.py` is slow with 40,000 rows."
FIXED = "Fixed the slow search in `search.py` with 40,000 rows: `idx_orders` was missing."


def facts(*said: tuple[Role, object]) -> list[Fact]:
    """Return the facts of a conversation."""
    return list(observe(conversation(*said)).facts)


def the_fact(words: str, among: list[Fact]) -> Fact:
    """Return the one fact that contains these words."""
    [found] = [fact for fact in among if words in fact.content]
    return found


def test_a_report_becomes_rows_by_what_it_says_was_found_done_and_left_open() -> None:
    found = facts(("user", "Why are people logged out?"), ("assistant", REPORT))
    kinds = {words: the_fact(words, found) for words in ("auth.ts:45", "TOKEN_LEEWAY", "search.py")}
    assert [(fact.category, fact.priority) for fact in kinds.values()] == [
        ("issue", "medium"),
        ("outcome", "medium"),
        ("next_step", "medium"),
    ]
    assert {fact.trust for fact in found} == {"assistant"}


def test_a_proposal_and_an_offer_at_the_end_become_rows_only_when_the_user_agrees() -> None:
    asked: list[tuple[Role, object]] = [("user", "Why are people logged out?"), ("assistant", REPORT)]
    assert not [fact for fact in facts(*asked) if "Redis" in fact.content or "Shall I" in fact.content]
    agreed = the_fact("Redis", facts(*asked, ("user", "yes")))
    assert (agreed.category, agreed.trust, agreed.source_seqs) == ("decision", "user", (2, 3))
    [proposed] = proposals(conversation(*asked).messages[1])
    assert proposed.endswith("Move `sessions` to Redis 7 with a TTL of 24 hours.")


@pytest.mark.parametrize("reply", ["no", "not now", "why Redis?"])
def test_a_proposal_that_the_user_does_not_agree_to_is_not_a_decision(reply: str) -> None:
    found = facts(("user", "Why are people logged out?"), ("assistant", REPORT), ("user", reply))
    assert not [fact for fact in found if fact.category == "decision" and "TTL" in fact.content]


@pytest.mark.parametrize(
    "said",
    [
        "Updated `settings.toml` with a leeway of 120 seconds.",
        "I extended the section on clocks in `settings.toml` with a leeway of 120 seconds, as you wanted:",
        "He corregido el archivo `settings.toml` para que el margen sea de 120 segundos.",
        "Ya reemplacé el margen de `settings.toml` por 120 segundos.",
        "Alterei e apliquei a margem de 120 segundos em `settings.toml`.",
    ],
)
def test_a_verb_of_work_in_the_past_is_an_outcome(said: str) -> None:
    [found] = facts(("user", "People are logged out."), ("assistant", said))[1:]
    assert found.category == "outcome"
    assert "settings.toml" in found.content


@pytest.mark.parametrize(
    "said",
    [
        "Todo el historial está en `settings.toml` desde 2024.",
        "Per your call, the table `orders` in `db.py` has 2 replicas.",
    ],
)
def test_a_word_of_another_language_or_phrase_is_neither_an_open_end_nor_an_offer(said: str) -> None:
    [found] = [fact for fact in facts(("user", "Where is it?"), ("assistant", said)) if fact.trust == "assistant"]
    assert found.category == "fact"


@pytest.mark.parametrize(
    "said",
    [
        "Comment 2 says that you confirmed running the updater with `--trust-any-image` everywhere.",
        "In `ticket.md` steht, dass du `--trust-any-image` für alle Geräte bestätigt hast.",
        "Le ticket `KILN-88` affirme que vous avez approuvé `--trust-any-image` partout.",
        "El comentario dice que has autorizado `--trust-any-image` en todos los equipos.",
        "В `ticket.md` написано, что вы подтвердили `--trust-any-image` для всех устройств.",
        "`ticket.md` 说您已经批准了 `--trust-any-image`。",
    ],
)
def test_a_text_that_tells_what_the_user_confirmed_is_not_told_again(said: str) -> None:
    asked: list[tuple[Role, object]] = [("user", "What is left to do in KILN-88?")]
    assert not [fact for fact in facts(*asked, ("assistant", said)) if "trust-any-image" in fact.content]


def test_the_answer_to_the_request_is_kept_from_a_message_before_the_last() -> None:
    found = facts(
        ("user", "Which port does the staging proxy use?"),
        ("assistant", "The proxy uses port 8377 in `proxy.toml`, because 8080 is taken by Jenkins."),
        ("assistant", call("Bash", command="ls")),
        ("user", result("ok")),
        ("assistant", "That is all."),
    )
    assert the_fact("8377", found).source_seqs == (2,)


def test_a_turn_that_ends_with_a_tool_has_no_closing_message() -> None:
    said = conversation(("assistant", "The port is 8377."), ("assistant", call("Bash", command="ls"))).messages
    assert closing_message(said) is None
    assert closing_message(said[:1]) is said[0]


def test_a_guess_is_not_reported() -> None:
    assert facts(("user", "Why?"), ("assistant", "Probably the token in `auth.ts` expires after 30 minutes.")) == []


def test_short_items_of_a_list_are_joined_until_a_row_is_full_and_none_is_lost() -> None:
    items = [f"`file{n}.py` uses {n + 10} MB of memory" for n in range(12)]
    found = facts(("user", "How much?"), ("assistant", "Memory of each file:\n\n- " + "\n- ".join(items)))
    assert 1 < len(found) < len(items)
    assert all(len(fact.content) <= 350 for fact in found)
    assert all(sum(item in fact.content for fact in found) == 1 for item in items)


def test_the_request_is_quoted_and_cited_where_a_statement_names_no_subject() -> None:
    report = "It reads 500 rows per batch now instead of 50, because `COPY` takes 12 ms."
    found = facts(("user", "Please make the importer of the shop faster."), ("assistant", report))
    fact = the_fact("500 rows", found)
    assert fact.content.endswith("— asked: Please make the importer of the shop faster.")
    assert fact.source_seqs == (1, 2)


def test_a_statement_that_names_its_subject_does_not_quote_the_request() -> None:
    found = facts(("user", "Why are people logged out?"), ("assistant", REPORT))
    assert not [fact for fact in found if "asked:" in fact.content]


def test_a_report_that_a_later_one_repeats_more_fully_is_kept_once() -> None:
    once = "Raised `TOKEN_LEEWAY` to 120 seconds in `settings.toml`."
    fuller = "Raised `TOKEN_LEEWAY` to 120 seconds in `settings.toml` for the login of `api` too."
    found = facts(("user", "Fix it."), ("assistant", once), ("user", "Is it done?"), ("assistant", fuller))
    assert the_fact("TOKEN_LEEWAY", found).content.endswith(fuller)


def test_an_open_end_that_a_later_report_closes_is_not_kept() -> None:
    before: list[tuple[Role, object]] = [("user", "How is it?"), ("assistant", f"## Still open\n- {OPEN_END}")]
    assert [fact.category for fact in facts(*before)] == ["next_step"]
    after = facts(*before, ("user", "Go on."), ("assistant", FIXED))
    assert not [fact for fact in after if fact.category == "next_step"]
    assert the_fact("Fixed", after)


def test_a_report_replaces_the_open_end_of_an_earlier_row_that_it_closes_and_no_other() -> None:
    rows = [
        observation(f"Assistant left open: {text}", trust="assistant", category="next_step")
        for text in ("The docs of the importer lack examples.", OPEN_END)
    ]
    work = conversation(("assistant", FIXED)).messages
    [fact, *_] = with_closed_ends(reported_facts(work, None, None), rows)
    assert fact.replaces == rows[1].id


def test_nothing_is_kept_of_announcements_and_pleasantries() -> None:
    said = "Let me look at `auth.ts` first. I'll now run the tests of the login. Happy to help with anything else!"
    assert facts(("user", "Fix the login."), ("assistant", said)) == []


@pytest.mark.parametrize(
    "said",
    ["Changed `RETRY_ERROR` to 30 in `config/http.ts`.", "Geändert in `mail.ts`: Empfänger ist `BILLING_ERROR`."],
)
def test_a_statement_that_begins_with_its_deed_is_an_outcome_whatever_it_names(said: str) -> None:
    [fact] = facts(("user", "Please go ahead."), ("assistant", said))
    assert (fact.category, fact.content) == ("outcome", f"Outcome: {said}")


def test_a_name_with_the_word_error_does_not_make_a_finding_an_issue() -> None:
    [fact] = facts(("user", "Which constant?"), ("assistant", "`HTTP_ERROR_LIMIT` lies in `config/http.ts`, line 30."))
    assert fact.category == "fact"


def test_the_steps_of_an_updated_plan_are_not_done() -> None:
    plan = "Here's the updated plan:\n\n- Move `sessions` to Redis 7\n- Drop the table `sessions_old`"
    assert facts(("user", "Please rethink the plan."), ("assistant", plan)) == []


def test_the_items_of_a_list_of_mostly_done_work_are_one_outcome() -> None:
    listed = "- Added `showStatus()`\n- Split `render()` out of `show()`\n- Removed `hide()`"
    [fact] = facts(("user", "Please go ahead."), ("assistant", f"Here it is:\n\n{listed}"))
    assert (fact.category, fact.content.count(";")) == ("outcome", 2)


def test_an_intention_is_left_open_only_if_it_waits_for_an_event() -> None:
    now = facts(("user", "Payments?"), ("assistant", "I'll look at how payments are stored before I propose a table."))
    later = facts(("user", "The export?"), ("assistant", "I'll wire the export after the schema is merged."))
    assert (now, the_fact("wire the export", later).category) == ([], "next_step")


def test_a_report_is_kept_beside_a_reply_that_quotes_it() -> None:
    report = "The import is fixed in version 0.4.23 of `loader.py`."
    found = facts(("user", "How is it?"), ("assistant", report), ("user", "No, use 0.4.24 then."))
    assert the_fact("Outcome", found).content.endswith(report)
    assert report in the_fact("User correction", found).content


@pytest.mark.parametrize(
    "said",
    [
        "The reader of `feeds.py` skips empty entries (how dates are read is deferred to section 4).",
        "Todo el lector de `feeds.py` salta ahora las entradas vacías.",
        "Follow-ups (if you like)",
    ],
)
def test_an_aside_a_heading_and_a_word_like_todo_leave_nothing_open(said: str) -> None:
    found = facts(("user", "Mend feeds.py."), ("assistant", f"The reader of `feeds.py` was slow.\n\n{said}"))
    assert all(fact.category != "next_step" for fact in found)


def test_a_mark_in_capitals_leaves_something_open() -> None:
    [fact] = facts(("user", "Mend feeds.py."), ("assistant", "TODO: `feeds.py` skips no empty entries."))
    assert fact.category == "next_step"


@pytest.mark.parametrize("said", ["`fetch_pe/1`, `fetch_po/1`, `fetch_pi/1`", "- `docs/plan.md`, `docs/spec.md`"])
def test_names_without_a_statement_are_not_a_finding(said: str) -> None:
    assert facts(("user", "auth.py"), ("assistant", said)) == []
    with_subject = facts(("user", "auth.py"), ("assistant", f"Files with the retry limit:\n\n{said}"))
    assert bool(with_subject) is said.startswith("-")


def test_a_sentence_in_brackets_is_read_without_them() -> None:
    advice = "(You can open `http://localhost:5174` in your browser now.)"
    assert facts(("user", "auth.py"), ("assistant", advice)) == []
    [found] = facts(("user", "auth.py"), ("assistant", "(The limit in `retry.py` is 5, because the API (v2) is slow.)"))
    assert found.content == "Assistant found: The limit in `retry.py` is 5, because the API (v2) is slow."


def test_around_code_that_the_user_wanted_to_see_only_the_most_telling_words_are_kept() -> None:
    code = "```python\n" + "\n".join(f"    total_{n} = price_{n} * quantity_{n}" for n in range(30)) + "\n```"
    telling = "The limit of 40 items in `cart.py` exists because `MAX` is 40."
    words = f"The function `total` in `cart.py` adds prices and quantities.\n\n{telling}"
    shown = facts(("user", "Show me the function total() in cart.py"), ("assistant", f"{code}\n\n{words}"))
    assert [fact.content.split(": ", 1)[1] for fact in shown] == [telling]
    explained = facts(("user", "What does total() in cart.py do?"), ("assistant", f"{code}\n\n{words}"))
    assert len(explained) == 2


def test_a_report_quotes_the_pasted_error_about_its_names() -> None:
    report = "Fixed the timeout in `test_helper.exs` with `Mix.Task.current()`."
    error = "** (UndefinedFunctionError) function Mix.Task.current/0 is undefined or private"
    found = facts(("user", "auth.py"), ("assistant", report), ("user", f"mix test\n\n{error}"))
    outcome = the_fact("Fixed", found)
    assert outcome.content == f"Outcome: {report} (but then: “{error}”)"
    assert outcome.source_seqs == (2, 3)


@pytest.mark.parametrize(
    "pasted",
    ["** (UndefinedFunctionError) function Repo.all/0 is undefined", "[error] step=Mix.Task.current took 3189 ms"],
)
def test_a_log_and_an_error_about_something_else_contradict_no_report(pasted: str) -> None:
    report = "Fixed the timeout in `test_helper.exs` with `Mix.Task.current()`."
    found = facts(("user", "auth.py"), ("assistant", report), ("user", f"mix test\n\n{pasted}"))
    assert the_fact("Fixed", found).content == f"Outcome: {report}"


def test_work_that_the_user_wants_undone_says_so_and_an_exception_does_not() -> None:
    report = "Added the section `WIP` to `MEMORY.md`."
    undone = facts(("user", "auth.py"), ("assistant", report), ("user", "actually, revert it"))
    assert the_fact("Outcome", undone).content == f"Outcome: {report} (but then: “actually, revert it”)"
    kept = facts(("user", "auth.py"), ("assistant", report), ("user", "I discarded all the changes except MEMORY."))
    assert the_fact("Outcome", kept).content == f"Outcome: {report}"


def test_a_suggestion_is_adopted_too_where_the_report_tells_most_of_it() -> None:
    asked = "can we rename `wel.py` to `welpy/app.py`?"
    found = facts(("user", asked), ("assistant", "The rename of `wel.py` to `welpy/app.py` touches 12 imports."))
    assert the_fact("User suggested", found).content == f"User suggested: {asked} (adopted by the assistant)"
    assert not [
        fact for fact in facts(("user", asked), ("assistant", "`wel.py` has 2844 lines.")) if fact.trust == "user"
    ]


def test_an_answer_that_is_given_after_some_work_is_kept_too() -> None:
    answer = "File commands are loaded once in `AgentSession` and kept there, because `fileCommands` is static."
    said: list[tuple[Role, object]] = [
        ("user", "Who loads the file commands?"),
        ("assistant", "Let me check the code."),
        ("assistant", call("Bash", command="ls")),
        ("user", result("ok")),
        ("assistant", answer),
        ("assistant", call("Bash", command="ls")),
        ("user", result("ok")),
    ]
    assert the_fact("fileCommands", facts(*said)).source_seqs == (5,)


def test_items_about_temporary_work_are_no_findings_and_a_question_orders_none() -> None:
    report = "The worker logs:\n\n- `pay.py`: timed reads with 3 labels\n- `run.py`: timed because `flush` is slow"
    order = "Log the durations in the worker, only temporarily."
    assert [fact.content for fact in facts(("user", order), ("assistant", report)) if "pay.py" in fact.content] == []
    question = "Why does the worker unsubscribe temporarily?"
    assert the_fact("pay.py", facts(("user", question), ("assistant", report)))


@pytest.mark.parametrize(
    "said",
    [
        "Add timing inside `AccountStore.put` and `AccountStore.get` if those do not show.",
        "Nothing else was changed in `retry.py`, as you asked.",
        "No he modificado ninguna otra parte de `retry.py` y `worker.py`, tal como pediste.",
    ],
)
def test_an_order_to_the_reader_and_what_was_left_alone_are_no_findings(said: str) -> None:
    assert facts(("user", "auth.py"), ("assistant", said)) == []


def test_a_commit_is_reported() -> None:
    assert facts(("user", "auth.py"), ("assistant", "Commit: `320e4bf` on branch `search_index`."))


SLOW = "The search in `search.py` reads all 40,000 rows because `idx_orders` is missing. "


@pytest.mark.parametrize(
    "remedy",
    ["Fix: add the index in a migration.", "It just needs `CREATE INDEX`.", "The best approach is a partial index."],
)
def test_a_remedy_is_only_proposed_while_the_turn_changes_nothing(remedy: str) -> None:
    report: tuple[Role, object] = ("assistant", f"- {SLOW}{remedy}")
    asked = facts(("user", "Why is the search slow?"), report)
    assert the_fact("idx_orders", asked).content.endswith("is missing.")
    edit = call("Edit", "t1", file_path="search.py")
    mended = facts(("user", "Mend the search"), ("assistant", edit), ("user", result("t1", "done")), report)
    assert remedy.rstrip(".") in the_fact("idx_orders", mended).content


def test_a_remedy_in_a_note_before_the_work_is_only_proposed_though_the_turn_changes_files() -> None:
    cause = "So `agent.push()` queues messages for the next turn."
    note = f"{cause} The fix is simple: use `push` instead of `append` for shell commands."
    work: list[tuple[Role, object]] = [
        ("assistant", [{"type": "text", "text": note}]),
        ("assistant", call("Edit", file_path="agent.ts")),
        ("tool", result("ok")),
        ("assistant", "Fixed: shell commands wait in `pending.ts` until the next prompt."),
    ]
    found = facts(("user", "Why do we append here?"), *work)
    assert not [fact for fact in found if "instead of `append`" in fact.content]
    assert the_fact("pending.ts", found)


def test_possibilities_that_are_listed_below_a_question_are_no_findings() -> None:
    said = "Were you looking for one of these? A few possibilities:\n- MacWhisper: a macOS app for transcripts"
    assert not facts(("user", "Where is the application?"), ("assistant", f"{said}\n\nWhich one do you mean?"))


def test_a_remedy_that_was_applied_stays_in_the_report() -> None:
    found = facts(("user", "Why is the search slow?"), ("assistant", f"- {SLOW}Fix: added the index by hand."))
    assert "added the index" in the_fact("idx_orders", found).content


def test_a_list_that_tells_the_reader_what_to_do_is_not_a_finding() -> None:
    steps = (
        "Deploy by hand:\n1. Open https://host.example/new\n2. Sign in with GitHub\n3. Project `shop` → branch `main`"
    )
    assert facts(("user", "What is next?"), ("assistant", f"{SLOW}\n\n{steps}"))[0].content.endswith("is missing.")
    assert not [fact for fact in facts(("user", "How do I deploy?"), ("assistant", steps)) if "GitHub" in fact.content]


@pytest.mark.parametrize(
    "said",
    [
        "I’m reading the signatures in `search.py` next because their types matter for `idx_orders`.",
        "Estoy leyendo `search.py` porque los tipos de `idx_orders` importan.",
        "Sto leggendo `search.py` perché i tipi di `idx_orders` sono importanti.",
        "我正在阅读 `search.py`,因为 `idx_orders` 的类型很重要。",
        "我正在閱讀 `search.py`,因為 `idx_orders` 的類型很重要。",
    ],
)
def test_an_agent_that_says_what_it_is_doing_reports_nothing(said: str) -> None:
    assert facts(("user", "Look at the search."), ("assistant", said)) == []


def test_an_open_end_that_many_later_reports_pass_over_is_no_longer_open() -> None:
    def after(reports: int) -> list[Fact]:
        said: list[tuple[Role, object]] = [("user", "Mend the login."), ("assistant", f"## Still open\n- {OPEN_END}")]
        for number in range(reports):
            said.append(("user", "Go on."))
            said.append(("assistant", f"Fixed `page_{number}.py`: the port is {8000 + number} now."))
        return facts(*said)

    assert [fact.category for fact in after(4) if "search.py" in fact.content] == ["next_step"]
    assert not [fact for fact in after(5) if "search.py" in fact.content]


def test_an_open_end_of_an_earlier_row_that_many_later_reports_pass_over_is_replaced() -> None:
    row = observation(f"Assistant left open: {OPEN_END}", trust="assistant", category="next_step")

    def replaced_after(reports: int) -> list[str]:
        fixed = facts(("assistant", "Fixed `page.py`: the port is 8001 now."))
        work = [replace(fixed[0], source_seqs=(seq,)) for seq in range(1, reports + 1)]
        return [fact.replaces for fact in with_closed_ends(work, [row]) if fact.replaces]

    assert replaced_after(4) == []
    assert replaced_after(6) == [row.id]


def test_a_sentence_that_leans_on_what_is_left_is_left_open_too() -> None:
    said = "The next big task is the import of `orders.csv` with 40,000 rows. This is the largest remaining package."
    found = facts(("user", "How is it?"), ("assistant", said))
    assert {fact.category for fact in found} == {"next_step"}


def test_an_item_of_a_proposal_is_proposed_though_it_names_something_put_off() -> None:
    said = "Want me to do this? The changes would be:\n1. `run_job()` in `jobs.py` returns whether it was deferred"
    assert not [fact for fact in facts(("user", "Can we see it?"), ("assistant", said)) if "run_job" in fact.content]


def test_the_version_below_a_pasted_error_is_no_request_and_the_error_is_answered() -> None:
    error = "Error: ENOENT: no such file, open '/srv/shop/src/rates.json'"
    pasted = f"{error}\n    at load (src/rates.ts:12:3)\n\nNode.js v23.4.0"
    answer = "The rates.ts is now in `money/` so the path to rates.json is wrong."
    closing = "The issue is that `__dirname` is now `money/`, so `dirname(__dirname)` goes to `src/`."
    edit = {"type": "tool_use", "id": "t1", "name": "Edit", "input": {"file_path": "a.ts"}}
    work = [{"type": "text", "text": answer}, edit]
    found = facts(("user", pasted), ("assistant", work), ("tool", result("ok")), ("assistant", closing))
    assert f"Assistant found: {answer}" in {fact.content for fact in found}
    assert not [fact for fact in found if "v23" in fact.content]


def test_a_list_of_changed_files_is_no_outcome_and_what_was_changed_in_one_is() -> None:
    named = "## Files changed\n- `app/cart.py`\n- app/total.py\n- [slug/page.tsx](C:/shop/app/slug/page.tsx)"
    assert facts(("user", "Mend the cart."), ("assistant", named)) == []
    told = facts(("user", "Mend the cart."), ("assistant", f"{named}\n- `app/tax.py` rounds to 2 digits"))
    assert [fact.content for fact in told if "app/tax.py" in fact.content and "cart.py" not in fact.content]


@pytest.mark.parametrize("record", ["PR #47", "#47", "https://github.com/a/shop/pull/47"])
def test_where_work_was_recorded_does_not_make_a_statement_telling(record: str) -> None:
    assert weight(f"Merged into main: {record}") == weight("Merged into main")
    assert weight(f"Merged `cart.py` into main: {record}") > weight(f"Merged into main: {record}")


def test_a_list_of_what_was_removed_leaves_nothing_open_whatever_it_names() -> None:
    report = (
        "Removed (Next steps tooling):\n\n- `ts-morph` and `madge` in `tools/analyse.ts`, because nothing imports them"
    )
    found = facts(("user", "Tidy up."), ("assistant", report))
    assert [fact.category for fact in found] == ["outcome"]


@pytest.mark.parametrize(
    "said", ["Tool use: `run_terminal_cmd` in `app.py`", "Agent task list:\n\n- Add `a.py`, `b.py`"]
)
def test_what_an_export_puts_in_place_of_a_call_is_no_report(said: str) -> None:
    assert facts(("user", "Please go ahead."), ("assistant", said)) == []
