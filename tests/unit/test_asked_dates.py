"""The time that a question asks about: its days, time zone and anchor, and questions without a time."""

import os
import time
from collections.abc import Generator
from datetime import UTC, date, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from esker.server.core.clock import EARLIEST
from esker.server.core.dates.asked import AskedTime, asked_time
from esker.server.core.dates.window import Anchor, anchored_window

# A Wednesday.
NOW = datetime(2023, 5, 24, 10, 0, tzinfo=UTC)
ZONES = ["UTC", "Pacific/Midway", "Pacific/Kiritimati", "Europe/Berlin", "America/New_York", "Asia/Kathmandu"]
WEEKDAYS = ["Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"]
BEGINNING = EARLIEST.date().isoformat()


def asked(query: str, now: datetime = NOW, timezone: str = "UTC") -> AskedTime:
    """Return the time that a query asks about; the query must have one."""
    found = asked_time(query, now, timezone)
    assert found is not None, query
    return found


def days(query: str, now: datetime = NOW, timezone: str = "UTC") -> tuple[str, str]:
    """Return the first and the last day of the window that a query asks about."""
    window = asked(query, now, timezone).window
    assert window is not None, query
    return window.start.date().isoformat(), window.end.date().isoformat()


KNOWN = """
    What broke yesterday?                                   2023-05-23 2023-05-23
    Was ist gestern passiert?                               2023-05-23 2023-05-23
    Qu'a-t-on décidé hier ?                                 2023-05-23 2023-05-23
    ¿Qué decidimos ayer?                                    2023-05-23 2023-05-23
    昨天auth.ts:45的错误                                      2023-05-23 2023-05-23
    昨日のエラー                                              2023-05-23 2023-05-23
    the day before yesterday                                2023-05-22 2023-05-22
    What did we decide last week?                           2023-05-15 2023-05-21
    Was haben wir letzte Woche entschieden?                 2023-05-15 2023-05-21
    la semaine dernière                                     2023-05-15 2023-05-21
    ¿Qué decidimos la semana pasada?                        2023-05-15 2023-05-21
    上周我们决定了什么                                          2023-05-15 2023-05-21
    先週決めたこと                                             2023-05-15 2023-05-21
    the week before last                                    2023-05-08 2023-05-14
    vorletzte Woche                                         2023-05-08 2023-05-14
    上上周                                                   2023-05-08 2023-05-14
    next week                                               2023-05-29 2023-06-04
    two weeks ago                                           2023-05-07 2023-05-13
    vor zwei Wochen                                         2023-05-07 2023-05-13
    il y a deux semaines                                    2023-05-07 2023-05-13
    hace dos semanas                                        2023-05-07 2023-05-13
    两周前                                                   2023-05-07 2023-05-13
    Was haben wir vor drei Tagen gemacht?                   2023-05-21 2023-05-21
    三天前                                                   2023-05-21 2023-05-21
    3日前                                                    2023-05-21 2023-05-21
    a month ago                                             2023-04-09 2023-05-09
    in the last 3 days                                      2023-05-21 2023-05-24
    in den letzten drei Tagen                               2023-05-21 2023-05-24
    les 3 derniers jours                                    2023-05-21 2023-05-24
    最近三天                                                  2023-05-21 2023-05-24
    over the past month                                     2023-04-24 2023-05-24
    What did we do on the weekend?                          2023-05-20 2023-05-21
    last weekend                                            2023-05-20 2023-05-21
    on Friday we shipped what?                              2023-05-19 2023-05-19
    Tuesday's standup                                       2023-05-23 2023-05-23
    on Wednesday                                            2023-05-17 2023-05-17
    What is due on Friday?                                  2023-05-26 2023-05-26
    What is the plan for Friday?                            2023-05-26 2023-05-26
    What was scheduled for Friday?                          2023-05-19 2023-05-19
    What is scheduled in 3 days?                            2023-05-27 2023-05-27
    What did we do in March?                                2023-03-01 2023-03-31
    im März                                                 2023-03-01 2023-03-31
    en mars                                                 2023-03-01 2023-03-31
    en marzo                                                2023-03-01 2023-03-31
    3月に                                                    2023-03-01 2023-03-31
    what happened in may?                                   2023-05-01 2023-05-31
    in December                                             2022-12-01 2022-12-31
    last May                                                2022-05-01 2022-05-31
    next March                                              2024-03-01 2024-03-31
    What will we do in March?                               2024-03-01 2024-03-31
    May 2022                                                2022-05-01 2022-05-31
    What did we agree on in May 2022?                       2022-05-01 2022-05-31
    en mayo de 2022                                         2022-05-01 2022-05-31
    2022年5月                                                2022-05-01 2022-05-31
    去年3月                                                   2022-03-01 2022-03-31
    2022-05                                                 2022-05-01 2022-05-31
    in Q3 2022                                              2022-07-01 2022-09-30
    in Q1                                                   2023-01-01 2023-03-31
    the summer of 2022                                      2022-01-01 2022-12-31
    What happened in 2022?                                  2022-01-01 2022-12-31
    in the year 2022                                        2022-01-01 2022-12-31
    im Jahr 2022                                            2022-01-01 2022-12-31
    2022年                                                   2022-01-01 2022-12-31
    What did Caroline do on May 7, 2023?                    2023-05-07 2023-05-07
    on December 7                                           2022-12-07 2022-12-07
    on Feb 29                                               2020-02-29 2020-02-29
    am 3.5.2022                                             2022-05-03 2022-05-03
    am 3.5.                                                 2023-05-03 2023-05-03
    2022年5月3日                                              2022-05-03 2022-05-03
    deployed 2023-05-07?                                    2023-05-07 2023-05-07
    log at 2023-05-07T10:00:12Z                             2023-05-07 2023-05-07
    what was said between 3 and 5 May?                      2023-05-03 2023-05-05
    May 3-5                                                 2023-05-03 2023-05-05
    between May 3 and May 5                                 2023-05-03 2023-05-05
    zwischen dem 3. und 5. Mai                              2023-05-03 2023-05-05
    entre le 3 et le 5 mai                                  2023-05-03 2023-05-05
    entre el 3 y el 5 de mayo                               2023-05-03 2023-05-05
    5月3日到5日                                               2023-05-03 2023-05-05
    5月3日から5日                                              2023-05-03 2023-05-05
    from 3 May to 7 June 2022                               2022-05-03 2022-06-07
    from 2021 to 2022                                       2021-01-01 2022-12-31
    between March and early May                             2023-03-01 2023-05-31
    What was said beyond the April 15 deadline?             2023-04-15 2023-04-15
    What was taught in Ann's July 8 workshop?               2022-07-08 2022-07-08
    the upcoming week                                       2023-05-29 2023-06-04
    between November and February                           2022-11-01 2023-02-28
    from November 2021 to February                          2021-11-01 2022-02-28
    from Monday to Wednesday                                2023-05-15 2023-05-17
    between last month and yesterday                        2023-04-01 2023-05-23
    What changed since Tuesday?                             2023-05-23 2023-05-24
    seit Dienstag                                           2023-05-23 2023-05-24
    depuis mardi                                            2023-05-23 2023-05-24
    desde el martes                                         2023-05-23 2023-05-24
    周二以来                                                  2023-05-23 2023-05-24
    火曜日から                                                 2023-05-23 2023-05-24
    since 2021                                              2021-01-01 2023-05-24
    after 3 May                                             2023-05-04 2023-05-24
    nach Freitag                                            2023-05-20 2023-05-24
    on Monday next week                                     2023-05-29 2023-05-29
    Friday of last week                                     2023-05-19 2023-05-19
    Monday of this week                                     2023-05-22 2023-05-22
    next week on Friday                                     2023-06-02 2023-06-02
    am Montag nächster Woche                                2023-05-29 2023-05-29
    nächste Woche Freitag                                   2023-06-02 2023-06-02
    am Freitag in der letzten Woche                         2023-05-19 2023-05-19
    lundi de la semaine prochaine                           2023-05-29 2023-05-29
    lundi prochain                                          2023-05-29 2023-05-29
    el viernes de la semana pasada                          2023-05-19 2023-05-19
    el lunes que viene                                      2023-05-29 2023-05-29
    上周五                                                   2023-05-19 2023-05-19
    下周五                                                   2023-06-02 2023-06-02
    先週の月曜日                                               2023-05-15 2023-05-15
    on Monday, 8 May                                        2023-05-08 2023-05-08
    am Montag, den 2. Mai 2022                              2022-05-02 2022-05-02
    on Friday the 19th                                      2023-05-19 2023-05-19
    last Monday in March                                    2023-03-27 2023-03-27
    last Monday in December                                 2022-12-26 2022-12-26
    KW 50                                                   2022-12-12 2022-12-18
    the first Monday of March 2022                          2022-03-07 2022-03-07
    am letzten Montag im März                               2023-03-27 2023-03-27
    le dernier lundi de mars                                2023-03-27 2023-03-27
    el último lunes de marzo                                2023-03-27 2023-03-27
    3月最后一个周一                                             2023-03-27 2023-03-27
    3月の第1月曜日                                              2023-03-06 2023-03-06
    the last week of March                                  2023-03-25 2023-03-31
    the second weekend in March                             2023-03-11 2023-03-12
    on the last day of 2022                                 2022-12-31 2022-12-31
    in the last month of 2022                               2022-12-01 2022-12-31
    the first day of last month                             2023-04-01 2023-04-01
    am ersten Tag des letzten Monats                        2023-04-01 2023-04-01
    the second week of the month                            2023-05-08 2023-05-14
    today or yesterday                                      2023-05-23 2023-05-24
    yesterday and today                                     2023-05-23 2023-05-24
    heute oder gestern                                      2023-05-23 2023-05-24
    aujourd'hui ou hier                                     2023-05-23 2023-05-24
    ayer o hoy                                              2023-05-23 2023-05-24
    昨天或今天                                                2023-05-23 2023-05-24
    昨日か今日                                                2023-05-23 2023-05-24
    on Monday or Tuesday                                    2023-05-22 2023-05-23
    in March or April                                       2023-03-01 2023-04-30
    in 2021 or 2022                                         2021-01-01 2022-12-31
    去年三月                                                 2022-03-01 2022-03-31
    去年十二月                                                2022-12-01 2022-12-31
    2022年三月                                               2022-03-01 2022-03-31
    三月五日                                                 2023-03-05 2023-03-05
    三月二十五日                                               2023-03-25 2023-03-25
    去年3月5日                                               2022-03-05 2022-03-05
    last year in March                                      2022-03-01 2022-03-31
    in March of last year                                   2022-03-01 2022-03-31
    on March 5 last year                                    2022-03-05 2022-03-05
    letztes Jahr im März                                    2022-03-01 2022-03-31
    en mars de l'année dernière                             2022-03-01 2022-03-31
    en marzo del año pasado                                 2022-03-01 2022-03-31
    in March next year                                      2024-03-01 2024-03-31
    Q3 last year                                            2022-07-01 2022-09-30
    in the second half of 2022                              2022-07-01 2022-12-31
    H2 2022                                                 2022-07-01 2022-12-31
    im zweiten Halbjahr 2022                                2022-07-01 2022-12-31
    le deuxième semestre 2022                               2022-07-01 2022-12-31
    la segunda mitad de 2022                                2022-07-01 2022-12-31
    2022年下半年                                              2022-07-01 2022-12-31
    去年下半年                                                2022-07-01 2022-12-31
    2022年後半                                               2022-07-01 2022-12-31
    the second half of last year                            2022-07-01 2022-12-31
    the first half of March                                 2023-03-01 2023-03-15
    the second half of March                                2023-03-16 2023-03-31
    the third quarter of 2022                               2022-07-01 2022-09-30
    drittes Quartal 2022                                    2022-07-01 2022-09-30
    2022 Q3                                                 2022-07-01 2022-09-30
    2022年第三季度                                             2022-07-01 2022-09-30
    calendar week 12 of 2022                                2022-03-21 2022-03-27
    in week 12 of 2022                                      2022-03-21 2022-03-27
    KW 12                                                   2023-03-20 2023-03-26
    KW12/2022                                               2022-03-21 2022-03-27
    in der 12. Kalenderwoche 2022                           2022-03-21 2022-03-27
    semaine 12 de 2022                                      2022-03-21 2022-03-27
    2022-W12                                                2022-03-21 2022-03-27
    2022年第12周                                              2022-03-21 2022-03-27
    a fortnight ago                                         2023-05-07 2023-05-13
    two fortnights ago                                      2023-04-23 2023-04-29
    in the last fortnight                                   2023-05-10 2023-05-24
    on the 5th                                              2023-05-05 2023-05-05
    on the 31st                                             2023-03-31 2023-03-31
    What is due on the 5th?                                 2023-06-05 2023-06-05
    since the 20th                                          2023-05-20 2023-05-24
    from the 3rd to the 5th                                 2023-05-03 2023-05-05
    am 5.                                                   2023-05-05 2023-05-05
    desde el 5                                              2023-05-05 2023-05-24
    el día 5                                                2023-05-05 2023-05-05
    5号发生了什么                                              2023-05-05 2023-05-05
    5日に何を                                                 2023-05-05 2023-05-05
    over Christmas                                          2022-12-24 2022-12-26
    last Christmas                                          2022-12-24 2022-12-26
    Christmas 2021                                          2021-12-24 2021-12-26
    What is due at Christmas?                               2023-12-24 2023-12-26
    Was war an Weihnachten?                                 2022-12-24 2022-12-26
    à Noël                                                  2022-12-24 2022-12-26
    圣诞节                                                   2022-12-24 2022-12-26
    on New Year's Eve                                       2022-12-31 2022-12-31
    since Halloween                                         2022-10-31 2023-05-24
    вчера                                                   2023-05-23 2023-05-23
    позавчера                                               2023-05-22 2023-05-22
    Что мы решили на прошлой неделе?                        2023-05-15 2023-05-21
    в прошлом месяце                                        2023-04-01 2023-04-30
    в прошлом году                                          2022-01-01 2022-12-31
    на этой неделе                                          2023-05-22 2023-05-28
    на следующей неделе                                     2023-05-29 2023-06-04
    три дня назад                                           2023-05-21 2023-05-21
    неделю назад                                            2023-05-14 2023-05-20
"""


@pytest.mark.parametrize("line", [line.strip() for line in KNOWN.strip().splitlines()])
def test_a_time_in_a_question_is_resolved_to_days(line: str) -> None:
    *words, first, last = line.split()
    query = line[: line.rindex(first if first != last else f"{first} {last}")].strip()
    assert words
    assert days(query) == (first, last)


@pytest.mark.parametrize(
    ("query", "last"),
    [
        ("before May 2022, who owned billing?", "2022-04-30"),
        ("vor Mai 2022", "2022-04-30"),
        ("vor dem 3. Mai", "2023-05-02"),
        ("avant mai 2022", "2022-04-30"),
        ("antes de mayo de 2022", "2022-04-30"),
        ("5月之前", "2023-04-30"),
        ("5月より前", "2023-04-30"),
        ("until May 2022", "2022-05-31"),
        ("bis gestern", "2023-05-23"),
        ("到昨天为止", "2023-05-23"),
        ("昨日まで", "2023-05-23"),
        ("before Christmas", "2022-12-23"),
        ("Was haben wir vor Weihnachten entschieden?", "2022-12-23"),
        ("avant Noël", "2022-12-23"),
        ("antes de Navidad", "2022-12-23"),
        ("圣诞节之前", "2022-12-23"),
        ("until the 5th", "2023-05-05"),
        ("bis zum 5.", "2023-05-05"),
        ("jusqu'au 5", "2023-05-05"),
        ("antes del 5", "2023-05-04"),
    ],
)
def test_a_limit_gives_a_window_with_one_end(query: str, last: str) -> None:
    assert days(query) == (BEGINNING, last)
    assert asked(query).firm


@pytest.mark.parametrize(
    ("query", "anchor", "rest"),
    [
        ("What broke three days before the release?", ("the release", 3, "day", "before", False), "the release?"),
        ("two weeks after the move", ("the move", 2, "week", "after", False), "the move"),
        ("the day before the launch", ("the launch", 1, "day", "before", False), "the launch"),
        ("the week before the launch", ("the launch", 1, "week", "before", True), "the launch"),
        ("in the three days before the release of B 2", ("the release of B 2", 3, "day", "before", True), "of B 2"),
        ("Who fixed it the day after the outage and why?", ("the outage", 1, "day", "after", False), "and why?"),
        ("am Tag vor dem Release", ("dem Release", 1, "day", "before", False), "dem Release"),
        ("zwei Tage nach der Migration", ("der Migration", 2, "day", "after", False), "der Migration"),
        ("trois jours avant la livraison", ("la livraison", 3, "day", "before", False), "la livraison"),
        ("a fortnight before the release", ("the release", 2, "week", "before", False), "the release"),
        ("la veille de la livraison", ("la livraison", 1, "day", "before", False), "la livraison"),
        ("tres días antes del lanzamiento", ("lanzamiento", 3, "day", "before", False), "lanzamiento"),
        ("我们在发布前三天改了什么", ("发布", 3, "day", "before", True), "改了什么"),
        ("发布的三天后做了什么", ("发布", 3, "day", "after", False), "做了什么"),
        ("リリースの3日前に何を変えた", ("リリース", 3, "day", "before", False), "何を変えた"),
    ],
)
def test_a_time_relative_to_an_event_gives_the_event_and_the_distance(
    query: str, anchor: tuple[object, ...], rest: str
) -> None:
    found = asked(query)
    assert found.window is None
    assert found.anchor == Anchor(*anchor)  # type: ignore[arg-type]
    assert found.rest.endswith(rest)
    assert found.anchor is not None
    assert found.anchor.words in found.rest
    assert found.words in query


@pytest.mark.parametrize(
    ("query", "first", "last"),
    [
        ("two days before May 7", "2023-05-05", "2023-05-05"),
        ("the week after May 7", "2023-05-08", "2023-05-14"),
        ("three days before last Monday", "2023-05-19", "2023-05-19"),
        ("two days before Christmas", "2022-12-22", "2022-12-22"),
        ("the day after the first Monday in March", "2023-03-07", "2023-03-07"),
    ],
)
def test_a_time_relative_to_a_date_gives_a_window(query: str, first: str, last: str) -> None:
    assert days(query) == (first, last)


@pytest.mark.parametrize(
    ("anchor", "first", "last"),
    [
        (Anchor("x", 3, "day", "before", False), "2023-05-07", "2023-05-07"),
        (Anchor("x", 3, "day", "before", True), "2023-05-07", "2023-05-09"),
        (Anchor("x", 3, "day", "after", True), "2023-05-12", "2023-05-14"),
        (Anchor("x", 1, "week", "before", False), "2023-04-30", "2023-05-06"),
        (Anchor("x", 1, "week", "after", True), "2023-05-12", "2023-05-18"),
        (Anchor("x", 1, "month", "before", True), "2023-04-10", "2023-05-09"),
        (Anchor("x", 1, "year", "after", False), "2023-11-11", "2024-11-09"),
    ],
)
def test_a_found_anchor_gives_a_window(anchor: Anchor, first: str, last: str) -> None:
    began, ended = datetime(2023, 5, 9, 22, 0, tzinfo=UTC), datetime(2023, 5, 11, 3, 0, tzinfo=UTC)
    window = anchored_window(anchor, began, ended, "Europe/Berlin")
    assert window is not None
    assert (window.start.date().isoformat(), window.end.date().isoformat()) == (first, last)


def test_an_anchor_beyond_the_calendar_gives_no_window() -> None:
    for count, unit in ((9_999, "year"), (500, "year"), (9_999, "month")):
        for side in ("before", "after"):
            anchor = Anchor("x", count, unit, side, within=False)  # type: ignore[arg-type]
            assert anchored_window(anchor, NOW, NOW, "UTC") is None


@pytest.mark.parametrize(
    "query",
    [
        "May we deploy?", "may 5 of them fail", "May 5 of them fail", "march on", "The may flag", "Who is April?",
        "Did June say so?", "March numbers", "What was said by April?", "a gift for June",
        "the birthday of April", "runs at 2023.",
        "two days before that", "9999 years before May 7, 2023", "How do I retry in 5 minutes?",
        "in 2023 files", "2023 errors", "What about port 2023?", "in 2048 bits", "v0.8.6 on main", "version 3.5.",
        "since 3.5.", "setTimeout in 3 days", "Does the token expire in 3 days?", "error 2023-05-07-backup.sql",
        "`yesterday` variable", "git log --since=yesterday", "yesterday.py", "last_week table", "today() fails",
        "the Sunday Times", "Friday deploys", "on Fridays", "sun and mon", "What about the second?", "since when?",
        "before the release", "days before the release", "on February 30", "in 2023 Jahren", "Was machen wir hier?",
        "ticket 2024-01", "issue #2024-01", "PR 2024-01", "version 2024-01-05", "release no. 2024-01",
        "Rechnung 2024-01", "facture n° 2024-01", "incidencia 2024-01", "工单2024-01", "チケット 2024-01",
        "in 2001 A Space Odyssey", "on the 5th floor", "am 5. Tag", "5号线", "5日間", "五月天的歌", "le 5 ou 6",
        "the Christmas party", "before the Christmas party", "at Christmas parties", "at the last minute",
        "last hours", "12 kW", "the first half of the game", "on the second try", "H2", "week 12", "the last day",
        "我们前三天做了什么", "", "?", "a" * 5_000 + " yesterday",
    ],
)  # fmt: skip
def test_a_query_without_a_time_gives_no_window(query: str) -> None:
    assert asked_time(query, NOW, "UTC") is None


@pytest.mark.parametrize(
    ("query", "words", "rest"),
    [
        ("What did we decide last week about billing?", "last week", "What did we decide about billing?"),
        ("What did we agree on in May 2022?", "in May 2022", "What did we agree on ?"),
        ("What was said between 3 and 5 May?", "between 3 and 5 May", "What was said ?"),
        ("What changed since Tuesday in auth.ts?", "since Tuesday", "What changed in auth.ts?"),
        ("Was geschah zwischen dem 3. und 5. Mai?", "zwischen dem 3. und 5. Mai", "Was geschah ?"),
        ("In den letzten drei Tagen", "In den letzten drei Tagen", ""),
        ("昨日のエラー", "昨日の", "エラー"),
        ("In March 2022, May asked about it.", "In March 2022", ", May asked about it."),
        ("log at 2023-05-07T10:00:12Z", "at 2023-05-07T10:00:12Z", "log"),
    ],
)
def test_the_words_of_a_time_are_removed_from_the_query(query: str, words: str, rest: str) -> None:
    found = asked(query)
    assert (found.words, found.rest) == (words, rest)


@pytest.mark.parametrize(
    ("query", "firm"),
    [
        ("on May 7, 2023", True), ("in 2022", True), ("since yesterday", True), ("between 3 and 5 May", True),
        ("last week", False), ("two weeks ago", False), ("yesterday", False), ("on Tuesday", False),
    ],
)  # fmt: skip
def test_limits_and_dates_are_firm_and_times_counted_back_are_not(query: str, firm: bool) -> None:
    assert asked(query).firm is firm


def test_the_grain_is_the_named_unit_however_long_the_window_is() -> None:
    grains = {"since Tuesday": 1, "before 2022": 365, "last week": 7, "between 3 and 5 May": 3, "in March": 31}
    for query, length in grains.items():
        window = asked(query).window
        assert window is not None
        assert window.grain == timedelta(days=length)


@pytest.mark.parametrize(
    ("query", "hours", "until"),
    [
        ("What happened in the last 24 hours?", 24, 0), ("in den letzten 24 Stunden", 24, 0),
        ("les 24 dernières heures", 24, 0), ("las últimas 24 horas", 24, 0), ("过去24小时", 24, 0),
        ("in the last hour", 1, 0), ("the past few hours", 3, 0), ("последние два часа", 2, 0),
        ("an hour ago", 2, 0), ("three hours ago", 4, 2), ("vor drei Stunden", 4, 2), ("il y a trois heures", 4, 2),
        ("hace tres horas", 4, 2), ("三小时前", 4, 2), ("3時間前", 4, 2), ("три часа назад", 4, 2),
        ("60 minutes ago", 2, 0), ("a couple of hours ago", 3, 1),
    ],
)  # fmt: skip
def test_hours_are_counted_back_from_now(query: str, hours: int, until: int) -> None:
    window = asked(query).window
    assert window is not None
    assert (NOW - window.start, NOW - window.end) == (timedelta(hours=hours), timedelta(hours=until))


def test_an_hour_has_sixty_minutes_when_the_clocks_change() -> None:
    now = datetime(2023, 10, 29, 9, 0, tzinfo=ZoneInfo("Europe/Berlin"))
    window = asked("in the last 12 hours", now, "Europe/Berlin").window
    assert window is not None
    assert window.end.timestamp() - window.start.timestamp() == 12 * 3600


# Zones and calendars ------------------------------------------------------------------------------------------------


@pytest.fixture(params=["UTC", "Pacific/Midway", "Pacific/Kiritimati"])
def machine(request: pytest.FixtureRequest) -> Generator[str]:
    """The time zone of the answering machine."""
    before = os.environ.get("TZ")
    os.environ["TZ"] = request.param
    time.tzset()
    yield request.param
    del os.environ["TZ"]
    if before is not None:
        os.environ["TZ"] = before
    time.tzset()


@pytest.mark.parametrize(
    ("zone", "first"), [("UTC", "2023-05-23"), ("Pacific/Midway", "2023-05-23"), ("Pacific/Kiritimati", "2023-05-24")]
)
def test_yesterday_is_in_the_time_zone_of_the_asker_not_of_the_machine(machine: str, zone: str, first: str) -> None:
    late = datetime(2023, 5, 24, 23, 30, tzinfo=UTC)
    window = asked("yesterday", late, zone).window
    assert window is not None
    assert machine == os.environ["TZ"]
    local = ZoneInfo(zone)
    assert window.start == datetime.fromisoformat(first).replace(tzinfo=local)
    assert window.end == datetime.fromisoformat(f"{first}T23:59:59").replace(tzinfo=local)


@pytest.mark.parametrize(("day", "hours"), [("2023-03-27", 23), ("2023-10-30", 25), ("2023-06-02", 24)])
def test_a_day_on_which_the_clocks_change_has_23_or_25_hours(day: str, hours: int) -> None:
    now = datetime.fromisoformat(f"{day}T09:00:00").replace(tzinfo=ZoneInfo("Europe/Berlin"))
    window = asked("yesterday", now, "Europe/Berlin").window
    assert window is not None
    assert window.end.timestamp() - window.start.timestamp() == hours * 3600 - 1


@pytest.mark.parametrize(
    ("query", "today", "first", "last"),
    [
        ("a month ago", "2023-03-31", "2023-02-13", "2023-03-15"),
        ("last month", "2024-03-31", "2024-02-01", "2024-02-29"),
        ("over the past year", "2024-02-29", "2023-02-28", "2024-02-29"),
        ("yesterday", "2024-03-01", "2024-02-29", "2024-02-29"),
        ("yesterday", "2023-01-01", "2022-12-31", "2022-12-31"),
        ("on Feb 29", "2024-02-29", "2024-02-29", "2024-02-29"),
        ("on Feb 29", "2024-02-28", "2020-02-29", "2020-02-29"),
        ("in January", "2023-01-01", "2023-01-01", "2023-01-31"),
        ("last January", "2023-01-31", "2022-01-01", "2022-01-31"),
        ("last week", "2023-01-02", "2022-12-26", "2023-01-01"),
        ("last weekend", "2023-05-21", "2023-05-20", "2023-05-21"),
        ("last weekend", "2023-05-20", "2023-05-13", "2023-05-14"),
    ],
)
def test_ends_of_months_and_leap_days_are_resolved(query: str, today: str, first: str, last: str) -> None:
    assert days(query, datetime.fromisoformat(f"{today}T12:00:00+00:00")) == (first, last)


MOMENTS = st.datetimes(min_value=datetime(1980, 1, 1), max_value=datetime(2150, 1, 1)).map(
    lambda moment: moment.replace(tzinfo=UTC)
)


@given(MOMENTS, st.sampled_from(ZONES), st.sampled_from(WEEKDAYS))
def test_a_question_about_a_weekday_is_about_one_of_the_last_seven_days(now: datetime, zone: str, name: str) -> None:
    window = asked(f"What did we do on {name}?", now, zone).window
    assert window is not None
    today = now.astimezone(ZoneInfo(zone)).date()
    assert window.start.date() == window.end.date()
    assert 1 <= (today - window.start.date()).days <= 7
    assert f"{window.start:%A}" == name


@given(MOMENTS, st.sampled_from(ZONES), st.integers(1, 12))
def test_a_question_about_a_month_is_about_the_latest_that_has_begun(now: datetime, zone: str, month: int) -> None:
    window = asked(f"What did we do in {date(2000, month, 1):%B}?", now, zone).window
    assert window is not None
    assert window.start.month == window.end.month == month
    assert window.start.day == 1
    assert (window.end + timedelta(seconds=1)).month != month
    assert window.start <= now < window.start.replace(year=window.start.year + 1)


TIMES = st.sampled_from([line.strip().rsplit(maxsplit=2)[0] for line in KNOWN.strip().splitlines()])
PIECES = st.sampled_from(
    (
        "between and or from to since before after May 3 3. 2023 9999 years Tuesday in on the 5th days week hours ago"
        " last next first half of KW Christmas ticket 前 天 三 の 月 5 号 ?"
    ).split()
)


@given(
    st.one_of(st.text(max_size=200), TIMES, st.lists(PIECES, max_size=12).map(" ".join)),
    MOMENTS,
    st.sampled_from(ZONES),
)
def test_any_question_gives_a_valid_window_an_anchor_or_neither(query: str, now: datetime, zone: str) -> None:
    found = asked_time(query, now, zone)
    if found is None:
        return
    assert (found.window is None) != (found.anchor is None)
    assert len(found.rest) <= len(query)
    if found.window:
        assert found.window.start < found.window.end
        assert found.window.grain >= timedelta(days=1)
