"""The chats of Gemini CLI: JSON lines that rewrite earlier ones, or the one JSON object of older builds.

A record is written again, whole, whenever a tool call or its result joins it, so the last one of an id counts and
stands where the first one stood. `$rewindTo` takes a record and all behind it back. `$set` changes the header; where it
sets `messages`, it says what the model is shown from then on, which after a compression is a summary: what was said
before stays said, and only what is new in it is taken.

The words, each call and each result of a record are entries of their own, since they come at different times.
"""

import hashlib
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from pathlib import Path

from esker.server.agents.content import (
    Block,
    answered,
    as_list,
    as_object,
    as_text,
    call_block,
    image_block,
    joined,
    result_block,
    text_block,
)
from esker.server.agents.lines import JsonLine, Opener, SkippedLines, json_document, json_lines
from esker.server.agents.reader_entries import Gathering, stem
from esker.server.agents.regular_file import opened_plain
from esker.server.agents.transcript import ParsedTranscripts
from esker.server.core.json_input import Json

CLIENT = "gemini-cli"

_ROLES = {"user": "user", "gemini": "assistant", "model": "assistant", "assistant": "assistant"}
_PENDING = ("executing", "scheduled", "validating", "awaiting_approval")
_CHATS = "chats"
_ANONYMOUS = "~"
_LONGEST_PATH = 4_096


def read_transcript(path: Path, opener: Opener = opened_plain) -> ParsedTranscripts:
    """Read a chat, which is one session. Raises OSError when it cannot be opened."""
    gathering = Gathering(CLIENT, path)
    chat = _Chat(gathering, stem(path))
    if path.suffix == ".json":
        document = json_document(path, gathering.left_out)
        gathering.recognised = recognises_document(document)
        if gathering.recognised:
            chat.take_document(document)
    else:
        for number, line in json_lines(path, gathering.left_out, opener):
            gathering.recognised = gathering.recognised or recognises(line)
            chat.take(number, line)
    _hand_over(gathering, chat, path)
    return gathering.reading()


def recognises(line: JsonLine) -> bool:
    """Tell whether Gemini CLI wrote a line."""
    if "$set" in line or "$rewindTo" in line or {"sessionId", "projectHash"} <= line.keys():
        return True
    return line.get("type") in ("user", "gemini") and "id" in line and "content" in line


def recognises_document(document: Json) -> bool:
    """Tell whether a JSON value is a chat of an older build, or a saved one."""
    match document:
        case {"messages": list(records)} | {"history": list(records)} | list(records):
            found = map(as_object, records)
            return any(_role(record) and {"content", "parts"} & record.keys() for record in found)
        case _:
            return False


class _Chat:
    """The records of a chat while it is read."""

    def __init__(self, gathering: Gathering, place: str) -> None:
        self.header: JsonLine = {}
        self.records: dict[str, JsonLine] = {}
        self._shown: set[str] = set()  # those known from what the model was shown
        self._gathering = gathering
        self._place = place

    def take_document(self, document: Json) -> None:
        """Take a chat that is one JSON value."""
        whole = as_object(document)
        self.header = whole
        records = whole.get("messages", whole.get("history")) if whole else document
        for number, record in enumerate(as_list(records), start=1):
            if isinstance(record, dict):
                self._put(f"{self._place}:{number}", record)
            else:
                self._gathering.skip("not an object")

    def take(self, number: int, line: JsonLine) -> None:
        """Take a line."""
        if "$rewindTo" in line:
            self._rewind(line["$rewindTo"])
        elif "$set" in line:
            self._gathering.skip("$set line")
            self._set(as_object(line["$set"]))
        elif _role(line) or "id" in line:
            self._put(f"{self._place}:{number}", line)
        elif "sessionId" in line:
            self._gathering.skip("header line")
            self._set(line)
        else:
            self._gathering.skip("untyped line")

    def _put(self, place: str, record: JsonLine) -> None:
        name = as_text(record.get("id")) or place
        if name in self.records and name not in self._shown:
            self._gathering.skip("record that was written again")
        self._shown.discard(name)
        self.records[name] = record

    def _set(self, changes: JsonLine) -> None:
        self.header |= {key: value for key, value in changes.items() if key != "messages"}
        said = Counter(_words(record) for record in self.records.values())
        for record in map(as_object, as_list(changes.get("messages"))):
            name = as_text(record.get("id")) or f"shown {_words(record)}"
            if name in self.records and name not in self._shown:
                said[_words(self.records[name])] -= 1
            elif name in self._shown:
                said[_words(self.records[name])] -= 1
                self.records[name] = record
            elif said[_words(record)] > 0:
                said[_words(record)] -= 1  # after a compression, what is still shown has other names
            else:
                self._shown.add(name)
                self.records[name] = record

    def _rewind(self, target: Json) -> None:
        names = list(self.records)
        if not isinstance(target, str) or target not in self.records:
            self._gathering.skip("rewind to an unknown record")
            return
        dropped = names[names.index(target) :]
        for name in dropped:
            del self.records[name]
            self._shown.discard(name)
        self._gathering.skip("message that was rewound", len(dropped))


def _hand_over(gathering: Gathering, chat: _Chat, path: Path) -> None:
    """Make entries of the records, under the name that the header gives the session."""
    session = as_text(chat.header.get("sessionId")) or stem(path)
    agent = chat.header.get("kind") == "subagent"
    if agent and path.parent.parent.name == _CHATS:
        session = f"{path.parent.name}/agent-{session}"
    directories = as_list(chat.header.get("directories"))
    gathering.locate(session, directories[0] if directories else _directory(path))
    if not gathering.transcript(session).cwd:
        gathering.transcript(session).project = _project(path)
    exchanges = _Exchanges()
    for name, record in chat.records.items():
        role = _role(record)
        if role is None:
            kind = record.get("type")
            gathering.skip(f"{kind} record" if isinstance(kind, str) else "untyped line")
            continue
        at = record.get("timestamp", record.get("ts", ""))
        for part, speaker, blocks in exchanges.parts(name, role, record):
            orders = agent and speaker == "user" and not part
            gathering.add(session, "assistant" if orders else speaker, blocks, name=name + part, at=at)


class _Exchanges:
    """The calls of a chat and what came of them, each once, however many records tell it."""

    def __init__(self) -> None:
        self._told: set[str] = set()
        self._unanswered: defaultdict[str, list[str]] = defaultdict(list)  # calls by the tool's name

    def parts(self, name: str, role: str, record: JsonLine) -> Iterator[tuple[str, str, list[Json]]]:
        """Yield what a record holds, with what is added to its name and who speaks."""
        words: list[Json] = [*_said(record)]
        calls, results = list(_calls(record)), list(_results(record))
        if words or not (calls or results):
            yield "", role, words
        for key, tool, given in calls:
            call = _whole(name, key)
            if call not in self._told:
                self._told.add(call)
                self._unanswered[tool].append(call)
                yield f"/{key}", "assistant", [call_block(call, tool, given)]
        for key, tool, shown, failed in results:
            call = _whole(name, key) if key else next(iter(self._unanswered[tool]), f"{name}/{tool}")
            if call in self._unanswered[tool]:
                self._unanswered[tool].remove(call)
            if f"{call}/result" not in self._told:
                self._told.add(f"{call}/result")
                yield f"/{key or call}/result", "user", [result_block(call, answered(_answer(shown)), failed=failed)]


def _whole(name: str, key: str) -> str:
    """Return what tells a call from all others: its id, or what it is, and in which record."""
    return f"{name}/{key}" if key.startswith(_ANONYMOUS) else key


def _role(record: JsonLine) -> str | None:
    kind = record.get("type", record.get("role"))
    return _ROLES.get(kind) if isinstance(kind, str) else None


def _content(record: JsonLine) -> list[Json]:
    content = record.get("content", record.get("parts"))
    return content if isinstance(content, list) else [content]


def _said(record: JsonLine) -> Iterator[Block]:
    """Yield the words and images of a record; of a person what was typed, without the files that were put in for it."""
    typed = record.get("displayContent") if _role(record) == "user" else None
    parts = (typed if isinstance(typed, list) else [typed]) if typed else _content(record)
    for part in parts:
        match part:
            case str(text) | {"text": str(text)} if text.strip():
                if not as_object(part).get("thought"):
                    yield text_block(text)
            case {"inlineData": {"data": data, "mimeType": kind}}:
                if image := image_block(data, kind):
                    yield image
            case _:
                pass


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
    """Yield what came of calls: a key, if it says of which, the tool's name, what it told, and whether it failed."""
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
    """Return what a tool answered without the envelopes around it."""
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
    """Return the id of a call, or what it is where it has none."""
    given = f"{call.get('name')}\0{call.get('args')}".encode("utf-8", "replace")
    return as_text(call.get("id")) or _ANONYMOUS + hashlib.sha256(given).hexdigest()[:16]


def _words(record: JsonLine) -> str:
    """Return what tells a record from others that are not the same, whatever its name."""
    said = "".join(joined([*_said(record)]).split())
    return f"{_role(record)} {said} {sorted(key for key, _, _ in _calls(record))}"


# Where a chat belongs -------------------------------------------------------------------------------------------------


def _tmp_folder(path: Path) -> Path | None:
    """Return the folder that Gemini CLI keeps for a project, or None when the chat lies elsewhere."""
    return next((parent.parent for parent in path.parents if parent.name == _CHATS), None)


def _directory(path: Path) -> str | None:
    """Return the directory in which a chat was held, if Gemini CLI has noted it beside, or None."""
    folder = _tmp_folder(path)
    if folder is None:
        return None
    try:
        with opened_plain(folder / ".project_root") as file:
            return file.read(_LONGEST_PATH).decode("utf-8", "replace").strip() or None
    except OSError:
        return _registered(folder)


def _registered(folder: Path) -> str | None:
    """Return the directory that the list of projects has for a folder of chats, or None."""
    try:
        listed = json_document(folder.parent.parent / "projects.json", SkippedLines())
    except OSError:
        return None
    projects: Iterable[tuple[str, Json]] = as_object(as_object(listed).get("projects")).items()
    return next((directory for directory, name in projects if name == folder.name), None)


def _project(path: Path) -> str | None:
    """Return the name of the folder of chats, if it is a name and not the hash of one."""
    folder = _tmp_folder(path)
    if folder is None or (len(folder.name) == 64 and not set(folder.name) - set("0123456789abcdef")):
        return None
    return as_text(folder.name)
