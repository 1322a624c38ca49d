"""Moves the inline scripts of built pages, which the server's policy forbids, into files, and names the search."""

import hashlib
import re
from pathlib import Path
from posixpath import relpath

_INLINE = re.compile(r"<script>(.*?)</script>", re.DOTALL)
_SCRIPTS = "assets/javascripts"


def move_scripts_out(site: Path) -> None:
    """Move every inline script of a built site into a file, which all pages with that script share."""
    for page in site.rglob("*.html"):
        page.write_text(_without_inline(page.read_text(encoding="utf-8"), page.parent, site), encoding="utf-8")


def _without_inline(text: str, folder: Path, site: Path) -> str:
    def moved(found: re.Match[str]) -> str:
        name = f"{_SCRIPTS}/inline.{hashlib.sha256(found[1].encode()).hexdigest()[:12]}.js"
        (site / name).write_text(found[1], encoding="utf-8")
        return f'<script src="{relpath(site / name, folder)}"></script>'

    return _INLINE.sub(moved, text)


def name_search(site: Path) -> None:
    """Give the theme's search dialog a name, for screen readers."""
    for page in site.rglob("*.html"):
        text = page.read_text(encoding="utf-8")
        named = text.replace('role="dialog">', 'role="dialog" aria-label="Search the documentation">', 1)
        page.write_text(named, encoding="utf-8")


def drop_unused(site: Path) -> None:
    """Delete the files that no page loads: source maps, stemmers of other languages, and those for search engines."""
    unused = (
        *site.rglob("*.map"),
        *(site / _SCRIPTS / "lunr").rglob("*.js"),
        *site.glob("sitemap.xml*"),
        site / "404.html",
    )
    for path in unused:
        path.unlink(missing_ok=True)
