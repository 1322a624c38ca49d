"""The context that a hook adds to a conversation: the pack, recalled memories, and a notice for the client's user."""

import signal
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from types import FrameType
from typing import TYPE_CHECKING

from esker.server.agents.hook_input import HookEvent
from esker.server.agents.hook_output import gives_pack_at_prompt, pack_context, recalled_context
from esker.server.agents.hook_state import HookState
from esker.server.agents.references import refers_to_earlier_work
from esker.server.agents.request_bodies import event_body, length_of, open_body
from esker.server.agents.shown_context import has_lost_pack, shows_pack
from esker.server.core.config.client_settings import ClientSettings
from esker.server.core.errors import EskerError
from esker.server.core.http_answers import ServerRefused

if TYPE_CHECKING:
    from esker.server.agents.api import Api

_LONGEST_QUERY = 4_000
_RECALLED = {"limit": 5, "max_tokens": 1_000}
# Statuses of a request whose key is missing or wrong, or may not do this.
_UNAUTHORIZED, _FORBIDDEN = 401, 403
_MOST_PROJECTS = 5


class TimeIsUp(BaseException):
    """The time that an agent waits for its hook is over."""


@dataclass(frozen=True, slots=True)
class HookAnswer:
    """The context for the model and the notice for the client's user; None for nothing."""

    context: str | None = None
    notice: str | None = None


class HookContext:
    """Asks the server what the model should know at one event, and waits for it for a limited time.

    `log` takes a line for every failure.
    """

    def __init__(
        self, event: HookEvent, project: str | None, settings: ClientSettings, log: Callable[[str], None]
    ) -> None:
        self._event = event
        self._project = project
        self._settings = settings
        self._log = log
        self._state = HookState(settings.state_dir, event.received_at)

    @cached_property
    def _api(self) -> "Api":
        # Most hooks ask the server nothing while the client waits, and importing the connection takes time: half a
        # second on a busy machine, which must not count as silence of the server.
        left, _ = signal.setitimer(signal.ITIMER_REAL, 0)
        from esker.server.agents.api import Api  # noqa: PLC0415

        signal.setitimer(signal.ITIMER_REAL, left)
        return Api.to(self._settings, timeout=self._settings.hook_seconds)

    def answer(self) -> HookAnswer:
        """Return what to add; nothing if the server fails or does not answer in time."""
        event = self._event
        if event.step not in ("start", "prompt") or self._state.is_silent(self._settings.url):
            return HookAnswer()
        signal.signal(signal.SIGALRM, ring)
        signal.setitimer(signal.ITIMER_REAL, self._settings.hook_seconds)
        try:
            return HookAnswer(self._at_start() if event.step == "start" else self._at_prompt())
        except ServerRefused as error:
            self._log(f"{event.step}: {error}")
            return HookAnswer(notice=self._notice(error))
        except EskerError as error:
            self._log(f"{event.step}: {error}")
            if isinstance(error.__cause__, TimeoutError):
                self._state.note_silence(self._settings.url)
        except TimeIsUp:
            self._log(f"{event.step}: no answer within {self._settings.hook_seconds:g} s")
            self._state.note_silence(self._settings.url)
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
        return HookAnswer()

    def _at_start(self) -> str | None:
        event = self._event
        if gives_pack_at_prompt(event.client):
            self._state.owe_pack(event.client, event.session or "")
            return None
        return self._pack(evicted=event.source == "compact")

    def _at_prompt(self) -> str | None:
        event = self._event
        pack = None
        if gives_pack_at_prompt(event.client):
            evicted = has_lost_pack(event)
            if evicted or self._state.owes_pack(event.client, event.session or ""):
                pack = self._pack(evicted=evicted)
                self._state.settle_pack(event.client, event.session or "")
        return "\n\n".join(filter(None, [pack, self._recall()])) or None

    def _pack(self, *, evicted: bool) -> str | None:
        """Return the session's pack for this client, a new one if a compaction has evicted the old one.

        Returns None if the model still sees it.
        """
        event = self._event
        session = self._api.post("/v1/sessions", self._opened())["id"]
        if evicted:
            self._api.post(f"/v1/sessions/{session}/events", event_body("evicted", length_of(event)))
        pack = pack_context(event.client, self._api.get(f"/v1/sessions/{session}/pack")["text"])
        if pack and shows_pack(event, pack):
            return None
        return pack or self._elsewhere()

    def _elsewhere(self) -> str | None:
        """Return a line about the projects that have memories, if the user wants one and this project has none."""
        if self._settings.hook_elsewhere != "on":
            return None
        found = self._api.get("/v1/projects", limit=_MOST_PROJECTS)["projects"]
        listed = ", ".join(f"{each['project']} ({each['memories']:,})" for each in found)
        where = f"the project {self._project}" if self._project else "this directory"
        return f"Esker has no memories of {where} yet. Projects with memories: {listed}." if listed else None

    def _recall(self) -> str | None:
        event = self._event
        prompt = event.prompt or ""
        enabled = self._settings.hook_recall == "always" or (
            self._settings.hook_recall == "explicit" and refers_to_earlier_work(prompt)
        )
        if not (enabled and event.by_user and prompt):
            return None
        session = self._api.post("/v1/sessions", self._opened())
        question = {"query": prompt[-_LONGEST_QUERY:], "timezone": session["timezone"], **_RECALLED}
        question |= {"project": session["project"]} if session["project"] else {}
        found = self._api.ask_for_text("/v1/recall", question)
        return recalled_context(event.client, found) if "\n* " in found else None

    def _opened(self) -> dict[str, object]:
        return open_body(self._event.client, self._event.session, self._event.cwd, self._project)

    def _notice(self, error: ServerRefused) -> str | None:
        """Return a notice for the client's user if the server refuses the key, once a day."""
        client = self._event.client
        if error.status not in (_UNAUTHORIZED, _FORBIDDEN) or not self._state.may_tell(
            f"{error.status}", client, self._settings.url
        ):
            return None
        nothing = f"Esker remembers and recalls nothing here: {self._settings.url} refuses this client's key ({error})."
        if error.status == _FORBIDDEN:
            return nothing
        return f"{nothing} Set ESKER_KEY where {client} starts, and run `esker install {client} --with-key`."


def ring(number: int, frame: FrameType | None) -> None:
    """Handle the alarm. Raises TimeIsUp."""
    raise TimeIsUp
