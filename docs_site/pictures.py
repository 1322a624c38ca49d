"""`python -m docs_site.pictures`: draw the pictures of the documentation again. A test fails if they are old."""

from collections.abc import Mapping

from docs_site.client_pictures import NAMES, client_picture
from docs_site.memory_pictures import coverage, overview, prefix, question, team
from docs_site.pages import DOCS

FOLDER = DOCS / "pictures"


def pictures() -> Mapping[str, str]:
    """Return every picture by the name of its file."""
    drawn = {f"{client}.svg": client_picture(client) for client in NAMES}
    drawn |= {f"{draw.__name__}.svg": draw() for draw in (overview, coverage, prefix, question, team)}
    return {name: drawing.svg() for name, drawing in drawn.items()}


def main() -> None:
    """Write the pictures."""
    FOLDER.mkdir(exist_ok=True)
    for name, text in pictures().items():
        (FOLDER / name).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
