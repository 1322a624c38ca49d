"""Which facts of a session can still be answered from a request: the evidence that it contains.

A fact is in a request if one of the messages that say it is there as it was sent, or if the pack or the client's
summary states it: a line of the pack, or a line or a paragraph of the summary, that matches all keys of its label.
"""

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from esker.server.agents.transcript import TranscriptEntry
from esker.server.core.conversation.blocks import content_tokens
from evals.gateway.histories import Message, sent_blocks
from evals.gateway.replay import Replayed
from evals.sessions.labels import LabelledFact, SessionLabels


def facts_of(file: Path, labels: Sequence[SessionLabels]) -> Sequence[LabelledFact]:
    """Return the labelled facts of a transcript; none for one without labels."""
    for each in labels:
        wanted = Path(each.transcript).parts
        if file.resolve().parts[-len(wanted) :] == wanted:
            return each.facts
    return ()


def said_in(
    messages: Sequence[Message], facts: Sequence[LabelledFact], entries: Sequence[TranscriptEntry]
) -> list[LabelledFact]:
    """Return the facts of which a message that says them is among these messages, whole."""
    sent = {_bare(block) for message in messages for block in message["content"]}
    return [fact for fact in facts if any(_is_sent(entries[number - 1], sent) for number in fact.messages)]


def answerable(
    run: Replayed, facts: Sequence[LabelledFact], entries: Sequence[TranscriptEntry]
) -> Sequence[LabelledFact]:
    """Return the facts for which the last request of a run has evidence."""
    stated = [*run.pack.splitlines(), *run.summary.splitlines(), *run.summary.split("\n\n")]
    said = said_in(run.last["messages"], facts, entries)
    return [fact for fact in facts if fact in said or any(map(fact.is_stated_by, stated))]


def latest_messages(raw: Replayed, run: Replayed) -> Sequence[Message]:
    """Return the latest messages of a raw history that are no larger than another run's last request."""
    room = _request_tokens(run.last) - _request_tokens({**raw.last, "messages": []})
    kept: list[Message] = []
    for message in reversed(raw.last["messages"]):
        room -= sum(content_tokens([block]) for block in message["content"])
        if room < 0:
            break
        kept.append(message)
    return kept


def _request_tokens(request: dict[str, Any]) -> int:
    return sum(content_tokens([block]) for block in _blocks(request))


def _blocks(request: dict[str, Any]) -> Iterator[Message]:
    yield from request["system"]
    for message in request["messages"]:
        yield from message["content"]


def _is_sent(entry: TranscriptEntry, sent: set[str]) -> bool:
    blocks = sent_blocks(entry)
    return bool(blocks) and all(_bare(block) in sent for block in blocks)


def _bare(block: Message) -> str:
    return json.dumps({name: value for name, value in block.items() if name != "cache_control"}, sort_keys=True)
