"""Facts that a model writes as text are read as they were meant: tagged text in `<observations>`, or a list."""

from collections.abc import Callable
from dataclasses import replace
from time import process_time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from esker.server.core.records import Category, Priority
from esker.server.providers.written.answer import WrittenAnswer, read_written
from esker.server.providers.written.facts import WrittenFact

TABS = WrittenFact("User prefers tabs")


def facts(text: str) -> list[WrittenFact]:
    """Return the facts of an answer that must be one."""
    written = read_written(text)
    assert written is not None
    return list(written.facts)


def fact(line: str) -> WrittenFact:
    """Return the one fact of a line in an observations element."""
    (found,) = facts(f"<observations>\n{line}\n</observations>")
    return found


# Marks

PRIORITIES: list[tuple[str, Priority]] = [
    *(("🔴 {}", "high"), ("- 🟡 {}", "medium"), ("* 🟢 {}", "low"), ("🔴\ufe0f{}", "high"), ("1. 🟢 {}", "low")),
    *(("CRITICAL: {}", "high"), ("IMPORTANT: {}", "medium"), ("NOTE: {}", "low"), ("- Low: {}", "low")),
    *(("[high] {}", "high"), ("(high) {}", "high"), ("**[HIGH]** {}", "high"), ("**HIGH** {}", "high")),
    *(("**HIGH:** {}", "high"), ("- **🔴 High:** {}", "high"), ("HIGH PRIORITY: {}", "high")),
    *(("- {} | Priority: Low", "low"), ("- {} (priority: low)", "low")),
    *(("{}", "medium"), ("• {}", "medium"), ("1) {}", "medium"), ("**🔴 {}**", "high")),
]


@pytest.mark.parametrize(("line", "priority"), PRIORITIES)
def test_a_priority_is_read_as_a_sign_a_word_or_a_field(line: str, priority: Priority) -> None:
    assert fact(line.format(TABS.text)) == replace(TABS, priority=priority)


@pytest.mark.parametrize("line", ["✅ {}", "- [x] {}", "DONE: {}", "[done] {}", "{} ✅"])
def test_a_completed_fact_is_marked_as_done(line: str) -> None:
    assert fact(line.format(TABS.text)) == replace(TABS, done=True)


CATEGORIES: list[tuple[str, Category]] = [
    *(("🔴 [decision] {}", "decision"), ("- [next step] {}", "next_step"), ("- Outcome: {}", "outcome")),
    *(("[high, decision] {}", "decision"), ("(high/preference) {}", "preference"), ("- **Issue**: {}", "issue")),
    *(("- {} (category: decision)", "decision"), ("- {} [state_change]", "state_change")),
]


@pytest.mark.parametrize(("line", "category"), CATEGORIES)
def test_a_category_is_read(line: str, category: Category) -> None:
    found = fact(line.format(TABS.text))
    assert (found.category, found.text) == (category, TABS.text)


@pytest.mark.parametrize(
    ("line", "sources"),
    [
        *(("{} [3]", (3,)), ("{} [3].", (3,)), ("{}. [3]", (3,)), ("{} [3, 5]", (3, 5)), ("{} [3][5]", (3, 5))),
        *(("{} [#3, #5]", (3, 5)), ("{} 【3】", (3,)), ("{} [3-5]", (3, 4, 5)), ("{} [3, 3]", (3,)), ("[3] {}", (3,))),
        *(("{} (sources: 3, 5)", (3, 5)), ("{} (Sources: [3, 5])", (3, 5)), ("{} (message 3)", (3,))),
        *(("{} (messages 3 and 5)", (3, 5)), ("{} — sources: 3, 5", (3, 5)), ("{} Sources: [3], [5]", (3, 5))),
        *(("{} | Priority: medium | Sources: 3", (3,)), ("- 🟡 (14:30) [3, 5] {}", (3, 5)), ("{} [fact, 3]", (3,))),
    ],
)
def test_the_messages_that_a_line_cites_are_its_sources(line: str, sources: tuple[int, ...]) -> None:
    found = fact(line.format(TABS.text))
    assert (found.sources, found.text.rstrip("."), found.priority) == (sources, TABS.text, "medium")


def test_a_citation_inside_a_line_is_a_source_and_is_removed_only_where_a_clause_ends() -> None:
    found = fact("User prefers tabs [3]. Agent [5] confirmed it.")
    assert found == WrittenFact("User prefers tabs. Agent [5] confirmed it.", sources=(3, 5))


def test_chinese_text_may_touch_its_citation() -> None:
    assert fact("🔴 用户喜欢制表符[3]。") == WrittenFact("用户喜欢制表符。", "high", sources=(3,))


@pytest.mark.parametrize("line", ["(14:30) {}", "[14:30] {}", "14:30 - {}", "🟡 (14:30) {}", "(14:30): {}"])
def test_the_time_at_the_beginning_of_a_line_is_not_part_of_the_fact(line: str) -> None:
    assert fact(line.format(TABS.text)) == TABS


@pytest.mark.parametrize(
    "text",
    [
        "High-level design is agreed on",
        "Note to self: buy milk",
        "User set the log level to debug (high)",
        "User set [high] as the level",
        "Agent set `a[3]` to 1",
        "Agent changed arr[3]",
        "Files match src/**/*.ts and lib/**/*.js",
        "Agent passes *args and **kwargs on",
        "Constructors are __init__ and __new__",
        "The pull request (#31) was merged",
        "User opened [issue #3]",
        "The figure stood in [2](https://example.org/2)",
        "The table holds [5-3] and [3-500]",
        "The build took [14:30]",
        "The value is [3.5] or [$3]",
        "1.5 GB are free",
        "-v was added to the call",
        "User decision: use Go",
        "No tests were added by the agent",
        "No information about the port was found",
        "User's team has no new tests",
        "Messages: the queue holds them for 3 days",
        '"ECONNRESET" is in the log',
    ],
)
def test_text_that_only_looks_like_a_mark_stays_in_the_fact(text: str) -> None:
    assert fact(text) == WrittenFact(text)


# Lines below a fact, and headings


@pytest.mark.parametrize(
    "details", ["  - in Go\n  - in C", "\t* in Go\n\t* in C", "  → in Go\n  → in C", "-> in Go\n-> in C"]
)
def test_details_belong_to_the_fact_above_them(details: str) -> None:
    found = facts(f"<observations>\n- 🟡 {TABS.text}\n{details}\n- Agent agreed\n</observations>")
    assert found == [replace(TABS, text=f"{TABS.text}; in Go; in C"), WrittenFact("Agent agreed")]


def test_details_add_their_sources() -> None:
    assert fact("- Agent fixed the login [3]\n  - tests pass [5, 3]").sources == (3, 5)


def test_a_wrapped_line_is_one_sentence() -> None:
    assert fact("- User prefers\n  tabs") == TABS


def test_lines_with_a_priority_below_a_topic_are_facts_of_their_own() -> None:
    found = facts("<observations>\n- **Login:**\n  - 🔴 It fails\n  - 🟢 It is old\n    - from 2020\n</observations>")
    assert found == [WrittenFact("It fails", "high"), WrittenFact("It is old; from 2020", "low")]


@pytest.mark.parametrize("tagged", [True, False])
@pytest.mark.parametrize(
    ("heading", "priority", "category"),
    [
        ("### 🔴 High Priority", "high", None),
        ("**High priority:**", "high", None),
        ("Decisions:", "medium", "decision"),
        ("## User Preferences", "medium", "preference"),
        ("### Next steps", "medium", "next_step"),
        ("**Key facts:**", "medium", None),
        ("Here is what I saw:", "medium", None),
        ("**Date: March 2, 2026**", "medium", None),
    ],
)
def test_a_heading_is_not_a_fact_and_labels_those_below_it(
    tagged: bool, heading: str, priority: Priority, category: Category | None
) -> None:
    body = f"{heading}\n\n- {TABS.text}\n- 🟡 [issue] Tests fail\n"
    found = facts(f"<observations>\n{body}</observations>" if tagged else body)
    assert found == [replace(TABS, priority=priority, category=category), WrittenFact("Tests fail", "medium", "issue")]


@pytest.mark.parametrize(
    "item",
    [
        "- text: User prefers tabs\n  priority: high\n  category: preference\n  sources: [1, 4]\n  refers_from: null",
        "- priority: high\n  category: preference\n  text: User prefers tabs\n  sources:\n    - 1\n    - 4",
        "1. **User prefers tabs**\n   - **Priority:** High\n   - **Category:** Preference\n   - **Sources:** [1], [4]",
        "**Fact 1:**\n- Text: User prefers tabs\n- Priority: high\n- Category: preference\n- Sources: 1, 4",
        "- User prefers tabs (priority: high, category: preference, sources: [1, 4])",
        "- User prefers tabs | priority: high | category: preference | sources: 1, 4",
        "- **[HIGH] [PREFERENCE]** User prefers tabs (Sources: 1, 4)",
    ],
)
def test_the_fields_of_the_schema_are_read_where_a_model_writes_them_without_json(item: str) -> None:
    wanted = WrittenFact(TABS.text, "high", "preference", sources=(1, 4))
    assert facts(f"{item}\n") == facts(f"<observations>\n{item}\n</observations>") == [wanted]


def test_the_fields_of_two_facts_do_not_mix() -> None:
    one = "- text: It fails\n  priority: high\n  sources: [1]\n"
    two = "- priority: low\n  text: It is old\n  sources: [2]\n"
    wanted = {WrittenFact("It fails", "high", sources=(1,)), WrittenFact("It is old", "low", sources=(2,))}
    assert set(facts(one + two)) == set(facts(two + one)) == wanted


# Elements

ANSWER = """<observations>
Date: Mar 2, 2026

* 🔴 (14:30) User prefers tabs [3]
* ✅ (14:31) Agent fixed the login [4-5]
  * -> ran `npm ci`
</observations>

<current-task>
Fix the login test
</current-task>

<suggested-response>
Run the tests again.
</suggested-response>

<thread-title>Login test</thread-title>"""
READ = WrittenAnswer(
    facts=(
        replace(TABS, priority="high", sources=(3,)),
        WrittenFact("Agent fixed the login; ran `npm ci`", done=True, sources=(4, 5)),
    ),
    current_task="Fix the login test",
    suggested_continuation="Run the tests again.",
    thread_title="Login test",
)


@pytest.mark.parametrize(
    "frame", ["{}", "Sure, here it is:\n```xml\n{}\n```", "<think>\n- Hm.\n</think>\n{}", "- Hm.\n</think>\n{}"]
)
def test_tagged_text_is_read_with_any_text_around_it(frame: str) -> None:
    assert read_written(frame.format(ANSWER)) == READ


@pytest.mark.parametrize(
    "labels",
    [
        "Current task: Fix the login\nSuggested continuation: Run the tests\nThread title: Login",
        '**Current Task:** Fix the login\n**Suggested Response:** Run the tests\n**Thread Title**: "Login"',
        "- current_task: Fix the login\n- suggested_continuation: Run the tests\n- thread_title: Login",
        "### Current Task\nFix the login\n\n### Suggested Continuation\n- Run the tests\n\n### Thread Title\nLogin",
    ],
)
def test_task_continuation_and_title_are_read_after_labels(labels: str) -> None:
    wanted = WrittenAnswer((TABS,), "Fix the login", "Run the tests", "Login")
    assert read_written(f"- {TABS.text}\n\n{labels}") == wanted
    assert read_written(f"{labels}\n\n## Facts\n- {TABS.text}") == wanted


@pytest.mark.parametrize("none", ["", "none", "None.", "(none)", "null", "N/A"])
def test_a_placeholder_task_is_not_a_task(none: str) -> None:
    assert read_written(f"- {TABS.text}\n<current-task>{none}</current-task>") == WrittenAnswer(facts=(TABS,))


def test_lines_without_bullets_are_facts_inside_the_element_only() -> None:
    lines = "User prefers tabs\nAgent agreed"
    assert facts(f"<observations>\n{lines}\n</observations>") == [TABS, WrittenFact("Agent agreed")]
    assert read_written(lines) is None


def test_entities_are_characters_and_never_tags() -> None:
    assert fact("- User typed &lt;/observations&gt; &amp;amp;").text == "User typed </observations> &amp;"


@pytest.mark.parametrize(
    ("ending", "kept"),
    [("Agent will delete the", False), ("Agent will delete the cache.", True), ("Agent deletes it [5]", True)],
)
def test_an_answer_that_was_cut_off_loses_its_last_line_unless_it_ends_a_sentence(ending: str, kept: bool) -> None:
    found = facts(f"<observations>\n- {TABS.text}\n- {ending}")
    assert (found[0], len(found)) == (TABS, 1 + kept)


@pytest.mark.parametrize("answer", ["<observations>\n- User pref", "<observations>"])
def test_an_answer_that_was_cut_off_before_its_first_fact_is_not_an_answer(answer: str) -> None:
    assert read_written(answer) is None


def test_a_task_that_was_cut_off_is_not_a_task() -> None:
    answer = f"<observations>\n- {TABS.text}\n</observations>\n<current-task>Delete the"
    assert read_written(answer) == WrittenAnswer(facts=(TABS,))


# Lists


@pytest.mark.parametrize("bullet", ["- ", "* ", "• ", "+ ", "1. ", "1) ", "🔴 ", "CRITICAL: ", "✅ "])
def test_list_items_are_facts_and_the_prose_around_them_is_not(bullet: str) -> None:
    answer = f"Sure! I looked at it.\n\n{bullet}{TABS.text}\n{bullet}Agent agreed\n\nI hope this helps."
    assert [found.text for found in facts(answer)] == [TABS.text, "Agent agreed"]


def test_the_closing_words_of_a_model_are_not_facts() -> None:
    answer = f"- {TABS.text}\n\nNote: this is all I found.\n\n- Would you like me to go on?\n- Let me know!"
    assert facts(answer) == [TABS]


def test_a_fact_may_quote_a_question_or_a_refusal() -> None:
    said = ["User asked: could you always use tabs?", "Agent said: I cannot delete it"]
    assert [found.text for found in facts("\n".join(f"- {line}" for line in said))] == said


def test_a_fact_repeated_by_a_looping_model_is_kept_once() -> None:
    assert facts(f"- {TABS.text}\n" * 50) == [TABS]


@pytest.mark.parametrize(
    "answer",
    [
        "",
        "I'm sorry, but I can't help with that.",
        "The user prefers tabs and the agent agreed.",
        "- Would you like me to summarize it?\n- Should I write JSON?",
        "1. Which part matters?\n2. Who reads it?",
        "I cannot do that. I would need:\n- the whole transcript\n- the list of messages",
        "请提供以下内容：\n- 完整的对话记录",
        "- one\n- two",
        '{"facts": [{"text": "User prefers tabs", "prio',
        '- {"text": "User prefers tabs", "priority": "high"}',
        '<observations>\n[\n {\n  "text": "User prefers tabs",\n  "priority": "high"\n }\n]\n</observations>',
        "<observations>\nI cannot see a transcript.\n</observations>",
        "<think>\n- User prefers tabs\n- Agent agreed",
        "I would put them into `<observations>`.",
        "No new observations. I cannot read the transcript, though.",
    ],
)
def test_an_answer_that_is_neither_tagged_nor_a_list_of_statements_is_sent_back(answer: str) -> None:
    assert read_written(answer) is None


@pytest.mark.parametrize(
    "words",
    [
        *(
            "(none)",
            "None.",
            "*No new observations.*",
            "- None",
            "N/A",
            "- (no new facts)",
            "无",
            "没有值得记录的内容。",
        ),
        *("There are no new observations to record.", "There is nothing worth keeping in this transcript."),
    ],
)
@pytest.mark.parametrize(
    "shape", ["{}", "## Observations\n\n{}", "```\n{}\n```", "<observations>\n{}\n</observations>"]
)
def test_nothing_worth_keeping_is_an_answer(words: str, shape: str) -> None:
    assert read_written(shape.format(words)) == WrittenAnswer(facts=())


def test_an_empty_element_is_an_answer_and_may_have_a_task() -> None:
    assert read_written("<observations>\n</observations>") == WrittenAnswer(facts=())
    answer = "<observations>\n(none)\n</observations>\n<current-task>Fix the login</current-task>"
    assert read_written(answer) == WrittenAnswer(facts=(), current_task="Fix the login")


@pytest.mark.parametrize("line", ["...", "- …", "- Priority: high"])
def test_a_placeholder_does_not_say_that_there_is_nothing(line: str) -> None:
    assert read_written(f"<observations>\n{line}\n</observations>") is None


# Any text

PIECES = st.sampled_from(
    [
        *"\n\r\t -*•#>[](){}<>/`_:：|,;.?!0123456789ax🔴🟡🟢✅→\ufe0f\u00a0\0\ud800",
        *(
            "<observations>",
            "</observations>",
            "<current-task>",
            "</current-task>",
            "<think>",
            "</think>",
            "- ",
            "  - ",
        ),
        *(
            "```",
            "**",
            "Date: ",
            "14:30",
            "[3-",
            "sources: ",
            "priority: high",
            "None",
            "User ",
            "text:",
            "current task:",
        ),
        *("&lt;", "NOTE:", "99999999999", "Fact 1:"),
    ]
)
ANY_TEXT = st.text(alphabet=st.characters(exclude_categories=())) | st.lists(PIECES, max_size=60).map("".join)


@given(ANY_TEXT)
def test_any_text_is_read_or_refused(text: str) -> None:
    written = read_written(text)
    for found in written.facts if written else ():
        assert any(character.isalnum() for character in found.text)
        found.text.encode()
        assert len(set(found.sources)) == len(found.sources)


@pytest.mark.slow
@pytest.mark.parametrize(
    "unit",
    [
        *("*", "**a", " **a", "** ", "`", "[", "(", "[3]", "[3] ", "(3", "<observations ", "<observations>", "<think>"),
        *(
            "🔴",
            "- ",
            "-",
            " ",
            "\t",
            "\n",
            "- a\n",
            "  - a b\n",
            "&lt;",
            "1.",
            "14:30 ",
            "没有",
            "priority:",
            "sources: 3 ",
        ),
        *(
            "\n</think>\n",
            "<current-task>",
            "no new ",
            "current task:\n",
            "\n  - c",
            "\n→ c",
            "\nText: a",
            "a ",
            "a",
            "HIGH: ",
            "[high] ",
            "**a** ",
            "date:",
        ),
    ],
)
def test_hostile_text_takes_time_in_proportion_to_its_length(unit: str) -> None:
    def seconds(length: int) -> float:
        text = f"<observations>\n- a b{unit * (length // len(unit))} z"
        began = process_time()
        read_written(text)
        read_written(text.removeprefix("<observations>"))
        return process_time() - began

    # Sixteen times the length would take 256 times as long if a step were quadratic. A slow run is measured again.
    bound = 60 * max(0.0005, min(seconds(2_000) for _ in range(3)))
    assert any(seconds(32_000) < bound for _ in range(3))


def test_of_an_endless_answer_only_whole_lines_at_its_beginning_are_read() -> None:
    lines = [f"User pasted page {number} {'of a book ' * 1_000}".strip() for number in range(60)]
    read = [fact.text for fact in facts("\n".join(f"- {line}" for line in lines))]
    assert read == lines[: len(read)]
    assert 350_000 < sum(map(len, read)) < 400_000


# Round trips

NAMES = "User|Agent|auth.ts:45|ECONNRESET|`a[3]`|src/**/*.ts|<b>|R&D|café|制表符|gen-itgc|x_y".split("|")
FACTS = st.builds(
    WrittenFact,
    text=st.lists(st.sampled_from(NAMES), min_size=1, max_size=8).map(lambda words: f"User changed {' '.join(words)}"),
    priority=st.sampled_from(["high", "medium", "low"]),
    category=st.none() | st.sampled_from(["decision", "preference", "fact", "issue", "next_step", "outcome"]),
    done=st.booleans(),
    sources=st.lists(st.integers(1, 10**6), max_size=4, unique=True).map(tuple),
)
MARK: dict[Priority, str] = {"high": "🔴", "medium": "🟡", "low": "🟢"}
WORD: dict[Priority, str] = {"high": "CRITICAL", "medium": "IMPORTANT", "low": "NOTE"}


def escaped(text: str) -> str:
    """Return a text as it is written in XML."""
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def numbers(fact: WrittenFact) -> str:
    """Return the source numbers of a fact."""
    return ", ".join(map(str, fact.sources))


def emoji_line(fact: WrittenFact) -> str:
    """Render a fact as packs show it."""
    category = f" [{fact.category}]" if fact.category else ""
    cited = f" [{numbers(fact)}]" if fact.sources else ""
    return f"* {MARK[fact.priority]}{' ✅' * fact.done} (14:30){category} {escaped(fact.text)}{cited}"


def word_line(fact: WrittenFact) -> str:
    """Render a fact with words for marks."""
    category = f"({fact.category}) " if fact.category else ""
    cited = f" (sources: {numbers(fact)})" if fact.sources else ""
    return f"{WORD[fact.priority]}: {'DONE: ' * fact.done}{category}{escaped(fact.text)}{cited}"


def field_lines(fact: WrittenFact) -> str:
    """Render a fact as the fields of the schema, without JSON."""
    lines = [f"- {'[x] ' * fact.done}{escaped(fact.text)}", f"  - **Priority:** {fact.priority.title()}"]
    lines += [f"  - **Category:** {fact.category}"] if fact.category else []
    lines += [f"  - **Sources:** [{numbers(fact)}]"] if fact.sources else []
    return "\n".join(lines)


FRAMES = st.sampled_from(["{}", "<observations>\n{}\n</observations>", "Sure, here it is:\n```\n{}\n```"])


@pytest.mark.parametrize("line", [emoji_line, word_line, field_lines])
@given(FRAMES, st.lists(FACTS, min_size=1, max_size=5, unique=True))
def test_written_facts_are_read_back_unchanged(
    line: Callable[[WrittenFact], str], frame: str, written: list[WrittenFact]
) -> None:
    assert facts(frame.format("\n".join(map(line, written)))) == written
