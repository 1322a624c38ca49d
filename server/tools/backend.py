"""The backend of the tools: the use cases in the server's own MCP endpoint, the HTTP API in `esker mcp`."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

from esker.server.core.conversation.records import Passage
from esker.server.core.facts.forgetting import Receipt
from esker.server.core.recall.answer import Recalled
from esker.server.core.recall.expansion import Expansion
from esker.server.core.records import SourcedMemory
from esker.server.core.reports import PoolStatus
from esker.server.usecases.correct import Correction
from esker.server.usecases.expand import ExpandRequest
from esker.server.usecases.recall_request import RecallRequest
from esker.server.usecases.remember import Note

AnswerRecall = Callable[[Any, RecallRequest], Awaitable[Recalled]]
Expand = Callable[[Any, ExpandRequest], Awaitable[Expansion]]
Remember = Callable[[Any, Note], Awaitable[SourcedMemory]]
Correct = Callable[[Any, str, Correction], Awaitable[SourcedMemory]]
Forget = Callable[[Any, str, bool], Awaitable[Receipt]]
ReportStatus = Callable[[Any], Awaitable[PoolStatus]]
ReadRow = Callable[[Any, str], Awaitable[SourcedMemory | Passage]]
GetBriefingText = Callable[[Any, str | None], Awaitable[str]]
GetPackText = Callable[[Any, str], Awaitable[str]]
GetScopes = Callable[[Any], Awaitable[frozenset[str]]]


@dataclass(frozen=True, slots=True)
class Backend:
    """The functions behind the tools and resources; they raise the errors of the use cases.

    The first argument of each is the HTTP request of the call, which carries the key; None on stdio.
    """

    recall: AnswerRecall
    expand: Expand
    remember: Remember
    correct: Correct
    """Replaces a memory, given by its id, with a corrected one."""
    forget: Forget
    status: ReportStatus
    read: ReadRow
    """Returns a memory or a passage by its id."""
    pack: GetPackText
    """Returns the text of a session's pack by the session's id."""
    briefing: GetBriefingText
    """Returns the text of a briefing about a project, or (None) about where the caller works or the pool."""
    scopes: GetScopes
    """Returns what the caller's key may do."""
