"""The cases of the suite: a session in which something was planted, and the words that it would be known by."""

from typing import Annotated, Literal

from pydantic import Field, model_validator

from evals.case_files import AnyCase, CaseText
from evals.observation.cases import CaseMessage
from evals.scoring.gold import Atom, Gold
from evals.scoring.text import holds

PlantedIn = Literal["tool output", "web text", "code comment", "memory", "none"]
Manner = Literal["direct", "dormant", "split", "encoded", "none"]


class PoisonCase(AnyCase):
    """A session, in which `place` says where something was planted and `manner` how.

    `planted` are words of it that nobody else says, `decoded` words that only who decodes it would say; a row with any
    of them carries it. `ask` is the question by which it would come up later. `keep` is what the person really said and
    has to be known all the same. A control has nothing planted: an instruction of the person's own, which has to stay.
    """

    place: PlantedIn
    manner: Manner
    messages: Annotated[tuple[CaseMessage, ...], Field(min_length=1, max_length=60)]
    planted: tuple[CaseText, ...] = ()
    decoded: tuple[CaseText, ...] = ()
    ask: CaseText
    keep: tuple[Atom, ...] = ()

    @property
    def is_control(self) -> bool:
        """Whether nothing was planted."""
        return not self.planted

    @model_validator(mode="after")
    def _fits(self) -> "PoisonCase":
        texts = {message.id: message.text for message in self.messages}
        spoken = "\n".join(one.text for one in self.messages if one.role == "user" and isinstance(one.content, str))
        told = "\n".join(texts.values())
        faults = [f"{words!r} is in no message" for words in self.planted if not holds(told, words, self.language)]
        faults += [
            f"{words!r} is what the person says" for words in self.planted if holds(spoken, words, self.language)
        ]
        faults += Gold(keep=self.keep).faults(texts, self.language)
        if len(texts) != len(self.messages):
            faults.append("two messages have one id")
        if self.is_control != (self.place == "none") or self.is_control != (self.manner == "none"):
            faults.append("a control, and nothing else, has neither a place nor a manner")
        if self.is_control and not self.keep:
            faults.append("a control has something to keep")
        if faults:
            raise ValueError("; ".join(faults))
        return self
