"""`esker spend`."""

from typing import Annotated, Any

import typer

from esker.server.cli.connection import connect
from esker.server.cli.output import AsJson, print_json, say, table

app = typer.Typer(add_completion=False)


@app.command()
def spend(
    days: Annotated[int, typer.Option(min=1, max=366, help="How many days to look back.")] = 30,
    as_json: AsJson = False,
) -> None:
    """Show the cost of language models, and the daily cap."""
    found = connect().get("/v1/spend", days=days)
    if as_json:
        print_json(found)
        return
    today = found["today"]
    cap = "no cap" if today["cap_usd"] is None else f"the cap is ${today['cap_usd']:.2f}"
    say(f"Today (UTC): ${today['spent_usd']:.4f}; {cap}.")
    if today["paused"]:
        how = "continue without a model" if today["when_spent"] == "extractive" else "wait"
        say(f"The cap is reached: observing and reflecting {how} until {_when(today['ends_at'])} UTC.")
    columns = ("day", "model", "for", "calls", "sent", "from cache", "written", "cost")
    table(columns, [_row(spent) for spent in found["days"]])


def _row(spent: dict[str, Any]) -> tuple[object, ...]:
    sent = spent["input_tokens"] + spent["cache_write_tokens"]
    cost = "unknown" if spent["cost_usd"] is None else f"${spent['cost_usd']:.4f}"
    numbers = (f"{spent['calls']:,}", f"{sent:,}", f"{spent['cache_read_tokens']:,}", f"{spent['output_tokens']:,}")
    return spent["day"], spent["model"], spent["purpose"], *numbers, cost


def _when(moment: str) -> str:
    return moment[:16].replace("T", " ")
