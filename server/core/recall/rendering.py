"""Renders an answer for a model."""

from collections.abc import Iterable
from dataclasses import replace

from esker.server.core.conversation.records import Passage
from esker.server.core.counts import counted
from esker.server.core.pack.rendering import MARK, TENTATIVE, local_date, unknown_line
from esker.server.core.recall.answer import Hit, Recalled
from esker.server.core.records import Memory
from esker.server.core.text.fencing import fenced


def recalled_line(hit: Hit) -> str:
    """Return the line of one hit, with its id, age, project and trust."""
    project = f", project {fenced(hit.project)}" if hit.project else ""
    cut = " …" if hit.truncated else ""
    tentative = TENTATIVE if hit.tentative else ""
    newer = f" (older; {hit.contradicted_by} says otherwise)" if hit.contradicted_by else ""
    mark = f"{MARK[hit.priority]} " if hit.priority else ""
    return f"* {mark}{fenced(hit.content)}{cut}{tentative}{newer} [{hit.id}, {hit.age}{project}, from {hit.trust}]"


def recalled_text(found: Recalled) -> str:
    """Return the answer to a recall as text: fenced as data, a line for each hit, notes below."""
    lines = [recalled_line(hit) for hit in found.hits]
    if found.unknown_project:
        lines.append(f"({unknown_line(found.unknown_project)}{' These belong to no project.' if found.hits else ''})")
    if found.abstained:
        lines.append("Nothing in memory is about this.")
        if found.unobserved_tokens:
            lines.append("(The latest messages have not been turned into memories yet.)")
    elif found.seen and not found.hits:
        lines.append("You already have everything that memory knows about this.")
    elif found.omitted:
        lines.append(f"({counted(found.omitted, 'more is', 'more are')} not shown; raise limit or be more specific.)")
    if found.semantic == "degraded":
        lines.append(f"(Searched by keyword only: {found.reason}.)")
    elif found.semantic == "weak":
        lines.append(f"(Found mostly by keyword: {found.reason}.)")
    return _recalled(lines)


def recalled_block(hits: Iterable[Hit], timezone: str) -> str:
    """Return hits for a prompt that is sent again and again: with dates, since ages would change its bytes."""
    dated = (replace(hit, age=local_date(hit.said_at, timezone)) for hit in hits)
    return _recalled(map(recalled_line, dated))


def _recalled(lines: Iterable[str]) -> str:
    return "\n".join(["<recalled_memories>", *lines, "</recalled_memories>"])


def resource_text(row: Memory | Passage) -> str:
    """Return one row as text: fenced as data, with its id, date, trust and project."""
    content, said = (row.text, row.said_to) if isinstance(row, Passage) else (row.content, row.said_at)
    superseded_by = getattr(row, "superseded_by", None)
    details = [row.id, said.date().isoformat(), f"from {row.trust}"]
    details += [f"project {fenced(row.project)}"] if row.project else []
    details += [f"superseded by {superseded_by}"] if superseded_by else []
    return f"<recalled_memories>\n* {fenced(content)} [{', '.join(details)}]\n</recalled_memories>"
