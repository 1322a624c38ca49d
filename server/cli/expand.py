"""`esker expand`: show the sources of a memory or a passage."""

from typing import Annotated, Any
from urllib.parse import quote

import typer

from esker.server.cli.connection import connect
from esker.server.cli.output import AsJson, print_json, say
from esker.server.core.conversation.readable_calls import readable
from esker.server.core.counts import counted
from esker.server.core.pack.rendering import MARK, SAID
from esker.server.core.recall.expansion_fit import MIN_TOKENS
from esker.server.core.text.fencing import neutral

app = typer.Typer(add_completion=False)


@app.command()
def expand(
    text_id: Annotated[str, typer.Argument(help="The id of a memory or a passage: mem_… or psg_…", metavar="ID")],
    around: Annotated[int, typer.Option(min=0, max=20, help="Number of messages to show on either side.")] = 2,
    max_tokens: Annotated[int, typer.Option(min=MIN_TOKENS, max=200_000, help="Maximum number of tokens.")] = 10_000,
    as_json: AsJson = False,
) -> None:
    """Show the sources of a memory or a passage, and the messages around them."""
    path = f"/v1/memories/{quote(text_id, safe='')}/sources"
    found = connect().get(path, around=around, max_tokens=max_tokens)
    if as_json:
        print_json(found)
    else:
        _show(found)


def _show(found: dict[str, Any]) -> None:
    _show_head(found["expanded"])
    for row in found["drawn_from"]:
        _show_row(row)
    for excerpt in found["excerpts"]:
        project = f", project {excerpt['project']}" if excerpt["project"] else ""
        say()
        say(f"{excerpt['session_id']} ({excerpt['client']} {excerpt['external_id']}{project})")
        for message in excerpt["messages"]:
            mark = ">" if message["cited"] else " "
            when = message["sent_at"][:16].replace("T", " ")
            say(f"{mark} {message['seq']} {when} {message['trust']}: {_text(readable(message['text']), message)}")
    missing = found["left_out"]
    if any(missing.values()):
        around = missing["cited"] + missing["around"]
        rows = counted(missing["memories"], "memory")
        say()
        say(f"Not shown: {rows} and {counted(around, 'message')}; raise --max-tokens to see more.")


def _show_head(expanded: dict[str, Any]) -> None:
    if "memory" in expanded:
        _show_row(expanded)
        return
    place = f"messages {expanded['first_seq']} to {expanded['last_seq']} of {expanded['session_id']}"
    say(f"{SAID} {place[0].upper()}{place[1:]}")
    say(f"     {expanded['age']} [{expanded['id']}]")


def _show_row(row: dict[str, Any]) -> None:
    memory = row["memory"]
    by = f" by {memory['author']}" if memory["kind"] in ("note", "manual") else ""
    replaced_by = f", replaced by {memory['superseded_by']}" if memory["superseded_by"] else ""
    say(f"{'    ' * row['depth']}{MARK[memory['priority']]} {_text(memory['content'], row)}")
    say(f"{'    ' * row['depth']}     {row['age']}, {memory['kind']}{by}{replaced_by} [{memory['id']}]")


def _text(text: str, cut: dict[str, Any]) -> str:
    return f"{neutral(text)} …" if cut["truncated"] else neutral(text)
