"""The sessions of pi: JSON lines, each of which names the one it follows.

Going back in a conversation starts another branch of that tree; the branch that leads to the last line is the session,
and what stands on others was left aside. The lines of early versions have no names and simply follow each other.
"""

from collections.abc import Iterator
from pathlib import Path

from esker.server.agents.content import (
    Block,
    answered,
    as_list,
    as_object,
    as_text,
    call_block,
    image_block,
    result_block,
    text_block,
)
from esker.server.agents.lines import JsonLine, Opener, json_lines
from esker.server.agents.reader_entries import Gathering, stem
from esker.server.agents.regular_file import opened_plain
from esker.server.agents.transcript import ParsedTranscripts
from esker.server.core.json_input import Json

CLIENT = "pi"

Numbered = tuple[int, JsonLine]

_KINDS = {"compaction": "compaction summary", "branch_summary": "branch summary"}
_ROLES = ("user", "assistant", "toolResult", "bashExecution")


def read_transcript(path: Path, opener: Opener = opened_plain) -> ParsedTranscripts:
    """Read a file, which is one session. Raises OSError when it cannot be opened."""
    gathering = Gathering(CLIENT, path)
    session, place = stem(path).rpartition("_")[2], stem(path)
    lines: list[Numbered] = []
    for number, line in json_lines(path, gathering.left_out, opener):
        gathering.recognised = gathering.recognised or recognises(line)
        if line.get("type") == "session":
            gathering.skip("session line")
            session = as_text(line.get("id")) or session
            gathering.locate(session, line.get("cwd"))
        else:
            lines.append((number, line))
    branch = _branch(lines)
    gathering.skip("line that was left aside", len(lines) - len(branch))
    for number, line in branch:
        _take(gathering, session, f"{place}:{number}", line)
    return gathering.reading()


def recognises(line: JsonLine) -> bool:
    """Tell whether pi wrote a line."""
    kind = line.get("type")
    if kind == "session":
        return "cwd" in line and "timestamp" in line
    return kind == "message" and as_object(line.get("message")).get("role") in _ROLES and "uuid" not in line


def _branch(lines: list[Numbered]) -> list[Numbered]:
    """Return the lines that lead to the last one, in their order; all, where they do not say what they follow.

    A line that follows one that is not there, which a broken line can be, follows the one above it.
    """
    places = {name: place for place, (_, line) in enumerate(lines) if (name := as_text(line.get("id")))}
    kept: list[int] = []
    place = len(lines) - 1
    while place >= 0:
        kept.append(place)
        place = _before(lines[place][1], place, places)
    return [lines[place] for place in reversed(kept)]


def _before(line: JsonLine, place: int, places: dict[str, int]) -> int:
    """Return the place of the line that a line follows, or -1 for none; it is always above."""
    if "parentId" in line and line["parentId"] is None:
        return -1
    parent = places.get(as_text(line.get("parentId")) or "", place)
    return parent if parent < place else place - 1


def _take(gathering: Gathering, session: str, place: str, line: JsonLine) -> None:
    message = as_object(line.get("message"))
    kind, role = line.get("type"), message.get("role")
    if kind != "message":
        reason = f"{kind} line" if isinstance(kind, str) else "untyped line"
        gathering.skip(_KINDS.get(str(kind), reason))
        return
    name, at = as_text(line.get("id")), line.get("timestamp", message.get("timestamp", ""))
    match role:
        case "user" | "assistant":
            content: list[Json] = [*_blocks(message.get("content"))]
            if not content and message.get("errorMessage"):
                gathering.skip("API error")
                return
            gathering.add(session, str(role), content, name=name, place=place, at=at)
        case "toolResult":
            call = as_text(message.get("toolCallId")) or place
            answer = result_block(call, _answer(message.get("content")), failed=message.get("isError") is True)
            gathering.add(session, "user", [answer], name=name, place=place, at=at)
        case "bashExecution":
            # The person ran it; who is shown as calling is the assistant, since results follow its calls.
            call = name or place
            failed = message.get("exitCode") not in (None, 0)
            asked = call_block(call, "bash", {"command": message.get("command")})
            gathering.add(session, "assistant", [asked], name=name, place=place, at=at)
            answer = result_block(call, answered(message.get("output")), failed=failed)
            gathering.add(session, "user", [answer], name=name and f"{name}/result", place=f"{place}/result", at=at)
        case _:
            gathering.skip(f"{role} message" if isinstance(role, str) else "message without a role")


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
    """Return what a tool answered: text, or blocks where there are images in it."""
    blocks = [*_blocks(content)]
    if any(block["type"] == "image" for block in blocks):
        return [*blocks]
    return answered(content)
