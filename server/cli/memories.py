"""`esker recall`, `remember`, `forget`, `pack`."""

from typing import Annotated, Any
from urllib.parse import quote

import typer

from server.cli.api import Api
from server.cli.output import AsJson, print_json, say
from server.core.errors import NotFound

app = typer.Typer()

_MARK = {"high": "🔴", "medium": "🟡", "low": "🟢"}
Project = Annotated[str | None, typer.Option(help="Only this project.")]


@app.command()
def recall(
    query: Annotated[str, typer.Argument(help="The question, in plain words.")],
    limit: Annotated[int, typer.Option(min=1, max=50, help="The most memories to show.")] = 8,
    project: Project = None,
    explain: Annotated[bool, typer.Option(help="Show the parts of each score.")] = False,
    as_json: AsJson = False,
) -> None:
    """Ask memory a question."""
    asked = {"query": query, "limit": limit, "explain": explain} | ({"project": project} if project else {})
    found = Api.from_environment().post("/v1/recall", asked)
    if as_json:
        print_json(found)
    else:
        show_recalled(found)


def show_recalled(found: dict[str, Any]) -> None:
    """Print the answer to a recall: a line for each memory with its score, age and source."""
    if found["abstained"]:
        say("Nothing in memory is about this.")
    for hit in found["hits"]:
        say(f"{hit['score']:.2f} {_MARK[hit['priority']]} {hit['content']}")
        say(f"     {hit['age']}, {_source(hit)}")
        if hit["parts"]:
            say("     " + ", ".join(f"{name} {value}" for name, value in hit["parts"].items() if value is not None))
    if found["semantic"] == "degraded":
        say(f"Found by keyword only: {found['reason']}.")
    elif found["pending"]:
        say(f"{found['pending']} memories cannot be found by meaning yet.")


def _source(hit: dict[str, Any]) -> str:
    sources = hit["sources"]
    if sources["seqs"]:
        origin = f"messages {', '.join(map(str, sources['seqs']))} of {sources['session_id']}"
    elif sources["memory_ids"]:
        count = len(sources["memory_ids"])
        origin = f"reflected from {count} memor{'y' if count == 1 else 'ies'} of {sources['session_id']}"
    else:
        origin = f"a {hit['kind']}"
    return f"{origin}{', project ' + hit['project'] if hit['project'] else ''} [{hit['id']}]"


@app.command()
def remember(
    content: Annotated[str, typer.Argument(help="One fact, in one or two sentences.")],
    priority: Annotated[str, typer.Option(help="high, medium or low.")] = "medium",
    pin: Annotated[bool, typer.Option(help="Show it first in every pack.")] = False,
    tag: Annotated[list[str] | None, typer.Option(help="A tag; can be given several times.")] = None,
    project: Project = None,
    as_json: AsJson = False,
) -> None:
    """Write a memory."""
    body: dict[str, Any] = {"content": content, "priority": priority, "kind": "manual" if pin else "note"}
    body |= {"tags": tag or []} | ({"project": project} if project else {})
    written = Api.from_environment().post("/v1/memories", body)
    if as_json:
        print_json(written)
    else:
        say(f"Remembered as {written['id']}.")


@app.command()
def forget(
    memory_id: Annotated[str, typer.Argument(help="The id of the memory, mem_…")],
    messages: Annotated[bool, typer.Option(help="Also forget the words of the messages it came from.")] = False,
    as_json: AsJson = False,
) -> None:
    """Delete a memory and everything that says the same."""
    receipt = Api.from_environment().delete(
        f"/v1/memories/{quote(memory_id, safe='')}?messages={str(messages).lower()}"
    )
    if as_json:
        print_json(receipt)
    else:
        went = ", ".join(f"{receipt[name]} {name}" for name in ("memories", "vectors", "packs", "messages"))
        say(f"Forgotten: {went}.")


@app.command()
def pack(
    session: Annotated[str, typer.Argument(help="A session: our id or the client's own.")],
    as_json: AsJson = False,
) -> None:
    """Show the context pack of a session."""
    api = Api.from_environment()
    found = api.get(f"/v1/sessions/{resolve_session(api, session)}/pack")
    if as_json:
        print_json(found)
    else:
        say(found["text"])


def resolve_session(api: Api, name: str) -> str:
    """Return our id of a session that is given by our id or by the client's own. Raises NotFound, Refused."""
    if name.startswith("ses_"):
        return name
    found = api.get("/v1/sessions", external_id=name)["sessions"]
    if not found:
        raise NotFound(f"There is no session {name!r} in this pool.")
    return found[0]["id"]
