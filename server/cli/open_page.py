"""`esker open`."""

import webbrowser
from typing import Annotated

import typer

from esker.server.cli.connection import connect
from esker.server.cli.output import AsJson, print_json, say

app = typer.Typer(add_completion=False)


@app.command(name="open")
def open_page(
    browser: Annotated[bool, typer.Option(help="Whether to start the browser, or only show the link.")] = True,
    as_json: AsJson = False,
) -> None:
    """Open the page of the server in the browser: what memory holds, and why."""
    api = connect()
    link = api.post("/v1/login-links", {})
    url = f"{api.url}{link['path']}"
    if as_json:
        print_json({"url": url, "seconds": link["seconds"]})
    elif browser and webbrowser.open(url):
        say(f"Opened {api.url} in the browser.")
    else:
        say(f"Open this link within {link['seconds']} seconds; it works once:")
        say(url)
