"""The spool: unsent parcels are kept owner-only and masked, and sent later, in order and once."""

import json
import os
import threading
from pathlib import Path
from typing import Any

import pytest

from esker.server.agents import spool as spools
from esker.server.agents.api import Api
from esker.server.agents.spool import Parcel, Replayed, Spool
from esker.server.core.errors import Unavailable
from esker.server.core.http_answers import ServerRefused

URL = "http://127.0.0.1:1"
API = Api(URL)


def parcel(number: int, text: str = "Hello.") -> Parcel:
    """Return a parcel with one message."""
    message = {"external_id": f"m{number}", "role": "user", "content": text}
    return {"session": {"client": "codex", "external_id": "s"}, "messages": [message]}


class AcceptingServer:
    """A fake server; `errors` are raised for the next parcels, None accepts one."""

    def __init__(self, *errors: Exception | None) -> None:
        self.taken: list[str] = []
        self._errors = list(errors)

    def deliver(self, _: Api, given: Parcel) -> list[str]:
        """Accept a parcel or raise; messages that say "Refuse me." are refused."""
        if self._errors and (error := self._errors.pop(0)):
            raise error
        self.taken.append(given["messages"][0]["external_id"])
        return [message["external_id"] for message in given["messages"] if message["content"] == "Refuse me."]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """The folder of a spool."""
    return tmp_path / "spool"


def test_parcels_are_sent_in_order_and_only_once(folder: Path) -> None:
    spool, server = Spool(folder, URL, None), AcceptingServer()
    assert [spool.put(parcel(n)) for n in range(12)] == [True] * 12
    assert spool.replay(API, server.deliver) == Replayed(sent=12)
    assert spool.replay(API, server.deliver) == Replayed()
    assert server.taken == [f"m{n}" for n in range(12)]


@pytest.mark.parametrize(
    "away", [Unavailable(), *(ServerRefused("x", status=code) for code in (401, 404, 405, 429, 500, 503))]
)
def test_a_server_that_disappears_again_gets_the_rest_later(folder: Path, away: Exception) -> None:
    spool, server = Spool(folder, URL, None), AcceptingServer(None, away)
    for n in range(3):
        spool.put(parcel(n))
    assert spool.replay(API, server.deliver) == Replayed(sent=1, waiting=2)
    assert spool.replay(API, server.deliver) == Replayed(sent=2)
    assert server.taken == ["m0", "m1", "m2"]


def test_a_session_that_the_key_may_not_write_waits_and_holds_up_no_other(folder: Path) -> None:
    spool, server = Spool(folder, URL, None), AcceptingServer(None, ServerRefused("of another project", status=403))
    for n, session in enumerate(("mine", "theirs", "mine", "theirs", "mine")):
        spool.put(parcel(n) | {"session": {"client": "codex", "external_id": session}})
    assert spool.replay(API, server.deliver) == Replayed(sent=3, waiting=2, held=2)
    assert server.taken == ["m0", "m2", "m4"]
    assert spool.replay(API, server.deliver) == Replayed(sent=2)


def test_a_permanently_refused_parcel_is_set_aside_and_blocks_nothing(folder: Path) -> None:
    spool, server = Spool(folder, URL, None), AcceptingServer(ServerRefused("x", status=422))
    for n in range(2):
        spool.put(parcel(n))
    assert spool.replay(API, server.deliver) == Replayed(sent=1, refused=1)
    assert [json.loads(path.read_text())["messages"][0]["external_id"] for path in (folder / "refused").iterdir()] == [
        "m0"
    ]


def test_a_refused_message_is_set_aside_alone(folder: Path) -> None:
    spool, server = Spool(folder, URL, None), AcceptingServer()
    made = parcel(1)
    made["messages"] += parcel(2, "Refuse me.")["messages"]
    spool.put(made)
    assert spool.replay(API, server.deliver) == Replayed(sent=1)
    assert spool.refused() == 1
    [path] = (folder / "refused").glob("*.json")
    assert [message["external_id"] for message in json.loads(path.read_text())["messages"]] == ["m2"]
    assert path.stat().st_mode & 0o077 == 0


def test_a_parcel_added_during_a_replay_is_sent_as_well(folder: Path) -> None:
    spool, server = Spool(folder, URL, None), AcceptingServer()
    spool.put(parcel(1))

    def take_and_put(api: Api, given: Parcel) -> list[str]:
        if not server.taken:
            spool.put(parcel(2))
        return server.deliver(api, given)

    assert spool.replay(API, take_and_put) == Replayed(sent=2)
    assert server.taken == ["m1", "m2"]


def test_a_parcel_that_another_process_adds_while_the_lock_is_released_is_sent_as_well(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    spool, other, server = Spool(folder, URL, None), Spool(folder, URL, None), AcceptingServer()
    spool.put(parcel(1))
    close = os.close
    found: list[Replayed] = []

    def add_before_closing(descriptor: int) -> None:
        # Closing the lock's file releases the lock. The other process still finds it taken.
        if not found and server.taken:
            found.append(Replayed())
            other.put(parcel(2))
            found[0] = other.replay(API, server.deliver)
        close(descriptor)

    monkeypatch.setattr(os, "close", add_before_closing)
    assert spool.replay(API, server.deliver) == Replayed(sent=2)
    assert found == [Replayed(waiting=1)]
    assert server.taken == ["m1", "m2"]


def test_parcels_contain_no_secrets_and_ids_stay_different(folder: Path) -> None:
    secret = "sk-ant-" + "api03x7q" * 5
    made: Any = parcel(1, f"The key is {secret}")
    made["messages"].append({"external_id": f"{secret}-other", "role": "user", "content": [{"text": secret}]})
    made["session"]["external_id"] = secret
    made["messages"][0]["external_id"] = secret
    Spool(folder, URL, "esk_" + "a" * 43).put(made)
    [path] = folder.glob("*.json")
    text = path.read_text()
    assert secret not in text
    assert "a" * 43 not in text
    first, second = (message["external_id"] for message in json.loads(text)["messages"])
    assert first != second


def test_a_parcel_is_owner_only(folder: Path) -> None:
    Spool(folder, URL, None).put(parcel(1))
    [path] = folder.glob("*.json")
    assert (path.stat().st_mode & 0o777, folder.stat().st_mode & 0o777) == (0o600, 0o700)


def test_the_state_directory_is_closed_to_others_also_one_of_an_older_version(folder: Path) -> None:
    folder.parent.mkdir(exist_ok=True)
    folder.parent.chmod(0o755)
    Spool(folder, URL, None).put(parcel(1))
    assert folder.parent.stat().st_mode & 0o777 == 0o700


def test_a_full_spool_refuses_parcels_and_keeps_its_own(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spools, "MOST_BYTES", 1_000)
    spool, server = Spool(folder, URL, None), AcceptingServer()
    put = [spool.put(parcel(n, "x" * 200)) for n in range(10)]
    assert (put[0], put[-1]) == (True, False)
    assert sum(path.stat().st_size for path in folder.glob("*.json")) <= 1_000
    assert spool.replay(API, server.deliver).sent == sum(put)


def test_an_unwritable_folder_gives_false_not_an_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    assert not Spool(tmp_path / "file" / "spool", URL, None).put(parcel(1))


def test_parcels_for_another_server_or_key_are_left_alone(folder: Path) -> None:
    for url, key in ((URL, "k"), (URL, "other"), ("http://elsewhere", None)):
        Spool(folder, url, key).put(parcel(1))
    mine, server = Spool(folder, URL, "k"), AcceptingServer()
    assert [(queue.server, queue.keyed, mine.is_for_here(queue)) for queue in mine.queues()] == [
        (URL, True, True),
        (URL, True, False),
        ("http://elsewhere", False, False),
    ]
    assert mine.replay(API, server.deliver) == Replayed(sent=1)
    assert [Spool(folder, URL, "other").waiting(), Spool(folder, "http://elsewhere", None).waiting()] == [1, 1]


def test_parcels_spooled_without_a_key_are_sent_with_a_later_one(folder: Path) -> None:
    Spool(folder, URL, None).put(parcel(1))
    assert Spool(folder, URL, "k").replay(API, AcceptingServer().deliver) == Replayed(sent=1)


def test_other_queues_do_not_fill_the_spool(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spools, "MOST_BYTES", 400)
    assert Spool(folder, "http://elsewhere", None).put(parcel(1, "x" * 150))
    mine = Spool(folder, URL, None)
    assert mine.put(parcel(1, "x" * 150))
    assert not mine.put(parcel(2, "x" * 150))


def test_an_adopted_queue_is_sent_with_the_present_key(folder: Path) -> None:
    mistyped, mine, server = Spool(folder, URL, "mistyped"), Spool(folder, URL, "k"), AcceptingServer()
    for n in range(3):
        (mistyped if n != 1 else mine).put(parcel(n))
    [queue] = [queue for queue in mine.queues() if not mine.is_for_here(queue)]
    assert (queue.parcels, mine.waiting()) == (2, 1)
    assert mine.adopt(queue.id) == 2
    assert mine.replay(API, server.deliver) == Replayed(sent=3)
    assert server.taken == ["m0", "m1", "m2"]


def test_the_queue_of_an_abandoned_server_can_be_deleted(folder: Path) -> None:
    Spool(folder, "http://gone", None).put(parcel(1))
    mine = Spool(folder, URL, None)
    mine.put(parcel(2))
    [gone] = [queue for queue in mine.queues() if not mine.is_for_here(queue)]
    assert mine.drop(gone.id) == 1
    assert [queue.parcels for queue in mine.queues()] == [mine.waiting()] == [1]


@pytest.mark.parametrize("text", ["", "{", "[]", "null", '{"session": 3}', '{"session": {}}', "\x00"])
def test_a_damaged_parcel_is_set_aside_and_stops_nothing(folder: Path, text: str) -> None:
    spool, server = Spool(folder, URL, None), AcceptingServer()
    spool.put(parcel(1))
    (folder / f"00000000000000000000-1-000000.{spools.address(URL, None)}.json").write_text(text)
    sent_before = folder.parent / "sent" / "note.json"
    sent_before.parent.mkdir()
    sent_before.write_text("{}")
    assert spool.replay(API, server.deliver).sent == 1
    assert not sent_before.exists(), "what was in it has to be sent from its transcript again"


def test_foreign_files_in_the_folder_are_left_alone(folder: Path) -> None:
    spool, server = Spool(folder, URL, None), AcceptingServer()
    spool.put(parcel(1))
    of = spools.address(URL, None)
    os.mkfifo(folder / f"00000000000000000000-1-000000.{of}.json")
    (folder / f"00000000000000000000-1-000001.{of}.json").symlink_to("/dev/zero")
    (folder / "notes.json").write_text("{")
    assert [queue.parcels for queue in spool.queues()] == [1]
    assert spool.replay(API, server.deliver) == Replayed(sent=1)
    assert len(list(folder.glob("*.json"))) == 3


def test_only_one_of_two_parallel_replays_sends(folder: Path) -> None:
    spool = Spool(folder, URL, None)
    spool.put(parcel(1))
    inside, done = threading.Event(), threading.Event()
    sent: list[Replayed] = []

    def slow(_: Api, __: Parcel) -> list[str]:
        inside.set()
        done.wait()
        return []

    first = threading.Thread(target=lambda: sent.append(spool.replay(API, slow)))
    first.start()
    inside.wait()
    second = AcceptingServer()
    assert spool.replay(API, second.deliver) == Replayed(waiting=1)
    done.set()
    first.join()
    assert (sent, second.taken) == ([Replayed(sent=1)], [])
