"""`esker spool`: show, send or delete the parcels that hooks keep for servers they could not reach."""

import os
from dataclasses import asdict
from datetime import UTC, datetime
from typing import Annotated

import typer

from esker.server.agents.api import Api
from esker.server.agents.sending import deliver_allowed
from esker.server.agents.spool import Deliver, Spool, SpoolQueue
from esker.server.cli.output import AsJson, WrongUsage, print_json, say, table
from esker.server.core.config.client_settings import ClientSettings
from esker.server.core.counts import counted
from esker.server.core.errors import InvalidInput

app = typer.Typer(add_completion=False)

_For = Annotated[str | None, typer.Option("--for", metavar="ID", help="Only the queue with this id.")]


@app.command()
def spool(
    send: Annotated[bool, typer.Option("--send", help="Send now, to ESKER_URL with ESKER_KEY.")] = False,
    drop: Annotated[bool, typer.Option("--drop", help="Delete a queue unsent; needs --for.")] = False,
    queue_id: _For = None,
    as_json: AsJson = False,
) -> None:
    """Show the parcels that hooks could not send yet, or send or delete them.

    Parcels spooled under a revoked key can be sent, too.
    """
    settings = ClientSettings.from_environment(os.environ)
    api = Api.to(settings)
    local_spool = Spool(settings.state_dir / "spool", api.url, settings.key)
    if send and drop:
        raise WrongUsage("--send and --drop were both given.", hint="Give one of them.")
    if drop and queue_id is None:
        raise WrongUsage("--drop needs --for.", hint="`esker spool` shows the ids; give one with --for.")
    if queue_id is not None and queue_id not in {queue.id for queue in local_spool.queues()}:
        raise InvalidInput(f"No queue has the id {queue_id!r}.", hint="`esker spool` lists the queues and their ids.")
    if drop and queue_id is not None:
        _say({"dropped": local_spool.drop(queue_id)}, "deleted", as_json)
    elif send:
        _send(local_spool, api, deliver_allowed(settings.exclude), queue_id, as_json)
    else:
        _show([queue for queue in local_spool.queues() if queue_id in (None, queue.id)], local_spool, as_json)


def _send(local_spool: Spool, api: Api, deliver: Deliver, queue_id: str | None, as_json: bool) -> None:
    if queue_id is not None:
        local_spool.adopt(queue_id)
    done = local_spool.replay(api, deliver)
    if done.waiting > done.held:
        # Make any request: its error tells the user why sending failed.
        api.get("/v1/memories", limit=1)
    _say(asdict(done), "sent", as_json)
    if done.refused and not as_json:
        say(f"The server refused {counted(done.refused, 'parcel')}, kept in {local_spool.folder / 'refused'}.")
    if done.held and not as_json:
        waits = counted(done.held, "parcel waits", "parcels wait")
        say(f"{waits}: ESKER_KEY may not write the sessions, as a key that is bound to another project. Send with")
        say("a key that may, or delete the queue with `esker spool --drop --for ID`.")
    if done.waiting > done.held and not as_json:
        waits = counted(done.waiting - done.held, "parcel waits", "parcels wait")
        say(f"{waits}: the server is busy, or another process is sending.")


def _say(done: dict[str, int], verb: str, as_json: bool) -> None:
    if as_json:
        print_json(done)
    else:
        say(f"{counted(next(iter(done.values())), 'parcel')} {verb}.")


def _show(queues: list[SpoolQueue], local_spool: Spool, as_json: bool) -> None:
    if as_json:
        print_json([{**asdict(queue), "for_here": local_spool.is_for_here(queue)} for queue in queues])
        return
    columns = ("id", "server", "key", "parcels", "bytes", "since (UTC)", "for this server")
    table(columns, [_row(queue, local_spool) for queue in queues])
    if any(local_spool.is_for_here(queue) for queue in queues):
        say("\nParcels for this server are sent by the next hook that reaches it, or now with `esker spool --send`.")
    if any(not local_spool.is_for_here(queue) for queue in queues):
        say("\nParcels for another server or key are sent by a hook with that ESKER_URL and ESKER_KEY, or:")
        say("`esker spool --send --for ID` sends them to this server, `esker spool --drop --for ID` deletes them.")


def _row(queue: SpoolQueue, local_spool: Spool) -> tuple[object, ...]:
    since = datetime.fromtimestamp(queue.oldest, UTC).strftime("%Y-%m-%d %H:%M")
    key = "with a key" if queue.keyed else "none"
    return (
        queue.id,
        queue.server,
        key,
        f"{queue.parcels:,}",
        f"{queue.size:,}",
        since,
        local_spool.is_for_here(queue) * "yes",
    )
