"""The names of the months, in full and as they are shortened."""

from esker.server.core.words.lists import keyed, words

NAMES = words("dates.months") + words("dates.short_months")
"""The names as their languages write them."""

ABBREVIATIONS = frozenset(words("dates.short_months")) - frozenset(words("dates.months"))
"""The shortened names, which may end with a dot."""

MONTHS = {
    name.casefold(): int(month)
    for path in ("dates.months", "dates.short_months")
    for name, month in keyed(path).items()
}
"""The number of each month, 1 to 12, by its name in small letters."""
