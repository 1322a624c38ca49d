"""A client's own compaction: at a threshold a call of the model sums the history up, and the summary replaces it.

Claude Code compacts when a request is within 33,000 tokens of the window: 20,000 for the answer, and 13,000 to spare
(https://github.com/anthropics/claude-code/issues/31806). With a window of 200,000 tokens that is at 167,000; a session
of version 2.1.22 notes 167,371. Its summary replaces everything; the one of that session has 16,324 characters, some
4,000 tokens. pi keeps the latest 20,000 tokens (`compaction.keepRecentTokens` of its settings). A transcript that notes
its compactions is replayed with those, at their moments; all others as Claude Code does.
"""

from collections.abc import Sequence
from datetime import datetime

from esker.server.core.conversation.blocks import content_tokens, result_ids
from evals.gateway.histories import History, Message, Noted
from evals.gateway.provider import Account
from evals.gateway.replay import Replayed, request_of

_THRESHOLD = 167_000
_SUMMARY_TOKENS = 4_000
_PI_KEEPS = 20_000
# The price of an output token, as a multiple of an input token's: the same for all of Anthropic's models.
_OUTPUT_PRICE = 5
_ASKED: Message = {
    "role": "user",
    "content": [{"type": "text", "text": "Sum up this conversation, so that the work can go on without it. " * 20}],
}
_FILLER = "The work went on, and this sentence stands for one of the summary. "


def replay_compacting(history: History, noted: Sequence[Noted], client: str) -> Replayed:
    """Count the requests of a session whose client compacts by itself, and the calls that write its summaries.

    The call for a summary reads the history from the cache as far as it is there.
    """
    account, waiting = Account(), [*noted]
    before: list[Message] = []
    start, summary, last = 0, "", {}
    for place in history.requests():
        at = history.times[place - 1]
        last = request_of([*before, *history.messages[start:place]])
        written = _summary_due(waiting, at) if noted else _summary_at(last)
        if written:
            account.count(request_of([*before, *history.messages[start:place], _ASKED]), at)
            account.cost += _OUTPUT_PRICE * _tokens([{"type": "text", "text": written}])
            summary = written
            before = [{"role": "user", "content": [{"type": "text", "text": summary}]}]
            start = _kept_from(history.messages[:place], _PI_KEEPS if client == "pi" else 0)
            last = request_of([*before, *history.messages[start:place]])
        account.count(last, at)
    return Replayed("compaction", account, last, summary)


def _summary_due(waiting: list[Noted], at: datetime | None) -> str:
    """Return the summary that the client wrote before a request, and take it from the list."""
    return waiting.pop(0).summary if waiting and at and waiting[0].at <= at else ""


def _summary_at(request: Message) -> str:
    """Return a summary of the usual length if a request is beyond the threshold."""
    messages = [block for message in request["messages"] for block in message["content"]]
    if _tokens([*request["system"], *messages]) < _THRESHOLD:
        return ""
    return _FILLER * (_SUMMARY_TOKENS // _tokens([{"type": "text", "text": _FILLER}]))


def _kept_from(messages: Sequence[Message], most: int) -> int:
    """Return where the latest messages of at most so many tokens begin; the first has no result without its call."""
    start, tokens = len(messages), 0
    while start and (tokens := tokens + _tokens(messages[start - 1]["content"])) <= most:
        start -= 1
    while start < len(messages) and result_ids(messages[start]["content"]):
        start += 1
    return start


def _tokens(blocks: Sequence[Message]) -> int:
    return sum(content_tokens([block]) for block in blocks)
