"""`esker spool`: what hooks keep for servers that they could not reach, and what is to become of it."""

import os
from dataclasses import asdict
from datetime import UTC, datetime
from typing import Annotated

import typer

from esker.server.agents.api import Api
from esker.server.agents.sending import deliver
from esker.server.agents.spool import Pile, Spool
from esker.server.cli.output import AsJson, print_json, say, table
from esker.server.core.config.client_settings import ClientSettings
from esker.server.core.counts import counted
from esker.server.core.errors import InvalidInput

app = typer.Typer(add_completion=False)

_For = Annotated[str | None, typer.Option("--for", metavar="ID", help="What waits for this server and key, by its id.")]


@app.command()
def spool(
    send: Annotated[bool, typer.Option("--send", help="Send it now, to ESKER_URL under ESKER_KEY.")] = False,
    drop: Annotated[bool, typer.Option("--drop", help="Delete it unsent. Wants --for.")] = False,
    of: _For = None,
    as_json: AsJson = False,
) -> None:
    """Show what hooks could not send yet; send or delete it.

    What waits under a key that is no more can be sent, too.
    """
    settings = ClientSettings.from_environment(os.environ)
    api = Api.to(settings)
    kept = Spool(settings.state_dir / "spool", api.url, settings.key)
    if send and drop:
        raise InvalidInput("--send and --drop were both given.", hint="Give one of them.")
    if drop and of is None:
        raise InvalidInput("--drop wants to know what.", hint="`esker spool` shows the ids; give one with --for.")
    if of is not None and of not in {pile.of for pile in kept.piles()}:
        raise InvalidInput(f"Nothing waits for {of!r}.", hint="`esker spool` shows what waits, and for whom.")
    if drop and of is not None:
        _say({"dropped": kept.drop(of)}, "deleted", as_json)
    elif send:
        _send(kept, api, of, as_json)
    else:
        _show([pile for pile in kept.piles() if of in (None, pile.of)], kept, as_json)


def _send(kept: Spool, api: Api, of: str | None, as_json: bool) -> None:
    if of is not None:
        kept.adopt(of)
    done = kept.replay(api, deliver)
    if done.waiting:
        # Why it does not go is what another request says.
        api.get("/v1/memories", limit=1)
    _say(asdict(done), "sent", as_json)
    if done.refused and not as_json:
        say(f"The server refused {counted(done.refused, 'parcel')}: see {kept.folder / 'refused'}.")
    if done.waiting and not as_json:
        waits = counted(done.waiting, "parcel waits", "parcels wait")
        say(f"{waits}: the server is busy, or somebody else is sending.")


def _say(done: dict[str, int], verb: str, as_json: bool) -> None:
    if as_json:
        print_json(done)
    else:
        say(f"{counted(next(iter(done.values())), 'parcel')} {verb}.")


def _show(piles: list[Pile], kept: Spool, as_json: bool) -> None:
    if as_json:
        print_json([{**asdict(pile), "for_here": kept.is_for_here(pile)} for pile in piles])
        return
    columns = ("id", "server", "key", "parcels", "bytes", "since (UTC)", "")
    table(columns, [_row(pile, kept) for pile in piles])
    if any(kept.is_for_here(pile) for pile in piles):
        say("\nWhat is for here goes with the next hook that reaches the server, or now with `esker spool --send`.")
    if any(not kept.is_for_here(pile) for pile in piles):
        say("\nWhat is for another server or key goes with a hook of that ESKER_URL and ESKER_KEY. If there is none,")
        say("`esker spool --send --for ID` sends it to this server's pool, `esker spool --drop --for ID` deletes it.")


def _row(pile: Pile, kept: Spool) -> tuple[object, ...]:
    since = datetime.fromtimestamp(pile.oldest, UTC).strftime("%Y-%m-%d %H:%M")
    key = "with a key" if pile.keyed else "none"
    return pile.of, pile.server, key, f"{pile.parcels:,}", f"{pile.size:,}", since, kept.is_for_here(pile) * "for here"
