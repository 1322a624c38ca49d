"""Recall as a tool that the gateway answers itself: the model's call is answered by a further request to the provider.

The client gets one answer, as if the model had known it at once.
"""

import asyncio
import json
import logging
from collections.abc import Callable, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack
from dataclasses import dataclass, fields, replace

import httpx2

from esker.server.core.errors import EskerError, InvalidInput, Unavailable
from esker.server.core.json_input import as_object
from esker.server.core.recall.rendering import recalled_text
from esker.server.core.records import Principal, TokenUse
from esker.server.gateway.answers import AnswerSender, chunks_of, is_readable, read_end, whole_of
from esker.server.gateway.hidden_calls import CallKeeper
from esker.server.gateway.identity import identified, place_of
from esker.server.gateway.json_spans import items, members, with_items
from esker.server.gateway.keeping import Keeper
from esker.server.gateway.reading import ModelRequest, read_answer
from esker.server.gateway.recall_tool import with_tool
from esker.server.gateway.records import Event, Protocol
from esker.server.gateway.server_sent_events import EventReader
from esker.server.gateway.splices import SPLICES
from esker.server.gateway.splices.splice import RecallCall, Splice
from esker.server.usecases.binding import bound_recall, parts_for
from esker.server.usecases.open_session import SessionRequest
from esker.server.usecases.parts import Parts
from esker.server.usecases.recall import recall
from esker.server.usecases.recall_request import RecallRequest

log = logging.getLogger(__name__)

# The most further requests for one answer, and the seconds within which they must begin.
_MOST_ROUNDS = 3
_ROUNDS_SECONDS = 180.0
# The most seconds that a search may take.
_RECALL_SECONDS = 5.0
_MOST_TOKENS = 2_000
_NO_QUESTION = "The call had no question. Call the tool with a question in the member `query`."
_NOT_NOW = "Memory cannot be searched now. Go on without it."
_LAST = "(No further call of this tool is answered before the user has spoken again.)"
_UNREAD = "An answer to %s could not be read for calls of recall_memory"

Again = Callable[[bytes], AbstractAsyncContextManager[httpx2.Response]]


class CutOff(Exception):
    """An answer of which the client has a part, and that cannot go on."""


@dataclass(frozen=True, slots=True)
class SentRequest:
    """A request as it was sent, and its session if that is known. `again` sends another body in its place."""

    who: Principal
    session: SessionRequest | None
    read: ModelRequest
    text: str
    again: Again


class Recalling:
    """Offers the tool, and answers its calls."""

    def __init__(self, parts: Parts, keeper: Keeper) -> None:
        self._parts = parts
        self._hidden = CallKeeper(parts, keeper)

    async def prepared(self, who: Principal, read: ModelRequest) -> ModelRequest | None:
        """Return a request with the tool, and with earlier calls of it; None for one that must not have it."""
        if not read.recall or read.mode not in ("pack", "manage"):
            return None
        try:
            known = replace(read, turns=await asyncio.to_thread(read.known_turns))
            request = await self._hidden.put_back(who, _sender(who, read), known)
            text = with_tool(read.protocol.name, request.text)
        except (ValueError, RecursionError):
            # A request of another form, which is counted by what becomes of it.
            return None
        except Exception:
            log.exception("A request of %s was sent on without the tool recall_memory", read.caller.client)
            self._count("failed")
            return None
        return replace(request, text=text) if text else None

    async def pass_back(self, answer: httpx2.Response, sent: SentRequest, client: AnswerSender) -> None:
        """Send an answer back, and answer the calls in it. Raises CutOff and RequestError in the middle of it."""
        if answer.status_code != 200 or not is_readable(answer):
            await client.pass_back(answer)
        elif _is_stream(answer):
            await self._pass_stream(answer, sent, client)
        elif answer.headers.get("content-type", "").startswith("application/json"):
            await self._pass_document(answer, sent, client)
        else:
            await client.pass_back(answer)

    async def _pass_stream(self, answer: httpx2.Response, sent: SentRequest, client: AnswerSender) -> None:
        chain = _Chain(sent, SPLICES[sent.read.protocol.name]())
        await client.start(answer, is_rewritten=True)
        async with AsyncExitStack() as opened:
            while True:
                events = await self._take_all(answer, chain, client)
                if events is None:
                    await client.end()
                    return
                body = await self._continued(chain, _used(sent.read.protocol, events))
                # Counted before the next request, which may fail or lose its client.
                client.copy.used, client.copy.further_tokens = chain.used, chain.further_tokens
                if body is None:
                    break
                try:
                    answer = await opened.enter_async_context(sent.again(body))
                except Unavailable as error:
                    raise CutOff(str(error)) from error
                if answer.status_code != 200 or not _is_stream(answer):
                    raise CutOff(f"the request after a recall was answered with the status {answer.status_code}")
        end = b"".join(chain.splice.finish())
        await self._note(chain, answer, client.copy.bytes + end)
        await client.write(end)
        await client.end()

    async def _pass_document(self, answer: httpx2.Response, sent: SentRequest, client: AnswerSender) -> None:
        chain = _Chain(sent, SPLICES[sent.read.protocol.name]())
        async with AsyncExitStack() as opened:
            while True:
                raw = await whole_of(answer)
                body = None
                try:
                    document = as_object(json.loads(raw))
                    chain.splice.take_document(document)
                    body = await self._continued(chain, sent.read.protocol.read_answer(document).used)
                except Exception:
                    log.exception(_UNREAD, sent.read.caller.client)
                    self._count("failed")
                    chain.is_changed = False
                client.copy.used, client.copy.further_tokens = chain.used, chain.further_tokens
                if body is None:
                    break
                answer = await opened.enter_async_context(sent.again(body))
                if answer.status_code != 200:
                    await client.pass_back(answer)
                    return
            if chain.is_changed:
                raw = json.dumps(chain.splice.document()).encode()
                await self._note(chain, answer, raw)
            await client.start(answer, is_rewritten=True, length=len(raw))
            await client.write(raw)
            await client.end()

    async def _take_all(self, answer: httpx2.Response, chain: "_Chain", client: AnswerSender) -> list[Event] | None:
        """Pass on what the client gets of an answer, as it comes, and return its events.

        If Esker fails at it, all of the answer is passed on, and None returned.
        """
        reader = EventReader()
        events: list[Event] | None = []
        chunks = chunks_of(answer)
        async for chunk in chunks:
            pieces: list[bytes] = []
            for event in reader.feed(chunk) if chunk else reader.rest():
                if events is None:
                    pieces.append(event.raw)
                    continue
                try:
                    pieces += chain.splice.take(event)
                    events += [Event(event.name, event.data)] if event.data else []
                except Exception as error:
                    log.exception(_UNREAD, chain.sent.read.caller.client)
                    self._count("failed")
                    if chain.rounds:
                        raise CutOff("its continuation could not be read") from error
                    events = None
                    pieces += [each.raw for each in (*chain.splice.unsent(), event)]
            await client.write(b"".join(pieces))
            if events is not None and chain.splice.has_ended():
                await read_end(chunks)
                break
        return events

    async def _continued(self, chain: "_Chain", used: TokenUse | None) -> bytes | None:
        """Answer the calls of an answer that has ended; return the body of the next request, None if it was the last.

        A call beside calls of the client is answered for the client's next request.
        """
        chain.use(used)
        calls = chain.splice.calls()
        chain.is_changed = chain.is_changed or chain.splice.hides_call()
        goes_on = not chain.splice.has_other_calls()
        if not calls or (goes_on and not chain.may_go_on()):
            return None
        results = [await self._result(chain, call) for call in calls]
        self._count("recalled")
        chain.rounds += 1
        if goes_on and chain.rounds == _MOST_ROUNDS:
            results[-1] = f"{results[-1]}\n{_LAST}"
        more = chain.splice.answer(results)
        if not goes_on:
            return None
        chain.text = with_end(chain.sent.read.protocol.history, chain.text, more)
        return chain.text.encode()

    async def _result(self, chain: "_Chain", call: RecallCall) -> str:
        if not call.query:
            return _NO_QUESTION
        sent = chain.sent
        request = RecallRequest(call.query, project=sent.read.caller.project, max_tokens=_MOST_TOKENS)
        try:
            async with asyncio.timeout(_RECALL_SECONDS):
                parts = parts_for(self._parts, sent.who)
                found = await recall(parts, sent.who.pool_id, bound_recall(sent.who, request))
            chain.shown.update(hit.id for hit in found.hits)
            return recalled_text(found)
        except InvalidInput as error:
            # The model can ask in another way.
            return str(error)
        except (EskerError, TimeoutError) as error:
            log.warning("A recall of %s failed: %s", sent.read.caller.client, error)
        except Exception:
            log.exception("A recall of %s failed", sent.read.caller.client)
        self._count("failed")
        return _NOT_NOW

    async def _note(self, chain: "_Chain", answer: httpx2.Response, body: bytes) -> None:
        """Remember what the client does not get, for its next requests; without it, they are valid as well."""
        if not chain.splice.hidden:
            return
        read = chain.sent.read
        try:
            said = read_answer(read.protocol, {"content-type": answer.headers.get("content-type", "")}, body)
            turns = await asyncio.to_thread(identified, [*read.conversation.turns, *said.turns])
            if len(turns) > len(read.turns):
                who, session = chain.sent.who, chain.sent.session
                place = place_of(_sender(who, read), turns[len(read.turns)].history)
                await self._hidden.keep(who, session, read, place, chain.splice.hidden, chain.shown)
        except Exception:
            log.exception("A recall of %s will not be in its next request", read.caller.client)

    def _count(self, outcome: str) -> None:
        self._parts.instruments.gateway_requests.labels(outcome).inc()


class _Chain:
    """The requests that make one answer."""

    def __init__(self, sent: SentRequest, splice: Splice) -> None:
        self.sent = sent
        self.splice = splice
        self.text = sent.text
        self.rounds = 0
        # The ids of the memories and passages in the results.
        self.shown: set[str] = set()
        self.is_changed = False
        self.used: TokenUse | None = None
        self.further_tokens = 0
        self._deadline = asyncio.get_running_loop().time() + _ROUNDS_SECONDS

    def use(self, used: TokenUse | None) -> None:
        """Count the tokens of one request."""
        if used and self.used:
            self.further_tokens += used.sent_tokens
            self.used = _sum(self.used, used)
        else:
            self.used = self.used or used

    def may_go_on(self) -> bool:
        """Return whether another request may be sent."""
        return self.rounds < _MOST_ROUNDS and asyncio.get_running_loop().time() < self._deadline


def _used(protocol: Protocol, events: Sequence[Event]) -> TokenUse | None:
    """Return the tokens of an answer, if it says them in a form that is understood."""
    try:
        return protocol.read_events(events).used
    except (ValueError, TypeError, RecursionError):
        return None


def _is_stream(answer: httpx2.Response) -> bool:
    return answer.headers.get("content-type", "").startswith("text/event-stream")


def _sum(one: TokenUse, other: TokenUse) -> TokenUse:
    return TokenUse(**{each.name: getattr(one, each.name) + getattr(other, each.name) for each in fields(one)})


def with_end(history: str, text: str, more: Sequence[object]) -> str:
    """Return a request with more items at the end of its history."""
    start = members(text)[history].start
    return with_items(text, start, {len(items(text, start)): [*map(json.dumps, more)]})


def _sender(who: Principal, read: ModelRequest) -> str:
    """Return whose hidden calls may be in a request: those of the same rights, project and protocol.

    Some clients change to a model of another provider in the middle of a conversation.
    """
    return json.dumps([who.pool_id, who.project, read.caller.client, read.caller.project, read.protocol.name])
