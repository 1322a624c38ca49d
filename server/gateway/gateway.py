"""The gateway's way of a request: read it, put the pack in, send it on, stream the answer back, keep what was said.

Memory never breaks an agent: if Esker fails at its part, the request is sent on as it came, and the failure is counted.
"""

import asyncio
import logging
import re
from collections.abc import Callable, Coroutine, Mapping, Sequence
from dataclasses import replace
from functools import partial
from urllib.parse import unquote

import httpx2
from starlette.datastructures import Headers
from starlette.types import Receive, Scope, Send

from esker.server.core.config.gateway_rules import UPSTREAMS, read_mode, read_switch
from esker.server.core.context.usage import UNCHANGED, RequestChange
from esker.server.core.errors import EskerError, InvalidInput
from esker.server.core.records import Principal
from esker.server.gateway.answers import AnswerSender, Copy
from esker.server.gateway.backlog import Exchange
from esker.server.gateway.identity import identified
from esker.server.gateway.keeping import Keeper
from esker.server.gateway.placing import PlacedRequest, Placing
from esker.server.gateway.prompts import Prompts, Remade
from esker.server.gateway.protocols import protocol_of
from esker.server.gateway.reading import ModelRequest, Unread, read_answer, read_request
from esker.server.gateway.recalling import CutOff, Recalling, SentRequest
from esker.server.gateway.records import ModelAnswer, Protocol
from esker.server.gateway.upstreams import Upstreams, sent_on
from esker.server.rest.problems import problem, problem_of
from esker.server.usecases.parts import Parts

log = logging.getLogger(__name__)

# Bytes of a request up to which reading it takes less time than starting a thread.
_SMALL = 256 * 1024
_OPTIONS = ("client", "project", "cwd", "session", "mode", "recall")
_SLASH = r"/|\\|%2f|%5c"
_UPWARD = re.compile(rf"(?:^|{_SLASH})(?:\.|%2e){{1,2}}(?:{_SLASH}|;|$)", re.IGNORECASE)


class Gateway:
    """The ASGI app of the gateway, at `/gateway/PROVIDER/PATH`."""

    def __init__(self, parts: Parts, exclude: Callable[[], Sequence[str]] = tuple) -> None:
        """`exclude` returns the patterns of projects and directories in which nothing is read."""
        self._parts = parts
        self._exclude = exclude
        self._upstreams = Upstreams({**UPSTREAMS, **parts.settings.gateway_upstreams})
        self._keeper = Keeper(parts)
        self._placing = Placing(parts, self._keeper)
        self._recalling = Recalling(parts, self._keeper)
        self._prompts = Prompts(parts, self._keeper)
        self._tasks: set[asyncio.Task[None]] = set()

    async def close(self) -> None:
        """Keep what was said so far, and close the connections."""
        await asyncio.gather(*self._tasks)
        await self._placing.close()
        await self._keeper.close()
        await self._upstreams.close()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on, and its answer back."""
        if Headers(scope=scope).get("upgrade", "").lower() == "websocket":
            # Codex takes this status for "by HTTP, then", and tries others again for seconds.
            refused = problem(426, "The gateway passes no WebSockets on.", hint="Send the request by HTTP.")
            await refused(scope, receive, send)
            return
        try:
            options, name, path = _target(scope)
            headers = {**dict(Headers(scope=scope)), **options}
            read_mode(headers.get("x-esker-mode", ""))
            read_switch(headers.get("x-esker-recall", ""))
            address = self._upstreams.address(name, path, scope["query_string"])
            body = await _body(receive)
            await _unless_gone(receive, self._pass_on(scope, address, path, headers, body, send))
        except EskerError as error:
            await problem_of(error)(scope, receive, send)

    async def _pass_on(
        self, scope: Scope, address: str, path: str, headers: Mapping[str, str], body: bytes, send: Send
    ) -> None:
        """Send a request on and stream the answer back. Raises Unavailable if the provider does not answer."""
        who: Principal | None = scope["state"].get("principal")
        protocol = protocol_of(path) if scope["method"] == "POST" and who else None
        read = await self._read(protocol, headers, body) if protocol else None
        if read and who and "read" not in who.scopes:
            read = replace(read, mode="watch")
        is_readable = read and not (path.endswith(":streamGenerateContent") and b"alt=sse" not in scope["query_string"])
        with_tool = await self._recalling.prepared(who, read) if read and who and is_readable else None
        read = with_tool or read
        placed, remade, sent = None, None, read.text.encode() if read and with_tool else body
        if read and who and read.mode in ("pack", "manage"):
            placed, remade = await self._with_memory(who, read)
            sent = remade.text.encode() if remade else sent
        elif read and who:
            self._count("watched")
            if not (read.caller.session_name or read.conversation.has_answer):
                self._in_background(self._begin(who, read))
        given = sent_on(scope["headers"], is_rewritten=sent is not body, is_spliced=with_tool is not None)
        again = partial(self._upstreams.sent, scope["method"], address, given)
        scope["state"]["body_is_read"]()
        async with again(sent) as answer:
            copy = Copy()
            client = AnswerSender(send, copy)
            try:
                if who and with_tool:
                    session = placed.session if placed else None
                    request = SentRequest(who, session, with_tool, sent.decode(), again)
                    await self._recalling.pass_back(answer, request, client)
                else:
                    await client.pass_back(answer)
            except (httpx2.RequestError, CutOff) as error:
                # The connection is then closed without the end of the answer, by which the client knows.
                log.warning("The answer of %s was cut off: %s", answer.url.host, error or type(error).__name__)
            finally:
                # Some clients close the connection as soon as they have read the last event.
                if read and who and answer.status_code == 200:
                    change = remade.change if remade else UNCHANGED
                    self._in_background(self._keep(who, read, placed, change, client.headers, copy))

    async def _read(self, protocol: Protocol, headers: Mapping[str, str], body: bytes) -> ModelRequest | None:
        """Return a request; None if it is not understood, or nothing of it may be read."""
        read = partial(read_request, protocol, headers, body, self._parts.settings, self._exclude)
        try:
            # A small body may be a large one that is compressed.
            is_small = len(body) < _SMALL and "content-encoding" not in headers
            return read() if is_small else await asyncio.to_thread(read)
        except Unread as reason:
            self._count(str(reason))
        except (ValueError, RecursionError, EskerError):
            self._count("not understood")
        except Exception:
            log.exception("The gateway could not read a request; it is sent on as it came")
            self._count("failed")
        return None

    async def _with_memory(self, who: Principal, read: ModelRequest) -> tuple[PlacedRequest | None, Remade | None]:
        """Return the session of a request, and its text with what memory adds; None if there is nothing to add."""
        try:
            placed = await self._placing.placed(who, read)
            remade = await self._prompts.with_memory(who, read, placed.session, placed.turns)
        except (EskerError, TimeoutError, ValueError, RecursionError) as error:
            log.warning("A request of %s was sent on without its pack: %s", read.caller.client, error)
            self._count("failed")
            return None, None
        except Exception:
            log.exception("A request of %s was sent on without its pack", read.caller.client)
            self._count("failed")
            return None, None
        self._count("with pack" if remade else "without pack")
        return placed, remade

    async def _begin(self, who: Principal, read: ModelRequest) -> None:
        """Begin the session of the first request of a conversation, of which nothing waits for memory."""
        try:
            await self._placing.placed(who, read)
        except (EskerError, ValueError, RecursionError) as error:
            log.warning("A conversation of %s begins with its answer: %s", read.caller.client, error)
        except Exception:
            log.exception("A conversation of %s begins with its answer", read.caller.client)

    def _in_background(self, work: Coroutine[None, None, None]) -> None:
        """Do work in a task of its own, which goes on when the client is gone."""
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _keep(
        self,
        who: Principal,
        read: ModelRequest,
        placed: PlacedRequest | None,
        change: RequestChange,
        headers: Headers,
        copy: Copy,
    ) -> None:
        """Keep an exchange for its session: the turns of its request, and an answer that is whole."""
        try:
            placed = placed or await self._placing.placed(who, read)
            answer = await asyncio.to_thread(_answer, read, headers, copy.bytes) if copy.chunks else None
            if answer and copy.used:
                answer = replace(answer, used=copy.used)
                # Without the gateway, the further requests would not have been.
                change = replace(change, pack_tokens=change.pack_tokens + copy.further_tokens)
            answered = answer.turns if answer and answer.whole else ()
            said = [*read.conversation.turns, *(() if read.asks_for_summary else answered)]
            turns = await asyncio.to_thread(identified, said)
            self._placing.note(who, read, placed.session.external_id, turns)
            if read.asks_for_summary:
                self._placing.note_summary(who, read, placed.session.external_id, answered)
            size = len(read.text) + copy.size
            self._keeper.keep(Exchange(who, placed.session, turns, placed.is_fork, answer, size, change))
        except (EskerError, ValueError, RecursionError) as error:
            log.warning("An exchange of %s was not kept: %s", read.caller.client, error)
            self._count("not kept")
        except Exception:
            log.exception("An exchange of %s was not kept", read.caller.client)
            self._count("not kept")

    def _count(self, outcome: str) -> None:
        self._parts.instruments.gateway_requests.labels(outcome).inc()


def _answer(read: ModelRequest, headers: Headers, copy: bytes) -> ModelAnswer | None:
    """Return an answer; None if it cannot be read, since the turns of its request are worth keeping."""
    try:
        return read_answer(read.protocol, headers, copy)
    except (EskerError, ValueError, TypeError, RecursionError) as error:
        log.warning("An answer to %s could not be read: %s", read.caller.client, error)
        return None


def _target(scope: Scope) -> tuple[Mapping[str, str], str, str]:
    """Return the options in an address, its provider and its path, as it was written. Raises InvalidInput.

    The options stand for headers that a client cannot send: `/gateway/~client=pi~project=acme%2Fshop/anthropic/…`.
    """
    raw: bytes = scope.get("raw_path") or scope["path"].encode()
    _, _, name, path = (*raw.decode("latin-1").split("/", 3), "")[:4]
    options: dict[str, str] = {}
    if name.startswith("~"):
        for option in name[1:].split("~"):
            key, _, value = option.partition("=")
            if key not in _OPTIONS:
                raise InvalidInput(f"{key[:40]!r} is no option of the gateway; these are: {', '.join(_OPTIONS)}.")
            options[f"x-esker-{key}"] = unquote(value)
        name, _, path = path.partition("/")
    if _UPWARD.search(path) or "\\" in path:
        raise InvalidInput("The path of a request must not lead upward.")
    return options, name, path


async def _body(receive: Receive) -> bytes:
    """Return the body of a request. Raises TooLarge and TooSlow."""
    parts: list[bytes] = []
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise InvalidInput("The client went away before its request was complete.")
        parts.append(message.get("body", b""))
        if not message.get("more_body"):
            return b"".join(parts)


async def _unless_gone(receive: Receive, work: Coroutine[None, None, None]) -> None:
    """Do some work, and cancel it if the client closes the connection: the provider then stops, too."""
    tasks = asyncio.create_task(work), asyncio.create_task(_gone(receive))
    try:
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
    if not tasks[0].cancelled():
        tasks[0].result()


async def _gone(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
