"""The figures of an evaluation in words: what each means, a good value, and what to do if it is not good."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from esker.server.core.pool.evaluation import BY_INDEX, BY_MEANING, BY_WORDS, DEPTHS, FULL
from esker.server.core.pool.index_agreement import LEAST

Subject = Literal["answers", "vectors", "rows", "packs"]

# The thresholds are rules of thumb from looking at pools, as shares from 0 to 1. Full recall at or above GOOD_RECALL
# is good; below POOR_RECALL it is wrong.
GOOD_RECALL = 0.9
POOR_RECALL = 0.5
MOST_FALSE_ANSWERS = 0.1
GOOD_COVERAGE = 0.8
MOST_STALE = 0.2
MOST_REPEATED = 0.05
GOOD_WORTH = 0.8

HEADINGS: Mapping[Subject, str] = {
    "answers": "Can memory be found?",
    "vectors": "Search by meaning",
    "rows": "Stored rows",
    "packs": "Packs of new sessions",
}


@dataclass(frozen=True, slots=True)
class FigureText:
    """The words for one figure; `advice` is for a value that is not good."""

    about: Subject
    meaning: str
    good: str
    advice: str = ""


_WHY_MISSED = (
    "--report shows the questions that were not answered, --json has all of them; `esker recall QUESTION --explain`"
    " explains the rank of each hit."
)
FIGURES: Mapping[str, FigureText] = {
    FULL: FigureText(
        "answers",
        "How often the text that a question was made from is among the hits that an agent gets.",
        f"at least {GOOD_RECALL:.0%} among the first {max(DEPTHS)}",
        _WHY_MISSED,
    ),
    BY_WORDS: FigureText(
        "answers",
        "The same by keyword search alone, as recall does without vectors.",
        "any value, if full recall is good",
    ),
    BY_MEANING: FigureText(
        "answers",
        "The same by an exact vector search alone; rare words and codes have little meaning.",
        "any value, if full recall is good",
    ),
    BY_INDEX: FigureText(
        "answers",
        "The same through the vector index, which makes search by meaning fast in a large pool.",
        "about as much as by meaning alone",
    ),
    "search by meaning": FigureText(
        "answers",
        "Why: {reason}. Full recall ran without vectors, too.",
        "it takes part",
        "`esker serve` runs a worker that embeds pools, `esker doctor` says what an embedder lacks; `--no-meaning`"
        " leaves it out on purpose.",
    ),
    "false answers": FigureText(
        "answers",
        "How often a question of made-up words, which no memory answers, got an answer.",
        f"at most {MOST_FALSE_ANSWERS:.0%}",
        "Agents should give little weight to hits with such scores: the page that --report writes shows them beside"
        " the scores of right answers.",
    ),
    "index": FigureText(
        "vectors",
        "The share of the nearest texts, by exact search, that the index of recall finds.",
        f"at least {LEAST:.0%}",
        "Drop it as `esker doctor` says: recall is exact until the worker has built it again.",
    ),
    "texts without a vector": FigureText(
        "vectors",
        "Rows and passages that keyword search finds and vector search does not find yet.",
        "none",
        "The worker of `esker serve` embeds them in turn; without a server, `esker worker` does.",
    ),
    "orphaned vectors": FigureText(
        "vectors",
        "Vectors of deleted or changed texts: recall never shows them, and they only use space.",
        "none",
        "The worker's upkeep deletes them; `esker serve` starts a worker.",
    ),
    "vectors of another model": FigureText(
        "vectors",
        "Vectors of an embedding model that recall does not use, or not yet.",
        "none",
        "`esker reembed --status` says why they exist, `esker reembed --drop-retired` deletes them.",
    ),
    "coverage": FigureText(
        "rows",
        "Messages that an observer has read and turned into rows. The others are found as passages.",
        f"at least {GOOD_COVERAGE:.0%}, and none lost",
        "`esker observe` observes the waiting ones.",
    ),
    "stale rows": FigureText(
        "rows",
        "Live rows of low priority that have been in memory for {days} without being used. They do no harm: packs show"
        " others first.",
        f"at most {MOST_STALE:.0%}",
        "`esker reflect` condenses some of them, `esker forget ID` deletes one; or leave them.",
    ),
    "expired rows": FigureText(
        "rows",
        "Rows whose validity has ended, such as an offer that is over. Recall and packs hide them.",
        "any number, all marked",
        "The upkeep of a running server marks them, which keeps packs fast; `esker serve` starts one.",
    ),
    "orphaned rows": FigureText(
        "rows",
        "Live rows whose source messages or rows are all gone, so that nothing proves them.",
        "none",
        "--json has their ids: `esker expand ID` shows one, `esker forget ID` deletes it.",
    ),
    "repeated rows": FigureText(
        "rows",
        "Live rows that repeat another live row. An answer shows them once, but each costs tokens in packs.",
        f"at most {MOST_REPEATED:.0%}",
        "`esker reflect` condenses them; `esker forget ID` deletes a row and all its repeats.",
    ),
    "superseded rows": FigureText(
        "rows",
        "Rows that a newer or shorter one has replaced. They are kept, and hidden unless asked for.",
        "any number",
    ),
    "pack": FigureText(
        "packs",
        "The pack that a new session would get. A right row is live, of this project, and not a repeat.",
        "all rows right, within its tokens",
    ),
    "worth of the pack": FigureText(
        "packs",
        "How many of its rows' tokens may help: not those of rows that do not name their subject, that ask for work"
        " which is over (orders), or that repeat an earlier row. Other rows may be of no use, too.",
        f"at least {GOOD_WORTH:.0%} of the tokens",
        "--json has the ids under `worthless`: `esker expand ID` shows a row, `esker forget ID` deletes it, and"
        " `esker reflect` condenses rows. A language model as observer (ESKER_OBSERVER=model) writes fewer of them.",
    ),
}
