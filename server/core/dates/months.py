"""The names of the months and their abbreviations."""

from esker.server.core.words.lists import keyed, words

NAMES = words("dates.months") + words("dates.short_months")
"""The names and abbreviations in the spelling of their languages."""

ABBREVIATIONS = frozenset(words("dates.short_months")) - frozenset(words("dates.months"))
"""The abbreviations, which may end with a dot."""

MONTHS = {
    name.casefold(): int(month)
    for path in ("dates.months", "dates.short_months")
    for name, month in keyed(path).items()
}
"""The number of each month, 1 to 12, by its name in lower case."""
