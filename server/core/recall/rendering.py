"""Hits as text: what a model reads of an answer."""

from collections.abc import Iterable
from dataclasses import replace

from esker.server.core.counts import counted
from esker.server.core.pack.rendering import MARK, TENTATIVE, fenced, local_date, unknown_line
from esker.server.core.recall.answer import Hit, Recalled
from esker.server.core.records import Memory, Passage


def recalled_line(hit: Hit) -> str:
    """Return one hit as a model reads it: with its id, its age, its project and whose words it is."""
    where = f", project {fenced(hit.project)}" if hit.project else ""
    cut = " …" if hit.truncated else ""
    reserved = TENTATIVE if hit.tentative else ""
    mark = f"{MARK[hit.priority]} " if hit.priority else ""
    return f"* {mark}{fenced(hit.content)}{cut}{reserved} [{hit.id}, {hit.age}{where}, from {hit.trust}]"


def recalled_text(found: Recalled) -> str:
    """Return the answer to a recall as a model reads it: fenced as data, a line for each hit."""
    lines = [recalled_line(hit) for hit in found.hits]
    if found.unknown_project:
        lines.append(f"({unknown_line(found.unknown_project)}{' These belong to no project.' if found.hits else ''})")
    if found.abstained:
        lines.append("Nothing in memory is about this.")
        if found.unobserved_tokens:
            lines.append("(The latest messages have not been turned into memories yet.)")
    elif found.seen and not found.hits:
        lines.append("What memory knows about this you have already.")
    elif found.omitted:
        lines.append(f"({counted(found.omitted, 'more is', 'more are')} not shown; ask for more, or more narrowly.)")
    if found.semantic == "degraded":
        lines.append(f"(Found by keyword only: {found.reason}.)")
    elif found.semantic == "weak":
        lines.append(f"(Found mostly by keyword: {found.reason}.)")
    return _recalled(lines)


def recalled_block(hits: Iterable[Hit], timezone: str) -> str:
    """Return hits for a prompt that is sent again and again: with their dates, since ages change by the hour."""
    dated = (replace(hit, age=local_date(hit.said_at, timezone)) for hit in hits)
    return _recalled(map(recalled_line, dated))


def _recalled(lines: Iterable[str]) -> str:
    return "\n".join(["<recalled_memories>", *lines, "</recalled_memories>"])


def resource_text(row: Memory | Passage) -> str:
    """Return one row as a model reads it: fenced as data, with its id, its date, its project and whose words it is."""
    content, said = (row.text, row.said_to) if isinstance(row, Passage) else (row.content, row.said_at)
    replaced = getattr(row, "superseded_by", None)
    about = [row.id, said.date().isoformat(), f"from {row.trust}"]
    about += [f"project {fenced(row.project)}"] if row.project else []
    about += [f"superseded by {replaced}"] if replaced else []
    return f"<recalled_memories>\n* {fenced(content)} [{', '.join(about)}]\n</recalled_memories>"
