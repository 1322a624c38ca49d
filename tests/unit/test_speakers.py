"""The speakers in a conversation of several people."""

from esker.server.core.conversation.records import Role
from esker.server.providers.extractive.observer import observe
from esker.server.providers.extractive.speakers import is_work, speakers, without_speaker
from tests.support.records import conversation

CHAT: list[tuple[Role, str]] = [
    ("user", "Ada: I moved to Rotterdam. My sister lives in Utrecht."),
    ("assistant", "Ben: I work at the harbour in Delft."),
]


def test_each_message_has_the_speaker_whose_name_it_begins_with() -> None:
    assert speakers(conversation(*CHAT).messages) == {1: "Ada", 2: "Ben"}


def test_a_few_labels_are_not_speakers() -> None:
    said: list[tuple[Role, str]] = [
        ("user", "Note: the port is 8377."),
        ("assistant", "It is set."),
        ("user", "And Redis?"),
        ("assistant", "Error: it is down."),
    ]
    assert speakers(conversation(*said).messages) == {}
    assert speakers(conversation(said[0]).messages) == {}


def test_only_the_name_of_a_speaker_is_removed() -> None:
    assert without_speaker("Ada: the port is 8377", "Ada") == "the port is 8377"
    assert without_speaker("Note: the port is 8377", None) == "Note: the port is 8377"


def test_every_row_names_its_speaker_also_of_the_second_sentence_and_the_second_party() -> None:
    rows = [fact.content for fact in observe(conversation(*CHAT)).facts]
    assert rows == [
        "Ada said: I moved to Rotterdam.",
        "Ada said: My sister lives in Utrecht.",
        "Ben said: I work at the harbour in Delft.",
    ]


def test_one_link_in_a_long_chat_does_not_make_it_work() -> None:
    chat: list[tuple[Role, str]] = [
        ("user", "We walked along the harbour."),
        ("assistant", "I swam there last week."),
    ] * 6
    link: tuple[Role, str] = ("user", "The photos: https://photos.example/albums/harbour")
    assert not is_work(conversation(*chat, link).messages)
    assert is_work(conversation(*chat[:2], link).messages)
