"""Words: the files of all languages have the same lists, or say why one is missing."""

import re
import tomllib
from collections.abc import Iterator, Mapping
from importlib.resources import files
from pathlib import Path

import pytest

from esker.server.core.redaction.names import word_table
from esker.server.core.words import lists
from esker.server.core.words.lists import LANGUAGES, Cue, any_of, any_word_of, language_file

# Keys that are not lists.
_OTHER = {"name", "missing", "text.stemmer"}


def _paths(table: Mapping[str, object], under: str = "") -> Iterator[tuple[str, object]]:
    """Yield the lists of a file, each with its path; a table below a section is one list with keys."""
    for key, value in table.items():
        path = f"{under}{key}"
        if path in _OTHER:
            continue
        if isinstance(value, Mapping) and not under:
            yield from _paths(value, f"{path}.")
        else:
            yield path, value


def _entries(value: object) -> Iterator[object]:
    groups = value.values() if isinstance(value, Mapping) else [value]
    for group in groups:
        assert isinstance(group, list)
        yield from group


FILES = {language: dict(_paths(language_file(language))) for language in LANGUAGES}
LISTS = {path for found in FILES.values() for path in found}


def test_each_file_belongs_to_a_known_language() -> None:
    found = {entry.name for entry in files("esker.server.core.words").iterdir() if entry.name.endswith(".toml")}
    assert found == {"secrets.toml", "earlier_work.toml", *(f"{language}.toml" for language in LANGUAGES)}


@pytest.mark.parametrize("language", LANGUAGES)
def test_a_file_has_every_list_that_another_has_or_says_why_not(language: str) -> None:
    missing = language_file(language).get("missing", {})
    assert isinstance(missing, Mapping)
    lacking = LISTS - FILES[language].keys()
    explained = {path for path in lacking if path in missing or path.partition(".")[0] in missing}
    assert lacking == explained
    assert all(isinstance(reason, str) and len(reason) > 10 for reason in missing.values())
    # The reason for a missing list is outdated once the list exists.
    assert all(any(path == key or path.startswith(f"{key}.") for path in lacking) for key in missing)


@pytest.mark.parametrize("language", LANGUAGES)
def test_no_entry_has_a_control_character(language: str) -> None:
    r"""In double quotes TOML reads a word boundary, \b, as a backspace, and the pattern never matches."""
    entries = [str(entry) for value in FILES[language].values() for entry in _entries(value)]
    assert [entry for entry in entries if not entry.isprintable()] == []


@pytest.mark.parametrize("language", LANGUAGES)
def test_no_list_is_empty_or_has_an_entry_twice(language: str) -> None:
    for path, value in FILES[language].items():
        groups = value.values() if isinstance(value, Mapping) else [value]
        for group in groups:
            entries = list(_entries(group)) if group else []
            assert entries, path
            assert len({repr(entry) for entry in entries}) == len(entries), path


@pytest.mark.parametrize("language", LANGUAGES)
def test_every_entry_is_a_valid_expression(language: str) -> None:
    for path, value in FILES[language].items():
        for entry in _entries(value):
            # In a pair, the second entry replaces the first.
            first = entry[0] if isinstance(entry, list) else entry
            assert isinstance(first, str), path
            re.compile(any_of([first]))


def test_a_cue_finds_every_apostrophe_and_both_forms_of_chinese_characters() -> None:
    found = Cue(r"\bi(?:'m| am) reading\b", "l['x]eau", "记录", "[请让]看")
    for text in ("I’m reading", "I'm reading", "l’eau", "记录", "記錄", "請看", "讓看"):
        assert found.search(text), text
    assert not found.search("看")


def test_a_plain_word_is_found_as_a_whole_word_and_in_scripts_without_spaces_anywhere() -> None:
    found = Cue("never", "从不", "i'll", r"^no\b")
    for text in ("We NEVER do that", "我们从不部署", "I’ll do it", "no"):
        assert found.search(text)
    assert not found.search("Nevertheless they say no")


def test_every_language_has_the_words_that_hooks_read() -> None:
    tables = [word_table("prose.names"), word_table("prose.verbs"), *language_file("earlier_work").values()]
    assert all(isinstance(table, Mapping) and table.keys() >= set(LANGUAGES) for table in tables)


def test_the_longest_of_several_words_is_found() -> None:
    assert re.findall(any_of(["no", "nobody", "e.g."]), "nobody e.g. eagle") == ["nobody", "e.g."]


def test_any_word_of_many_is_found_like_any_of_them() -> None:
    entries = ["may", "march", "mars?", "a?gain", "[kc]w", "(?<!in )today", "été", "o"]
    text = "may march mar mars gain again kw today in today été o of ma"
    for entry in (*entries, "nobody"):
        pattern = rf"\b{any_word_of([entry, 'zzz'])}\b"
        assert re.findall(pattern, text) == re.findall(rf"\b{any_of([entry, 'zzz'])}\b", text), entry
    assert re.findall(rf"\b{any_word_of(entries)}\b", text) == re.findall(rf"\b{any_of(entries)}\b", text)


def test_an_unknown_list_is_an_error() -> None:
    with pytest.raises(KeyError):
        lists.by_language("observer.unknown")


def test_the_wheel_contains_the_files() -> None:
    project = Path(__file__).parents[2] / "pyproject.toml"
    data = tomllib.loads(project.read_text(encoding="utf-8"))["tool"]["setuptools"]["package-data"]
    assert data["esker.server.core.words"] == ["*.toml"]


def _extent(language: str, section: str) -> str:
    """Return how many of the lists of English a language has in a section: yes, some (fewer than half) or no."""
    lists_of = {each: {path for path in FILES[each] if path.partition(".")[0] == section} for each in (language, "en")}
    if not lists_of[language]:
        return "no"
    return "yes" if 2 * len(lists_of[language]) >= len(lists_of["en"]) else "some"


def _row(language: str) -> list[str]:
    file = language_file(language)
    stemmed = "yes" if isinstance(text := file.get("text"), Mapping) and "stemmer" in text else "no"
    extents = [_extent(language, section) for section in ("observer", "dates", "numbers", "negations", "scores")]
    return [str(file["name"]), f"`{language}.toml`", stemmed, *extents]


def test_the_page_of_languages_matches_the_files() -> None:
    page = (Path(__file__).parents[2] / "docs" / "languages.md").read_text(encoding="utf-8")
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in page.splitlines() if ".toml` |" in line]
    assert rows == [_row(language) for language in LANGUAGES]
