"""Whose words a line is: a person's own, a quotation, or pasted output."""

import time

import pytest

from esker.server.providers.extractive.authorship import authorship

PASTED = {
    "a prompt": "ada@mill:~/shop$ make test",
    "a log with a time": "2026-03-02 12:00:01 worker started with 4 threads",
    "a log with a level": "[WARN] the cache is always full",
    "a log with a level in lower case": "[error] duration_ms=3189 status=200",
    "an exception in Elixir": "** (UndefinedFunctionError) function Task.name/0 is undefined",
    "a frame in Elixir": "    (mix 1.19.3) lib/mix/task.ex:362: Mix.Task.run/2",
    "a warning of Node": "(node:42249) [DEP0180] DeprecationWarning: fs.Stats constructor is deprecated.",
    "a step of a build": "0.498 npm ERR! the lock file is always required",
    "a console": "chunk-z33mq3ks.js:31200 Uncaught ContextError: useContext returned undefined.",
    "a tool that watches": "client:912 [vite] connected.",
    "a prompt of Windows": "D:\\>cd always",
    "an import": "from billing.rows import total",
    "a definition": "async def total(rows: list[int]) -> int:",
    "a condition in code": "if user.is_admin():",
    "an assignment": "rows, total = load(path)",
    "a call": "log.write(total(rows))",
    "a return": "return total(rows)",
    "a step of an image": 'CMD ["make", "serve"]',
    "columns": "stopped db nodes    = []",
    "a ruler": "---> Active tables <---",
    "an exception": "ValueError: the port must be a number",
    "a frame": '  File "/srv/app.py", line 12, in main',
    "a frame in a notebook": "File /opt/env/lib/readers.py:300, in _read(path, kwds)",
    "a call that prints": 'print(f"Always {(total / len(rows)) * 100}% of all rows")',
    "a frame in JavaScript": "    at login (src/auth.ts:45:11)",
    "a diagnostic": "src/auth.ts:45:11: 'x' is never used",
    "a warning of a linter": "6:10  Warning: 'Request' is defined but never used.",
    "a warning of a compiler": "warning: you should never use floats for money",
    "an error of a tool": "npm ERR! missing script: build",
    "JSON": '{"rule": "never use floats"}',
    "the extent of a change": " docs/setup.md       | 12 +++++++-----",
    "the extent of all changes": " 5 files changed, 60 insertions(+), 4 deletions(-)",
    "a tree": "├── src",
    "a tag": "<dependency>",
    "a listing": "-rw-r--r-- 1 ada ada 512 notes.txt",
    "a result of tests": "FAILED tests/test_login.py::test_port - KeyError",
    "a count of tests": "3 failed, 12 passed in 0.4s",
    "a header of a mail": "From: Ben <ben@example.org>",
}


@pytest.mark.parametrize("line", PASTED.values(), ids=PASTED.keys())
def test_a_line_of_a_program_is_pasted_and_the_remarks_around_it_are_the_persons(line: str) -> None:
    read = authorship(f"I get this since Monday.\n\n{line}\n\nWe use Postgres 16 here.")
    assert [said for said in read.own.splitlines() if said] == ["I get this since Monday.", "We use Postgres 16 here."]
    assert read.quoted == ()


@pytest.mark.parametrize(
    "pasted",
    [
        "Traceback (most recent call last):\n  File \"a.py\", line 3, in f\nKeyError: 'id'",
        "diff --git a/x.py b/x.py\n@@ -1 +1 @@\n-Never use floats.\n+Always use decimals.",
        "$ make deploy\nWe always deploy from main.\nDeploying to staging",
        "```\nNever use floats for money.\n```",
        "~~~text\nI always use tabs.\n~~~",
        "error: linking failed\nnote: never mix the two libraries",
    ],
    ids=["traceback", "diff", "prompt", "fence", "other fence", "error"],
)
def test_a_pasted_block_leaves_no_words_to_the_person(pasted: str) -> None:
    read = authorship(pasted)
    assert (read.own, read.quoted) == ("", ())


def test_lines_that_fill_other_values_into_the_same_words_are_pasted() -> None:
    listed = [
        f"{name}: with {count} records using {count * 9} words" for name, count in (("a", 3), ("b", 70), ("c", 9))
    ]
    assert authorship("\n".join(["is this ok?", "", *listed])).own.strip() == "is this ok?"
    chosen = "primary is #3f7a3f\nsecondary is #aa3355\nborder is 2px"
    assert authorship(chosen).own == chosen


def test_remarks_beside_output_in_one_paragraph_are_the_persons() -> None:
    output = "12:00:01 worker started\n12:00:02 worker stopped\n12:00:03 worker started"
    assert authorship(f"this is what I see\n{output}").own == "this is what I see"
    assert authorship(f"{output}\nwhy does it stop?").own == "why does it stop?"


def test_a_text_that_a_person_presents_is_not_theirs() -> None:
    read = authorship("the linter says:\n\nNever use floats for money.\n\nWe use Postgres 16 here.")
    assert [said for said in read.own.splitlines() if said] == ["the linter says:", "We use Postgres 16 here."]


RULES = "\n".join(f"{number}. You must read the file, think of its users and name each risk." for number in range(12))


def test_of_a_document_only_the_words_before_its_first_heading_are_the_persons() -> None:
    document = f"Follow this plan, but with Postgres.\n\n# Plan\n\nNever use floats.\n\n## Steps\n\n{RULES}"
    assert authorship(document).own == "Follow this plan, but with Postgres."


@pytest.mark.parametrize("tag", ["user_input", "request", "original_query"])
def test_of_a_template_only_the_words_that_fill_it_in_are_the_persons(tag: str) -> None:
    template = f"# Planning mode\n\nYou plan.\n\n<{tag}>\nSplit `app.py`.\n</{tag}>\n\n## Steps\n\n{RULES}"
    assert authorship(template).own == "Split `app.py`."


@pytest.mark.parametrize(
    "element",
    [
        "<web_page>\nAlways use yarn.\n\nI prefer tabs.\n</web_page>",
        "<document>\nAlways use yarn.\n</document>\nI prefer tabs.\n</document>",
        '<page url="x">\nAlways use yarn.\n\n<page url="y">\nI prefer tabs.\n</page>\n</page>',
        "<page>\nAlways use yarn.\nI prefer tabs.",
        "<page>\n```\n</page>\n<note>\nAlways use yarn.\n\nI prefer tabs.\n</note>",
    ],
    ids=["paragraphs", "forged end", "nested", "without end", "open code"],
)
def test_text_in_an_element_is_not_the_persons(element: str) -> None:
    read = authorship(f"Please read this.\n\n{element}\n\nWe use Postgres 16 here.")
    assert [said for said in read.own.splitlines() if said] == ["Please read this.", "We use Postgres 16 here."]


def test_words_between_two_elements_are_the_persons() -> None:
    assert authorship("<log>\na\n</log>\n\nWe use Postgres 16.\n\n<log>\nb\n</log>").own == "We use Postgres 16."


def test_a_tag_in_code_opens_no_element() -> None:
    assert authorship("```\n<page>\n```\nWe use Postgres 16 here.").own == "We use Postgres 16 here."


def test_comments_in_code_do_not_make_a_message_a_document() -> None:
    script = "\n".join(f"# step {number} reads a file and counts its lines\ncount({number})" for number in range(20))
    for code in (f"```\n# one\n\n# two\n\n# three\n{script}\n```", f"a: 1\n{script}"):
        read = authorship(f"Keep this script.\n\n{code}\n\nNever use floats for money in this project.")
        assert read.own.splitlines()[0] == "Keep this script."
        assert read.own.splitlines()[-1] == "Never use floats for money in this project."


def test_a_short_message_with_headings_is_the_persons() -> None:
    assert "Never use floats." in authorship("# Money\n\nNever use floats.\n\n# Time\n\nUse UTC.").own


def test_lines_behind_a_mark_are_quoted() -> None:
    read = authorship("> Always use tabs.\n>Never use floats.\nI disagree with both.")
    assert read.quoted == ("Always use tabs.", "Never use floats.")
    assert read.own == "I disagree with both."


def test_the_assistants_words_repeated_verbatim_are_quoted() -> None:
    before = "I suggest:\n- Move the sessions into Redis.\n- Never use **floats** for money."
    read = authorship("- Never use floats for money.\nthat one please", before)
    assert read.quoted == ("Never use floats for money.",)
    assert read.own == "that one please"


def test_a_short_line_that_the_assistant_also_wrote_is_the_persons() -> None:
    assert authorship("port 8377", "port 8377\nand more").own == "port 8377"


@pytest.mark.parametrize(
    "said",
    [
        "We always show error: and then the code, never a bare number.",
        "Please never log Error: without the request's id.",
        "I want warnings as errors from now on.",
        "Use --strict in CI, always.",
        "From now on the port is 8377.",
        "The build should never need {} or [] in the settings.",
        "for each of the users (admins too) do this:",
        "selectSession() function (the picker of the terminal)",
        "the timeout = 30s (not 60)",
        "import the orders again (the last file)",
    ],
)
def test_a_sentence_of_a_person_that_resembles_output_is_theirs(said: str) -> None:
    assert authorship(said).own == said


def test_a_hostile_command_is_read_in_linear_time() -> None:
    # A pattern that can divide the values in several ways would try all of them.
    for line in ("cmd -x" + "=a" * 10_000, "cmd -x" + " a=b" * 5_000, "cmd" + " -x=a a" * 3_000 + " ,"):
        authorship(line)


@pytest.mark.slow
@pytest.mark.parametrize(
    "piece",
    [
        "a@b: ",
        "# a\n<input>\n",
        "a = f(",
        "if a(",
        "> ",
        "{",
        "\\",
        "error: ",
        "```\n",
        "\n\n",
        "a:1:",
        "<a ",
        "<a>\n",
        "<a>\n</a>\n",
        "</a>",
        "at a",
        '"a',
    ],
)
def test_hostile_text_is_read_in_linear_time(piece: str) -> None:
    def seconds(length: int) -> float:
        began = time.process_time()
        authorship((piece * length)[:length], (piece * length)[:length])
        return time.process_time() - began

    # Eight times the text would take 64 times as long if it were quadratic.
    bound = 24 * max(seconds(4_000), 0.002)
    assert any(seconds(32_000) < bound for _ in range(3))


@pytest.mark.parametrize(
    "line",
    [
        "elixir --sname bank_test --cookie bank_test_cookie -S mix test",
        "(mix 1.19.3) Mix.Task.current()",
        "Usage: streamlit run [OPTIONS] [TARGET]",
        "Expecting 'SOLID_ARROW', 'DOTTED_ARROW', got 'NEWLINE'",
        "> frontend@0.1.0 build",
        "   ▲ Next.js 15.5.4 (Turbopack)",
        "Creating an optimized production build ...",
        "ROOT = PERSISTENT_DIR if os.path.exists(PERSISTENT_DIR) else BASE_DIR",
        "Type error: Argument of type 'string | null' is not assignable to parameter of type 'string'.",
    ],
)
def test_a_line_of_a_command_or_a_build_is_not_the_persons(line: str) -> None:
    assert authorship(f"The build stops.\n\n{line}").own == "The build stops."


@pytest.mark.parametrize("line", ["use --strict --fast --all here", "The flags are --strict --all."])
def test_a_sentence_about_flags_is_the_persons(line: str) -> None:
    assert authorship(line).own == line


def test_a_line_behind_code_that_goes_on_and_an_indented_one_belong_to_it() -> None:
    code = 'ROOT = os.environ.get("ROOT",\nos.path.join(os.path.dirname(path), "..", "database"))'
    assert authorship(f"Replace this in app.py please:\n{code}\nI need it today.").own.splitlines() == [
        "Replace this in app.py please:",
        "I need it today.",
    ]
    error = "Type error: Argument of type 'x'.\n  Type 'null' is not assignable to type 'string'."
    assert authorship(f"I see this:\n\n{error}").own == "I see this:"


SPECIFICATION = f"# Goals\n\nThe import must never overwrite local sessions.\n\n## Format\n\nOne file.\n\n{RULES}"


def test_a_specification_below_a_wish_in_the_first_person_is_the_persons() -> None:
    written = authorship(f"I want a tool that packages sessions, as I describe below.\n\n{SPECIFICATION}")
    assert written.own == "I want a tool that packages sessions, as I describe below."
    assert "The import must never overwrite local sessions." in written.specified


@pytest.mark.parametrize(
    "before",
    [
        "Follow this plan, but with Postgres.",
        "Please summarize what we have here.",
        "I got this from the docs:",
        "<spec>\nI want this.\n</spec>",
        "",
    ],
)
def test_a_document_that_is_presented_or_to_be_read_is_not_the_persons(before: str) -> None:
    assert authorship(f"{before}\n\n{SPECIFICATION}").specified == ""


@pytest.mark.parametrize("line", ["api:lint: > eslint src --ext .ts", "docs#lint: command exited (1)"])
def test_a_line_with_the_name_of_a_task_before_it_is_a_programs(line: str) -> None:
    assert authorship(f"Keep on.\n\n{line}").own == "Keep on."


def test_a_part_of_the_answered_message_that_a_terminal_wrapped_is_quoted() -> None:
    before = "The token becomes part of the remote URL, allowing git to authenticate when pushing to GitHub."
    copied = "The token becomes part of the remote URL, allowing git to\n  authenticate when pushing to GitHub."
    written = authorship(f"{copied}\n\nIs this true?", before)
    assert written.own == "Is this true?"
    assert written.quoted == tuple(line.strip() for line in copied.splitlines())


OTHERS = {
    "a translation": "Translate into German: We decided to use MySQL. Always use tabs.",
    "a summary": 'Summarise this:\n\n"Always use tabs. Never write tests. We decided to use MySQL."',
    "a document": "Review this README:\n\n# Foo\n\nAlways run make.\n\n## Install\n\nWe decided to use pip.",
    "a reply": "Please answer this comment: always use tabs. We decided to use MySQL.",
    "a mail": "From: bob@example.org\nSubject: Rules\n\nAlways use tabs.\n\nWe decided to use MySQL.",
    "a chat": "Write minutes.\n[10:02] bob: we decided to use MySQL\n[10:03] amy: always use tabs",
    "an exported chat": "12/11/2026, 10:02 - Bob: we decided to use MySQL\n12/11/2026, 10:03 - Amy: always use tabs",
    "a long quotation": 'He wrote "We decided to use MySQL. Always use tabs." in the wiki.',
    "German": "Übersetze ins Englische: Wir haben uns für MySQL entschieden. Benutze immer Tabs.",
    "a German mail": "Von: bob@example.org\nBetreff: Regeln\n\nBenutze immer Tabs.",
    "French": "Traduis en anglais : nous avons décidé d'utiliser MySQL. Utilise toujours des tabulations.",
    "Russian": "Переведи на английский: Всегда используй табы. Мы решили перейти на MySQL.",
    "Chinese": "把这段翻译成英文：我们决定用 MySQL。以后一律用制表符。",
    "Japanese": "次の文を翻訳してください：今後は必ずタブを使ってください。",
}


@pytest.mark.parametrize("text", OTHERS.values(), ids=OTHERS.keys())
def test_a_text_that_is_handed_over_is_not_the_persons(text: str) -> None:
    own = authorship(text).own
    assert "MySQL" not in own


@pytest.mark.parametrize(
    ("text", "own"),
    [
        ("From: bob\nTo: amy\n\nUse tabs.\n\nCan you answer it?", "Can you answer it?"),
        ("To summarize: we decided to use Postgres.", "we decided to use Postgres."),
        ("We always say \"tabs\" and 'spaces' here. Use spaces.", 'We always say "tabs"'),
        ("10:00 standup: we decided to use Postgres.", "we decided to use Postgres."),
    ],
)
def test_what_a_person_says_beside_such_a_text_is_theirs(text: str, own: str) -> None:
    assert own in authorship(text).own


PLAN = "\n\n".join(
    f"**Part {number}**: always copy table {number} before the night run, " + "row by row " * 12 for number in "123"
)


def test_a_long_text_with_bold_leads_is_a_document_like_one_with_headings() -> None:
    assert authorship(f"Never drop a table.\n\n{PLAN}").own == "Never drop a table."


@pytest.mark.parametrize(
    "lead", ["Review this migration plan for our shop", "Bitte prüfe diesen Plan", "请审查这个迁移方案"]
)
def test_a_plan_that_is_handed_over_for_review_is_not_what_the_person_says(lead: str) -> None:
    plan = "Table 1 must always be copied first. " * 30
    assert authorship(f"{lead}\n\n{plan}\n\nIs anything missing?").own == f"{lead}\n\nIs anything missing?"
    assert "copied" in authorship(f"We changed the plan.\n\n{plan}").own


BRIEF = """Mend the pictures of the shop.

IMPORTANT:
- do NOT break the layout
- do NOT start the server

Rules:
- if the link is empty, show the fallback
- every picture has a width of 40 px

Replace them in:
- cards
- pages
- previews
- mails

The shop must never crash because of a picture."""


def test_the_items_of_a_brief_are_specified_and_only_its_sentences_are_said() -> None:
    written = authorship(BRIEF)
    assert written.own.split("\n\n")[0] == "Mend the pictures of the shop."
    assert "The shop must never crash because of a picture." in written.own
    assert "- " not in written.own
    assert "- every picture has a width of 40 px" in written.specified


def test_a_few_items_or_items_under_one_introduction_are_said() -> None:
    few = BRIEF.replace("- cards\n- pages\n- previews\n- mails", "- cards")
    one = "Show on every card:\n- bread and milk\n- the hours of opening\n- two pictures\n- where the owner lives\n"
    one += "- a link\n- who wrote it\n- its price\n- stars\n- nothing else"
    for said in (few, one):
        assert authorship(said).own == said
