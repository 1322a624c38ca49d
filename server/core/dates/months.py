"""The names of the months in English, German, French and Spanish, in full and as they are shortened."""

_FULL = (
    "January February March April May June July August September October November December",
    "Januar Februar März April Mai Juni Juli August September Oktober November Dezember",
    "janvier février mars avril mai juin juillet août septembre octobre novembre décembre",
    "enero febrero marzo abril mayo junio julio agosto septiembre octubre noviembre diciembre",
)
_SHORT = (
    "Jan Feb Mar Apr May Jun Jul Aug Sep Oct Nov Dec",
    "Jän Febr Mär Apr Mai Jun Jul Aug Sept Okt Nov Dez",
    "janv févr mars avr mai juin juil août sept oct nov déc",
)
NAMES = (*_FULL, *_SHORT)
"""The names as their languages write them, a line for each, from the first month to the last."""

ABBREVIATIONS = frozenset(" ".join(_SHORT).split()) - frozenset(" ".join(_FULL).split())
"""The shortened names, which may end with a dot."""

MONTHS = {name.casefold(): month for names in NAMES for month, name in enumerate(names.split(), start=1)}
"""The number of each month, 1 to 12, by its name in small letters."""
