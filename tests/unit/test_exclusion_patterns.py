"""Exclusion patterns: each one matches as documented, or is refused with a reason."""

from collections.abc import Sequence
from fnmatch import fnmatchcase
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from esker.server.core.config.client_settings import ClientSettings
from esker.server.core.config.exclusion_patterns import parse_pattern, parts_of
from esker.server.core.errors import InvalidInput, Misconfigured


def matches(pattern: str, name: str) -> bool:
    """Whether a pattern matches a directory or a project."""
    parsed = parse_pattern(pattern)
    parts = parts_of(name) if parsed.is_directory else name.split("/")
    return parsed.matches(parts, parts_of(parsed.head) if parsed.is_directory else ())


@pytest.mark.parametrize(
    ("pattern", "named", "others"),
    [
        ("/work/a", ["/work/a", "/work/a/b/c", "/work//a/./b"], ["/work", "/work/ab", "/x/work/a"]),
        ("/work/a/", ["/work/a", "/work/a/b"], ["/work"]),
        ("/work/*", ["/work/a", "/work/a/b"], ["/work", "/works/a"]),
        ("/work/*/secret", ["/work/a/secret/b"], ["/work/secret", "/work/a/b/secret"]),
        ("/work/**/secret", ["/work/secret", "/work/a/secret", "/work/a/b/secret/c"], ["/work/a", "/secret"]),
        ("/work/**", ["/work", "/work/a/b"], ["/works"]),
        ("/work/a?", ["/work/ab/c"], ["/work/a", "/work/a/b", "/work/abc"]),
        ("/work/[ab]x", ["/work/ax", "/work/bx/y"], ["/work/cx", "/work/x"]),
        ("/work/[a-c]", ["/work/b"], ["/work/d"]),
        ("/work/[!ab]x", ["/work/cx"], ["/work/ax", "/work//x"]),
        ("/work/[]]", ["/work/]"], ["/work/a"]),
        ("/Work/A", ["/work/a"], []),
        ("/work/caf\u00e9", ["/work/cafe\u0301", "/work/CAF\u00c9"], ["/work/cafe"]),
        ("/", ["/", "/a"], []),
        ("C:\\Users\\me", ["c:\\users\\me\\x", "C:/Users/me"], ["/Users/me", "D:\\Users\\me"]),
        ("owner/name", ["owner/name", "Owner/Name"], ["owner", "owner/names", "owner/name/more", "/owner/name"]),
        ("owner/*", ["owner/name", "owner/group/name"], ["owner", "owners/name"]),
        ("owner/", ["owner", "owner/name"], ["owners"]),
        ("*/name", ["owner/name"], ["owner/group/name", "name"]),
        ("**/name", ["name", "owner/group/name"], ["owner/names"]),
        ("name", ["name"], ["owner/name", "/name", "name/x"]),
        ("dia*", ["diary", "dia"], ["my-diary"]),
        ("*", ["a", "a/b"], []),
    ],
)
def test_a_pattern_matches_as_documented(pattern: str, named: Sequence[str], others: Sequence[str]) -> None:
    assert [name for name in named if not matches(pattern, name)] == []
    assert [name for name in others if matches(pattern, name)] == []


def test_a_tilde_is_the_home_of_the_current_user(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for home in (tmp_path / "a", tmp_path / "b"):
        monkeypatch.setenv("HOME", str(home))
        assert matches("~/private", f"{home}/private/x")
        assert not matches("~/private", "/private/x")
        assert matches("~", f"{home}/anything")


@pytest.mark.parametrize(
    "pattern",
    [
        *("/a/{b,c}", "/a/{b", "/a:/b", "/a;~/b", "https://example.org/acme/shop", "git@example.org:acme/shop"),
        *("~nobody-of-this-name/x", "a**b", "/a/**b", "[", "/a/[b", "/a/[]", "/a/[!]", "/a/[c-b]", "/a/[b/c]"),
        *("..", "../a", "/a/../b", "./", "$HOME/a", '"/a"', "'a'", "!/a", "", " a", "a ", "/a\n/b", "a\\b"),
        *("\ufeff/a", "/a\u200b", "/a/\ud800", "#a", "/a #b", "/a,/b"),
    ],
)
def test_an_invalid_pattern_is_refused_with_the_reason(pattern: str) -> None:
    with pytest.raises(InvalidInput, match="is not a valid pattern"):
        parse_pattern(pattern)


def test_an_invalid_pattern_in_the_environment_is_an_invalid_setting(tmp_path: Path) -> None:
    here = {"ESKER_STATE_DIR": str(tmp_path)}
    assert ClientSettings.from_environment(here | {"ESKER_EXCLUDE": " /a , owner/* ,,"}).exclude == ("/a", "owner/*")
    with pytest.raises(Misconfigured, match=r"ESKER_EXCLUDE.*\{b.*braces") as caught:
        ClientSettings.from_environment(here | {"ESKER_EXCLUDE": "/a/{b,c}"})
    assert caught.value.hint
    assert "owner/name" in caught.value.hint


letters = st.text("ab", max_size=6)
names = st.lists(st.text("ab", min_size=1, max_size=4), min_size=1, max_size=6)


@given(st.text("ab*?", min_size=1, max_size=8).filter(lambda part: "**" not in part), letters)
def test_a_part_matches_as_in_a_shell(part: str, name: str) -> None:
    [step] = parse_pattern(f"/{part}/").steps or [None]
    matched = matches(f"/{part}", f"/{name or 'c'}")
    assert matched is fnmatchcase(name or "c", part)
    assert step is None or bool(step.fullmatch(name)) is fnmatchcase(name, part)


@given(names, st.data())
def test_a_directory_covers_everything_below_it_with_any_wildcards(parts: list[str], data: st.DataObject) -> None:
    count = data.draw(st.integers(1, len(parts)))
    wildcards = [data.draw(st.sampled_from([part, "*", f"{part[0]}*", "?" * len(part)])) for part in parts[:count]]
    place = data.draw(st.integers(0, count))
    pattern = [*wildcards[:place], *data.draw(st.sampled_from([[], ["**"], ["**", "**"]])), *wildcards[place:]]
    assert matches("/" + "/".join(pattern), "/" + "/".join(parts))
    assert matches("/**/" + "/".join(pattern[place:]) if pattern[place:] else "/**", "/" + "/".join(parts))


@given(st.text(min_size=1, max_size=12))
def test_any_text_is_parsed_or_refused_and_matches_without_a_crash(pattern: str) -> None:
    try:
        parsed = parse_pattern(pattern)
    except InvalidInput:
        return
    assert isinstance(parsed.matches(["a", "b"], parts_of(parsed.head)), bool)


@pytest.mark.parametrize(
    ("pattern", "name"),
    [
        ("*a" * 60 + "b", "a" * 20_000),
        ("?*" * 60 + "b", "a" * 20_000),
        ("/" + "**/*a*/" * 60 + "b", "/a" * 4_000),
    ],
)
def test_matching_never_takes_exponential_time(pattern: str, name: str) -> None:
    # With backtracking from every asterisk this would take years.
    assert not matches(pattern, name)
