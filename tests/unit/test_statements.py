"""A message read as statements: each with what it is about, without markup."""

import time

import pytest

from esker.server.providers.extractive.statements import Statement, statements


def texts(text: str) -> list[str]:
    """Return the texts of the statements of a message."""
    return [said.text for said in statements(text)]


def the_statement(text: str, words: str) -> Statement:
    """Return the one statement that contains these words."""
    [found] = [said for said in statements(text) if words in said.text]
    return found


def test_a_statement_names_the_headings_that_it_is_under() -> None:
    text = "# Login\n## Cause\nThe token expired.\n## Fix\nIt is renewed.\n# Search\nThe index is old."
    assert the_statement(text, "token").headings == ("Login", "Cause")
    assert the_statement(text, "renewed").headings == ("Login", "Fix")
    assert the_statement(text, "index").headings == ("Search",)


def test_an_item_names_the_item_that_it_is_nested_in() -> None:
    text = (
        "- Server:\n  - The port is 8377.\n  - TLS is off.\n- Client\n  - It retries twice.\n- The rest is unchanged."
    )
    assert the_statement(text, "port").topic == "Server"
    assert the_statement(text, "TLS").topic == "Server"
    assert the_statement(text, "retries").topic == "Client"
    assert the_statement(text, "rest").topic == ""


def test_an_item_names_the_line_that_introduces_its_list() -> None:
    text = "These tests fail:\n\n1. The login test.\n2) The search test.\n\nNothing else fails."
    assert texts(text) == ["The login test.", "The search test.", "Nothing else fails."]
    assert [said.topic for said in statements(text)] == ["These tests fail", "These tests fail", ""]
    assert [said.is_item for said in statements(text)] == [True, True, False]


def test_a_line_in_bold_introduces_what_follows() -> None:
    assert the_statement("**Root cause**\n- The token expired.", "token").topic == "Root cause"


def test_a_bold_lead_is_kept_with_its_item() -> None:
    assert texts("- **Cause** — the token expired\n**Fix:** it is renewed") == [
        "Cause: the token expired",
        "Fix: it is renewed",
    ]


def test_bold_words_inside_a_sentence_are_not_a_lead() -> None:
    assert texts("- **Create it once**; keep a flag") == ["Create it once; keep a flag"]


def test_an_introduction_that_is_too_long_for_its_items_is_a_statement() -> None:
    said = "I removed the four blocks that you named from the header of the page in `backoffice.jsx`:"
    assert texts(f"{said}\n1. The import of `Bridge`.") == [said, "The import of `Bridge`."]


def test_a_sentence_that_is_wrapped_at_the_end_of_a_line_is_read_whole() -> None:
    text = "Do not touch the generated files, and if you need\none of them, run the generator in the folder of\ntools."
    assert texts(text) == [text.replace("\n", " ")]
    assert texts("rename the module\nadd a test") == ["rename the module", "add a test"]


def test_a_quotation_that_ends_with_a_mark_does_not_end_its_sentence() -> None:
    assert texts('He sees "Done!" when it is saved. Then it closes.') == [
        'He sees "Done!" when it is saved.',
        "Then it closes.",
    ]


def test_a_row_of_a_table_names_its_columns_and_leaves_out_empty_cells() -> None:
    text = "| Service | Port | Owner |\n|---|---|---|\n| api | 8377 | Ada |\n| web | 80 | — |"
    assert texts(text) == ["api: 8377; Owner: Ada", "web: 80"]
    assert {said.columns for said in statements(text)} == {"Service Port Owner"}


def test_code_rules_and_quotations_are_not_statements() -> None:
    text = "It works.\n```python\nprint('a statement.')\n```\n---\n> Quoted.\n~~~\nmore code.\n~~~\nDone now."
    assert texts(text) == ["It works.", "Done now."]


def test_a_fence_without_an_end_hides_the_rest() -> None:
    assert texts("It works.\n```\nThis is code.") == ["It works."]


def test_emphasis_ornaments_and_targets_of_links_are_removed() -> None:
    assert texts("🚀 The **port** is [documented](https://e.org/port).") == [
        "The port is documented (https://e.org/port)."
    ]
    assert texts("See [auth.ts](src/auth.ts) and [above](#above) now.") == ["See auth.ts and above now."]


def test_a_sentence_knows_the_one_before_it_in_its_line() -> None:
    said = statements("The cache is stale. It is flushed at noon.\nThe log is fine.")
    assert [each.before for each in said] == ["", "The cache is stale.", ""]


@pytest.mark.parametrize(
    ("said", "plain"),
    [
        ("👩\u200d💻 The build uses Node 22.", "The build uses Node 22."),
        ("\u200d The port is 8377.", "The port is 8377."),
        ("*(Note: the port is 8377.)*", "(Note: the port is 8377.)"),
        ("The port is *really* 8377.", "The port is really 8377."),
        ("The files are src/*.py and *.toml here.", "The files are src/*.py and *.toml here."),
        ("The area is 3 * 4 * 5 here.", "The area is 3 * 4 * 5 here."),
    ],
)
def test_a_statement_contains_neither_the_parts_of_emojis_nor_marks_of_emphasis(said: str, plain: str) -> None:
    assert texts(said) == [plain]


@pytest.mark.parametrize(
    "piece", ["[", "**a ", "*a ", "[a](", "- a\n  ", "| a |\n", "# a\n", "`", "a: ", "> a\n", "  - ", "*_- ", "1. "]
)
def test_hostile_text_is_read_in_linear_time(piece: str) -> None:
    def seconds(length: int) -> float:
        began = time.process_time()
        statements((piece * length)[:length])
        return time.process_time() - began

    # Eight times the text would take 64 times as long if it were quadratic.
    bound = 24 * max(seconds(4_000), 0.002)
    assert any(seconds(32_000) < bound for _ in range(3))


def test_both_ends_of_a_huge_text_are_read() -> None:
    found = texts("The port is 8377.\n" + "filler words here. " * 50_000 + "\nThe owner is Ada.")
    assert (found[0], found[-1]) == ("The port is 8377.", "The owner is Ada.")


def test_a_line_inside_an_open_bracket_goes_on_with_the_line_before() -> None:
    text = "Leave the rest of the login (the check of the password,\n2FA, `session_state`) as it is."
    assert [said.text for said in statements(text)] == [text.replace("\n", " ")]
    separate = "The login checks the password of the user and\n2FA is optional."
    assert len(statements(separate)) == 2


WRAPPED = """\
  1. The report of the night run is written to reports/night.json, and the dashboard reads it from there every
  GET request, so a slow disk delays the page.
  2. Exports accept a folder, a bucket and a stream, and none of them has a limit for the number of files that a
  Client may send at once, except the bucket."""


def test_lines_that_a_terminal_has_wrapped_are_one_statement_whatever_they_begin_with() -> None:
    assert [said.endswith(("the page.", "the bucket.")) for said in texts(WRAPPED)] == [True, True]
    assert "reads it from there every GET request" in texts(WRAPPED)[0]


def test_sentences_that_a_person_writes_on_lines_of_their_own_stay_apart() -> None:
    lines = ["The import is slow", "Exports fail for folders with more than twelve thousand files in them", "We use Go"]
    assert texts("\n".join(lines)) == lines
