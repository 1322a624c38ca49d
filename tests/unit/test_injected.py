"""Text injected by programs, and memory's own output, are hidden from an observer; text written by people stays."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from time import process_time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from esker.server.agents.claude_code import read_transcript
from esker.server.core.conversation.blocks import result_text, tool_names
from esker.server.core.conversation.injected import strip_injected, strip_ours
from esker.server.core.conversation.memory_tools import is_memory_tool, is_rules_file
from esker.server.core.conversation.observer_text import observer_text, shown_tokens
from esker.server.core.conversation.records import Block
from esker.server.core.conversation.valid_blocks import as_blocks
from esker.server.core.json_input import Json

PACK = (
    "<global_observations>\n* 🔴 2026-03-02 User prefers tabs.\n</global_observations>\n"
    '<local_observations>\n<observation-group id="grp_1" range="a:b" kind="live">\nDate: 2026-03-02\n'
    "* 🟡 (12:00) A fact.\n</observation-group>\n</local_observations>"
)


def shown(name: str, arguments: Json, result: Json = "the result", **more: Json) -> str:
    """Return a call and its result as an observer sees them."""
    call: list[Block] = as_blocks([{"type": "tool_use", "id": "t1", "name": name, "input": arguments}])
    answer = as_blocks([{"type": "tool_result", "tool_use_id": "t1", "content": result, **more}])
    names = tool_names(call)
    return "\n".join([observer_text("assistant", call, names), observer_text("user", answer, names)])


# Elements --------------------------------------------------------------------------------------------------------

HINTS = ["current-task", "suggested-response", "suggested-continuation", "thread-title", "current_task", "thread_title"]
OTHER_MEMORIES = [
    "claude-mem-context",
    "supermemory-context",
    "supermemory-containers",
    "hindsight_memories",
    "cognee_memories",
    "memory_blocks",
    "relevant_memories",
    "relevant-memories",
    "relevant-structured-memories",
    "RELEVANT_MEMORIES",
    "memory-context",
    "mem0_context",
    "user_memory",
    "userMemories",
    "memories",
    "session-memory",
    "recalled_context",
]
OF_CLIENTS = [
    "current_datetime",
    "system-reminder",
    "system_reminder",
    "hook_context",
    "session_context",
    "environment_details",
    "state_snapshot",
    "turn_aborted",
    "cursor_rules",
    "user_rules",
    "project_instructions",
    "user_instructions",
    "INSTRUCTIONS",
]


@pytest.mark.parametrize("tag", [*HINTS, *OTHER_MEMORIES, *OF_CLIENTS])
def test_an_injected_element_is_left_out_and_its_name_can_be_discussed(tag: str) -> None:
    assert strip_injected(f"<{tag}>\nUser likes tea.\n</{tag}>\n\nBrew it.") == "Brew it."
    assert strip_injected(f'Brew it. <{tag} version="1">User likes tea.</{tag}>') == "Brew it."
    question = f"What does <{tag}> mean,\nand who closes it?"
    assert strip_injected(question) == question
    typed = f"<{tag}>\nis what I see."
    assert strip_injected(typed) == typed
    assert strip_injected(f"Why is there a stray </{tag}>?") == f"Why is there a stray </{tag}>?"


@pytest.mark.parametrize("tag", ["memory", "observations", "agent_scratch_memory", "FACTS", "ENTITIES"])
def test_an_ambiguous_element_name_is_injected_only_as_a_block(tag: str) -> None:
    assert strip_injected(f"Brew it.\n\n<{tag}>\n- User likes tea.\n</{tag}>") == "Brew it."
    inline = f"Does <{tag}>User likes tea.</{tag}> parse?"
    assert strip_injected(inline) == inline


@pytest.mark.parametrize(
    "text",
    [
        "<domain>\n  <memory unit='KiB'>1048576</memory>\n  <currentMemory unit='KiB'>1</currentMemory>\n</domain>",
        "<fb_memory_usage>\n  <used_memory>12 MiB</used_memory>\n</fb_memory_usage>",
        "render(\n<MemoryRouter>\n  <App />\n</MemoryRouter>\n)",
        "<MemoryContext.Provider>\n<App />\n</MemoryContext.Provider>",
        "<Memories>\n<App />\n</Memories>",
        "<UserMemory>\n<App />\n</UserMemory>",
        "<memory-game>\n<card></card>\n</memory-game>",
        "<context>\nWe use Postgres.\n</context>",
        "<instructions>\nNever push to main.\n</instructions>",
        "<rules>\nNever push to main.\n</rules>",
        "<project_context>\nA shop for tea.\n</project_context>",
        "<facts>\nTea is hot.\n</facts>",
        "I use <memories/> here. Later </memories> came.",
        "if a <memory and b> c: pass",
    ],
)
def test_markup_that_only_looks_like_memory_or_rules_stays(text: str) -> None:
    assert strip_injected(text) == text


def test_the_words_around_a_mention_and_a_reminder_stay() -> None:
    """Claude Code appends reminders to what a person typed, also to a question about reminders."""
    question = "Why does <system-reminder> show up here?\nPlease check.\n"
    text = f"{question}<system-reminder>\nBe careful.\n</system-reminder>\nOk?"
    assert strip_injected(text) == f"{question}\nOk?"


def test_a_truncated_pack_is_left_out_but_its_name_in_a_sentence_stays() -> None:
    assert strip_injected("Before.\n" + PACK[: PACK.index("tabs")]) == "Before."
    assert strip_injected("Who writes <global_observations> here?") == "Who writes <global_observations> here?"


def test_the_rules_of_cursor_are_recognised_by_their_first_words() -> None:
    rules = (
        "<rules>\nThe rules section has a number of possible rules/memories/context that you should consider.\n\n"
        '<user_rules description="x">\n<user_rule>Use tabs.</user_rule>\n</user_rules>\n</rules>\n'
    )
    info = "<user_info>\nOS Version: linux\n</user_info>\n\n"
    assert strip_injected(f"{info}{rules}<user_query>\nFix the build.\n</user_query>") == "Fix the build."


# Rules files in texts --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "rules",
    [
        "Contents of /x/CLAUDE.md (project instructions, checked into the codebase):\n\nUse tabs.",
        "Contents of /h/.claude/CLAUDE.md (user's private global instructions for all projects):\n\nUse tabs.",
        "Contents of /h/MEMORY.md (user's auto-memory, persists across conversations):\n\n- Use tabs.",
        "As you answer the user's questions, you can use the following context:\n# claudeMd\nUse tabs.",
        "Instructions from: /x/AGENTS.md\n# Rules\nUse tabs.\n\nInstructions from: /y/CLAUDE.md\nNo tabs.",
        "# AGENTS.md instructions for /x\n\n<INSTRUCTIONS>\nUse tabs.\n</INSTRUCTIONS>",
        "# AGENTS.md instructions for /x\n\n<INSTRUCTIONS>\nUse tabs.",
        "# Project Context\n\nThe following project context files have been loaded:\n\n## /x/AGENTS.md\n\nUse tabs.",
        "# Project Context\n\nProject-specific instructions and guidelines:\n\n## /x/AGENTS.md\n\nUse tabs.",
        "<project_context>\n\nProject-specific instructions and guidelines:\n\nUse tabs.\n\n</project_context>",
        '<project_instructions path="/x/AGENTS.md">\nUse tabs.\n</project_instructions>',
        "--- Context from: GEMINI.md ---\nUse tabs.\n--- End of Context from: GEMINI.md ---",
    ],
)
def test_a_rules_file_in_a_text_is_left_out(rules: str) -> None:
    assert strip_injected(rules) == ""
    assert strip_injected(f"Fix the build.\n\n{rules}") == "Fix the build."


def test_text_after_the_end_of_a_rules_file_stays() -> None:
    context = "--- Context from: a/GEMINI.md ---\nUse tabs.\n--- End of Context from: a/GEMINI.md ---\n"
    assert strip_injected(f"{context}\n{context}Fix the build.") == "Fix the build."
    claude = (
        "Contents of /x/CLAUDE.md (project instructions, checked into the codebase):\n\nUse tabs.\n\n"
        "      IMPORTANT: this context may or may not be relevant to your tasks. You should not respond to it.\n"
    )
    assert strip_injected(f"{claude}\nFix the build.") == "Fix the build."


@pytest.mark.parametrize(
    "text",
    [
        "Contents of CLAUDE.md should be shorter",
        "Contents of CLAUDE.md (project instructions) are too long.",
        "Instructions from: my boss\nShip it.",
        "# Project Context\n\nWe sell tea.",
        "# AGENTS.md instructions for beginners",
        "--- Context from: GEMINI.md ---\nis what Gemini prints, is it not?",
        "This session is being continued from a previous conversation, says Claude. Why?",
        "This is the Gemini CLI. We are setting up the context for our chat. Does it print that?",
        "Put it in CLAUDE.md: use tabs.",
    ],
)
def test_a_persons_text_about_rules_files_and_summaries_stays(text: str) -> None:
    assert strip_injected(text) == text


# Summaries and preambles -----------------------------------------------------------------------------------------


CONTINUED = "This session is being continued from a previous conversation"
HANDED_OVER = "Another language model started to solve this problem and produced a summary of its thinking process."
COMPACTED = "The conversation history before this point was compacted into the following summary:"
COPILOT = "You were originally given instructions from a user over one or more turns. Here were the user messages:"
GEMINI = "This is the Gemini CLI. We are setting up the context for our chat."


@pytest.mark.parametrize(
    "summary",
    [
        f"{CONTINUED} that ran out of context. The summary below covers its beginning.\n\nSummary:\n1. Tea.",
        f"{CONTINUED} that ran out of context. The conversation is summarized below:\nAnalysis:\nTea.",
        f"{CONTINUED}.\n\nSummary:\n1. Tea.",
        f"{HANDED_OVER} Use this to build on the work that has already been done.\n\nTea.",
        f"{COMPACTED}\n\n<summary>\nTea.\n</summary>",
        f"Some of the conversation history has been summarized to free up context.\n\n{COPILOT}\n<user_message>Tea.",
        f"{GEMINI}\nToday's date is Monday.\nMy operating system is: linux",
        f"<session_context>\n{GEMINI}\n</session_context>",
        "[Previous conversation summary]: Tea.",
        "<state_snapshot>\n<overall_goal>Tea.</overall_goal>\n</state_snapshot>",
    ],
)
def test_a_summary_of_observed_messages_is_left_out(summary: str) -> None:
    blocks = as_blocks(f"<system-reminder>\nBe careful.\n</system-reminder>\n{summary}")
    text = observer_text("user", blocks, {})
    assert text == ""
    assert shown_tokens(text, blocks) == 0
    assert strip_injected(f"I read this:\n{summary}").startswith("I read this:")


def test_a_persons_words_after_a_clients_preamble_stay() -> None:
    skill = "Base directory for this skill: /h/.claude/skills/brew\n\n# Brewing\n\nBoil water."
    assert strip_injected(skill) == ""
    assert strip_injected(f"{skill}\n\nARGUMENTS: green tea") == "green tea"
    editor = "# Context from my IDE setup:\n\n## Active file: a.py\n\n## My request for Codex:\nBrew it."
    assert strip_injected(editor) == "Brew it."
    assert strip_injected("# Context from my IDE setup:\n\nIt is slow.").endswith("It is slow.")


@pytest.mark.parametrize("text", [PACK, f"<system-reminder>{PACK}</system-reminder>", "[Request interrupted by user]"])
def test_a_message_with_only_injected_context_costs_nothing(text: str) -> None:
    for role in ("user", "assistant", "tool"):
        blocks = as_blocks(text)
        assert observer_text(role, blocks, {}) == ""
        assert shown_tokens("", blocks) == 0


# Tools -----------------------------------------------------------------------------------------------------------

RULES_FILES = [
    "CLAUDE.md",
    "/x/CLAUDE.local.md",
    "/x/AGENTS.md",
    "~/.gemini/GEMINI.md",
    ".cursorrules",
    "/x/.cursor/rules/style.mdc",
    ".windsurfrules",
    ".github/copilot-instructions.md",
    ".clinerules",
    "/x/.clinerules/style.md",
    "/h/.claude/skills/brew/SKILL.md",
    "/h/.claude/projects/-x/memory/MEMORY.md",
    "C:\\x\\CLAUDE.md",
]
OTHER_FILES = [
    "README.md",
    "docs/agents.md",
    "src/memory.py",
    "CLAUDE.md.orig",
    "MEMORY.md",
    "xCLAUDE.md",
    "a/SKILL.mdx",
]


def test_rules_files_are_recognised_by_their_path() -> None:
    assert [path for path in RULES_FILES if not is_rules_file(path)] == []
    assert [path for path in OTHER_FILES if is_rules_file(path)] == []


@pytest.mark.parametrize("path", RULES_FILES)
@pytest.mark.parametrize(
    ("tool", "key"), [("Read", "file_path"), ("read_file", "absolute_path"), ("mcp__fs__read_text_file", "path")]
)
def test_a_rules_file_that_is_read_is_left_out(tool: str, key: str, path: str) -> None:
    text = shown(tool, {key: path}, "Use tabs.")
    assert text.endswith(f"\n[toolResult {tool}: rules file, left out]")
    assert text.startswith(f"[toolCall {tool}(")
    assert shown(tool, {key: "README.md"}, "Use tabs.").endswith(f"[toolResult {tool}: Use tabs.]")


@pytest.mark.parametrize(
    "arguments",
    [
        {"command": "cat CLAUDE.md"},
        {"command": "cd /x && cat ./AGENTS.md 2>/dev/null | head -50"},
        {"command": "ls; sed -n '1,20p' \"/x/CLAUDE.md\""},
        {"command": "head -c 500 CLAUDE.md"},
        {"command": "awk '{print}' AGENTS.md"},
        {"command": ["bash", "-lc", "cat AGENTS.md"]},
        {"command": ["cat", "AGENTS.md"]},
        {"cmd": "bash -lc 'cat AGENTS.md'"},
        {"command": "echo $(cat .cursorrules)"},
        {"command": "view", "path": "/x/CLAUDE.md"},
    ],
)
def test_a_rules_file_that_is_printed_in_a_shell_is_left_out(arguments: Json) -> None:
    assert shown("Bash", arguments, "Use tabs.").endswith("[toolResult Bash: rules file, left out]")


@pytest.mark.parametrize(
    ("tool", "arguments"),
    [
        ("Edit", {"file_path": "/x/CLAUDE.md", "old_string": "a", "new_string": "Use tabs."}),
        ("Write", {"file_path": "/x/AGENTS.md", "content": "Use tabs."}),
        ("str_replace_based_edit_tool", {"command": "create", "path": "CLAUDE.md", "file_text": "Use tabs."}),
        ("Bash", {"command": "cat > CLAUDE.md <<'EOF'\nUse tabs.\nEOF"}),
        ("Bash", {"command": "cat <<'EOF' >> CLAUDE.md\nUse tabs.\nEOF"}),
        ("Bash", {"command": "sed -i 's/x/Use tabs./' CLAUDE.md"}),
        ("Bash", {"command": "git commit -m 'Use tabs. More in CLAUDE.md' CLAUDE.md"}),
    ],
)
def test_a_change_to_a_rules_file_is_shown(tool: str, arguments: Json) -> None:
    text = shown(tool, arguments, "Changed.")
    assert "Use tabs." in text
    assert text.endswith(f"[toolResult {tool}: Changed.]")


@pytest.mark.parametrize(
    "name",
    [
        "recall_memory",
        "mcp__esker__recall_memory",
        "mcp_esker_expand_memory",
        "esker_memory_status",
        "mcp__plugin_esker_esker__remember",
        "somebodys_recall_memory",
        "forget_memory",
        "mcp__mem0__search_memories",
        "mem0_search",
        "mcp__memory__read_graph",
        "mcp__plugin_claude-mem_mcp-search__search",
        "mcp__basic-memory__read_note",
        "memory",
        "memory_search",
        "searchMemory",
        "save_memory",
    ],
)
def test_the_result_of_a_memory_tool_is_left_out(name: str) -> None:
    assert is_memory_tool(name)
    assert shown(name, {}, "* 🔴 a fact").endswith(f"[toolResult {name}: from memory, left out]")


@pytest.mark.parametrize(
    "name",
    [
        "Bash",
        "Read",
        "get_memory_usage",
        "take_memory_snapshot",
        "mcp__github__search_code",
        "remember_me_checkbox",
        "",
    ],
)
def test_results_of_other_tools_stay(name: str) -> None:
    assert not is_memory_tool(name)


@pytest.mark.parametrize(
    "command",
    [
        "esker recall 'where do sessions live?'",
        "cd /x && .venv/bin/esker --url http://h:1 recall tea | head",
        "esker pack ses_1",
        "uv run esker memories --json",
        "esker expand mem_1 --around 5",
        "esker reflections diff ref_1",
        "curl -s http://127.0.0.1:8377/v1/memories/mem_1/sources",
        "curl -s http://127.0.0.1:8377/v1/reflections/ref_1/diff",
        "curl -s http://127.0.0.1:8377/v1/recall -d '{}'",
        "curl -s http://127.0.0.1:8377/v1/sessions/ses_1/pack",
    ],
)
def test_memory_output_in_a_shell_is_left_out(command: str) -> None:
    text = shown("Bash", {"command": command}, "* 🔴 a fact")
    assert text.endswith("[toolResult Bash: from memory, left out]")
    assert command.split()[0] in text


FOUND = '{"structuredContent":{"hits":[{"id":"mem_1","text":"User prefers tabs."}]}}'


@pytest.mark.parametrize(
    ("tool", "arguments"),
    [
        ("codemode", {"code": 'const found = await tools.mcp__esker__recall_memory({query: "tea"}); text(found)'}),
        ("exec", {"input": 'const f = tools["mcp__esker__expand_memory"]; text(await f({id: "mem_1"}))'}),
        ("execute_code", {"source": 'print(await mcp.call_tool("recall_memory", {"query": "tea"}))'}),
        ("mcp__sandbox__run_python", {"script": "print(esker.recall_memory(query='tea'))"}),
    ],
)
def test_memory_that_a_script_recalled_is_left_out(tool: str, arguments: Json) -> None:
    text = shown(tool, arguments, FOUND)
    assert "tabs" not in text
    assert text.endswith(f"[toolResult {tool}: from memory, left out]")


@pytest.mark.parametrize(
    ("tool", "arguments"),
    [
        ("codemode", {"code": "text(await tools.read({path: 'memory.md'}))"}),
        ("codemode", {"code": "text(await tools.recall_memory_usage())"}),
        ("apply_patch", {"input": "+    await recall_memory(query)"}),
        ("Edit", {"code": "recall_memory()"}),
        ("Bash", {"command": "grep -rn recall_memory server"}),
    ],
)
def test_the_results_of_other_scripts_and_of_edits_stay(tool: str, arguments: Json) -> None:
    assert shown(tool, arguments, "done").endswith(f"[toolResult {tool}: done]")


@pytest.mark.parametrize(
    "command",
    [
        "esker serve",
        "expand -t 4 esker.py",
        "pip install esker && npm pack",
        "grep -n esker pack.py",
        "cat recall.md",
        "npm pack",
    ],
)
def test_the_output_of_other_commands_stays(command: str) -> None:
    assert shown("Bash", {"command": command}, "done").endswith("[toolResult Bash: done]")


@pytest.mark.parametrize(
    ("tool", "arguments"),
    [
        ("mcp__esker__remember", {"content": "User likes tea."}),
        ("forget_memory", {"text": "User likes tea."}),
        ("Bash", {"command": "esker remember 'User likes tea.'"}),
        ("codemode", {"code": "text(await tools.mcp__esker__remember({content: 'User likes tea.'}))"}),
    ],
)
def test_text_written_to_memory_is_not_observed_again(tool: str, arguments: Json) -> None:
    text = shown(tool, arguments, "kept: User likes tea.")
    assert text == f"[toolCall {tool}(for memory, left out)]\n[toolResult {tool}: from memory, left out]"


def test_an_error_is_marked_even_if_its_text_is_left_out() -> None:
    assert shown("Bash", {}, "boom", is_error=True).endswith("[toolResult Bash (error): boom]")
    assert shown("recall_memory", {}, "boom", is_error=True).endswith(
        "[toolResult recall_memory (error): from memory, left out]"
    )


def test_our_own_pack_is_left_out_of_any_tool_result() -> None:
    text = shown("Task", {"prompt": f"Brew it.\n{PACK}", "parts": [PACK]}, f"Brewed.\n{PACK}")
    assert "tabs" not in text
    assert "A fact" not in text
    assert "Brew it." in text
    assert text.endswith("[toolResult Task: Brewed.]")
    assert observer_text("tool", as_blocks(f"Brewed.\n{PACK}"), {}) == "[toolResult: Brewed.]"


@pytest.mark.parametrize("element", ["recalled_memories", "expanded_memory"])
def test_output_of_our_tools_is_left_out_of_any_message(element: str) -> None:
    told = f"<{element}>\n* 🔴 User prefers tabs. [mem_1, 2 days ago, from user]\n</{element}>"
    text = shown("Task", {"prompt": f"Brew it.\n{told}"}, f"Brewed.\n{told}")
    assert text == '[toolCall Task({"prompt": "Brew it.\\n"})]\n[toolResult Task: Brewed.]'
    assert strip_injected(f"It says:\n{told}\nSo be it.") == "It says:\n\nSo be it."


# Properties ------------------------------------------------------------------------------------------------------

PIECES = st.sampled_from(
    [
        *("<", ">", "/", "\n", " ", "word", PACK, "<global_observations>", "</global_observations>"),
        *("<system-reminder>", "</system-reminder>", "<memories>", "</memories>", "<memory>\n", "\n</memory>"),
        *("--- Context from: x ---\n", "--- End of Context from: x ---\n", "Instructions from: /x/AGENTS.md\n"),
    ]
)


@given(st.lists(PIECES, max_size=30))
def test_stripping_never_adds_anything(pieces: list[str]) -> None:
    """The remaining characters are in the text, in the same order."""
    text = "".join(pieces)
    rest = iter(text)
    assert all(character in rest for character in strip_injected(text))


@given(st.text(alphabet=st.characters(exclude_characters="<#-[")))
def test_plain_words_are_never_touched(text: str) -> None:
    assert strip_injected(f"I said {text}") == f"I said {text}".strip()


# Hypothesis knows the strings of our own source, and so our elements.
no_element = st.text().filter(lambda text: not re.search("<.*(?:observation|memor)", text, re.IGNORECASE))
any_json: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.integers() | no_element, lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner)
)


@given(any_json)
def test_arguments_without_our_elements_are_unchanged(value: Any) -> None:
    assert strip_ours(value) == value


@pytest.mark.parametrize(
    "hostile",
    [
        "<memory ",
        "<memories>",
        "<a_a_memory_a>\n",
        "<" + "a_" * 28 + "memory>",
        "<global_observations> ",
        "<system-reminder>x\n<system-reminder>\n",
        "--- Context from: x ---\n",
        "x--- End of Context from: x ---\n--- Context from: x ---\n",
        "Contents of (project instructions " * 20 + "\n",
        "Instructions from: AGENTS.md AGENTS.md\n ",
        "As you answer the user's questions, you can use the following context:\n",
        "This session is being continued from a previous conversation\n",
        "# AGENTS.md instructions for /x\n",
        "# Project Context\n",
        " ",
        "\n",
    ],
)
def test_stripping_takes_linear_time(hostile: str) -> None:
    began = process_time()
    strip_injected(hostile * (200_000 // len(hostile)))
    assert process_time() - began < 5, "a quadratic step would take minutes"


@pytest.mark.parametrize(
    "hostile", ["esker -x ", "esker - - ", "curl ", "cat (", "sh -c ", "cat CLAUDE.md.", "esker -x y -x y ", "/.x/" * 9]
)
def test_parsing_a_command_takes_linear_time(hostile: str) -> None:
    tool_names(as_blocks([{"type": "tool_use", "id": "t", "name": "Bash", "input": {"command": hostile * 100_000}}]))


# Other people's transcripts --------------------------------------------------------------------------------------

# The beginnings of text that the clients of these transcripts inject.
INJECTED = (
    "<system-reminder>",
    "<environment_context>",
    "<user_instructions>",
    "<command-name>",
    "<command-message>",
    "<local-command-stdout>",
    "Caveat: The messages below were generated",
    "# AGENTS.md instructions for ",
    "This session is being continued from a previous conversation that ran out",
)


def messages_of(path: Path) -> Iterator[tuple[Any, list[Block]]]:
    """Yield the role and the blocks of each message of a file, whichever client wrote it."""
    if "claude" in path.parts:
        for transcript in read_transcript(path).transcripts:
            yield from ((entry.role, as_blocks(entry.content)) for entry in transcript.entries)
        return
    text = path.read_text("utf-8", "replace")
    for line in [text] if path.suffix == ".json" else text.splitlines():
        try:
            yield from generic(json.loads(line))
        except ValueError:
            continue


def generic(value: Any) -> Iterator[tuple[Any, list[Block]]]:
    """Yield the readable messages of any JSON: texts, and calls and results as pi writes them."""
    match value:
        case {"type": "toolCall", "id": str(call), "name": str(name), "arguments": arguments}:
            yield "assistant", [{"type": "tool_use", "id": call, "name": name, "input": arguments}]
        case {"role": "toolResult", "toolCallId": str(call), "content": content}:
            yield "user", [{"type": "tool_result", "tool_use_id": call, "content": content}]
        case {"role": "user" | "assistant" as role, "content": str(text)}:
            yield role, [{"type": "text", "text": text}]
        case {"text": str(text)} if value.get("type", "text") in ("text", "input_text", "output_text"):
            yield "user", [{"type": "text", "text": text}]
        case dict():
            for item in value.values():
                yield from generic(item)
        case list():
            for item in value:
                yield from generic(item)
        case _:
            pass


def observed(path: Path) -> Iterator[tuple[list[Block], str]]:
    """Yield each message of a file with its text for an observer."""
    names: dict[str, str] = {}
    for role, blocks in messages_of(path):
        names |= tool_names(blocks)
        yield blocks, observer_text(role, blocks, names)


def test_no_known_injected_text_is_left_in_foreign_transcripts(transcripts: Path) -> None:
    clients: set[str] = set()
    for path in sorted([*transcripts.rglob("*.jsonl"), *transcripts.rglob("*.json")]):
        for blocks, text in observed(path):
            clients.add(path.relative_to(transcripts).parts[0])
            if not any(block["type"] in ("tool_use", "tool_result") for block in blocks):
                assert not [mark for mark in INJECTED if mark in text], path
    assert clients >= {"claude", "codex", "cursor", "gemini", "opencode", "pi"}


def test_words_of_people_stay_in_foreign_transcripts(transcripts: Path) -> None:
    """A text without a mention of injected elements is shown unchanged, and most texts are without one."""
    told = kept = 0
    for path in sorted(transcripts.rglob("*.jsonl")):
        for blocks, text in observed(path):
            if [block["type"] for block in blocks] == ["text"]:
                said = str(blocks[0]["text"]).strip()
                told += 1
                kept += said == text
                if not any(mark in said for mark in INJECTED) and "[Request interrupted" not in said:
                    assert text == said, path
    assert told > 400
    assert kept > 0.95 * told


def test_rules_files_that_were_read_in_foreign_transcripts_are_left_out(transcripts: Path) -> None:
    [path] = (transcripts / "pi").glob("pimono_before-compaction.jsonl")
    shown_lines = [text for _, text in observed(path)]
    assert shown_lines.count("[toolResult read: rules file, left out]") > 0
    whole = next(
        str(result_text(blocks[0]))
        for blocks, text in observed(path)
        if text == "[toolResult read: rules file, left out]"
    )
    assert whole.startswith("# Development Rules")
    assert not any("If the user did not give you a concrete task" in text for text in shown_lines)


@pytest.mark.parametrize(
    "text",
    [
        "<task-notification>\n<task-id>b1</task-id>\n</task-notification>\nRead the output file: /tmp/b1.output",
        "<task-notification>\n<task-id>b1</task-id>\n<summary>it was cut",
        'Another Claude session sent a message:\n<teammate-message id="a">We use tabs.</teammate-message>\nReply.',
        "<user_shell_command>\n<command>make</command>\n<result>always fails</result>\n</user_shell_command>",
    ],
)
def test_messages_of_tasks_and_agents_are_removed_with_the_clients_sentences(text: str) -> None:
    assert strip_injected(text) == ""


def test_a_person_may_ask_about_a_task_notification() -> None:
    text = "Why do I get this?\n<task-notification>\n<task-id>b1</task-id>\n</task-notification>\nIt should not."
    assert strip_injected(text) == "Why do I get this?\n\nIt should not."
    assert strip_injected("<task-notification> is an element of Claude Code.").startswith("<task-notification>")
