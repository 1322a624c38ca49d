"""The names of the months in English, German, French and Spanish, in full and as they are shortened."""

NAMES = (
    "January February March April May June July August September October November December",
    "Jan Feb Mar Apr May Jun Jul Aug Sep Oct Nov Dec",
    "Januar Februar März April Mai Juni Juli August September Oktober November Dezember",
    "Jän Febr Mär Apr Mai Jun Jul Aug Sept Okt Nov Dez",
    "janvier février mars avril mai juin juillet août septembre octobre novembre décembre",
    "janv févr mars avr mai juin juil août sept oct nov déc",
    "enero febrero marzo abril mayo junio julio agosto septiembre octubre noviembre diciembre",
)
"""The names as their languages write them, a line for each, from the first month to the last."""

MONTHS = {name.casefold(): month for names in NAMES for month, name in enumerate(names.split(), start=1)}
"""The number of each month, 1 to 12, by its name in small letters."""
