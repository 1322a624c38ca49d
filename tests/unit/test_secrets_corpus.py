"""Secrets of hundreds of formats are masked wherever they are, harmless lines are not, and hostile text is cheap."""

import time
from collections import Counter
from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from esker.server.core.redaction import find, redact, redact_content
from esker.server.core.redaction.formats import known_literals
from esker.server.core.redaction.names import word_table
from esker.server.core.redaction.spans import merged
from esker.server.core.redaction.views import views
from evals.secrets.command import is_masked
from evals.secrets.corpus import Maker

# Seeds other than those the rules were written with.
_SEEDS = (20_261, 7_103)
_CASES = [case for seed in _SEEDS for case in Maker(seed).secrets()]

_LEAST = {"formats": 0.98, "env": 0.92, "code": 0.92, "prose": 0.92, "headers": 0.92, "files": 0.92}


@pytest.mark.parametrize("group", _LEAST)
def test_nearly_all_secrets_of_a_kind_are_masked(group: str) -> None:
    cases = [case for case in _CASES if case.group == group]
    missed = [case.family for case in cases if not is_masked(case)]
    assert len(missed) <= len(cases) * (1 - _LEAST[group]), missed


def test_at_most_one_harmless_line_in_a_hundred_changes() -> None:
    lines = [line for seed in _SEEDS for line in Maker(seed).harmless()]
    changed = [line for line in lines if redact(line) != line]
    assert len(changed) <= len(lines) / 100, changed


def test_masking_any_secret_twice_changes_nothing() -> None:
    once = [redact_content(case.content) for case in _CASES]
    assert [redact_content(content) for content in once] == once


_TEXTS = [case.content for case in _CASES if isinstance(case.content, str)]


@given(st.lists(st.sampled_from(_TEXTS), min_size=2, max_size=4), st.sampled_from([" ", "\n", "; ", '","']))
def test_masking_secrets_beside_each_other_twice_changes_nothing(texts: list[str], between: str) -> None:
    once = redact(between.join(texts))
    assert redact(once) == once


@pytest.mark.parametrize("length", [200, 420, 5_000, 70_000])
@pytest.mark.parametrize("place", ["token: {}", 'PASSWORD="{}"', "--token={}", "Authorization: Bearer {}", "ghp_{}"])
def test_a_long_value_leaves_no_tail(place: str, length: int) -> None:
    value = ("aB3dE5gH7jK9mN" * length)[:length]
    assert "aB3dE5" not in redact(f"first {place.format(value)} last")


@given(st.text(alphabet=st.sampled_from('a"\\n%41\x1b[3m\u200b&#;xu0'), max_size=60))
def test_each_place_in_a_text_without_escapes_leads_back_to_the_text(text: str) -> None:
    for view in views(text):
        for place in range(len(view.text)):
            start, end = view.written(place, place + 1)
            assert 0 <= start < end <= len(text)
        starts = [view.written(place, place + 1)[0] for place in range(len(view.text))]
        assert starts == sorted(starts)


_HOSTILE = (
    "://a", "password=", "password: ", "password is ", 'key="', "|key", "token(", "key ",
    "-----BEGIN PRIVATE KEY", "-----BEGIN PRIVATE KEY-----\n", "-----END PRIVATE KEY-----\n", "eyJ", "eyJ.",
    "eyJhbGci.eyJ", " ", "a", "aB3dE5", "\n", "\t", '"', "\\", "\\\\u0041", "%41", "\x1b[", "\u200b", "&#65;",
    "Cookie: a=b;", "Authorization: ", "bearer ", "key,token\n", "machine ", "kind: Secret\ndata:\n", "a.b.",
    "mysql -", "mysql -p", "curl -u ", "<token>", '"name":"token","value":', ":1:", "*",
    "seed phrase: abandon ", "A1b2" * 16 + "\n", "-", "(token", "key_", "密码是", "cGFzc3dvcmQ9aHVudGVyMjI",
    "Private-Lines: 9\n", "login ", "user/pass: a/", "auth(", "Пароль ", "password for ", "://a:b@", "?sig=",
    "abc_", "A_b-", "sk-ant-", "'", "`", "{{", "<",
)  # fmt: skip
_SIZES = (1_000, 2_000, 4_000, 8_000)
# Times as long that a character may take in a larger text; with a quadratic pattern it is 8 times at the last size.
_MOST_GROWTH = 3
# Seconds of CPU time below which a text is masked fast enough for its growth to be noise.
_NEGLIGIBLE = 0.03


def _seconds(piece: str, size: int) -> float:
    text = (piece * size)[:size]
    start = time.process_time()
    find(text)
    return time.process_time() - start


def _is_linear(piece: str, sizes: tuple[int, ...] = _SIZES) -> bool:
    largest = _seconds(piece, sizes[-1])
    if largest < _NEGLIGIBLE:
        return True
    # A slow run is measured again.
    seconds = {size: _seconds(piece, size) for size in sizes[:-1]} | {sizes[-1]: largest}
    for _ in range(2):
        if _grow_alike(seconds):
            return True
        seconds = {size: min(taken, _seconds(piece, size)) for size, taken in seconds.items()}
    return _grow_alike(seconds)


def _grow_alike(seconds: Mapping[int, float]) -> bool:
    """Whether a character takes about as long in a larger text."""
    least = min(seconds)
    base = seconds[least] / least
    return all(taken / size < base * _MOST_GROWTH for size, taken in seconds.items())


@pytest.mark.parametrize("piece", _HOSTILE)
def test_hostile_text_is_masked_in_linear_time(piece: str) -> None:
    assert _is_linear(piece)


def test_the_beginnings_of_all_formats_are_masked_in_linear_time() -> None:
    assert [literal for literal in known_literals() if not _is_linear(literal)] == []


def test_all_names_of_secrets_are_masked_in_linear_time() -> None:
    names = {name for table in ("prose.names", "prose.others") for some in word_table(table).values() for name in some}
    assert [name for name in names if not _is_linear(f"{name}: ", (250, 500, 1_000, 2_000))] == []


def test_a_text_of_8_mib_is_looked_through_part_by_part(monkeypatch: pytest.MonkeyPatch) -> None:
    looked: Counter[int] = Counter()

    def look(text: str, layers: int, masks: object) -> list[object]:
        del layers, masks
        looked[len(text)] += 1
        return []

    monkeypatch.setattr("esker.server.core.redaction.finding._found", look)
    find("a" * 2**23)
    assert max(looked) <= 40_960
    assert looked.total() == 256  # parts of 32 KiB, each with 8 KiB of the next


def test_spans_that_overlap_are_one_span_of_the_most_specific_kind() -> None:
    text = "DB_PASSWORD=ghp_" + "a1B2c3" * 6
    [span] = merged(find(text))
    assert (text[span.start : span.end], span.kind) == ("ghp_" + "a1B2c3" * 6, "github-token")
