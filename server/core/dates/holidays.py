"""Days of the year that have names of their own, and the same date in every year."""

from datetime import date, timedelta

from esker.server.core.dates.calendar import Days

_DAYS = {
    word: days
    for words, days in (
        ("christmas eve|heiligabend|nochebuena|平安夜", (12, 24, 1)),
        ("christmas day", (12, 25, 1)),
        ("christmas|xmas|weihnachten|noël|navidad|圣诞节|圣诞|クリスマス", (12, 24, 3)),
        ("new year's eve|silvester|la saint-sylvestre|nochevieja|大晦日", (12, 31, 1)),
        ("new year's day|new year's|new year|neujahr|nouvel an|año nuevo|元旦", (1, 1, 1)),
        ("halloween", (10, 31, 1)),
        ("valentine's day|valentinstag|la saint-valentin|san valentín", (2, 14, 1)),
    )
    for word in words.split("|")
}
# In English what stands before another noun says what that is: "the Christmas party".
ENGLISH = ("christmas", "xmas", "new year", "halloween", "valentine's")
HOLIDAY = rf"(?P<holiday>{'|'.join(sorted(_DAYS, key=len, reverse=True))})"


def holiday(name: str, year: int) -> Days:
    """Return the first and the last day of what is called so in a year."""
    month, day, length = _DAYS[name.casefold()]
    first = date(year, month, day)
    return first, first + timedelta(days=length - 1)
