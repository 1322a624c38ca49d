"""Selects the hits of a recall among the candidates of both searches: relevant ones, in order, without repeats."""

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import cache

from esker.server.core.clock import age
from esker.server.core.conversation.records import Passage
from esker.server.core.dates.window import Window, closeness
from esker.server.core.facts.retelling import retold_print, say_the_same
from esker.server.core.facts.same_fact import fingerprint, may_be_same_fact, terms_of
from esker.server.core.pack.contradicted_rows import contradicted, newer_first
from esker.server.core.ranking import prior
from esker.server.core.recall.answer import Hit, LeftOutCandidate, ScoreParts
from esker.server.core.recall.candidates import RankedCandidate, above_floor, below_floor, best_first
from esker.server.core.recall.relevance import score
from esker.server.core.records import Memory, Priority, Source
from esker.server.core.sources import sources_of
from esker.server.core.text import labels
from esker.server.core.text.excerpts import excerpt
from esker.server.core.text.folding import same_words_key
from esker.server.core.text.terms import index_terms
from esker.server.core.text.tokens import estimate_tokens

# A memory covers the passage that it was taken from if it has at least this share of the passage's relevance. An
# important memory needs less: it is shorter, and states the point of the passage.
_COVERS: Mapping[Priority, float] = {"high": 0.75, "medium": 0.9, "low": 1.0}
# The same share for a passage that also contains an outdated statement.
_COVERS_OUTDATED = 0.5
# A memory with at least this share of the passage's tokens always covers it: the rest is hardly worth its length.
_MOST_OF_PASSAGE = 0.5
# How much more a text counts that fits the time in the question: up to 1.6 times, or 2.5 times for a firm time.
_TIME = 0.6
_FIRM_TIME = 1.5
# Factor for a row that records a question: it shares words with a new question, and seldom answers it.
_QUESTION = 0.6
# Factor for a row that another speaker said than the one whom the question names: it is seldom about that person.
_OTHER_SPEAKER = 0.8
# A row of a chat begins with the name of its speaker, of at most three words.
_SPEAKER = re.compile(r"([^\W\d_][^\s:：]{0,30}(?: [^\s:：]{1,30}){0,2})(?::\s|：)")
# Factor for a passage with content that an agent read: it often shares words with a question, and seldom answers it.
_OUTPUT = 0.75
# Weight of the prior, so small that it only breaks ties.
_PRIOR = 0.001
# The most tokens of a passage that are shown.
_PASSAGE_TOKENS = 300


@dataclass(frozen=True, slots=True)
class CandidateTexts:
    """The candidates' texts. `near` are cosines between memories, by sorted pairs of ids.

    `again` are further sources of a memory, and `said_in` the messages that it comes from, directly or through other
    rows. `outdated` has the passages of which some facts were superseded or have expired; True: all of them.
    """

    memories: Mapping[str, Memory]
    passages: Mapping[str, Passage]
    near: Mapping[tuple[str, str], float] = field(default_factory=dict[tuple[str, str], float])
    again: Mapping[str, Sequence[Source]] = field(default_factory=dict[str, Sequence[Source]])
    said_in: Mapping[str, Collection[tuple[str, int]]] = field(default_factory=dict[str, Collection[tuple[str, int]]])
    outdated: Mapping[str, bool] = field(default_factory=dict[str, bool])

    @property
    def characters(self) -> int:
        """The characters of all texts."""
        contents = (memory.content for memory in self.memories.values())
        return sum(map(len, (*contents, *(passage.text for passage in self.passages.values()))))


@dataclass(frozen=True, slots=True)
class Chosen:
    """The hits of a recall, best first, and the left-out candidates, of which the caller has `seen` some already.

    `shown_in` is the better passage hit that shows all messages of a memory, by the id of the memory.
    """

    hits: list[Hit]
    left_out: list[LeftOutCandidate]
    shown_in: Mapping[str, str] = field(default_factory=dict[str, str])
    seen: int = 0


def choose(
    found: Sequence[RankedCandidate],
    texts: CandidateTexts,
    query_terms: Sequence[str],
    now: datetime,
    *,
    limit: int,
    window: Window | None = None,
    firm: bool = False,
) -> Chosen:
    """Return the hits among candidates whose texts were read, best first; the first `limit` have no repeats.

    `window` is the time in the query; `firm`: the query names it explicitly.
    """
    outdated = [one.left_out("outdated") for one in found if texts.outdated.get(one.id)]
    current = [one for one in found if not texts.outdated.get(one.id)]
    relevant = above_floor(current)
    left_out = below_floor(current, relevant)
    by_others = _by_others(texts.memories, query_terms)
    timely = (_with_text_evidence(one, texts, window, firm=firm, by_others=by_others) for one in relevant)
    relevant = _newest_of_ties_first(timely, texts)
    by_id = {one.id: one for one in relevant}
    hits: list[Hit] = []
    relevance_of: dict[str, float] = {}
    groups = _grouped_repeats([texts.memories[one.id] for one in relevant if one.tier == "memory"], texts.near, limit)
    for shown, others in groups:
        # The shown row has the highest relevance of its group, even if another row earned it.
        relevance_of[shown.id] = relevance = max(by_id[row.id].relevance for row in (shown, *others))
        hits.append(_memory_hit(shown, others, texts, relevance, by_id[shown.id].parts, now))
        left_out += [by_id[other.id].left_out("says the same", shown.id) for other in others]
    sayings = [(hit, said) for hit in hits if _can_cover(hit) and (said := _messages(hit, texts))]
    for one in (one for one in relevant if one.tier == "passage"):
        passage = texts.passages[one.id]
        covering = (hit for hit, said in sayings if _covers(hit, said, relevance_of[hit.id], passage, one, texts))
        if memory := next(covering, None):
            memory.passages.append(passage.id)
            # The memory inherits the relevance of the passage it covers.
            relevance_of[memory.id] = max(relevance_of[memory.id], one.relevance)
            left_out.append(one.left_out("covered", memory.id))
        else:
            relevance_of[one.id] = one.relevance
            hits.append(_passage_hit(passage, one, query_terms, now))
    ordered = _newer_first(hits, relevance_of)
    return Chosen(
        [_scored(hit, relevance_of[hit.id]) for hit in ordered], [*outdated, *left_out], _shown_in(ordered, texts)
    )


def _newer_first(hits: Iterable[Hit], relevance_of: dict[str, float]) -> list[Hit]:
    """Return hits best first, but a row that a newer one contradicts behind that one, which inherits its relevance."""
    best = sorted(hits, key=lambda hit: -relevance_of[hit.id])
    newer_of = contradicted(hit for hit in best if hit.tier == "memory")
    for older, newer in newer_of.items():
        relevance_of[newer] = max(relevance_of[newer], relevance_of[older])
    if not newer_of:
        return best
    marked = [replace(hit, contradicted_by=newer_of.get(hit.id)) for hit in best]
    return newer_first(sorted(marked, key=lambda hit: -relevance_of[hit.id]), newer_of)


def without_seen(chosen: Chosen, seen: AbstractSet[str]) -> Chosen:
    """Return the choice without hits that the caller has: `seen` ids, the same as a seen row, or in a seen passage."""
    known = {
        hit.id
        for hit in chosen.hits
        if seen and (chosen.shown_in.get(hit.id) in seen or not seen.isdisjoint((hit.id, *hit.same)))
    }
    left_out = [
        LeftOutCandidate(hit.id, "seen", None, hit.parts) for hit in chosen.hits if hit.id in known and hit.parts
    ]
    unseen = [hit for hit in chosen.hits if hit.id not in known]
    return Chosen(unseen, [*left_out, *chosen.left_out], chosen.shown_in, len(known))


def _newest_of_ties_first(found: Iterable[RankedCandidate], texts: CandidateTexts) -> list[RankedCandidate]:
    """Return candidates best first; ties: the one that was said last, which need not have been written last."""
    return sorted(best_first(found), key=lambda one: (-one.relevance, -_said_at(one, texts).timestamp()))


def _said_at(one: RankedCandidate, texts: CandidateTexts) -> datetime:
    memory = texts.memories.get(one.id)
    return memory.said_at if memory else texts.passages[one.id].said_to


def _with_text_evidence(
    one: RankedCandidate,
    texts: CandidateTexts,
    window: Window | None,
    *,
    firm: bool,
    by_others: AbstractSet[str],
) -> RankedCandidate:
    """Return a candidate with the parts of its relevance that need its text: how well it fits the time, and its prior.

    The time in a question raises the relevance of an answer, and never makes a text an answer. Rows `by_others` are
    those of other speakers than the question names.
    """
    memory = texts.memories.get(one.id)
    its_prior = 0.0 if memory is None else prior(memory.kind, memory.priority)
    time = _closeness(one, texts, window) if window else one.time
    speaker = _OTHER_SPEAKER if one.id in by_others else 1.0
    timeless = one.relevance * _usefulness(memory or texts.passages[one.id]) * speaker
    relevance = timeless * (1 + (_FIRM_TIME if firm else _TIME) * time) + _PRIOR * its_prior
    return one._replace(relevance=relevance, time=time, prior=its_prior)


def _by_others(rows: Mapping[str, Memory], query_terms: Sequence[str]) -> set[str]:
    """Return the rows of other speakers than the only one whom the query names, by their ids; none if it names more."""
    speakers = {row.id: said[1] for row in rows.values() if (said := _SPEAKER.match(labels.without_label(row.content)))}
    asked = set(query_terms)
    named = {name for name in set(speakers.values()) if (terms := index_terms(name)) and asked.issuperset(terms)}
    return {row_id for row_id, name in speakers.items() if name not in named} if len(named) == 1 else set()


def _usefulness(text: Memory | Passage) -> float:
    """Return the factor of the relevance of a text for its kind."""
    if isinstance(text, Passage):
        return _OUTPUT if text.trust in ("tool", "external") else 1.0
    return _QUESTION if _is_question(text) else 1.0


def _is_question(memory: Memory | Hit) -> bool:
    return memory.content.startswith(labels.ASKED) and memory.content.rstrip().endswith(("?", "？"))


def _closeness(one: RankedCandidate, texts: CandidateTexts, window: Window) -> float:
    if memory := texts.memories.get(one.id):
        return closeness(memory.said_at, memory.refers_from, memory.refers_to, window)
    passage = texts.passages[one.id]
    return closeness(passage.said_from, passage.said_from, passage.said_to, window)


def _can_cover(memory: Hit) -> bool:
    """Whether a memory may be shown instead of its passage: in that of a question or a problem may be the answer."""
    return memory.category != "issue" and not _is_question(memory)


def _covers(
    hit: Hit,
    said: Collection[tuple[str, int]],
    relevance: float,
    passage: Passage,
    one: RankedCandidate,
    texts: CandidateTexts,
) -> bool:
    """Whether a memory from messages that were `said` is shown instead of a passage that it was taken from.

    It is about as relevant or has most of its words.
    """
    if not any(_is_in(each, passage) for each in said):
        return False
    times = sum(any(_is_in((each.session_id or "", seq), passage) for seq in each.seqs) for each in hit.sources)
    is_most = max(1, times) * estimate_tokens(hit.content) >= _MOST_OF_PASSAGE * passage.tokens
    share = _COVERS_OUTDATED if passage.id in texts.outdated else _COVERS[hit.priority or "low"]
    return is_most or relevance >= share * one.relevance


def _shown_in(hits: Sequence[Hit], texts: CandidateTexts) -> dict[str, str]:
    """Return the better passage of these hits, best first, that shows all messages of a memory, by the memory's id.

    A memory that says more than the passage has none: others repeat it, or another one contradicts it.
    """
    found: dict[str, str] = {}
    whole: list[Passage] = []
    for hit in hits:
        if hit.tier == "passage":
            if not hit.truncated and hit.id not in texts.outdated:
                whole.append(texts.passages[hit.id])
        elif (said := _messages(hit, texts)) and not (hit.passages or hit.same or hit.contradicted_by):
            by = (passage.id for passage in whole if all(_is_in(each, passage) for each in said))
            if (passage_id := next(by, None)) is not None:
                found[hit.id] = passage_id
    return found


def _messages(memory: Hit, texts: CandidateTexts) -> set[tuple[str, int]]:
    """Return the messages that a memory and the rows which say the same come from."""
    return {said for memory_id in (memory.id, *memory.same) for said in texts.said_in.get(memory_id, ())}


def _is_in(said: tuple[str, int], passage: Passage) -> bool:
    session_id, seq = said
    return session_id == passage.session_id and passage.first_seq <= seq <= passage.last_seq


def _scored(hit: Hit, relevance: float) -> Hit:
    rounded = _rounded_score(relevance)
    return hit if hit.score == rounded else replace(hit, score=rounded)


def _rounded_score(relevance: float) -> float:
    return round(score(relevance), 4)


def _grouped_repeats(
    rows: Sequence[Memory], near: Mapping[tuple[str, str], float], wanted: int
) -> list[tuple[Memory, list[Memory]]]:
    """Return rows in order, each with later rows that say the same; a live row of a group is the one that is shown.

    After the first `wanted` groups, which can become hits, only rows with identical words are grouped.
    """
    own_terms, retold = cache(terms_of), cache(retold_print)

    def is_repeated(row: Memory, first: Memory) -> bool:
        is_near = (min(row.id, first.id), max(row.id, first.id)) in near
        # Fingerprints take time, and few pairs need them.
        if not is_near and not may_be_same_fact(own_terms(row.content), own_terms(first.content)):
            return False
        marks = {each.id: fingerprint(each.content) for each in (row, first)}
        return say_the_same(row, first, marks, retold, near)

    groups: list[list[Memory]] = []
    by_words: dict[str, list[Memory]] = {}
    for row in rows:
        words = same_words_key(row.content)
        same = by_words.get(words)
        if same is None:
            same = next((group for group in groups[:wanted] if is_repeated(row, group[0])), None)
        if same is None:
            groups.append(same := [])
        same.append(row)
        by_words.setdefault(words, same)
    chosen = ((next((row for row in group if row.superseded_at is None), group[0]), group) for group in groups)
    return [(shown, [row for row in group if row.id != shown.id]) for shown, group in chosen]


def _memory_hit(
    row: Memory, others: Sequence[Memory], texts: CandidateTexts, relevance: float, parts: ScoreParts, now: datetime
) -> Hit:
    return Hit(
        id=row.id,
        tier="memory",
        content=row.content,
        kind=row.kind,
        priority=row.priority,
        category=row.category,
        trust=row.trust,
        score=_rounded_score(relevance),
        said_at=row.said_at,
        age=age(now - row.said_at),
        valid_until=row.valid_until,
        project=row.project,
        session_id=row.session_id,
        tags=row.tags,
        tentative=row.tentative,
        sources=[source for one in (row, *others) for source in sources_of(one, texts.again.get(one.id, ()))],
        same=[other.id for other in others],
        passages=[],
        superseded_by=row.superseded_by,
        truncated=False,
        parts=parts,
    )


def _passage_hit(passage: Passage, one: RankedCandidate, query_terms: Sequence[str], now: datetime) -> Hit:
    is_short = passage.tokens <= _PASSAGE_TOKENS
    content = passage.text if is_short else excerpt(passage.text, query_terms, _PASSAGE_TOKENS)
    return Hit(
        id=passage.id,
        tier="passage",
        content=content,
        kind=None,
        priority=None,
        category=None,
        trust=passage.trust,
        score=_rounded_score(one.relevance),
        said_at=passage.said_to,
        age=age(now - passage.said_to),
        valid_until=None,
        project=passage.project,
        session_id=passage.session_id,
        tags=[],
        tentative=False,
        sources=[Source(passage.session_id, list(range(passage.first_seq, passage.last_seq + 1)), [])],
        same=[],
        passages=[],
        superseded_by=None,
        truncated=content != passage.text,
        parts=one.parts,
    )
