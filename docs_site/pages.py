"""Adapts pages to the site: links to files outside of the site become paths in the repository."""

import re
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from posixpath import normpath, relpath

ROOT = Path(__file__).resolve().parents[1]
DOCS = ROOT / "docs"
_OUTSIDE = {
    "README.md": "index.md",
    "CHANGELOG.md": "project/changelog.md",
    "CONTRIBUTING.md": "project/contributing.md",
    "SECURITY.md": "project/security.md",
    "clients/python/README.md": "clients/python.md",
    "clients/typescript/README.md": "clients/typescript.md",
}
"""Pages outside of `docs/`, by their path in the site, whose first page is not the README."""
_FENCE = re.compile(r"(^ *```.*?^ *```)", re.DOTALL | re.MULTILINE)
_LINK = re.compile(r"(?<!!)\[([^\]]*)\]\(([^)\s]+)\)")


def source_pages() -> Iterator[tuple[str, str]]:
    """Yield the path in the site and the text of each page that is written by hand."""
    for path in sorted(DOCS.rglob("*.md")):
        name = path.relative_to(ROOT).as_posix()
        yield _in_site(name) or "", for_site(name, path.read_text(encoding="utf-8"))
    for name, target in _OUTSIDE.items():
        if name != "README.md":
            yield target, for_site(name, (ROOT / name).read_text(encoding="utf-8"))


def for_site(name: str, text: str) -> str:
    """Return the text of the page `name` (a path from the root) with links as the site needs them."""
    parts = _FENCE.split(text)
    parts[::2] = [_LINK.sub(lambda link: _link(name, link[1], link[2]), prose) for prose in parts[::2]]
    return "".join(parts)


def _in_site(name: str) -> str | None:
    """Return the path in the site of a file of the repository; None if the site does not contain it."""
    return name.removeprefix("docs/") if name.startswith("docs/") else _OUTSIDE.get(name)


def _link(name: str, text: str, target: str) -> str:
    """Return a link as the site needs it: to a page of the site, or the path of a file as code."""
    if re.match(r"[a-z]+:|#", target):
        return f"[{text}]({target})"
    path, _, anchor = target.partition("#")
    wanted = normpath((PurePosixPath(name).parent / path).as_posix())
    if wanted == "docs/decisions":
        wanted = "docs/decisions/README.md"
    page, here = _in_site(wanted), _in_site(name)
    if page is None or here is None:
        return (
            f"`{wanted}`" if text.strip("`") in (wanted, Path(wanted).name) or "`" in text else f"{text} (`{wanted}`)"
        )
    address = relpath(page, PurePosixPath(here).parent.as_posix())
    return f"[{text}]({address}{'#' if anchor else ''}{anchor})"
