"""Query plans: what a statement really did, planned for its values or for any."""

import re
from collections.abc import Generator, Mapping
from typing import Any, Literal, cast

import psycopg
from psycopg import sql

PlanMode = Literal["force_custom_plan", "force_generic_plan"]


def nodes(plan: Mapping[str, Any]) -> Generator[Mapping[str, Any]]:
    """Yield every node of a plan."""
    yield plan
    for child in plan.get("Plans", ()):
        yield from nodes(child)


def planned(
    app_url: str, pool_id: str, statement: str, values: Mapping[str, Any], mode: PlanMode
) -> list[Mapping[str, Any]]:
    """Run a statement in a pool as the server does, prepared, and return the nodes of its plan."""
    names = list(dict.fromkeys(re.findall(r"%\((\w+)\)s", statement)))
    prepared = re.sub(r"%\((\w+)\)s", lambda found: f"${names.index(found[1]) + 1}", statement)
    with psycopg.connect(app_url, cursor_factory=psycopg.ClientCursor) as connection:
        connection.execute("SELECT set_config('esker.pool_id', %s, true)", [pool_id])
        connection.execute(sql.SQL("SET LOCAL plan_cache_mode = {}").format(sql.Identifier(mode)))
        connection.execute(cast(Any, f"PREPARE asked AS {prepared}"))
        listed = ", ".join(["%s"] * len(names))
        explained = cast(Any, f"EXPLAIN (ANALYZE, FORMAT JSON) EXECUTE asked ({listed})")
        row = connection.execute(explained, [values[name] for name in names]).fetchone()
    assert row is not None
    return list(nodes(row[0][0]["Plan"]))
