"""`python -m docs_site`: build the site into `server/web/help`, from where a server shows it at `/help`."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

from docs_site.built_pages import drop_unused, move_scripts_out, name_search
from docs_site.pages import DOCS, ROOT, source_pages
from docs_site.reference import PAGES

BUILT = ROOT / "server/web/help"
_BUILD = ROOT / "build"


def main() -> int:
    """Build the site; return 1 with the warnings of mkdocs if a page or a link is wrong."""
    pages, site = _BUILD / "docs", _BUILD / "help"
    shutil.rmtree(pages, ignore_errors=True)
    shutil.copytree(DOCS, pages, ignore=shutil.ignore_patterns("*.md"))
    for name, text in source_pages():
        _write(pages / name, text)
    for name, made in PAGES.items():
        _write(pages / name, made())
    shutil.copy(ROOT / "server/web/static/esker.svg", _folder(pages / "pictures"))
    shutil.copy(ROOT / "docs_site/site.css", pages)
    if not _built():
        return 1
    drop_unused(site)
    move_scripts_out(site)
    name_search(site)
    shutil.rmtree(BUILT, ignore_errors=True)
    shutil.move(site, BUILT)
    print(f"The site is in {BUILT.relative_to(ROOT)}; `esker serve` shows it at /help/.")
    return 0


def _built() -> bool:
    """Run mkdocs, and show its output if it reports a problem. With `--quiet` it would not count warnings."""
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--clean", "--config-file", "docs_site/mkdocs.yml"]
    # The theme announces its successor at every build otherwise.
    variables = {**os.environ, "NO_MKDOCS_2_WARNING": "1"}
    done = subprocess.run(command, cwd=ROOT, env=variables, capture_output=True, text=True, check=False)
    if done.returncode:
        print(done.stdout + done.stderr, file=sys.stderr)
    return done.returncode == 0


def _folder(path: Path) -> Path:
    path.mkdir(parents=True, exist_ok=True)
    return path


def _write(path: Path, text: str) -> None:
    _folder(path.parent)
    path.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    sys.exit(main())
