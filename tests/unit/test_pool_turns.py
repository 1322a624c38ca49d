"""Pools take turns, so that none waits for the end of another's backlog."""

from esker.server.usecases.pool_turns import PoolTurns


def test_without_a_turn_before_the_pool_that_waited_longest_is_first() -> None:
    assert PoolTurns().order(["b", "a"]) == ["b", "a"]


def test_a_pool_of_which_jobs_run_lets_others_go_first() -> None:
    turns = PoolTurns()
    turns.begin("big")
    assert turns.order(["big", "small"]) == ["small", "big"]
    turns.begin("small")
    turns.begin("small")
    assert turns.order(["small", "big"]) == ["big", "small"]


def test_pools_alternate_also_if_each_job_ends_before_the_next_begins() -> None:
    turns, served = PoolTurns(), list[str]()
    for _ in range(6):
        pool_id = turns.order(["big", "small", "third"])[0]
        turns.begin(pool_id)
        turns.end(pool_id)
        served.append(pool_id)
    assert served == ["big", "small", "third"] * 2
