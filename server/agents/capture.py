"""What a hook sends of a session: what is new in its transcript, and what happened; if need be by way of the spool."""

import hashlib
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from esker.server.agents import opencode
from esker.server.agents.api import Api, ServerRefused
from esker.server.agents.exclusion import without_excluded
from esker.server.agents.hook_input import HookEvent
from esker.server.agents.lines import opened_plain
from esker.server.agents.progress import SentBefore
from esker.server.agents.project import is_excluded
from esker.server.agents.readers import READERS, sessions
from esker.server.agents.request_bodies import event_body, open_body
from esker.server.agents.sending import as_batches, deliver
from esker.server.agents.spool import Parcel, Spool, is_transient
from esker.server.agents.transcript import Transcript, TranscriptEntry
from esker.server.core.config.client_settings import ClientSettings
from esker.server.core.errors import Unavailable

_POST_SECONDS = 30.0
# What a client tells of the end of its context calls for observing; the end of a turn does not, and is not told.
_EVENTS = {"compact": "compaction_pending", "end": "session_end"}


class Capture:
    """Sends one session to the server, or to the spool where there is no server."""

    def __init__(
        self, settings: ClientSettings, asked: HookEvent, project: str | None, environ: Mapping[str, str]
    ) -> None:
        self._settings = settings
        self._asked = asked
        self._project = project
        self._environ = environ
        self._is_excluded = is_excluded(asked.cwd, project, settings.exclude)
        self._api = Api.to(settings, timeout=_POST_SECONDS)
        self._spool = Spool(settings.state_dir / "spool", self._api.url, settings.key)
        self._there = True

    def catch_up(self) -> None:
        """Send what waits in the spool."""
        self._there = self._spool.replay(self._api, deliver).waiting == 0

    def prompt(self) -> None:
        """Send what was asked, of a session that keeps no transcript."""
        if self._asked.prompt and not self._read():
            self._say("user", self._asked.prompt)
        self.catch_up()

    def transcript(self) -> None:
        """Send what is new in the transcript, and then what happened."""
        self.catch_up()
        there = self._read()
        transcripts = [kept for one in there if (kept := self._kept(one))]
        if not transcripts and (there or self._is_excluded):
            return
        for transcript in transcripts:
            self._send(transcript)
        # A transcript that the client names is written sooner or later, and then read.
        if not there and self._asked.transcript is None and self._asked.answer:
            self._say("assistant", self._asked.answer)
        if kind := _EVENTS.get(self._asked.step):
            self._keep(self._event(kind, transcripts))
        self.catch_up()

    def _kept(self, transcript: Transcript) -> Transcript | None:
        """Return what may be sent of a transcript; one that does not tell its directory is of the hook's."""
        if transcript.cwd is None and self._is_excluded:
            return None
        return without_excluded(transcript, self._settings.exclude)

    def _event(self, kind: str, transcripts: list[Transcript]) -> Parcel:
        if not transcripts:
            return self._parcel(event=event_body(kind, self._asked.turn))
        length = sum(len(transcript.entries) for transcript in transcripts)
        parcel = self._parcel(event=event_body(kind, f"{length}"))
        # The session may have come to an excluded place since, which is not told.
        if (at := transcripts[0]).cwd:
            parcel["session"] = open_body(self._asked.client, self._asked.session, at.cwd, at.project)
        return parcel

    def _read(self) -> list[Transcript]:
        """Return the sessions of the file that the client names, or else of the first that bears the session's name and
        holds something; of OpenCode's databases the one that holds the session.
        """
        named = self._asked.transcript
        for file in [named] if named is not None and named.is_file() else self._found():
            if found := self._read_file(file):
                return found
        return []

    def _found(self) -> list[Path]:
        files = sessions(self._environ, Path.home()).get(self._asked.client, [])
        return [file for file in files if file.suffix == ".db" or str(self._asked.session) in file.name]

    def _read_file(self, file: Path) -> list[Transcript]:
        asked = self._asked
        if asked.client == opencode.CLIENT:
            return opencode.read_transcript(file, session=asked.session).transcripts
        return READERS[asked.client](file, opened_plain).transcripts

    def _send(self, transcript: Transcript) -> None:
        """Send what is new, batch by batch, and note each that the server or the spool has taken."""
        before = SentBefore(self._settings)
        with before.alone(transcript):
            unsent = before.unsent(transcript)
            done = len(transcript.entries) - len(unsent)
            cwd, project = transcript.cwd or self._asked.cwd, transcript.project or self._project
            opened_as = open_body(transcript.client, transcript.external_id, cwd, project)
            for batch in as_batches(unsent):
                if not self._take({"session": opened_as, "messages": batch}):
                    return
                done += len(batch)
                before.advance(transcript, done)

    def _say(self, role: str, text: str) -> None:
        """Send what no transcript holds. A client may tell it twice, in one moment; said again later it is another."""
        words = hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()[:16]
        entry = TranscriptEntry(f"{role}:{self._asked.turn or int(time.time())}:{words}", role, text, None)
        if self._asked.session:
            SentBefore(self._settings).tell(Transcript(self._asked.client, self._asked.session), entry)
        [batch] = as_batches([entry])
        self._keep(self._parcel(messages=batch))

    def _keep(self, parcel: Parcel) -> None:
        """Keep what is nowhere else, and is sent by the next `catch_up`; where it cannot be kept, send it."""
        if not self._spool.put(parcel):
            deliver(self._api, parcel)

    def _parcel(self, **what: Any) -> Parcel:
        asked = self._asked
        return {"session": open_body(asked.client, asked.session, asked.cwd, self._project), **what}

    def _take(self, parcel: Parcel) -> bool:
        """Give a parcel to the server, or behind what waits for it to the spool; tell whether one of them has it."""
        if self._there:
            try:
                self._spool.set_aside(parcel, deliver(self._api, parcel))
            except Unavailable:
                self._there = False
            except ServerRefused as error:
                if not is_transient(error):
                    raise
                self._there = False
            else:
                return True
        return self._spool.put(parcel)
