"""Capture: a hook sends a session's new messages and its event, through the spool if the server is away."""

import hashlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from esker.server.agents import opencode
from esker.server.agents.api import Api
from esker.server.agents.exclusion import without_excluded
from esker.server.agents.hook_input import HookEvent
from esker.server.agents.lines import opened_plain
from esker.server.agents.progress import SendProgress
from esker.server.agents.project import is_excluded
from esker.server.agents.readers import READERS, sessions
from esker.server.agents.request_bodies import event_body, open_body
from esker.server.agents.sending import as_batches, deliver, deliver_allowed
from esker.server.agents.spool import Parcel, Spool, is_transient
from esker.server.agents.transcript import Transcript, TranscriptEntry
from esker.server.core.config.client_settings import ClientSettings
from esker.server.core.config.home import home
from esker.server.core.errors import Unavailable
from esker.server.core.http_answers import ServerRefused

_POST_SECONDS = 30.0
# Steps that are forwarded as events because they trigger observation. A turn end triggers nothing, so it is not sent.
_EVENTS = {"compact": "compaction_pending", "end": "session_end"}


class Capture:
    """Sends one session to the server, or to the spool if the server cannot be reached."""

    def __init__(
        self, settings: ClientSettings, event: HookEvent, project: str | None, environ: Mapping[str, str]
    ) -> None:
        self._settings = settings
        self._event = event
        self._project = project
        self._environ = environ
        self._is_excluded = is_excluded(event.cwd, project, settings.exclude)
        self._api = Api.to(settings, timeout=_POST_SECONDS)
        self._spool = Spool(settings.state_dir / "spool", self._api.url, settings.key)
        self._reachable = True

    def catch_up(self) -> None:
        """Replay the spool."""
        allowed = deliver_allowed(self._settings.exclude)
        self._reachable = self._spool.replay(self._api, allowed).waiting == 0

    def keep_prompt(self) -> None:
        """Spool the prompt of a session that has no transcript; the next `catch_up` sends it."""
        event = self._event
        if not event.prompt or self._read():
            return
        role = "assistant" if event.by_agent else "user"
        for part in event.parts:
            self._send_message(role, part.text, part.name)
        if not event.parts:
            self._send_message(role, event.prompt)

    def transcript(self) -> None:
        """Send the new messages of the transcript, then the event."""
        self.catch_up()
        found = self._read()
        transcripts = [kept for one in found if (kept := self._allowed(one))]
        # `claude mcp list` ends a session whose transcript was never written; its event would open an empty one.
        is_empty = not found and self._event.transcript is not None
        if is_empty or (not transcripts and (found or self._is_excluded)):
            return
        for transcript in transcripts:
            self._send(transcript)
        # If the client named a transcript, the answer will be read from it later; send it here only if there is none.
        if not found and self._event.answer:
            self._send_message("assistant", self._event.answer)
        if kind := _EVENTS.get(self._event.step):
            self._spool_or_send(self._event_parcel(kind, transcripts))
        self.catch_up()

    def _allowed(self, transcript: Transcript) -> Transcript | None:
        """Return a transcript without its excluded parts; one that names no directory gets that of the hook."""
        if transcript.cwd is None and self._is_excluded:
            return None
        return without_excluded(transcript, self._settings.exclude)

    def _event_parcel(self, kind: str, transcripts: list[Transcript]) -> Parcel:
        if not transcripts:
            return self._parcel(event=event_body(kind, self._event.turn))
        length = sum(len(transcript.entries) for transcript in transcripts)
        parcel = self._parcel(event=event_body(kind, f"{length}"))
        # The session may be in an excluded directory by now, so the directory where it began is sent.
        if (first := transcripts[0]).cwd:
            parcel["session"] = open_body(self._event.client, self._event.session, first.cwd, first.project)
        return parcel

    def _read(self) -> list[Transcript]:
        """Return the sessions of the file that the client named, or else of the first file whose name contains the
        session's id and that is not empty; for OpenCode, from the database that contains the session.
        """
        transcript = self._event.transcript
        for file in [transcript] if transcript is not None and transcript.is_file() else self._session_files():
            if found := self._read_file(file):
                return found
        return []

    def _session_files(self) -> list[Path]:
        files = sessions(self._environ, home()).get(self._event.client, [])
        return [file for file in files if file.suffix == ".db" or str(self._event.session) in file.name]

    def _read_file(self, file: Path) -> list[Transcript]:
        event = self._event
        if event.client == opencode.CLIENT:
            return opencode.read_transcript(file, session=event.session).transcripts
        return READERS[event.client](file, opened_plain).transcripts

    def _send(self, transcript: Transcript) -> None:
        """Send the unsent messages in batches, and record each batch that the server or the spool has accepted."""
        progress = SendProgress(self._settings)
        with progress.locked(transcript):
            unsent = progress.unsent(transcript)
            done = len(transcript.entries) - len(unsent)
            cwd, project = transcript.cwd or self._event.cwd, transcript.project or self._project
            opened_as = open_body(transcript.client, transcript.external_id, cwd, project)
            for batch in as_batches(unsent):
                if not self._send_or_spool({"session": opened_as, "messages": batch}):
                    return
                done += len(batch)
                progress.advance(transcript, done)

    def _send_message(self, role: str, text: str, name: str | None = None) -> None:
        """Send a message that no transcript contains yet, under the id that its transcript will give it, if known.

        Without that id, identical messages of one turn, or of one second, count as one.
        """
        words = hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()[:16]
        at = self._event.received_at
        name = name or f"{role}:{self._event.turn or int(at.timestamp())}:{words}"
        entry = TranscriptEntry(name, role, text, at)
        if self._event.session:
            SendProgress(self._settings).record_early(Transcript(self._event.client, self._event.session), entry)
        [batch] = as_batches([entry])
        self._spool_or_send(self._parcel(messages=batch))

    def _spool_or_send(self, parcel: Parcel) -> None:
        """Spool a parcel, which the next `catch_up` sends; if the spool does not take it, send it now."""
        if not self._spool.put(parcel):
            deliver(self._api, parcel)

    def _parcel(self, **content: Any) -> Parcel:
        event = self._event
        return {"session": open_body(event.client, event.session, event.cwd, self._project), **content}

    def _send_or_spool(self, parcel: Parcel) -> bool:
        """Send a parcel, or spool it if the server is away; return whether either of them has accepted it."""
        if self._reachable:
            try:
                self._spool.set_aside(parcel, deliver(self._api, parcel))
            except Unavailable:
                self._reachable = False
            except ServerRefused as error:
                if not is_transient(error):
                    raise
                self._reachable = False
            else:
                return True
        return self._spool.put(parcel)
