"""What a model wrote as text is read as it was meant, whatever dialect it wrote."""

from collections.abc import Callable
from dataclasses import replace
from datetime import date, time
from time import process_time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from esker.server.core.records import Category, Priority
from esker.server.providers.written.answer import WrittenAnswer, read_written
from esker.server.providers.written.facts import WrittenFact

MARCH_2 = date(2026, 3, 2)
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


# Marks at the beginning of a line

PRIORITIES: list[tuple[str, Priority]] = [
    ("🔴 {}", "high"),
    ("🟡 {}", "medium"),
    ("🟢 {}", "low"),
    ("🔴{}", "high"),
    ("🔴\ufe0f {}", "high"),
    ("- 🔴 {}", "high"),
    ("-🔴 {}", "high"),
    ("* 🟢 {}", "low"),
    ("1. 🟢 {}", "low"),
    ("{} 🔴", "high"),
    ("CRITICAL: {}", "high"),
    ("HIGH: {}", "high"),
    ("IMPORTANT: {}", "medium"),
    ("MEDIUM: {}", "medium"),
    ("NOTE: {}", "low"),
    ("INFO: {}", "low"),
    ("LOW: {}", "low"),
    ("- Low: {}", "low"),
    ("CRITICAL：{}", "high"),
    ("HIGH - {}", "high"),
    ("HIGH PRIORITY: {}", "high"),
    ("Priority: High - {}", "high"),
    ("[high] {}", "high"),
    ("[HIGH] {}", "high"),
    ("[LOW]: {}", "low"),
    ("(high) {}", "high"),
    ("【高】{}", "high"),
    ("重要：{}", "medium"),
    ("**[HIGH]** {}", "high"),
    ("**HIGH** {}", "high"),
    ("**HIGH:** {}", "high"),
    ("**HIGH**: {}", "high"),
    ("- **🔴 High:** {}", "high"),
    ("- 🔴 **High** - {}", "high"),
    ("🔴 HIGH {}", "high"),
    ("🔴 CRITICAL: {}", "high"),
    ("**🔴 {}**", "high"),
    ("- **{}** (high priority)", "high"),
    ("- {} [low]", "low"),
    ("- {} | Priority: Low", "low"),
    ("- {} (priority: low)", "low"),
    ("> - 🔴 {}", "high"),
    ("{}", "medium"),
    ("- {}", "medium"),
    ("• {}", "medium"),
    ("•{}", "medium"),
    ("1) {}", "medium"),
    ("- *{}*", "medium"),
    ("_{}_", "medium"),
]


@pytest.mark.parametrize(("line", "priority"), PRIORITIES)
def test_a_priority_is_read_in_every_way_it_is_written(line: str, priority: Priority) -> None:
    assert fact(line.format(TABS.text)) == replace(TABS, priority=priority)


@pytest.mark.parametrize(
    "line",
    ["✅ {}", "- ✅ {}", "- [x] {}", "* [X] {}", "DONE: {}", "[done] {}", "☑️ {}", "{} ✅", "✔️ {}", "Completed: {}"],
)
def test_what_is_done_is_marked_as_done_and_has_no_priority_for_it(line: str) -> None:
    assert fact(line.format(TABS.text)) == replace(TABS, done=True)


@pytest.mark.parametrize("line", ["🔴 ✅ {}", "✅ 🔴 {}", "✅🔴{}", "- [x] 🔴 {}", "🔴 (14:30) ✅ {}"])
def test_done_and_priority_stand_side_by_side(line: str) -> None:
    found = fact(line.format(TABS.text))
    assert (found.done, found.priority, found.text) == (True, "high", TABS.text)


def test_an_empty_checkbox_is_no_part_of_the_text() -> None:
    assert fact("- [ ] User wants the tests fixed") == WrittenFact("User wants the tests fixed")


CATEGORIES: list[tuple[str, Category]] = [
    ("🔴 [decision] {}", "decision"),
    ("🔴 (preference) {}", "preference"),
    ("- [next step] {}", "next_step"),
    ("- [Next-Step] {}", "next_step"),
    ("- [state_change] {}", "state_change"),
    ("- Outcome: {}", "outcome"),
    ("- **Issue**: {}", "issue"),
    ("- **Issue** {}", "issue"),
    ("[high, decision] {}", "decision"),
    ("[HIGH][decision] {}", "decision"),
    ("(high/preference) {}", "preference"),
    ("🟡 (14:30) [fact] {}", "fact"),
    ("- {} (category: decision)", "decision"),
    ("- {} [decision]", "decision"),
    ("- {} (high, decision)", "decision"),
    ("🔴【偏好】{}", "preference"),
]


@pytest.mark.parametrize(("line", "category"), CATEGORIES)
def test_a_category_is_read(line: str, category: Category) -> None:
    found = fact(line.format(TABS.text))
    assert (found.category, found.text) == (category, TABS.text)


@pytest.mark.parametrize(
    "text",
    [
        "High-level design is agreed on",
        "Note to self: buy milk",
        "User set the log level to debug (high)",
        "Agent set `a[3]` to 1",
        "Agent changed arr[3]",
        "Files match src/**/*.ts and lib/**/*.js",
        "Agent passes *args and **kwargs on",
        "Agent ran f(*.ts|*.js) twice",
        "Constructors are __init__ and __new__",
        "HIGH latency was measured",
        "User scored 3/5 (see below)",
        "The pull request (#31) was merged",
        "The issue [issue #3] is open",
        "The figure stood in [2](https://example.org/2)",
        "The table holds [3-500]",
        "The table holds [5-3]",
        "The build took [14:30]",
        "The value is [3.5]",
        "1.5 GB are free",
        "-v was added to the call",
        "Version 2.0 - the last one - is out",
        "User said \"no\" to 'yes'",
        "The log says: 25:99 — impossible",
        "2026-02-30: a day that is none",
        "X: the platform is gone",
        "User decision: use Go",
        "Save a note",
        "No tests were added by the agent",
        "Agent typed `**bold** text`",
        "Agent computed a**b or c**(d)",
        "User opened [issue #3]",
        "The price is [$3]",
        "The table holds [5-3, 7]",
        "User set [high] as the level",
        "(high and low) tides are shown",
        "User's team has no new tests",
        "用户喜欢制表符",
    ],
)
def test_what_only_looks_like_a_mark_stays_in_the_text(text: str) -> None:
    assert fact(text) == WrittenFact(text)


# Sources


@pytest.mark.parametrize(
    ("line", "sources"),
    [
        ("{} [3]", (3,)),
        ("{} [3].", (3,)),
        ("{}. [3]", (3,)),
        ("{} [3, 5]", (3, 5)),
        ("{} [3][5]", (3, 5)),
        ("{} [3], [5]", (3, 5)),
        ("{} [3 and 5]", (3, 5)),
        ("{} [#3]", (3,)),
        ("{} [#3, #5]", (3, 5)),
        ("{} [^3]", (3,)),
        ("{} 【3】", (3,)),
        ("{} ［３，５］", (3, 5)),
        ("{} (sources: 3, 5)", (3, 5)),
        ("{} (Sources: [3, 5])", (3, 5)),
        ("{} (source: 3)", (3,)),
        ("{} (message 3)", (3,)),
        ("{} (messages 3 and 5)", (3, 5)),
        ("{} (msg #3)", (3,)),
        ("{} (from message 3)", (3,)),
        ("{} (User, message 3)", (3,)),
        ("{} [message 3]", (3,)),
        ("{} [Sources: 3, 5]", (3, 5)),
        ("{}（来源：3、5）", (3, 5)),
        ("{}（消息３）", (3,)),
        ("{} — sources: 3, 5", (3, 5)),
        ("{} Sources: [3], [5]", (3, 5)),
        ("{} | Priority: medium | Sources: 3", (3,)),
        ("{} [3-5]", (3, 4, 5)),
        ("{} [3–5]", (3, 4, 5)),
        ("{} [#3-#5]", (3, 4, 5)),
        ("{} (messages 3-5)", (3, 4, 5)),
        ("{} [1-50]", tuple(range(1, 51))),
        ("[3] {}", (3,)),
        ("- 🟡 [3] {}", (3,)),
        ("- 🟡 (14:30) [3, 5] {}", (3, 5)),
        ("{} [3] ✅", (3,)),
        ("{} [fact, 3]", (3,)),
        ("{} [3, 3]", (3,)),
    ],
)
def test_the_messages_that_a_line_cites_are_its_sources(line: str, sources: tuple[int, ...]) -> None:
    found = fact(line.format(TABS.text))
    assert (found.sources, found.text.rstrip("."), found.priority) == (sources, TABS.text, "medium")


def test_a_citation_amid_a_line_is_a_source_and_goes_only_where_a_part_ends() -> None:
    found = fact("User prefers tabs [3]. Agent [5] confirmed it.")
    assert found == WrittenFact("User prefers tabs. Agent [5] confirmed it.", sources=(3, 5))


def test_chinese_text_may_touch_its_citation() -> None:
    assert fact("🔴 用户喜欢制表符[3]。") == WrittenFact("用户喜欢制表符。", "high", sources=(3,))


# Dates and times


@pytest.mark.parametrize(
    "header",
    [
        "Date: Mar 2, 2026",
        "Date: 2026-03-02",
        "**Date: March 2, 2026**",
        "**Date:** 2026-03-02",
        "date：2026-03-02",
        "- Date: 2026-03-02",
        "Date: Monday, March 2nd, 2026",
        "Date: 2026-03-02 (Monday)",
        "**2026-03-02**",
        "2026-03-02",
        "2026-03-02:",
        "[2026-03-02]",
        "2026/03/02",
        "--- 2026-03-02 ---",
        "Monday 2026-03-02",
        "## March 2, 2026",
        "### 📅 2 March 2026",
        "Mar 2 2026",
        "2026年3月2日",
        "2026年３月２日",
        "**2026年3月2日 星期一**",
        "日期：2026年3月2日",
        "## Session of 2026-03-02",
    ],
)
@pytest.mark.parametrize("listed", [True, False])
def test_facts_have_the_date_of_the_header_above_them(header: str, listed: bool) -> None:
    body = f"- User said hello there\n{header}\n\n- {TABS.text}\n- Agent runs tests\n"
    found = facts(body if listed else f"<observations>\n{body}</observations>")
    assert [(f.text, f.day) for f in found] == [
        ("User said hello there", None),
        (TABS.text, MARCH_2),
        ("Agent runs tests", MARCH_2),
    ]


def test_a_later_header_replaces_an_earlier_one_even_if_nobody_can_read_it() -> None:
    found = facts("<observations>\nDate: 2026-03-02\n- one fact\nDate: unknown\n- two facts\n</observations>")
    assert [f.day for f in found] == [MARCH_2, None]


@pytest.mark.parametrize(
    "line",
    [
        "(14:30) {}",
        "（14：30）{}",
        "(１４:３０) {}",
        "[14:30] {}",
        "14:30 — {}",
        "14:30 - {}",
        "14:30: {}",
        "14:30 | {}",
        "(2:30 PM) {}",
        "(2:30 p.m.) {}",
        "(14:30:05) {}",
        "(14:30-14:45) {}",
        "**(14:30)** {}",
        "🟡 (14:30) {}",
        "🟡(14:30){}",
        "- 🟡 14:30 - {}",
        "(14:30) 🟡 {}",
        "(14:30): {}",
    ],
)
def test_the_time_at_the_beginning_of_a_line_is_its_time(line: str) -> None:
    assert fact(line.format(TABS.text)) == replace(TABS, clock=time(14, 30))


@pytest.mark.parametrize(
    ("said", "clock"),
    [("12:05 AM", time(0, 5)), ("12:05 pm", time(12, 5)), ("00:00", time(0, 0)), ("9:07", time(9, 7))],
)
def test_times_are_on_a_clock_of_24_hours(said: str, clock: time) -> None:
    assert fact(f"({said}) {TABS.text}").clock == clock


@pytest.mark.parametrize("line", ["(24:00) {}", "(9:75) {}", "14:30 - 15:00 is the meeting", "9:30 is the meeting"])
def test_what_is_no_time_of_a_fact_stays_in_the_text(line: str) -> None:
    text = line.format(TABS.text)
    assert fact(text) == WrittenFact(text)


@pytest.mark.parametrize("line", ["[2026-03-02 14:30] {}", "(Monday 2026-03-02 14:30) {}", "2026-03-02 14:30 - {}"])
def test_a_date_on_the_line_itself_comes_before_that_of_the_header(line: str) -> None:
    found = facts(f"<observations>\nDate: 2026-01-01\n{line.format(TABS.text)}\nAgent agreed\n</observations>")
    assert found == [replace(TABS, day=MARCH_2, clock=time(14, 30)), WrittenFact("Agent agreed", day=date(2026, 1, 1))]


# Details and headings


@pytest.mark.parametrize(
    "details",
    [
        "  - in Go\n  - in C",
        "\t* in Go\n\t* in C",
        "  → in Go\n  → in C",
        "→ in Go\n→ in C",
        "  * -> in Go\n  * -> in C",
        "    1. in Go\n    2. in C",
        "  - in Go\n    - in C",
        "  🟢 in Go\n  🟢 in C",
        "  -&gt; in Go\n  -&gt; in C",
    ],
)
def test_details_belong_to_the_fact_above_them(details: str) -> None:
    found = facts(f"<observations>\n- 🟡 {TABS.text}\n{details}\n- Agent agreed\n</observations>")
    assert found == [replace(TABS, text=f"{TABS.text}; in Go; in C"), WrittenFact("Agent agreed")]


def test_details_keep_what_they_say_and_add_their_sources() -> None:
    found = fact("- Agent fixed the login [3]\n  - ✅ (14:31) tests pass [5, 3]")
    assert found == WrittenFact("Agent fixed the login; ✅ (14:31) tests pass", sources=(3, 5))


def test_a_checklist_below_a_fact_belongs_to_it() -> None:
    found = fact("- User wants the login fixed\n  - [x] null check\n  - ✅ test")
    assert found == WrittenFact("User wants the login fixed; [x] null check; ✅ test")


def test_code_below_a_line_that_announces_it_belongs_to_it() -> None:
    assert fact("- User runs:\n```bash\nnpm ci\n```").text == "User runs: npm ci"


def test_a_wrapped_line_is_one_sentence() -> None:
    assert fact("- User prefers\n  tabs") == TABS


def test_details_behind_a_colon_are_not_cut_off_from_it() -> None:
    assert fact("- User preferences:\n  - tabs\n  - Go").text == "User preferences: tabs; Go"


def test_an_answer_that_is_indented_as_a_whole_has_no_details() -> None:
    assert len(facts("<observations>\n  Date: 2026-03-02\n    - one fact\n    - two facts\n</observations>")) == 2


def test_marked_lines_below_a_topic_are_facts_of_their_own() -> None:
    found = facts("<observations>\n- **Login:**\n  - 🔴 It fails\n  - 🟢 It is old\n    - from 2020\n</observations>")
    assert found == [WrittenFact("It fails", "high"), WrittenFact("It is old; from 2020", "low")]


@pytest.mark.parametrize("tagged", [True, False])
@pytest.mark.parametrize(
    ("heading", "priority", "category"),
    [
        ("### 🔴 High Priority", "high", None),
        ("**High priority:**", "high", None),
        ("🔴 **CRITICAL**", "high", None),
        ("🔴 Critical:", "high", None),
        ("## 🟢 Some other things", "low", None),
        ("Decisions:", "medium", "decision"),
        ("## User Preferences", "medium", "preference"),
        ("**Next steps**", "medium", "next_step"),
        ("### State changes", "medium", "state_change"),
        ("#### Project setup", "medium", None),
        ("**Project setup**", "medium", None),
        ("**Key observations:**", "medium", None),
        ("Here is what I saw:", "medium", None),
    ],
)
def test_a_heading_is_no_fact_and_labels_those_below_it(
    tagged: bool, heading: str, priority: Priority, category: Category | None
) -> None:
    body = f"{heading}\n\n- {TABS.text}\n- 🟡 [issue] Tests fail\n"
    found = facts(f"<observations>\n{body}</observations>" if tagged else body)
    assert found == [
        replace(TABS, priority=priority, category=category),
        WrittenFact("Tests fail", "medium", "issue"),
    ]


def test_a_heading_ends_what_the_one_before_it_said() -> None:
    found = facts("<observations>\n## Decisions\n- Use Go\nOther things:\n- It is old\n</observations>")
    assert found == [WrittenFact("Use Go", category="decision"), WrittenFact("It is old")]


@pytest.mark.parametrize(
    "item",
    [
        '- text: "User prefers tabs"\n  priority: high\n  category: preference\n  sources: [1, 4]\n  refers_from: null',
        "- priority: high\n  category: preference\n  text: User prefers tabs\n  sources: [1, 4]",
        "1. **User prefers tabs**\n   - **Priority:** High\n   - **Category:** Preference\n   - **Sources:** [1], [4]",
        "1. **Text:** User prefers tabs\n   **Priority:** high\n   **Category:** preference\n   **Sources:** 1, 4",
        "**Fact 1:**\n- Text: User prefers tabs\n- Priority: high\n- Category: preference\n- Sources: 1, 4",
        "- User prefers tabs (priority: high, category: preference, sources: [1, 4])",
        "- User prefers tabs | priority: high | category: preference | sources: 1, 4",
        "- [high] [preference] User prefers tabs [1, 4]",
        "- **[HIGH] [PREFERENCE]** User prefers tabs (Sources: 1, 4)",
        "- **Preference (high)**: User prefers tabs [1][4]",
    ],
)
def test_the_fields_of_the_schema_are_read_where_a_model_writes_them_without_json(item: str) -> None:
    wanted = WrittenFact(TABS.text, "high", "preference", sources=(1, 4))
    assert facts(f"{item}\n") == [wanted]
    assert facts(f"<observations>\n{item}\n</observations>") == [wanted]


def test_sources_may_be_a_list_of_their_own() -> None:
    assert facts("facts:\n- text: User prefers tabs\n  sources:\n    - 1\n    - 4\n") == [replace(TABS, sources=(1, 4))]


def test_a_field_that_a_fact_has_no_place_for_is_told() -> None:
    item = "### Fact 1\n- **Text**: The offer holds\n- **Refers From**: null\n- **Valid Until**: 2026-04-01"
    assert facts(item) == [WrittenFact("The offer holds; Valid Until: 2026-04-01")]


def test_two_facts_with_fields_do_not_mix() -> None:
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
WHOLE = WrittenAnswer(
    facts=(
        WrittenFact(TABS.text, "high", None, False, (3,), MARCH_2, time(14, 30)),
        WrittenFact("Agent fixed the login; ran `npm ci`", "medium", None, True, (4, 5), MARCH_2, time(14, 31)),
    ),
    current_task="Fix the login test",
    suggested_continuation="Run the tests again.",
    thread_title="Login test",
)


@pytest.mark.parametrize(
    "answer",
    [
        ANSWER,
        ANSWER.replace("\n", "\r\n"),
        ANSWER.replace(" ", "\u00a0"),
        f"```xml\n{ANSWER}\n```",
        f"```\n{ANSWER}\n```\n",
        f"Assistant: {ANSWER}",
        f"**Assistant:**\n{ANSWER}",
        f"Here are the observations:\n\n{ANSWER}\n\nLet me know if I should add anything!",
        f"<think>\nIs it JSON?\n<observations>- no</observations>\n</think>\n\n{ANSWER}",
        f"<thinking>- one thing\n- two things</thinking>{ANSWER}",
        f"Okay, the user wants facts.\n- maybe these two\n</think>\n\n{ANSWER}",
        f"[THINK]Hm, what now[/THINK]{ANSWER}",
        f"<|channel|>analysis<|message|>Hm.<|end|><|start|>assistant<|channel|>final<|message|>{ANSWER}<|end|>",
        f"{ANSWER}<|im_end|>",
        f"{ANSWER}\n</s>",
        f"\ufeff{ANSWER}",
        ANSWER.replace("-task", "_task")
        .replace("-title", "_title")
        .replace("suggested-response", "suggested_response"),
        ANSWER.replace("suggested-response", "suggested-continuation"),
        ANSWER.replace("observations", "OBSERVATIONS").replace("current-task", "Current-Task"),
        ANSWER.replace("</observations>\n", ""),
        ANSWER.replace("</thread-title>", ".").replace("Login test", "Login test</thread-title>"),
        ANSWER.replace("Date:", '<observation-group id="a" range="1:5">\nDate:').replace(
            "</obs", "</observation-group>\n</obs"
        ),
        ANSWER.replace("</observations>", "").replace(
            "Login test</thread-title>", "Login test</thread-title>\n</observations>"
        ),
        ANSWER.replace("* ✅", "</observations>\n<observations>\n* ✅"),
        ANSWER.replace(" [3]\n", " [3]\n\n\n"),
    ],
)
def test_tagged_text_is_read_whatever_is_around_it(answer: str) -> None:
    assert read_written(answer) == WHOLE


LISTED = "- User prefers tabs\n- Agent agreed"


@pytest.mark.parametrize(
    "answer",
    [
        LISTED,
        f"Assistant: {LISTED}",
        f"**Output:**\n{LISTED}",
        f"{LISTED}<|im_end|>",
        f"{LISTED}</s>\n<|eot_id|>",
        f"<think>\n- one thing\n</think>\n{LISTED}",
        f"Hm, the user wants facts.\n- maybe these two\n</think>\n{LISTED}",
        f"```markdown\n{LISTED}\n```",
        f"I write no `<observations>`, but a list:\n\n{LISTED}",
        f"Current task:\nFix the login\n**Facts:**\n{LISTED}",
    ],
)
def test_a_list_is_read_whatever_is_around_it(answer: str) -> None:
    assert facts(answer) == [TABS, WrittenFact("Agent agreed")]


def test_what_follows_the_task_is_a_fact_only_inside_the_element() -> None:
    task = "<current-task>Fix the login</current-task>"
    inside = f"<observations>\n- {TABS.text}\n{task}\n- Agent agreed\n</observations>"
    assert read_written(inside) == WrittenAnswer((TABS, WrittenFact("Agent agreed")), "Fix the login")
    unclosed = f"<observations>\n- {TABS.text}\n{task}\nI hope this is all right.\n- Tell me more"
    assert read_written(unclosed) == WrittenAnswer((TABS,), "Fix the login")


def test_what_no_database_keeps_is_replaced() -> None:
    assert fact("- User typed \0 and \ud83d\ude00").text == "User typed \ufffd and 😀"


def test_xml_with_one_element_a_fact_is_read() -> None:
    inner = (
        '<observation priority="high" category="preference" sources="3, 5" date="2026-03-02">\n'
        "  User prefers tabs\n</observation>\n<observation priority='low'>It is old</observation>"
    )
    wanted = [WrittenFact(TABS.text, "high", "preference", False, (3, 5), MARCH_2), WrittenFact("It is old", "low")]
    assert facts(f"<observations>{inner}</observations>") == facts(inner) == wanted
    assert facts(f"{inner}\n- Agent agreed") == [*wanted, WrittenFact("Agent agreed")]


def test_a_tag_in_backticks_is_spoken_of() -> None:
    assert fact("- Agent parses `<observation>` now") == WrittenFact("Agent parses `<observation>` now")


def test_tags_of_groups_go_and_their_lines_stay() -> None:
    group = '<observation-group id="g1" range="a:b">\n- one fact\n- two facts\n</observation-group>'
    wanted = [WrittenFact("one fact"), WrittenFact("two facts")]
    assert facts(group) == facts(f"<observations>\n{group}\n</observations>") == wanted
    assert facts(f"<observations>{group.replace(chr(10) + '- one', '- one')}</observations>") == wanted
    assert facts(group.replace("- ", "    - ")) == wanted


def test_lines_without_bullets_are_facts_inside_the_element_only() -> None:
    lines = "User prefers tabs\nAgent agreed"
    assert facts(f"<observations>\n{lines}\n</observations>") == [TABS, WrittenFact("Agent agreed")]
    assert read_written(lines) is None


def test_entities_are_characters_and_never_tags() -> None:
    found = fact("- User typed &lt;/observations&gt; &amp;amp; &quot;x&quot;")
    assert found.text == 'User typed </observations> &amp; "x"'


@pytest.mark.parametrize(
    ("ending", "kept"),
    [
        ("Agent will delete the", False),
        ("Agent will delete the cache.", True),
        ('Agent said "done."', True),
        ("Agent deletes it [5]", True),
        ("代理删除了缓存。", True),
    ],
)
def test_an_answer_that_was_cut_off_loses_its_last_line_unless_it_ends_a_sentence(ending: str, kept: bool) -> None:
    found = facts(f"<observations>\n- {TABS.text}\n- {ending}")
    assert found[0] == TABS
    assert len(found) == 1 + kept


def test_an_answer_that_was_cut_off_in_its_first_line_is_none() -> None:
    assert read_written("<observations>\n- User pref") is None
    assert read_written("<observations>") is None


def test_a_task_that_was_cut_off_is_no_task() -> None:
    written = read_written(f"<observations>\n- {TABS.text}\n</observations>\n<current-task>Delete the")
    assert written == WrittenAnswer(facts=(TABS,))


@pytest.mark.parametrize("none", ["", "none", "None.", "(none)", "null", "N/A"])
def test_a_task_that_is_none_is_no_task(none: str) -> None:
    written = read_written(f"- {TABS.text}\n<current-task>{none}</current-task>")
    assert written == WrittenAnswer(facts=(TABS,))


@pytest.mark.parametrize(
    "labels",
    [
        "Current task: Fix the login\nSuggested continuation: Run the tests\nThread title: Login",
        '**Current Task:** Fix the login\n**Suggested Response:** Run the tests\n**Thread Title**: "Login"',
        "- current_task: Fix the login\n- suggested_continuation: Run the tests\n- thread_title: Login",
        "### Current Task\nFix the login\n\n### Suggested Continuation\n- Run the tests\n\n### Thread Title\nLogin",
        "Current task:\n\n  Fix the login\n\nSuggested response:\nRun the tests\nThread title:\nLogin\n\nBye.",
    ],
)
def test_task_continuation_and_title_are_read_without_tags(labels: str) -> None:
    wanted = WrittenAnswer((TABS,), "Fix the login", "Run the tests", "Login")
    assert read_written(f"- {TABS.text}\n\n{labels}") == wanted
    assert read_written(f"{labels}\n\n## Facts\n- {TABS.text}") == wanted
    assert read_written(f"<observations>\n- {TABS.text}\n</observations>\n{labels}") == wanted


# Lists


@pytest.mark.parametrize(
    "bullet", ["- ", "* ", "• ", "•", "+ ", "– ", "1. ", "1) ", "1、", "🔴 ", "CRITICAL: ", "✅ ", "> - "]
)
def test_list_items_are_facts_and_the_prose_around_them_is_not(bullet: str) -> None:
    answer = f"Sure! I looked at it.\n\n{bullet}{TABS.text}\n{bullet}Agent agreed\n\nI hope this helps."
    assert [f.text for f in facts(answer)] == [TABS.text, "Agent agreed"]


def test_the_closing_words_of_a_model_are_no_facts() -> None:
    answer = f"- {TABS.text}\n\nNote: this is all I found.\n\n- Would you like me to go on?\n- Let me know!"
    assert facts(answer) == [TABS]


def test_an_apology_before_a_list_does_not_spoil_it() -> None:
    assert facts(f"I apologize for the wrong format. Here they are:\n- {TABS.text}") == [TABS]


def test_a_fact_may_quote_a_question_or_a_refusal() -> None:
    said = ["User asked: could you always use tabs?", "Agent said: I cannot delete it"]
    assert [f.text for f in facts("\n".join(f"- {line}" for line in said))] == said


def test_chinese_items_are_statements() -> None:
    assert facts("以下是观察：\n- 用户喜欢制表符\n- 🔴（14：30）测试失败了（来源：３）") == [
        WrittenFact("用户喜欢制表符"),
        WrittenFact("测试失败了", "high", sources=(3,), clock=time(14, 30)),
    ]


@pytest.mark.parametrize("text", [TABS.text, "line", "- User", "用户", "User likes tabs."])
def test_a_looping_model_says_a_thing_once(text: str) -> None:
    assert len(facts("- User prefers tabs\n" + f"- {text}\n" * 50)) == (1 if text == TABS.text else 2)


@pytest.mark.parametrize(
    "answer",
    [
        "",
        "   \n\n",
        "I'm sorry, but I can't help with that.",
        "The user prefers tabs and the agent agreed.",
        "What would you like me to do with this transcript?",
        "- Would you like me to summarize it?\n- Should I write JSON?",
        "1. Which part matters?\n2. Who reads it?",
        "I cannot do that. I would need:\n- the whole transcript\n- the list of messages",
        "I can help you with the following:\n- summarize the session\n- extract key facts",
        "Could you share:\n- the transcript of the session",
        "请提供以下内容：\n- 完整的对话记录",
        "- one\n- two",
        "- 标签",
        "---\n***\n- - -",
        '{"facts": [{"text": "User prefers tabs", "prio',
        '<observations>\n[\n {\n  "text": "User prefers tabs",\n  "priority": "high"\n }\n]\n</observations>',
        '- {"text": "User prefers tabs", "priority": "high"}',
        "- Tabs or spaces?\n- On the old server?",
        "No new observations.\nI cannot read the transcript, though.",
        "<observations>\nI cannot see a transcript.\n</observations>",
        "<think>\n- User prefers tabs\n- Agent agreed",
        "I would put them into `<observations>`.",
        "[3] user, Monday 2026-03-02 14:30\nUse tabs, please.",
        "<current-task>Fix the login</current-task>",
        "No new observations. I cannot read the transcript, though.",
    ],
)
def test_what_is_neither_tagged_nor_a_list_of_statements_is_sent_back(answer: str) -> None:
    assert read_written(answer) is None


NOTHING = [
    "(none)",
    "None",
    "None.",
    "*No new observations.*",
    "No new observations.",
    "No observations",
    "- None",
    "N/A",
    "There are no new observations to record.",
    "There is nothing worth keeping in this transcript.",
    "Nothing worth remembering.",
    "- (no new facts)",
    "无",
    "没有值得记录的内容。",
    "（无新观察）",
]


@pytest.mark.parametrize("words", NOTHING)
@pytest.mark.parametrize(
    "shape", ["{}", "## Observations\n\n{}", "```\n{}\n```", "<observations>\n{}\n</observations>"]
)
def test_nothing_worth_keeping_is_an_answer(words: str, shape: str) -> None:
    assert read_written(shape.format(words)) == WrittenAnswer(facts=())


@pytest.mark.parametrize(
    "answer",
    [
        "<observations></observations>",
        "<observations/>",
        "<observations />",
        "<observations>\n\nDate: 2026-03-02\n</observations>",
    ],
)
def test_an_empty_element_is_an_answer(answer: str) -> None:
    assert read_written(answer) == WrittenAnswer(facts=())


def test_an_answer_with_nothing_new_may_still_have_a_task() -> None:
    answer = "<observations>\n(none)\n</observations>\n<current-task>Fix the login</current-task>"
    assert read_written(answer) == WrittenAnswer(facts=(), current_task="Fix the login")


def test_nothing_beside_facts_is_no_fact() -> None:
    assert read_written(f"- {TABS.text}\n## Issues\n- None") == WrittenAnswer(facts=(TABS,))


@pytest.mark.parametrize("line", ["...", "- …", "- Priority: high", "* * ???"])
def test_a_placeholder_does_not_say_that_there_is_nothing(line: str) -> None:
    assert read_written(f"<observations>\n{line}\n</observations>") is None


# Any text

PIECES = st.sampled_from(
    [
        *"\n\r\t -*•#>[](){}<>/`_:：|,;.?!0123456789ax🔴🟡🟢✅→\ufe0f\u00a0\0\ud800",
        *[
            "<observations>",
            "</observations>",
            "<current-task>",
            "</current-task>",
            "<think>",
            "</think>",
            "<observation",
        ],
        *[
            "- ",
            "  - ",
            "```",
            "**",
            "Date: ",
            "2026-03-02",
            "14:30",
            "[3-",
            "sources: ",
            "priority: high",
            "None",
            "User ",
        ],
        *["(", "current task:", "&lt;", "NOTE:", "Mar 2, 2026", "99999999999", "<observation priority='high'>"],
    ]
)
ANY_TEXT = st.text(alphabet=st.characters(exclude_categories=())) | st.lists(PIECES, max_size=60).map("".join)


@given(ANY_TEXT)
def test_any_text_is_read_or_refused(text: str) -> None:
    written = read_written(text)
    if written is None:
        return
    for found in written.facts:
        assert any(character.isalnum() for character in found.text)
        found.text.encode()
        assert len(set(found.sources)) == len(found.sources)


@pytest.mark.parametrize(
    "unit",
    [
        *[
            "*",
            "**a",
            " **a",
            "** ",
            "`",
            "[",
            "(",
            "[3]",
            "[3] ",
            "(3",
            "((3)",
            "<observations ",
            "<observations>",
            "<think>",
            "</s>",
        ],
        *[
            "🔴",
            "🔴 ",
            "- ",
            "-",
            " ",
            "\t",
            "\n",
            "- a\n",
            "  - a b\n",
            "_",
            "_a",
            ">",
            "> ",
            "&lt;",
            "1.",
            "14:30 ",
            "没有",
        ],
        *[
            "priority:",
            "sources: 3 ",
            "2026-",
            "Mar 2 ",
            "- a b\n  - c\n",
            "\n</think>\n",
            "<current-task>",
            "新的",
            "no new ",
        ],
        *[
            "current task:\n",
            "<observation>",
            "</observation>",
            "<fact ",
            "\u3000",
            "a ",
            "a",
            "HIGH: ",
            "[high] ",
            "**a** ",
            "`a",
        ],
    ],
)
def test_hostile_text_takes_time_in_proportion_to_its_length(unit: str) -> None:
    def seconds(length: int) -> float:
        text = f"<observations>\n- a b{unit * (length // len(unit))} z"
        began = process_time()
        read_written(text)
        read_written(text.removeprefix("<observations>"))
        return process_time() - began

    # Sixteen times the length would take 256 times as long if any step were quadratic. What seems slow is measured
    # again: a pause of the machine is no property of the code.
    bound = 60 * max(0.0005, min(seconds(4_000) for _ in range(3)))
    assert any(seconds(64_000) < bound for _ in range(3))


def test_of_an_endless_answer_only_whole_lines_at_its_beginning_are_read() -> None:
    lines = [f"User pasted page {number} {'of a book ' * 1_000}".strip() for number in range(60)]
    read = [fact.text for fact in facts("\n".join(f"- {line}" for line in lines))]
    assert read == lines[: len(read)]
    assert 350_000 < sum(map(len, read)) < 400_000


# Round trips

NAMES = [
    "User",
    "Agent",
    "auth.ts:45",
    "ECONNRESET",
    "`a[3]`",
    "src/**/*.ts",
    "<b>",
    "R&D",
    "café",
    "制表符",
    "gen-itgc",
    "x_y",
]
TEXTS = st.lists(st.sampled_from(NAMES), min_size=1, max_size=8).map(lambda words: f"User changed {' '.join(words)}")
FACTS = st.builds(
    WrittenFact,
    text=TEXTS,
    priority=st.sampled_from(["high", "medium", "low"]),
    category=st.none() | st.sampled_from(["decision", "preference", "fact", "issue", "next_step", "outcome"]),
    done=st.booleans(),
    sources=st.lists(st.integers(1, 10**6), max_size=4, unique=True).map(tuple),
    day=st.none() | st.dates(date(1990, 1, 1), date(2100, 1, 1)),
    clock=st.none() | st.builds(time, st.integers(0, 23), st.integers(0, 59)),
)
MARK: dict[Priority, str] = {"high": "🔴", "medium": "🟡", "low": "🟢"}
WORD: dict[Priority, str] = {"high": "CRITICAL", "medium": "IMPORTANT", "low": "NOTE"}


def escaped(text: str) -> str:
    """Return a text as it stands in XML."""
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def numbers(fact: WrittenFact) -> str:
    """Return the source numbers of a fact."""
    return ", ".join(map(str, fact.sources))


def emoji_line(fact: WrittenFact) -> str:
    """Render a fact as packs show it."""
    clock = f" ({fact.clock:%H:%M})" if fact.clock else ""
    category = f" [{fact.category}]" if fact.category else ""
    cited = f" [{numbers(fact)}]" if fact.sources else ""
    return f"* {MARK[fact.priority]}{' ✅' * fact.done}{clock}{category} {escaped(fact.text)}{cited}"


def word_line(fact: WrittenFact) -> str:
    """Render a fact with words for marks."""
    clock = f"{fact.clock:%H:%M} — " if fact.clock else ""
    category = f"({fact.category}) " if fact.category else ""
    cited = f" (sources: {numbers(fact)})" if fact.sources else ""
    return f"{WORD[fact.priority]}: {'DONE: ' * fact.done}{clock}{category}{escaped(fact.text)}{cited}"


def field_lines(fact: WrittenFact) -> str:
    """Render a fact as the fields of the schema, without JSON."""
    clock = f"({fact.clock:%H:%M}) " if fact.clock else ""
    lines = [f"- {'[x] ' * fact.done}{clock}{escaped(fact.text)}", f"  - **Priority:** {fact.priority.title()}"]
    lines += [f"  - **Category:** {fact.category}"] if fact.category else []
    lines += [f"  - **Sources:** [{numbers(fact)}]"] if fact.sources else []
    return "\n".join(lines)


def dated(lines: list[tuple[WrittenFact, str]], header: str) -> str:
    """Return lines below the headers of their days."""
    return "\n".join(f"{header.format(f'{f.day:%b %-d, %Y}' if f.day else 'unknown')}\n{line}" for f, line in lines)


HEADERS = st.sampled_from(["Date: {}", "**Date: {}**", "\r\n## Date: {}\r\n"])
FRAMES = st.sampled_from(["{}", "<observations>\n{}\n</observations>", "Sure, here it is:\n```\n{}\n```"])


@pytest.mark.parametrize("line", [emoji_line, word_line, field_lines])
@given(HEADERS, FRAMES, st.lists(FACTS, min_size=1, max_size=5, unique=True))
def test_written_facts_read_back_the_same(
    line: Callable[[WrittenFact], str], header: str, frame: str, written: list[WrittenFact]
) -> None:
    text = frame.format(dated([(fact, line(fact)) for fact in written], header))
    assert facts(text) == written
