"""The extractive reflector: fewer rows, fewer words, and nothing else."""

from datetime import timedelta

from hypothesis import given, settings
from hypothesis import strategies as st

from server.core.records import Memory
from server.core.tokens import estimate_tokens
from server.providers.extractive.reflector import reflect
from tests.support.records import NOON, observation

ROOMY = 100_000


def log(*rows: tuple[str, str, str, str]) -> list[Memory]:
    """Return observations from (content, priority, category, trust), a message apart."""
    return [
        observation(content, seq, priority=priority, category=category, trust=trust)
        for seq, (content, priority, category, trust) in enumerate(rows, start=1)
    ]


RULE = ("User preference: Never use floats for money.", "high", "preference", "user")
ASKED = ("User asked: Fix the login.", "low", "fact", "user")
FAILED = ("`make test` failed: KeyError: 'id' — cause: the id was renamed.", "medium", "issue", "tool")
CHANGED = ("Changed src/login.py — asked: Fix the login.", "low", "state_change", "assistant")
FIXED = ("Outcome: Fixed the login.", "medium", "outcome", "assistant")


def test_what_a_person_ruled_stays_verbatim_in_a_row_of_its_own() -> None:
    rows = log(ASKED, RULE, FAILED, CHANGED, FIXED)
    drafts = reflect(rows, ROOMY).drafts
    [rule] = [draft for draft in drafts if "floats" in draft.content]
    assert rule.content == RULE[0]
    assert rule.source_ids == (rows[1].id,)
    assert (rule.priority, rule.category, rule.said_at) == ("high", "preference", rows[1].said_at)


def test_what_happened_becomes_one_row_with_all_its_sources() -> None:
    rows = log(ASKED, FAILED, CHANGED, FIXED)
    [draft] = reflect(rows, ROOMY).drafts
    assert draft.source_ids == tuple(row.id for row in rows)
    assert draft.content.index("Fix the login") < draft.content.index("KeyError: 'id'") < draft.content.index("Fixed")
    assert draft.content.count("Fix the login") == 1
    assert draft.category == "outcome"


def test_the_next_thing_that_a_person_says_begins_another_row() -> None:
    rows = log(ASKED, FAILED, FIXED, ("User said: The footer is cut off.", "medium", "fact", "user"), CHANGED, FIXED)
    contents = [draft.content for draft in reflect(rows, ROOMY).drafts]
    assert not [content for content in contents if "KeyError" in content and "footer" in content]


def test_repeats_become_one_row_with_the_latest_wording_and_all_sources() -> None:
    rows = log(RULE, FAILED, FIXED, ("User preference: never use floats for money!", "high", "preference", "user"))
    [rule] = [draft for draft in reflect(rows, ROOMY).drafts if "floats" in draft.content]
    assert rule.content == "User preference: never use floats for money!"
    assert rule.source_ids == (rows[0].id, rows[3].id)


def test_what_was_asked_and_led_to_nothing_is_left_out_and_named() -> None:
    rows = log(RULE, ASKED)
    reflected = reflect(rows, ROOMY)
    assert [draft.content for draft in reflected.drafts] == [RULE[0]]
    assert reflected.dropped_ids == (rows[1].id,)


def test_what_a_person_said_is_kept_whatever_came_of_it() -> None:
    wrote = ("User wrote: also german comments in code are fine but identifiers stay english", "low", "fact", "user")
    asked = (
        "User asked: yes do both but the aggregate should be 15 min not hourly, the harbour pilots need that",
        "low",
        "fact",
        "user",
    )
    changed = ("Changed src/a.ts", "low", "state_change", "assistant")
    said = [draft.content for draft in reflect(log(RULE, wrote, changed, asked, changed), ROOMY).drafts]
    assert any("identifiers stay english" in text for text in said)
    assert any("15 min not hourly" in text for text in said)
    assert not any("src/a.ts" in text for text in said)


def test_where_nothing_can_be_left_out_nothing_changes() -> None:
    assert reflect(log(RULE), ROOMY).drafts == ()
    assert reflect([], ROOMY).drafts == ()


def test_what_matters_least_goes_first_when_room_is_short() -> None:
    open_ends = [(f"Assistant left open: step {n} of the plan.", "low", "next_step", "assistant") for n in range(20)]
    reflected = reflect(log(RULE, *open_ends), 60)
    contents = [draft.content for draft in reflected.drafts]
    assert RULE[0] in contents
    assert "step 19" in contents[-1]
    assert not any("step 0 " in content for content in contents)
    assert sum(estimate_tokens(content) for content in contents) <= 60


any_row = st.builds(
    lambda words, priority, category, trust: (" ".join(words) + ".", priority, category, trust),
    st.lists(
        st.sampled_from("use pnpm never floats Redis fails login tests pass done 部署 ECONNRESET".split()),
        min_size=1,
        max_size=9,
    ),
    st.sampled_from(["high", "medium", "low"]),
    st.sampled_from(["decision", "preference", "fact", "issue", "next_step", "outcome", "state_change"]),
    st.sampled_from(["user", "assistant", "tool"]),
)


@settings(max_examples=150)
@given(st.lists(any_row, max_size=25), st.integers(min_value=10, max_value=400))
def test_a_reflection_is_smaller_and_accounts_for_every_row(rows: list[tuple[str, str, str, str]], target: int) -> None:
    before = log(*rows)
    reflected = reflect(before, target)
    if not reflected.drafts:
        return
    cited = [source for draft in reflected.drafts for source in draft.source_ids]
    assert len(cited) == len(set(cited))
    assert {*cited, *reflected.dropped_ids} == {row.id for row in before}
    assert sum(estimate_tokens(draft.content) for draft in reflected.drafts) < sum(row.tokens for row in before)
    high = {row.id for row in before if row.priority == "high"}
    assert high <= set(cited)


@settings(max_examples=50)
@given(st.lists(any_row, min_size=1, max_size=15))
def test_a_reflection_says_nothing_that_its_sources_do_not_say(rows: list[tuple[str, str, str, str]]) -> None:
    before = {row.id: row for row in log(*rows)}
    for draft in reflect(list(before.values()), ROOMY).drafts:
        said = " ".join(before[source].content for source in draft.source_ids)
        for part in draft.content.split(" → "):
            assert part.rstrip(".") in said
        assert draft.said_at in {before[source].said_at for source in draft.source_ids}


def test_dates_are_those_of_the_events() -> None:
    rows = [
        observation(f"Outcome: Step {n} done.", n, category="outcome", said_at=NOON + timedelta(days=n)) for n in (1, 2)
    ]
    request = observation("User asked: Do both steps, step 1 and step 2.", 1, priority="low", said_at=NOON)
    [draft] = reflect([request, *rows], ROOMY).drafts or [None]
    assert draft is None or draft.said_at == NOON + timedelta(days=2)
