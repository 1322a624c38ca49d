"""Keys: what scanners can find, and what is refused without a look-up."""

import re

from esker.server.core.api_key import is_mistyped, new_key
from esker.server.core.redaction import redact


def test_keys_differ_and_have_one_form() -> None:
    made = {new_key() for _ in range(50)}
    assert len(made) == 50
    assert all(re.fullmatch(r"esk_[0-9A-Za-z]{49}", key) for key in made)


def test_a_changed_or_cut_key_is_known_as_mistyped_unless_it_has_another_length() -> None:
    key = new_key()
    assert not is_mistyped(key)
    for place in range(len("esk_"), len(key)):
        wrong = key[:place] + ("a" if key[place] != "a" else "b") + key[place + 1 :]
        assert is_mistyped(wrong), place


def test_a_key_of_the_older_form_is_looked_up() -> None:
    assert not is_mistyped("esk_" + "Ab3-_" * 8 + "xyz")


def test_a_key_is_masked_in_texts() -> None:
    key = new_key()
    assert key not in redact(f"It is {key}, keep it.")
