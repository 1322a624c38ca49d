"""Times as values of options, parsed alike by all commands: `yesterday`, `7d`, `2026-03-01`."""

import re
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta

import typer

from esker.server.agents.local_zone import local_zone
from esker.server.core.clock import in_zone, system_clock, zone

ACCEPTED = "today, yesterday, 12h, 7d or 2w (ago), a date (2026-03-01) or a time (2026-03-01T14:30)"
"""The accepted forms, for help texts and errors."""

_AGO = re.compile(r"(\d{1,6}) ?([hdw])", re.IGNORECASE)
_UNITS = {"h": timedelta(hours=1), "d": timedelta(days=1), "w": timedelta(weeks=1)}
_DATE = re.compile(r"\d{4}-\d{2}-\d{2}")
_DAYS = {"today": 0, "yesterday": 1}
_LAST_MOMENT = timedelta(days=1) - timedelta(microseconds=1)


@dataclass(frozen=True, slots=True)
class TypedTime:
    """The first and last moment of a typed time: a day is whole, and a time of day is one moment."""

    start: datetime
    end: datetime


def typed_time(option: str, text: str | None, timezone: str | None = None) -> TypedTime | None:
    """Return the time that an option names, or None; days are those of `timezone`, by default this machine's.

    Raises BadParameter, which lists the accepted forms, and InvalidInput for an unknown time zone or a time out of
    range.
    """
    if text is None:
        return None
    timezone = timezone or local_zone() or "UTC"
    try:
        return _read(text.strip(), system_clock().astimezone(zone(timezone)), timezone)
    except (ValueError, OverflowError):
        raise typer.BadParameter(f"{text!r} is not a time. Accepted: {ACCEPTED}.", param_hint=option) from None


def _read(text: str, now: datetime, timezone: str) -> TypedTime:
    """Return the time that a text names, relative to `now`. Raises ValueError, OverflowError, InvalidInput."""
    if text.lower() in _DAYS:
        return _day(now.date() - timedelta(days=_DAYS[text.lower()]), timezone)
    if ago := _AGO.fullmatch(text):
        length, unit = int(ago[1]) * _UNITS[ago[2].lower()], ago[2].lower()
        return _moment(now.astimezone(UTC) - length, timezone) if unit == "h" else _day(now.date() - length, timezone)
    if _DATE.fullmatch(text):
        return _day(date.fromisoformat(text), timezone)
    if not _DATE.match(text):
        raise ValueError  # other ISO forms, such as weeks, are hard to read
    return _moment(datetime.fromisoformat(text), timezone)


def _moment(moment: datetime, timezone: str) -> TypedTime:
    local = in_zone(moment, timezone)
    return TypedTime(local, local)


def _day(day: date, timezone: str) -> TypedTime:
    """Return a whole day in a time zone; it has 23 or 25 hours when the clocks change."""
    start = in_zone(datetime.combine(day, time.min), timezone)
    return TypedTime(start, (start + _LAST_MOMENT).replace(fold=1))


def as_sent(moment: datetime) -> str:
    """Return a moment in the form that the server reads."""
    return moment.astimezone(UTC).isoformat()
