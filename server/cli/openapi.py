"""`esker openapi`."""

import json
from pathlib import Path
from typing import Annotated

import typer

from esker.server.app import unconnected_app
from esker.server.cli.output import AsJson, print_json, say
from esker.server.rest.document import operations

app = typer.Typer(add_completion=False)


@app.command()
def openapi(
    file: Annotated[Path | None, typer.Argument(help="Where to write it; by default standard output.")] = None,
    as_json: AsJson = False,
) -> None:
    """Write the OpenAPI document, from which clients in any language are generated."""
    document = unconnected_app().openapi()
    if file is None:
        print_json(document)
        return
    file.write_text(json.dumps(document, ensure_ascii=False, indent=2) + "\n", encoding="utf-8")
    described = sum(1 for _ in operations(document))
    if as_json:
        print_json({"file": str(file), "operations": described})
    else:
        say(f"Wrote {file}: {described} operations.")
