"""The chats of Gemini CLI: JSON lines that may rewrite earlier ones, or one JSON object in older builds.

A record is rewritten as a whole when a tool call or its result joins it, so the last version of an id counts, in the
place of the first. `$rewindTo` discards a record and all after it. `$set` changes the header; if it sets `messages`,
the model sees these from then on, after a compression a summary: earlier records stay, and only new ones are added.

The words, each call and each result of a record are entries of their own, since they are written at different times.
"""

import hashlib
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from pathlib import Path

from esker.server.agents.content import (
    Block,
    as_list,
    as_text,
    call_block,
    image_block,
    joined,
    result_block,
    result_text,
    text_block,
    texts,
)
from esker.server.agents.lines import JsonLine, Opener, SkippedLines, json_document, json_lines
from esker.server.agents.reader_entries import TranscriptBuilder, stem
from esker.server.agents.regular_file import opened_plain
from esker.server.agents.transcript import ParsedTranscripts
from esker.server.core.json_input import Json, as_object

CLIENT = "gemini-cli"

_ROLES = {"user": "user", "gemini": "assistant", "model": "assistant", "assistant": "assistant"}
_PENDING = ("executing", "scheduled", "validating", "awaiting_approval")
_CHATS = "chats"
_HEADER = frozenset({"projectHash", "startTime", "lastUpdated"})
# Context of a hook that was put before a prompt, or behind it.
_HOOK_CONTEXT = re.compile(
    r"\A(?:\s*<hook_context>[\s\S]*?</hook_context>)+\s*|\s*<hook_context>[\s\S]*?</hook_context>\s*\Z"
)
_ANONYMOUS = "~"
_LONGEST_PATH = 4_096


def read_transcript(path: Path, opener: Opener = opened_plain) -> ParsedTranscripts:
    """Read a chat, which is one session. Raises OSError when it cannot be opened."""
    builder = TranscriptBuilder(CLIENT, path)
    chat = _Chat(builder, stem(path))
    if path.suffix == ".json":
        document = json_document(path, builder.left_out)
        builder.recognised = recognises_document(document)
        if builder.recognised:
            chat.add_document(document)
    else:
        for number, line in json_lines(path, builder.left_out, opener):
            builder.recognised = builder.recognised or recognises(line)
            chat.add(number, line)
    _add_entries(builder, chat, path)
    return builder.build()


def recognises(line: JsonLine) -> bool:
    """Return whether Gemini CLI wrote a line."""
    if "$set" in line or "$rewindTo" in line or _is_header(line):
        return True
    return line.get("type") in ("user", "gemini") and "id" in line and "content" in line


def _is_header(line: JsonLine) -> bool:
    """Return whether a line is the header of a chat; its builds differ in what else it has."""
    return as_text(line.get("sessionId")) is not None and bool(_HEADER & line.keys()) and "uuid" not in line


def recognises_document(document: Json) -> bool:
    """Return whether a JSON value is a chat of an older build, or a saved one."""
    match document:
        case {"messages": list(records)} | {"history": list(records)} | list(records):
            found = map(as_object, records)
            return any(_role(record) and {"content", "parts"} & record.keys() for record in found)
        case _:
            return False


class _Chat:
    """The records of a chat, collected while it is read."""

    def __init__(self, builder: TranscriptBuilder, position: str) -> None:
        self.header: JsonLine = {}
        self.records: dict[str, JsonLine] = {}
        self._set_only: set[str] = set()  # ids of records that only `$set` contained
        self._builder = builder
        self._position = position

    def add_document(self, document: Json) -> None:
        """Add a chat that is one JSON value."""
        whole = as_object(document)
        self.header = whole
        records = whole.get("messages", whole.get("history")) if whole else document
        for number, record in enumerate(as_list(records), start=1):
            if isinstance(record, dict):
                self._put(f"{self._position}:{number}", record)
            else:
                self._builder.skip("not an object")

    def add(self, number: int, line: JsonLine) -> None:
        """Add a line."""
        if "$rewindTo" in line:
            self._rewind(line["$rewindTo"])
        elif "$set" in line:
            self._builder.skip("$set line")
            self._set(as_object(line["$set"]))
        elif _role(line) or "id" in line:
            self._put(f"{self._position}:{number}", line)
        elif "sessionId" in line or line.get("type") == "session_metadata":
            self._builder.skip("header line")
            self._set(line)
        else:
            self._builder.skip("untyped line")

    def _put(self, position: str, record: JsonLine) -> None:
        name = as_text(record.get("id")) or position
        if name in self.records and name not in self._set_only:
            self._builder.skip("rewritten record")
        self._set_only.discard(name)
        self.records[name] = record

    def _set(self, changes: JsonLine) -> None:
        self.header |= {key: value for key, value in changes.items() if key != "messages"}
        words = Counter(_words(record) for record in self.records.values())
        for record in map(as_object, as_list(changes.get("messages"))):
            name = as_text(record.get("id")) or f"shown {_words(record)}"
            if name in self.records and name not in self._set_only:
                words[_words(self.records[name])] -= 1
            elif name in self._set_only:
                words[_words(self.records[name])] -= 1
                self.records[name] = record
            elif words[_words(record)] > 0:
                words[_words(record)] -= 1  # a compression changes the ids of the records that stay
            else:
                self._set_only.add(name)
                self.records[name] = record

    def _rewind(self, target: Json) -> None:
        names = list(self.records)
        if not isinstance(target, str) or target not in self.records:
            self._builder.skip("rewind to an unknown record")
            return
        dropped = names[names.index(target) :]
        for name in dropped:
            del self.records[name]
            self._set_only.discard(name)
        self._builder.skip("message that was rewound", len(dropped))


def _add_entries(builder: TranscriptBuilder, chat: _Chat, path: Path) -> None:
    """Add the records to the builder, under the session id of the header."""
    session = as_text(chat.header.get("sessionId")) or stem(path)
    agent = chat.header.get("kind") == "subagent"
    if agent and path.parent.parent.name == _CHATS:
        session = f"{path.parent.name}/agent-{session}"
    directories = as_list(chat.header.get("directories"))
    builder.set_directory(session, directories[0] if directories else _directory(path))
    if not builder.transcript(session).cwd:
        builder.transcript(session).project = _project(path)
    exchanges = _Exchanges()
    for name, record in chat.records.items():
        role = _role(record)
        if role is None:
            kind = record.get("type")
            builder.skip(f"{kind} record" if isinstance(kind, str) else "untyped line")
            continue
        builder.skip("thought of the model", len(as_list(record.get("thoughts"))))
        builder.skip("injected context", int(role == "user" and _has_context(record)))
        at = record.get("timestamp", record.get("ts", ""))
        for part, speaker, blocks in exchanges.parts(name, role, record):
            orders = agent and speaker == "user" and not part
            builder.add(session, "assistant" if orders else speaker, blocks, name=name + part, at=at)


class _Exchanges:
    """The calls of a chat and their results, each once, even if several records contain them."""

    def __init__(self) -> None:
        self._seen: set[str] = set()
        self._unanswered: defaultdict[str, list[str]] = defaultdict(list)  # calls by the tool's name

    def parts(self, name: str, role: str, record: JsonLine) -> Iterator[tuple[str, str, list[Json]]]:
        """Yield the parts of a record: a suffix for its id, the role, and the blocks."""
        words: list[Json] = [*_spoken_blocks(record)]
        calls, results = list(_calls(record)), list(_results(record))
        if words or not (calls or results):
            yield "", role, words
        for key, tool, given in calls:
            call = _call_key(name, key)
            if call not in self._seen:
                self._seen.add(call)
                self._unanswered[tool].append(call)
                yield f"/{key}", "assistant", [call_block(call, tool, given)]
        for key, tool, shown, failed in results:
            call = _call_key(name, key) if key else next(iter(self._unanswered[tool]), f"{name}/{tool}")
            if call in self._unanswered[tool]:
                self._unanswered[tool].remove(call)
            if f"{call}/result" not in self._seen:
                self._seen.add(f"{call}/result")
                yield f"/{key or call}/result", "user", [result_block(call, result_text(_answer(shown)), failed=failed)]


def _call_key(name: str, key: str) -> str:
    """Return a unique key of a call: its id, or its record's id and its own key."""
    return f"{name}/{key}" if key.startswith(_ANONYMOUS) else key


def _role(record: JsonLine) -> str | None:
    kind = record.get("type", record.get("role"))
    return _ROLES.get(kind) if isinstance(kind, str) else None


def _content(record: JsonLine) -> list[Json]:
    content = record.get("content", record.get("parts"))
    return content if isinstance(content, list) else [content]


def _spoken_blocks(record: JsonLine) -> Iterator[Block]:
    """Yield the texts and images of a record; for the user only typed text, without inserted files."""
    typed = record.get("displayContent") if _role(record) == "user" else None
    parts = (typed if isinstance(typed, list) else [typed]) if typed else _content(record)
    for part in parts:
        match part:
            case str(text) | {"text": str(text)} if text.strip():
                if not as_object(part).get("thought"):
                    yield text_block(_typed(text) if _role(record) == "user" else text)
            case {"inlineData": {"data": data, "mimeType": kind}}:
                if image := image_block(data, kind):
                    yield image
            case _:
                pass


def _typed(text: str) -> str:
    """Return a prompt without the context of hooks; the context itself if it has nothing else."""
    return _HOOK_CONTEXT.sub("", text) or text


def _has_context(record: JsonLine) -> bool:
    """Return whether the context of a hook is beside the words of a prompt."""
    return any(_typed(text) != text for text in texts(_content(record)))


def _calls(record: JsonLine) -> Iterator[tuple[str, str, Json]]:
    """Yield the calls of a record: a key, the tool's name and the arguments."""
    found: set[str] = set()
    for call in map(as_object, as_list(record.get("toolCalls"))):
        if name := as_text(call.get("name")):
            found.add(_key(call))
            yield _key(call), name, call.get("args")
    for part in _content(record):
        match part:
            case {"functionCall": {"name": str(name)} as call} if _key(call) not in found:
                yield _key(call), name, call.get("args")
            case _:
                pass


def _results(record: JsonLine) -> Iterator[tuple[str, str, Json, bool]]:
    """Yield the results of calls: the call's key or "", the tool's name, the result, and whether it failed."""
    for call in map(as_object, as_list(record.get("toolCalls"))):
        name, shown = as_text(call.get("name")), call.get("result") or call.get("resultDisplay")
        if name and shown is not None and call.get("status") not in _PENDING:
            yield _key(call), name, shown, call.get("status") in ("error", "cancelled")
    for part in _content(record):
        match part:
            case {"functionResponse": dict(answer)}:
                yield as_text(answer.get("id")) or "", as_text(answer.get("name")) or "", part, False
            case _:
                pass


def _answer(value: Json) -> Json:
    """Return a tool's result without the envelopes around it."""
    match value:
        case list():
            return [_answer(item) for item in value]
        case {"functionResponse": {"response": response}}:
            return _answer(response)
        case dict() if not {"text", "content", "output", "error", "message"} & value.keys():
            return [_answer(item) for item in value.values()]
        case _:
            return value


def _key(call: JsonLine) -> str:
    """Return the id of a call, or if it has none a hash of its name and arguments."""
    given = f"{call.get('name')}\0{call.get('args')}".encode("utf-8", "replace")
    return as_text(call.get("id")) or _ANONYMOUS + hashlib.sha256(given).hexdigest()[:16]


def _words(record: JsonLine) -> str:
    """Return a key of a record's role, words and calls, whatever its id."""
    words = "".join(joined([*_spoken_blocks(record)]).split())
    return f"{_role(record)} {words} {sorted(key for key, _, _ in _calls(record))}"


# Directory and project ------------------------------------------------------------------------------------------------


def _tmp_folder(path: Path) -> Path | None:
    """Return the folder that Gemini CLI keeps for a project, or None if the chat is elsewhere."""
    return next((parent.parent for parent in path.parents if parent.name == _CHATS), None)


def _directory(path: Path) -> str | None:
    """Return the directory of a chat, if Gemini CLI recorded it, or None."""
    folder = _tmp_folder(path)
    if folder is None:
        return None
    try:
        with opened_plain(folder / ".project_root") as file:
            return file.read(_LONGEST_PATH).decode("utf-8", "replace").strip() or None
    except OSError:
        return _registered_directory(folder)


def _registered_directory(folder: Path) -> str | None:
    """Return the directory that `projects.json` has for a folder of chats, or None."""
    try:
        listed = json_document(folder.parent.parent / "projects.json", SkippedLines())
    except OSError:
        return None
    projects: Iterable[tuple[str, Json]] = as_object(as_object(listed).get("projects")).items()
    return next((directory for directory, name in projects if name == folder.name), None)


def _project(path: Path) -> str | None:
    """Return the name of the folder of chats, unless it is a hash."""
    folder = _tmp_folder(path)
    if folder is None or (len(folder.name) == 64 and not set(folder.name) - set("0123456789abcdef")):
        return None
    return as_text(folder.name)
