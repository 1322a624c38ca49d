"""The sessions of pi: JSON lines, each of which names its parent.

Going back in a conversation starts another branch of that tree; the branch that leads to the last line is the session,
and the others are abandoned. The lines of early versions have no ids and simply follow each other.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path, PureWindowsPath

from esker.server.agents.content import (
    Block,
    as_list,
    as_text,
    call_block,
    image_block,
    result_block,
    result_text,
    text_block,
)
from esker.server.agents.lines import JsonLine, Opener, json_lines
from esker.server.agents.reader_entries import UNKNOWN_SPEAKER, TranscriptBuilder, as_moment, stem
from esker.server.agents.regular_file import opened_plain
from esker.server.agents.transcript import ParsedTranscripts
from esker.server.core.json_input import Json, as_object, clean_text

CLIENT = "pi"

Numbered = tuple[int, JsonLine]

_KINDS = {"compaction": "compaction summary", "branch_summary": "branch summary"}
_ROLES = ("user", "assistant", "toolResult", "bashExecution")


def read_transcript(path: Path, opener: Opener = opened_plain) -> ParsedTranscripts:
    """Read a file, which is one session. Raises OSError when it cannot be opened."""
    builder = TranscriptBuilder(CLIENT, path)
    session, position = stem(path).rpartition("_")[2], stem(path)
    origin = _Origin(None, None)
    lines: list[Numbered] = []
    for number, line in json_lines(path, builder.left_out, opener):
        builder.recognised = builder.recognised or recognises(line)
        if line.get("type") == "session":
            builder.skip("session line")
            session = as_text(line.get("id")) or session
            origin = _origin(line)
            for each in filter(None, (session, origin.session)):
                builder.set_directory(each, line.get("cwd"))
        else:
            lines.append((number, line))
    branch = _branch(lines)
    builder.skip("line of an abandoned branch", len(lines) - len(branch))
    for number, line in branch:
        copied_from = origin.session_of(line)
        _add_line(builder, copied_from or session, f"{position}:{number}", line, unique=copied_from is not None)
    return builder.build()


@dataclass(frozen=True, slots=True)
class _Origin:
    """The session that a fork was made from, and when. The fork repeats its lines with their ids and times."""

    session: str | None
    forked_at: datetime | None

    def session_of(self, line: JsonLine) -> str | None:
        """Return the session that a line was copied from, or None if it is the fork's own."""
        at = as_moment(line.get("timestamp")) if self.forked_at else None
        return self.session if at and self.forked_at and at < self.forked_at else None


def _origin(header: JsonLine) -> _Origin:
    parent = as_text(header.get("parentSession"))
    if parent is None:
        return _Origin(None, None)
    name = PureWindowsPath(parent).name.removesuffix(".jsonl").rpartition("_")[2]
    return _Origin(clean_text(name), as_moment(header.get("timestamp")))


def recognises(line: JsonLine) -> bool:
    """Return whether pi wrote a line."""
    kind = line.get("type")
    if kind == "session":
        return "cwd" in line and "timestamp" in line
    return kind == "message" and as_object(line.get("message")).get("role") in _ROLES and "uuid" not in line


def _branch(lines: list[Numbered]) -> list[Numbered]:
    """Return the lines that lead to the last one, in their order; all lines if they name no parents.

    If a parent is missing, for instance because its line is broken, the line above is taken for it.
    """
    indexes = {name: position for position, (_, line) in enumerate(lines) if (name := as_text(line.get("id")))}
    kept: list[int] = []
    position = len(lines) - 1
    while position >= 0:
        kept.append(position)
        position = _parent(lines[position][1], position, indexes)
    return [lines[position] for position in reversed(kept)]


def _parent(line: JsonLine, position: int, indexes: dict[str, int]) -> int:
    """Return the index of a line's parent, which is always above it, or -1 for none."""
    if "parentId" in line and line["parentId"] is None:
        return -1
    parent = indexes.get(as_text(line.get("parentId")) or "", position)
    return parent if parent < position else position - 1


def _add_line(builder: TranscriptBuilder, session: str, position: str, line: JsonLine, *, unique: bool) -> None:
    message = as_object(line.get("message"))
    kind, role = line.get("type"), message.get("role")
    if kind != "message":
        reason = f"{kind} line" if isinstance(kind, str) else "untyped line"
        builder.skip(_KINDS.get(str(kind), reason))
        return
    name, at = as_text(line.get("id")), line.get("timestamp", message.get("timestamp", ""))
    match role:
        case "user" | "assistant":
            content: list[Json] = [*_blocks(message.get("content"))]
            if not content and message.get("errorMessage"):
                builder.skip("API error")
                return
            builder.add(session, str(role), content, name=name, position=position, at=at, unique=unique)
        case "toolResult":
            call = as_text(message.get("toolCallId")) or position
            answer = result_block(call, _answer(message.get("content")), failed=message.get("isError") is True)
            builder.add(session, "user", [answer], name=name, position=position, at=at, unique=unique)
        case "bashExecution":
            # The user ran it; the call is stored as the assistant's, since results must follow its calls.
            call = name or position
            failed = message.get("exitCode") not in (None, 0)
            call_of_user = call_block(call, "bash", {"command": message.get("command")})
            builder.add(session, "assistant", [call_of_user], name=name, position=position, at=at)
            answer = result_block(call, result_text(message.get("output")), failed=failed)
            builder.add(session, "user", [answer], name=name and f"{name}/result", position=f"{position}/result", at=at)
        case _:
            builder.skip(f"{role} message" if isinstance(role, str) else UNKNOWN_SPEAKER)


def _blocks(content: Json) -> Iterator[Block]:
    for part in [content] if isinstance(content, str) else as_list(content):
        match part:
            case str(text) | {"type": "text", "text": str(text)}:
                yield text_block(text)
            case {"type": "thinking", "thinking": str()}:
                yield part
            case {"type": "toolCall", "name": str(name)}:
                yield call_block(as_text(part.get("id")) or name, name, part.get("arguments"))
            case {"type": "image", "data": data, "mimeType": kind}:
                if image := image_block(data, kind):
                    yield image
            case _:
                pass


def _answer(content: Json) -> Json:
    """Return a tool's result: text, or blocks if it contains images."""
    blocks = [*_blocks(content)]
    if any(block["type"] == "image" for block in blocks):
        return [*blocks]
    return result_text(content)
