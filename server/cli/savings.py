"""`esker savings`."""

from typing import Annotated

import typer

from esker.server.cli.connection import connect
from esker.server.cli.output import AsJson, note, print_json, say, table
from esker.server.core.json_input import JsonObject

app = typer.Typer(add_completion=False)

_FIGURES = ("calls", "sent", "from cache", "raw history", "saved", "cost", "money saved")


@app.command()
def savings(
    days: Annotated[int, typer.Option(min=1, max=366, help="How many days to look back.")] = 30,
    limit: Annotated[int, typer.Option(min=1, max=1000, help="How many sessions to list.")] = 20,
    as_json: AsJson = False,
) -> None:
    """Show the tokens of clients' model calls beside those of the raw histories.

    Sent tokens are those that providers counted; the raw history is the same call with all messages, by estimate.
    """
    found = connect().get("/v1/savings", days=days, limit=limit)
    if as_json:
        print_json(found)
        return
    if not found["clients"]:
        note(f"No model call of the last {days} days is known. `esker gateway -- COMMAND` counts those of a program.")
        return
    columns = ("client", "sessions", *_FIGURES)
    table(columns, [(used["client"], f"{used['sessions']:,}", *_figures(used)) for used in found["clients"]])
    say("\nSessions, the latest call first")
    columns = ("session", "client", "latest call (UTC)", *_FIGURES)
    rows = [(each["session_id"], each["client"], _when(each["last_at"]), *_figures(each)) for each in found["sessions"]]
    table(columns, rows)
    say("\nThe raw history is an estimate: the same calls with all messages, cached as well as possible.")


def _figures(used: JsonObject) -> tuple[str, ...]:
    counts = ("calls", "sent_tokens", "cache_read_tokens", "raw_tokens", "left_out_tokens")
    return *(f"{used[name]:,}" for name in counts), _dollars(used["cost_usd"]), _dollars(used["saved_usd"])


def _dollars(amount: float | None) -> str:
    if amount is None:
        return "unknown"
    return f"{'-' if amount < 0 else ''}${abs(amount):.4f}"


def _when(moment: str) -> str:
    return moment[:16].replace("T", " ")
