"""An expansion as a model reads it: a line for each row and each message, fenced as data."""

from collections.abc import Iterator

from esker.server.core.clock import zone
from esker.server.core.counts import counted
from esker.server.core.pack.rendering import MARK, TENTATIVE, fenced
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
from esker.server.core.text.tokens import trim_to_tokens

OPEN, CLOSE = "<expanded_memory>", "</expanded_memory>"
DRAWN_FROM = "Drawn from:"
NO_MESSAGES = "(There are no messages behind it.)"
_CUT = " …"
# A name is shown up to here, so that there is room for what is said.
_NAME_TOKENS = 24


def evidence_text(found: Expansion) -> str:
    """Return an expansion as text: the memory, what it was drawn from, the messages, and what is not shown."""
    return "\n".join([OPEN, *_lines(found), CLOSE])


def _lines(found: Expansion) -> Iterator[str]:
    yield head_line(found.expanded)
    if found.drawn_from:
        yield DRAWN_FROM
        yield from map(memory_line, found.drawn_from)
    for excerpt in found.excerpts:
        yield session_line(excerpt)
        yield from (message_line(message, excerpt) for message in excerpt.messages)
    if not (found.excerpts or found.left_out.cited):
        yield NO_MESSAGES
    if found.left_out != OmittedCounts():
        yield left_out_line(found.left_out)


def head_line(expanded: ExpandedMemory | ExpandedPassage) -> str:
    """Return the line of what was asked for."""
    return passage_line(expanded) if isinstance(expanded, ExpandedPassage) else memory_line(expanded)


def passage_line(passage: ExpandedPassage) -> str:
    """Return where a passage stands, with its id, its age, its project and whose words it is; the messages say it."""
    told = [passage.id, passage.age, *_project(passage.project), f"from {passage.trust}"]
    place = f"messages {passage.first_seq} to {passage.last_seq} of {passage.session_id}"
    return f"* What was said in {place} [{', '.join(told)}]"


def memory_line(row: ExpandedMemory) -> str:
    """Return a row with its id, what it is, its age, its project and whose words it is; a deeper one further in."""
    memory = row.memory
    text = f"{fenced(memory.content)}{_CUT if row.truncated else ''}{TENTATIVE if memory.tentative else ''}"
    told = [memory.id, _made(memory), row.age, *_project(memory.project), f"from {memory.trust}", *_fate(row)]
    return f"{'  ' * (row.depth - 1)}* {MARK[memory.priority]} {text} [{', '.join(told)}]"


def _made(memory: Memory) -> str:
    """Return what a row is; of what somebody wrote down, who did."""
    return f"{memory.kind} by {_name(memory.author)}" if memory.kind in ("note", "manual") else memory.kind


def _project(project: str | None) -> list[str]:
    return [f"project {_name(project)}"] if project else []


def _name(text: str) -> str:
    name = fenced(text)
    short = trim_to_tokens(name, _NAME_TOKENS)
    return name if short == name else short + _CUT


def _fate(row: ExpandedMemory) -> list[str]:
    """Return what became of a row that does not hold any more."""
    memory = row.memory
    if memory.superseded_by is None:
        return []
    if memory.superseded_by == memory.reflection_id:
        return ["taken back"]
    if memory.superseded_by == row.source_of:
        return ["replaced by what was drawn from it"]
    return [f"replaced by {memory.superseded_by}"]


def session_line(excerpt: Excerpt) -> str:
    """Return the line above the messages of a session."""
    return f"Said in {excerpt.session_id} ({', '.join([_name(excerpt.client), *_project(excerpt.project)])}):"


def message_line(message: HeardMessage, excerpt: Excerpt) -> str:
    """Return one message with its number, its time in the session's zone, its age, its project and who said it."""
    time = message.sent_at.astimezone(zone(excerpt.timezone)).strftime("%Y-%m-%d %H:%M")
    told = [str(message.seq), time, message.age, *_project(excerpt.project), f"from {message.trust}"]
    cited = ", cited" if message.cited else ""
    text = FORGOTTEN if message.forgotten else fenced(message.text)
    return f"- [{', '.join(told)}{cited}] {text}{_CUT if message.truncated else ''}"


def left_out_line(left_out: OmittedCounts) -> str:
    """Return what is said about what is not shown."""
    counts = (
        (left_out.memories, "memory", "memories"),
        (left_out.cited, "cited message", "cited messages"),
        (left_out.around, "message around them", "messages around them"),
    )
    missing = ", ".join(counted(count, one, many) for count, one, many in counts if count)
    return f"(Not shown: {missing}. Ask with more max_tokens, or expand one of the memories above.)"
