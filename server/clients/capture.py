"""What a hook sends of a session: what is new in its transcript, and what happened; if need be by way of the spool."""

import hashlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from server.clients import opencode
from server.clients.api import Api, Refused
from server.clients.hook_input import Told
from server.clients.lines import opened_plain
from server.clients.project import is_excluded
from server.clients.readers import READERS, sessions
from server.clients.sending import as_batches, deliver
from server.clients.sent import SentBefore
from server.clients.spool import Parcel, Spool, is_passing
from server.clients.telling import event_body, open_body
from server.clients.transcript import Entry, Transcript
from server.core.client_settings import ClientSettings
from server.core.errors import Unavailable

_POST_SECONDS = 30.0
# What a client tells of the end of its context calls for observing; the end of a turn does not, and is not told.
_EVENTS = {"compact": "compaction_pending", "end": "session_end"}


class Capture:
    """Sends one session to the server, or to the spool where there is no server."""

    def __init__(self, settings: ClientSettings, asked: Told, project: str | None, environ: Mapping[str, str]) -> None:
        self._settings = settings
        self._asked = asked
        self._project = project
        self._environ = environ
        self._api = Api.to(settings, timeout=_POST_SECONDS)
        self._spool = Spool(settings.state_dir / "spool", self._api.url, settings.key)
        self._there = True

    def catch_up(self) -> None:
        """Send what waits in the spool."""
        self._there = self._spool.replay(self._api, deliver).waiting == 0

    def prompt(self) -> None:
        """Send what was asked, of a session that keeps no transcript."""
        if self._asked.prompt and self._file() is None:
            self.catch_up()
            self._say("user", self._asked.prompt)

    def transcript(self) -> None:
        """Send what is new in the transcript, and then what happened."""
        self.catch_up()
        file = self._file()
        if file is not None:
            for transcript in self._read(file):
                self._send(transcript)
        elif self._asked.answer:
            self._say("assistant", self._asked.answer)
        if kind := _EVENTS.get(self._asked.step):
            self._take(self._parcel(event=event_body(self._asked, kind, file)))

    def _file(self) -> Path | None:
        """Return the file of the session: the one that the client names, else the one that bears its name."""
        named = self._asked.transcript
        if named is not None and named.is_file():
            return named
        files = sessions(self._environ, Path.home()).get(self._asked.client, [])
        return next((file for file in files if file.suffix == ".db" or str(self._asked.session) in file.name), None)

    def _read(self, file: Path) -> Iterator[Transcript]:
        """Yield the sessions of a file that are to be sent: of a client's database only the one that this is about."""
        asked = self._asked
        if asked.client == opencode.CLIENT:
            reading = opencode.read_transcript(file, session=asked.session)
        else:
            reading = READERS[asked.client](file, opened_plain)
        for transcript in reading.transcripts:
            if not is_excluded(transcript.cwd, transcript.project, self._settings.exclude):
                yield transcript

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
        turn = self._asked.turn or hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()[:16]
        [batch] = as_batches([Entry(f"{role}:{turn}", role, text, None)])
        self._take(self._parcel(messages=batch))

    def _parcel(self, **what: Any) -> Parcel:
        asked = self._asked
        return {"session": open_body(asked.client, asked.session, asked.cwd, self._project), **what}

    def _take(self, parcel: Parcel) -> bool:
        """Give a parcel to the server, or behind what waits for it to the spool; tell whether one of them has it."""
        if self._there:
            try:
                deliver(self._api, parcel)
            except Unavailable:
                self._there = False
            except Refused as error:
                if not is_passing(error):
                    raise
                self._there = False
            else:
                return True
        return self._spool.put(parcel)
