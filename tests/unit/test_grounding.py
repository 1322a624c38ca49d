"""Names, numbers and quotations of a fact must occur in the sources that it cites."""

import json
import re
from collections.abc import Iterator
from datetime import date
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from esker.server.core.facts.grounding import grounds_in, joined

THIRD_OF_MARCH = date(2026, 3, 3)


def missing(fact: str, *sources: str, days: tuple[date, ...] = ()) -> list[str]:
    """Return the parts of a fact that some texts and days do not contain."""
    return joined(map(grounds_in, sources)).missing(fact, days)


@pytest.mark.parametrize(
    ("fact", "source"),
    [
        ("auth.ts fails", "see src/auth.ts:45"),
        ("See src/auth.ts:45.", "SRC/Auth.ts:45 it is"),
        ("auth.ts:45 fails", "look at line 45 of auth.ts"),
        ("./src/auth.ts fails", "src/auth.ts"),
        ("src/auth.ts fails", "./src/auth.ts and /home/me/shop/src/auth.ts"),
        ("/home/me/shop/src/auth.ts fails", "cwd: /home/me/shop\nsrc/auth.ts"),
        ("It moved to /v1/recall", "POST /v1/recall?limit=3"),
        ("The file is C:\\work\\a.py", '"path": "C:\\\\work\\\\a.py"'),
        ("重跑gen-itgc-2后失败", "我重跑gen-itgc-2后才发现"),
        ("The rerun of gen-itgc-2 failed", "重跑gen-itgc-2后"),
        ("auth.ts를 고쳤다", "auth.ts 를 고쳤다"),
        ("Der ECONNRESET-Fehler in der auth.ts-Datei", "ECONNRESET in auth.ts"),
        ("Calls `setModel()` first", "setModel is called"),
        ("Passes `--dry-run` and -v", "run it with -v --dry-run"),
        ("`retry` is on", "we retry"),
        ("Released v1.2.3", "release 1.2.3"),
        ("Released 1.2.3 of python3.11", "v1.2.3 on Python 3.11.4"),
        ("Fixed in 8421fad", "commit 8421fad0c2b34e5f"),
        ("Uses a gpt\u20114 model", "gpt-4"),
        ("Uses phase-2", "phase 2 is next"),
        ("In use since mid-2025", "since the middle of 2025"),
        ("Set pool.max_size and $ESKER_URL", "export ESKER_URL=x; pool.max_size=5"),
        ("Read auth.ts", '{"text": "first\\nauth.ts"}'),
        ("See https://example.com/a?b=1.", "(https://example.com/a?b=1)"),
        ("８０００ rows", "8000 rows"),
        ("8,000 rows", "8000 rows"),
        ("8000 rows", "8.000 Zeilen"),
        ("8000 rows", "8 000 lignes"),
        ("8000 rows", "8k rows"),
        ("8k rows", "8,000 rows"),
        ("30000 users", "3万人"),
        ("8 of them", "8 million of them"),
        ("1.5 million users", "1,500,000 users"),
        ("3.5 s", "3,5 Sekunden"),
        ("٣ rows", "3 rows"),
        ("24h and 30s", "24 hours, 30 seconds"),
        ("Waits “24h”", "24 hours"),
        ("Python 3.11", "python3.11.4"),
        ("ports 80 443", "ports 80 and 443"),
        ("up to 3 may run", "at most 3 run"),
        ("Version 5 am Montag", "Montag: Version 5"),
        ("5% or $20", "20 dollars or 5 percent"),
        ("the 1st and 2nd try", "the first and second try"),
        ("2 h", "two hours"),
        ("20 min, der 3. Versuch", "zwanzig Minuten, beim dritten Versuch"),
        ("25 files", "twenty-five files"),
        ("3 steps", "a three-step plan"),
        ("25 Dateien", "fünfundzwanzig Dateien"),
        ("2 jours, 22 jours", "deux jours, vingt-deux jours"),
        ("2 días", "dos días"),
        ("3个, 10個, 25", "三个, 十個, 二十五"),
        ("version 2", "v2"),
        ("v2 is out", "version 2"),
        ("port 5432", "postgres://localhost:5432/shop"),
        ("at 14:30", "2026-03-02T14:30:05Z"),
        ("at 2:30 pm", "14:30"),
        ("at 14:30", "2:30 p.m."),
        ("at 9 am", "at 9:00"),
        ("on 2026-03-03", "due March 3, 2026"),
        ("am 3. März 2026", "2026-03-03"),
        ("on March 3", "in March, on day 3"),
        ("Said “run the  tests.”", "Run the tests, please"),
        ("Said „lauf“ und «cours vite»", "lauf; cours\nvite"),
        ("Said “it’s done – now”", "it's done - now"),
        ("Said “first … last”", "first, second and last"),
        ("「部署失败」", "昨天部署失败了"),
        ("Said “ok”", "yes"),
        ("the users’ own choice and the admins’ too", "people"),
        ("5 million rows are waiting", "We ship in March. 5 million rows wait."),
        ("5 million rows are waiting", "We ship in March\n5 million rows wait"),
        ("5 million rows are waiting", "Since Mar 5 million rows wait."),
        ("5 million rows are waiting", "3月\n5 million rows wait"),
        ("It holds 8,000", '{"text": "It holds 8,000\\\\nrows"}'),
        ("On 2026-03-05", "It ships Mar. 5, 2026"),
        ("There were 2,026 rows", "It holds since March. 2,026 rows are there."),
        ("10^6 rows of 10^-3 s", "10⁶ rows of 10⁻³ s"),
        ("8 1/2 cups, then 2 of CO2", "8½ cups, ①② of CO₂"),
        ("at 10:30:15", "10:30:15.250Z"),
    ],
)
def test_a_fact_that_its_sources_say_is_grounded(fact: str, source: str) -> None:
    assert missing(fact, source) == []


@pytest.mark.parametrize(
    ("fact", "source", "reported"),
    [
        ("auth.t fails", "auth.ts fails", ["auth.t"]),
        ("auth.ts fails", "oauth.ts fails", ["auth.ts"]),
        ("auth.ts:46 fails", "auth.ts:45", ["auth.ts:46"]),
        ("/home/me/shop/src/auth.ts", "/home/me/shop\nuser.ts", ["/home/me/shop/src/auth.ts"]),
        ("/srv/shop/src/auth.ts", "/home/me/shop\nsrc/auth.ts", ["/srv/shop/src/auth.ts"]),
        ("port 54", "port 5432", ["54"]),
        ("8 rows", "8,000 rows", ["8"]),
        ("8000 rows", "8.0 rows", ["8000"]),
        ("3.1 is used", "3.10 is used", ["3.1"]),
        ("8 or 8k", "8 rows", ["8k"]),
        ("8 or 8k", "8k rows", ["8"]),
        ("٤ rows", "3 rows", ["4"]),
        ("1.2.3 is out", "3 of 2 by 1", ["1.2.3"]),
        ("Uses gpt\u20115", "gpt-4, 5 times", ["gpt-5"]),
        ("v0.8.6", "v0.8.5", ["v0.8.6"]),
        ("v2 of it", "2 files", ["v2"]),
        ("127.0.0.1", "127.0.0.2", ["127.0.0.1"]),
        ("getUserName and get_user", "getUser", ["getUserName", "get_user"]),
        ("ECONNRESET with MAX_SIZE", "ECONNREFUSED", ["ECONNRESET", "MAX_SIZE"]),
        ("Der ECONNRESET-Fehler", "ein Fehler", ["ECONNRESET"]),
        ("重跑gen-itgc-2后", "重跑gen-itgc-3后", ["gen-itgc-2"]),
        ("runs my-own-tool", "runs", ["my-own-tool"]),
        ("with --dry-run", "with --dry", ["--dry-run"]),
        ("`retry` is on", "retries", ["retry"]),
        ("me@example.org", "you@example.org", ["me@example.org"]),
        ("https://example.com/b", "https://example.com/a", ["https://example.com/b"]),
        ("from the 0425fad commit", "8421fad0c2b34e5f", ["0425fad"]),
        ("at 14:30", "at 14:31", ["14:30"]),
        ("at 9 pm", "9 files at 9:00", ["9 pm"]),
        ("on 2026-03-04", "2026-03-03, 4 files", ["2026-03-04"]),
        ("am 4. März 2026", "am 3. März 2026", ["4. März 2026"]),
        ("2026年3月4日", "2026年3月3日", ["2026年3月4日"]),
        ("on 2026-03-45", "2026-03-03", ["45"]),
        ("2026年3月61日", "2026年3月3日", ["61"]),
        ("at 10:30:15.9", "at 10:30:15.2", ["10:30:15.9"]),
        ("106 rows, 81 cups, 12 steps", "10⁶ rows, 8½ cups, ①② steps", ["106", "81", "12"]),
        ("Said “never again”", "always again", ["never again"]),
        ("Said “first … last”", "last only", ["first … last"]),
        ("Said “art of”", "start of", ["art of"]),
        ("「部署失败」", "部署成功", ["部署失败"]),
        ('‘not this’ and "nor that"', "this, that", ["not this", "nor that"]),
        ("Python3.11", "Python 3.12", ["Python3.11"]),
        ("Said “so it was”, 3 retries in a.py, 3", "none", ["so it was", "3", "a.py"]),
    ],
)
def test_parts_that_are_not_in_the_sources_are_reported_in_order(fact: str, source: str, reported: list[str]) -> None:
    assert [piece.replace("...", "…") for piece in missing(fact, source)] == reported


@pytest.mark.parametrize(
    "fact",
    [
        "A well-known follow-up is read-only, state-of-the-art and up-to-date.",
        "Names such as e.g. Anna, i.e. she and/or he; A/B tests, CI/CD, TCP/IP and APIs.",
        "Das ist z. B. oder z.B. das E-Mail-Konto und die Open-Source-Projekt-Seite.",
        "You may march on. I can't, the team's don't, rock ‘n’ roll.",
        "C'est-à-dire peut-être; vis-à-vis.",
        "用户喜欢深色主题。ユーザーは暗いテーマが好きです。",
        "Hm... so; wait...what? *Really*, _really_ -- yes.",
    ],
)
def test_ordinary_words_need_no_source(fact: str) -> None:
    assert missing(fact) == []


@pytest.mark.parametrize(
    "fact",
    [
        "2026-03-03",
        "on March 3, 2026",
        "3 March 2026",
        "the 3rd of March 2026",
        "Mar 3",
        "am 3. März 2026",
        "3. 3月3日",
        "le 3 mars 2026",
        "el 3 de marzo de 2026",
        "2026年3月3日",
        "3/3/2026",
        "03.03.2026",
        "since March 2026",
        "in 2026",
    ],
)
def test_an_allowed_day_is_grounded_in_any_notation(fact: str) -> None:
    year_late, month_late = date(2031, 3, 3), date(2026, 8, 3)
    sources = ("3.",) if fact.startswith("3. 3") else ()
    assert missing(fact, *sources, days=(THIRD_OF_MARCH,)) == []
    assert missing(fact, *sources)
    if "2026" in fact:
        assert missing(fact, *sources, days=(year_late,))
    if fact != "in 2026":
        assert missing(fact, *sources, days=(month_late,))


def test_a_date_with_slashes_may_begin_with_the_day_or_the_month() -> None:
    for day in (date(2026, 3, 4), date(2026, 4, 3)):
        assert missing("on 3/4/2026", days=(day,)) == []
    assert missing("on 3/4/2026", days=(date(2026, 3, 5),)) == ["3/4/2026"]


def test_a_date_grounds_no_other_numbers() -> None:
    assert missing("3 files, 03:26", days=(THIRD_OF_MARCH,)) == ["3", "03:26"]
    assert missing("March 5, 2026", "5 files", days=(THIRD_OF_MARCH,)) == ["March 5, 2026"]


@pytest.mark.parametrize(
    ("written", "value", "other"),
    [
        *((written, "8000", "8001") for written in ("8,000", "8.000", "8'000", "8_000", "8 000", "8k", "#8000")),
        *((written, "1234.56", "1234.57") for written in ("1,234.56", "1.234,56")),
        *(
            ("8.0", "8", "80"),
            ("3,5", "3.5", "35"),
            ("3.10", "3.10", "3.1"),
            ("007", "7", "70"),
            ("0.125", "0,125", "12"),
        ),
        *(("24h", "24", "2"), ("5%", "5", "50"), ("$20", "20", "2"), ("1st", "1", "11"), ("50-tablet", "50", "5")),
        *(("8-16", "8 or 16", "816"), ("2h30m", "2, 30", "230"), ("1920x1080", "1080 by 1920", "19201080")),
        *(("1,2,3", "3 2 1", "123"), ("2026-13-45", "45, 13, 2026", "20261345")),
        *(("2:05 pm", "14:05", "2:05"), ("9 a.m.", "09:00", "21:00"), ("12 am", "00:00", "01:00")),
        *(("March 3, 2026", "2026-03-03", "2026-03-04"), ("Mar 2026", "2026-03", "2026-04")),
    ],
)
def test_numbers_are_compared_by_value(written: str, value: str, other: str) -> None:
    assert missing(written, value) == []
    assert missing(written, other)


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("(see src/auth.ts:45), auth.ts.", ["src/auth.ts:45", "auth.ts"]),
        (
            "ECONNRESET in getUserName, HttpClient, max_size, MAX_SIZE",
            "ECONNRESET getUserName HttpClient max_size MAX_SIZE".split(),
        ),
        (
            "v0.8.6, 127.0.0.1, 550e8400-e29b-41d4-a716-446655440000",
            "v0.8.6 127.0.0.1 550e8400-e29b-41d4-a716-446655440000".split(),
        ),
        ("重跑gen-itgc-run后", ["gen-itgc-run"]),
        ("`make test` with --fast", ["make test", "--fast"]),
        (
            "~/.bashrc, ../a/b, @types/node, std::vector, me@x.org",
            "~/.bashrc ../a/b @types/node std::vector me@x.org".split(),
        ),
        ("a.py/b.py, my_app/mod.py or GET/POST", ["a.py", "b.py", "my_app/mod.py", "POST"]),
    ],
)
def test_names_are_reported_whole_and_in_order(text: str, found: list[str]) -> None:
    assert missing(text) == found


def test_very_long_names_are_compared_by_their_beginning_and_numbers() -> None:
    listed = ",".join(map(str, range(1000, 1400)))
    assert missing("It holds 1399 and 1400", f"[{listed}]") == ["1400"]
    assert missing("x" * 5_000 + "1", "x" * 5_000 + "21") == ["1"]
    assert missing("Path /" + "a/" * 5_000, "Path /" + "b/" * 5_000) == ["/" + "a/" * 149 + "a"]


@pytest.mark.parametrize(
    ("fact", "source", "reported"),
    [
        ("rows: 8", "rows: 8,000", "8"),
        ("rows: 8", "rows: 8k", "8"),
        ("一共8", "一共8万", "8"),
        ("0.5 rows", "3.0.5 rows", "0.5"),
        ("5 rows wait", "1.5 rows wait", "5"),
        ("5 rows wait", "15 rows wait", "5"),
        ("It waits. There are 8 rows.", "It waits. There are 8,000 rows.", "8"),
    ],
)
def test_a_part_of_a_number_is_not_repeated_word_for_word(fact: str, source: str, reported: str) -> None:
    assert missing(fact, source) == [reported]


WORDS = "We ship|the rows|wait|Mar|mars|im Mai|costs|see|à|until|about|in|of|und|port|Q3|de"
VALUES = (
    "March|Mar.|May|3. März|3 de marzo|le 3 mars|Sept. 4|Juni|March 5, 2026|2026-03-03|3/4/2026|03.03.2026|2026年3月3日"
    "|3月|14:30|9 am|2:05 p.m.|5|12|2026|5 million|5 Millionen|3万|8,000|8.000|8 000|1.5|24h|30 s|5%|$20|1st"
    "|2h30m|src/auth.ts:45|auth.ts|v0.8.6|127.0.0.1|--dry-run|-v|ECONNRESET|gen-itgc-2|`make it`|“so be it”"
    "|「部署失败」|abc1234|10⁶|8½|①②|https://a.org/b?c=1|🎉|✅ 5|twenty-five|am|k|M"
)
CLAUSES = st.lists(st.sampled_from(f"{WORDS}|{VALUES}".split("|")), min_size=1, max_size=4).map(" ".join)
CJK_CLAUSES = st.lists(st.sampled_from("我们|三个|5|3月|3万|8,000|auth.ts|14:30|2026年|日".split("|")), max_size=4).map(
    lambda parts: "".join(["于是", *parts, "了"])
)
GAPS = (
    ". ",
    ".\n",
    "! ",
    "\n",
    "\n\n- ",
    ".\n2. ",
    "\n3) ",
    ", ",
    "; ",
    " – ",
    ": ",
    " ✅ ",
    "\n🔴 ",
    "?\n> ",
    "\\n",
    ".\t",
)
SOURCES = st.lists(
    st.tuples(CLAUSES, st.sampled_from(GAPS)) | st.tuples(CJK_CLAUSES, st.sampled_from("。，、；！\n")),
    min_size=1,
    max_size=8,
)


@given(SOURCES, st.data())
def test_a_fact_copied_from_a_source_is_never_refused(said: list[tuple[str, str]], data: st.DataObject) -> None:
    first = data.draw(st.integers(0, len(said) - 1))
    last = data.draw(st.integers(first, len(said) - 1))
    between = "".join(clause + gap for clause, gap in said[first:last])
    fact = between + said[last][0]
    assert missing(fact, "".join(clause + gap for clause, gap in said)) == []


@pytest.mark.parametrize("fact", ["2:05 p.m. wait", "Sept. 4 Mar. 8 000", "3万 abc1234 $20", "3/4/2026 wait"])
def test_a_sentence_after_an_escaped_line_end_is_grounded_word_for_word(fact: str) -> None:
    assert missing(fact, f"Done\\n{fact}") == []


def test_a_claim_is_not_grounded_by_two_sources_joined() -> None:
    assert missing("Said “one two”", "one", "two") == ["one two"]
    assert missing("port 5432", "54", "32") == ["5432"]


def test_joined_sources_ground_the_parts_that_each_contains() -> None:
    one, other = grounds_in("auth.ts has 3 rows"), grounds_in("due March 3, 2026")
    fact = "auth.ts: 3 rows by 2026-03-03, 4 more"
    assert joined([one, other]).missing(fact) == ["4"]
    assert one.missing(fact, [THIRD_OF_MARCH]) == ["4"]
    assert joined([]).missing(fact) == ["auth.ts", "3", "2026-03-03", "4"]


FRAGMENTS = (
    *(
        "src/auth.ts:45|./a/b_c|~/.bashrc|C:\\x\\y|https://a.org/b?c=1|me@x.org|v0.8.6|127.0.0.1|abc1234|gen-itgc-2"
        "|ECONNRESET|camelCase|snake_case|__init__|--dry-run|-v|$HOME|`make it`|`x()`|8,000|8.000|8 000|3,5|24h|8k"
        "|5 million|3万|1st|1,2,3|“so be it”|„so“|«so be it»|‘so be it’|「部署失败」|“a b … c d”|2026-03-03"
        "|2026-03-03T14:30:05Z|March 3, 2026|3. März|3/4/2026|2026年3月3日|14:30|9 am|2:05 p.m.|二十五|twenty-five"
        "|-Fehler|e.g.|and/or|重跑|다|ŉ|İ|ß|ẞ|ǰ|\u0345|\u0301|ﬁ|½|²|٣|１|Ⅳ|㈠|\u200b|\u2011|–|—|...|…|..|.|,|:|;|/|\\"
        "|\\n|-|_|@|#|'|’|‘|“|”|„|«|»|\"|`|(|)|*|?|T|Z|k|M|pm|th|x|Ab|0|7|23|000"
    ).split("|"),
    *(" ", "  ", "\n", "\t", "\u00a0", "\x1c", "\x00"),
)
fragments = st.lists(st.sampled_from(FRAGMENTS), max_size=12)
texts = st.text() | fragments.map("".join) | fragments.map(" ".join)


@given(texts)
@example("2026-03-03T3a_b")
@example("1月٣th_x")
def test_a_text_is_grounded_in_itself(text: str) -> None:
    assert missing(text, text) == []


@given(fragments.map("".join), fragments.map("".join), fragments.map("".join))
def test_a_line_of_a_source_is_grounded_in_it(before: str, fact: str, behind: str) -> None:
    assert missing(fact, f"{before}\n\n{fact}\n\n{behind}") == []


@given(texts, st.lists(texts, max_size=3), texts, st.sets(st.dates(), max_size=2))
def test_more_evidence_never_adds_ungrounded_parts(fact: str, sources: list[str], more: str, days: set[date]) -> None:
    less = set(missing(fact, *sources))
    assert set(missing(fact, *sources, more, days=tuple(days))) <= less
    assert set(missing(fact, more, *sources)) <= less


@given(
    st.integers(1, 10**9),
    st.integers(0, 8),
    st.integers(1, 9),
    st.sampled_from(["{}", "{:,}", "{}s", "$ {}.", "port {}", "約{}件", "({})", "{}-fold"]),
    st.sampled_from(["{}", "{:,}", "{} rows", "localhost:{}", "n={}", "共{}个"]),
)
def test_a_number_with_another_digit_is_reported(number: int, place: int, step: int, fact: str, source: str) -> None:
    digits = list(str(number))
    place %= len(digits)
    digits[place] = str((int(digits[place]) + step) % 10)
    changed = int("".join(digits))
    assert missing(fact.format(number), source.format(number)) == []
    [reported] = missing(fact.format(changed), source.format(number))
    assert missing(reported, str(changed)) == []


@given(st.dates(date(1900, 1, 1), date(2099, 12, 31)), st.dates(date(1900, 1, 1), date(2099, 12, 31)))
def test_only_the_day_itself_grounds_a_date(day: date, other: date) -> None:
    english = f"{day:%B} {day.day}, {day.year}"
    for fact in (english, f"{day:%Y-%m-%d}", f"{day.year}年{day.month}月{day.day}日", f"{day:%d.%m.%Y}"):
        assert missing(fact, days=(day,)) == []
        assert bool(missing(fact, days=(other,))) == (day != other)


def spoken(value: Any) -> Iterator[str]:
    """Yield every text of several words in a JSON value."""
    if isinstance(value, str):
        yield from [value] if " " in value else []
    elif isinstance(value, dict | list):
        for item in value.values() if isinstance(value, dict) else value:
            yield from spoken(item)


def sentences(path: Path) -> list[str]:
    """Return the sentences of a transcript."""
    lines = path.read_text(errors="replace").splitlines()
    found = [text for line in lines if line.startswith("{") for text in spoken(_object(line))]
    cut = [sentence.strip() for text in found for sentence in re.split(r"(?<=[.!?])\s|\n", text)]
    return [sentence for sentence in cut if 20 < len(sentence) < 400]


def _object(line: str) -> Any:
    try:
        return json.loads(line)
    except ValueError:
        return None


def test_sentences_of_real_transcripts_are_grounded_there_and_not_elsewhere(transcripts: Path) -> None:
    files = sorted(path for folder in ("claude", "codex", "pi") for path in (transcripts / folder).glob("*.jsonl"))
    facts_of = {path: found[:400] for path in files if (found := sentences(path))}
    assert len(facts_of) > 3
    grounds_of = {path: joined(map(grounds_in, facts)) for path, facts in facts_of.items()}
    for path, facts in facts_of.items():
        assert [fact for fact in facts if grounds_of[path].missing(fact)] == []
        elsewhere = joined(grounds for other, grounds in grounds_of.items() if other.parent != path.parent)
        named = [fact for fact in facts if len(missing(fact)) > 1]
        assert sum(bool(elsewhere.missing(fact)) for fact in named) >= 0.8 * len(named)
