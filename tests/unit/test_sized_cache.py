"""A cache of results by text: it is as large as the texts are long, and no larger than it may be."""

from esker.server.core.sized_cache import cached_up_to


def test_what_was_not_used_for_longest_makes_room_and_a_long_text_takes_none() -> None:
    made: list[str] = []

    @cached_up_to(10)
    def shouted(text: str) -> str:
        made.append(text)
        return text.upper()

    assert [shouted(text) for text in ("aaaa", "bbbb", "aaaa", "cccc")] == ["AAAA", "BBBB", "AAAA", "CCCC"]
    assert made == ["aaaa", "bbbb", "cccc"]
    assert [shouted("aaaa"), shouted("x" * 11), shouted("cccc")] == ["AAAA", "X" * 11, "CCCC"]
    assert made[3:] == ["x" * 11], "a long text pushes nothing out"
    shouted("bbbb")
    assert made[4:] == ["bbbb"], "it had made room"
