"""Remembered text is data for a model: it opens no element, and hides no character."""

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from esker.server.core.text.fencing import fenced, neutral, neutral_object, visible, voiced, voiceless

TEXT = st.text(st.one_of(st.characters(), st.sampled_from("<＜/>|[]! \n\u200b\u202e\ufe0f\U000e0041")))


@pytest.mark.parametrize(
    "voice",
    [
        "<system>", "</system>", "<SYSTEM \n>", "< / system-reminder >", "<system-reminder>", "<memory>", "</memories>",
        "<user_prompt>", "<tool_result>", "<function_calls>", "<hook_context>", "<ns:invoke name='x'>", "<System>",
        "<|im_start|>", "<｜User｜>", "<s>", "</s>", "[INST]", "[/INST]", "<<SYS>>", "<start_of_turn>", "＜system＞",
        "[SYSTEM_PROMPT]", "[/THINK]",
        "<sys\u200btem>", "<mem\u00adory>", "<sy\U000e0041stem>", "<global_observations>", "Vec<system>", "x</system>",
    ],
)  # fmt: skip
def test_no_text_opens_or_closes_a_voice(voice: str) -> None:
    shown = fenced(f"A {voice} b")
    assert not any(mark in shown for mark in ("<s", "<S", "</", "< /", "<m", "<u", "<t", "<f", "<h", "<n", "<g", "<|"))
    assert not any(mark in shown for mark in ("<｜", "[INST", "[/INST", "[SYSTEM", "[/THINK", "<SYS", "＜"))


@given(TEXT, st.sampled_from(["system", "/system", "memory", "tool_result", "user"]))
def test_no_neighbour_lets_a_voice_through(text: str, name: str) -> None:
    assert f"<{name}>" not in neutral(f"{text}<{name}>{text}")


@pytest.mark.parametrize("code", ["Vec<u8>", "Map<String, Long>", "if a <b: return", "x < y > z", "a << 2", "row[i]"])
def test_code_stays_readable(code: str) -> None:
    assert fenced(code) == code


@pytest.mark.parametrize(
    "hidden",
    ["\u200b", "\u200e", "\u202e", "\u2066", "\u2060", "\u00ad", "\ufeff", "\u3164", "\u115f", "\u2800", "\ufe01",
     "\U000e0041", "\U000e0100", "\u034f", "\u180e", "\u061c", "\ufff9", "\U00013430"],
)  # fmt: skip
def test_a_character_that_no_one_sees_is_left_out(hidden: str) -> None:
    assert visible(f"pay{hidden}load{hidden}{hidden}") == "payload"


@pytest.mark.parametrize("seen", ["👩\u200d🚀", "❤\ufe0f", "1\ufe0f⃣", "می\u200cخواهم", "क्\u200dष", "naïve 河流"])
def test_a_joiner_or_selector_that_changes_a_sign_stays(seen: str) -> None:
    assert visible(seen) == seen


@given(TEXT)
def test_nothing_that_is_left_is_a_format_character(text: str) -> None:
    kept = {"\u200c", "\u200d", "\ufe0f"}
    # These are visible signs of numbers and abbreviations in Arabic, Syriac and Kaithi.
    signs = {
        *map(chr, range(0x600, 0x606)),
        "\u06dd",
        "\u070f",
        "\u0890",
        "\u0891",
        "\u08e2",
        "\U000110bd",
        "\U000110cd",
    }
    signs |= {chr(point) for point in range(0x13430, 0x13440)}
    assert not any(unicodedata.category(each) == "Cf" and each not in kept | signs for each in visible(text))


@given(TEXT)
def test_showing_twice_changes_nothing(text: str) -> None:
    assert fenced(fenced(text)) == fenced(text)


def test_lines_stay_and_every_string_of_an_object_is_neutral() -> None:
    given = {"hits": [{"content": "one\ntwo <system>", "score": 0.5}], "text": "\u200bx"}
    assert neutral_object(given) == {"hits": [{"content": "one\ntwo &lt;system>", "score": 0.5}], "text": "x"}


@given(TEXT | st.lists(st.sampled_from(["<", "system", "&", "amp;", "lt;", "#91;", "[INST]", "＜", ">"])).map("".join))
def test_what_a_synchronised_file_escapes_is_read_back_as_it_was(text: str) -> None:
    assert voiced(voiceless(text)) == text
