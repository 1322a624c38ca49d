"""A request to a model as far as the gateway understands it."""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from esker.server.agents.project import is_excluded, project_of
from esker.server.core.config.gateway_rules import GatewayMode, GatewayRule, read_mode, read_switch, rule_for
from esker.server.core.config.settings import Settings
from esker.server.core.json_input import JsonObject, as_object
from esker.server.gateway.callers import caller_of, check_names, is_aside
from esker.server.gateway.compactions import without_order, without_summary
from esker.server.gateway.encodings import decoded
from esker.server.gateway.identity import KnownTurn, identified
from esker.server.gateway.records import Caller, Conversation, ModelAnswer, Protocol
from esker.server.gateway.server_sent_events import read_events


@dataclass(frozen=True, slots=True)
class ModelRequest:
    """A request: its text, the conversation in it, its sender and what to do with it.

    One that `asks_for_summary` has its client compact the conversation; the answer is no turn of it.
    """

    protocol: Protocol
    text: str
    conversation: Conversation
    caller: Caller
    mode: GatewayMode
    recall: bool
    """Whether the model is to have the tool `recall_memory`, if the client has not."""
    asks_for_summary: bool = False
    turns: Sequence[KnownTurn] = ()
    """The turns of the conversation with their ids, if these were needed already."""
    forgetting: str | None = None
    """The pool's latest forgetting when the request came, by what tells it from others; None if nobody asked."""

    def known_turns(self) -> Sequence[KnownTurn]:
        """Return the turns of the conversation with their ids."""
        return self.turns or identified(self.conversation.turns)


class Unread(Exception):
    """A request that is passed on as it came, for a reason that is counted."""


def read_request(
    protocol: Protocol,
    headers: Mapping[str, str],
    body: bytes,
    settings: Settings,
    exclude: Callable[[], Sequence[str]],
) -> ModelRequest:
    """Return a request. Raises Unread, and ValueError, RecursionError or EskerError for one of another form."""
    text = decoded(body, headers.get("content-encoding")).decode("utf-8")
    document: JsonObject = as_object(json.loads(text))
    conversation = protocol.read_request(document)
    caller = caller_of(headers, document, conversation.instructions)
    if caller.project is None and caller.cwd:
        caller = replace(caller, project=project_of(caller.cwd))
    check_names(caller)
    if is_aside(caller, conversation.offers_tools):
        raise Unread("aside")
    asked = read_mode(headers.get("x-esker-mode", ""))
    rule = rule_for(settings.gateway_rules, caller.client, caller.project)
    # A sender that asks for it is not read, whatever the rules of the server say.
    mode = "off" if asked == "off" else rule.mode if rule else asked or settings.gateway_mode
    if mode == "off" or is_excluded(caller.cwd, caller.project, exclude()):
        raise Unread("off")
    recall = _has_recall(read_switch(headers.get("x-esker-recall", "")), rule, settings, caller)
    without = without_order(conversation.turns)
    turns = without_summary(conversation.turns if without is None else without)
    return ModelRequest(protocol, text, replace(conversation, turns=turns), caller, mode, recall, without is not None)


def _has_recall(asked: bool | None, rule: GatewayRule | None, settings: Settings, caller: Caller) -> bool:
    """Return whether a model is to have the tool: as its sender asks, else by its rule, else by the setting."""
    if asked is not None:
        return asked
    if rule and rule.recall is not None:
        return rule.recall
    return any(each.applies(caller.client, caller.project) for each in settings.gateway_recall)


def read_answer(protocol: Protocol, headers: Mapping[str, str], copy: bytes) -> ModelAnswer:
    """Return an answer. Raises InvalidInput, ValueError or RecursionError if it cannot be read."""
    body = decoded(copy, headers.get("content-encoding"))
    if headers.get("content-type", "").startswith("text/event-stream"):
        return protocol.read_events(read_events(body))
    return protocol.read_answer(as_object(json.loads(body)))
