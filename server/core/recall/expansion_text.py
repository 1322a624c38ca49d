"""Renders an expansion for a model: a line for each row and each message, fenced as data."""

from collections.abc import Iterator

from esker.server.core.clock import zone
from esker.server.core.counts import counted
from esker.server.core.pack.rendering import MARK, TENTATIVE
from esker.server.core.recall.expansion import (
    FORGOTTEN,
    Excerpt,
    ExpandedMemory,
    ExpandedPassage,
    Expansion,
    HeardMessage,
    OmittedCounts,
)
from esker.server.core.records import Memory
from esker.server.core.text.fencing import fenced
from esker.server.core.text.tokens import trim_to_tokens

OPEN, CLOSE = "<expanded_memory>", "</expanded_memory>"
DRAWN_FROM = "Drawn from:"
NO_MESSAGES = "(It was not taken from messages.)"
_CUT = " …"
# Longer names of projects, clients and authors are truncated, so that there is room for the text.
_NAME_TOKENS = 24


def expansion_text(expansion: Expansion) -> str:
    """Return an expansion as text: the memory, the rows it was drawn from, the messages, and counts of omissions."""
    return "\n".join([OPEN, *_lines(expansion), CLOSE])


def _lines(expansion: Expansion) -> Iterator[str]:
    yield head_line(expansion.expanded)
    if expansion.drawn_from:
        yield DRAWN_FROM
        yield from map(memory_line, expansion.drawn_from)
    for excerpt in expansion.excerpts:
        yield session_line(excerpt)
        yield from (message_line(message, excerpt) for message in excerpt.messages)
    if not (expansion.excerpts or expansion.left_out.cited):
        yield NO_MESSAGES
    if expansion.left_out != OmittedCounts():
        yield left_out_line(expansion.left_out)


def head_line(expanded: ExpandedMemory | ExpandedPassage) -> str:
    """Return the line of the expanded memory or passage."""
    return passage_line(expanded) if isinstance(expanded, ExpandedPassage) else memory_line(expanded)


def passage_line(passage: ExpandedPassage) -> str:
    """Return which messages a passage covers, with its id, age, project and trust; the messages have its words."""
    details = [passage.id, passage.age, *_project(passage.project), f"from {passage.trust}"]
    span = f"messages {passage.first_seq} to {passage.last_seq} of {passage.session_id}"
    return f"* Passage: {span} [{', '.join(details)}]"


def memory_line(row: ExpandedMemory) -> str:
    """Return a row with its id, kind, age, project and trust; deeper rows are indented further."""
    memory = row.memory
    text = f"{fenced(memory.content)}{_CUT if row.truncated else ''}{TENTATIVE if memory.tentative else ''}"
    details = [memory.id, _kind(memory), row.age, *_project(memory.project), f"from {memory.trust}", *_status(row)]
    return f"{'  ' * (row.depth - 1)}* {MARK[memory.priority]} {text} [{', '.join(details)}]"


def _kind(memory: Memory) -> str:
    """Return the kind of a row; for one that a person or an agent wrote, with its author."""
    return f"{memory.kind} by {_name(memory.author)}" if memory.kind in ("note", "manual") else memory.kind


def _project(project: str | None) -> list[str]:
    return [f"project {_name(project)}"] if project else []


def _name(text: str) -> str:
    name = fenced(text)
    short = trim_to_tokens(name, _NAME_TOKENS)
    return name if short == name else short + _CUT


def _status(row: ExpandedMemory) -> list[str]:
    """Return words that name the replacement of a superseded row; an empty list for a live row."""
    memory = row.memory
    if memory.superseded_by is None:
        return []
    if memory.superseded_by == memory.reflection_id:
        return ["undone"]
    if memory.superseded_by == row.source_of:
        return ["replaced by the row above"]
    return [f"replaced by {memory.superseded_by}"]


def session_line(excerpt: Excerpt) -> str:
    """Return the heading of a session's messages."""
    return f"Said in {excerpt.session_id} ({', '.join([_name(excerpt.client), *_project(excerpt.project)])}):"


def message_line(message: HeardMessage, excerpt: Excerpt) -> str:
    """Return one message with its seq, its time in the session's zone, its age, project and trust."""
    time = message.sent_at.astimezone(zone(excerpt.timezone)).strftime("%Y-%m-%d %H:%M")
    details = [str(message.seq), time, message.age, *_project(excerpt.project), f"from {message.trust}"]
    cited = ", cited" if message.cited else ""
    text = FORGOTTEN if message.forgotten else fenced(message.text)
    return f"- [{', '.join(details)}{cited}] {text}{_CUT if message.truncated else ''}"


def left_out_line(left_out: OmittedCounts) -> str:
    """Return the line that counts omitted rows and messages."""
    counts = (
        (left_out.memories, "memory", "memories"),
        (left_out.cited, "cited message", "cited messages"),
        (left_out.around, "message around them", "messages around them"),
    )
    missing = ", ".join(counted(count, one, many) for count, one, many in counts if count)
    return f"(Not shown: {missing}. Raise max_tokens, or expand one of the memories above.)"
