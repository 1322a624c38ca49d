"""The form of a key: a prefix by which scanners find a leaked one, 256 random bits, and a checksum."""

import re
import secrets
import zlib

PREFIX = "esk_"

_DIGITS = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
_RANDOM_LENGTH, _CHECKSUM_LENGTH = 43, 6
_FORM = re.compile(rf"{PREFIX}([0-9A-Za-z]{{{_RANDOM_LENGTH}}})([0-9A-Za-z]{{{_CHECKSUM_LENGTH}}})")


def new_key() -> str:
    """Return a new key."""
    random = _in_digits(secrets.randbits(256), _RANDOM_LENGTH)
    return f"{PREFIX}{random}{_checksum(random)}"


def is_mistyped(key: str) -> bool:
    """Return whether a text has the form of a key but a wrong checksum. Older keys have another form."""
    match = _FORM.fullmatch(key)
    return match is not None and _checksum(match[1]) != match[2]


def _checksum(random: str) -> str:
    return _in_digits(zlib.crc32(random.encode()), _CHECKSUM_LENGTH)


def _in_digits(number: int, length: int) -> str:
    """Return a number in base 62, with leading zeros."""
    digits: list[str] = []
    for _ in range(length):
        number, digit = divmod(number, len(_DIGITS))
        digits.append(_DIGITS[digit])
    return "".join(reversed(digits))
