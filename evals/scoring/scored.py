"""All scores of the rows kept from a log, with their verdicts, so that a person can check them."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from esker.server.core.text.tokens import estimate_tokens
from evals.scoring import fact_scores, row_scores
from evals.scoring.figures import ScoreFigure
from evals.scoring.gold import Gold, LogRow
from evals.scoring.matching import AtomVerdict, Judge, KeptRow

RETENTION = "retention"
VERBATIM = "verbatim"


@dataclass(frozen=True, slots=True)
class Scored:
    """Verdicts on the facts, figures by name, and sizes in tokens. A score without material has no figure."""

    verdicts: Mapping[str, Sequence[AtomVerdict]]
    figures: Mapping[str, ScoreFigure]
    tokens_before: int
    tokens_after: int

    @property
    def facts(self) -> int:
        """Number of facts that must survive."""
        return sum(map(len, self.verdicts.values()))

    @property
    def kept(self) -> int:
        """Number of these that are kept."""
        return sum(verdict.kept for verdicts in self.verdicts.values() for verdict in verdicts)

    @property
    def per_thousand_tokens(self) -> float:
        """Kept facts per thousand tokens of the kept rows."""
        return 1_000 * self.kept / self.tokens_after if self.tokens_after else 0.0

    @property
    def shorter(self) -> float:
        """Share of the tokens that were saved."""
        return 1 - self.tokens_after / self.tokens_before if self.tokens_before else 0.0

    def lines(self) -> Iterator[str]:
        """Yield lines for a person: the verdict on each fact, then the other faults."""
        for name, verdicts in self.verdicts.items():
            for verdict in verdicts:
                where = f" in {verdict.row.id}" if verdict.row else ""
                yield f"{name}: {verdict.fate}{where}: {verdict.atom.fact} ({verdict.why})"
        for name, figure in self.figures.items():
            if name not in (RETENTION, VERBATIM):
                yield from (f"{name}: {fault}" for fault in figure.faults)


def score(gold: Gold, log: Sequence[LogRow], rows: Sequence[KeptRow], by: Judge) -> Scored:
    """Return the scores of the rows kept from a log."""
    by.read(gold, rows)
    facts = {
        "keep": gold.keep,
        "replaced": tuple(change.new for change in gold.replaced),
        "open": gold.open,
        "asserted": gold.asserted,
    }
    verdicts = {name: [by.judge(atom, rows) for atom in atoms] for name, atoms in facts.items()}
    figures = [*_of_facts(gold, log, verdicts, rows, by), *_of_rows(gold, log, rows, by)]
    return Scored(
        {name: its for name, its in verdicts.items() if its},
        {figure.name: figure for figure in figures if figure.of},
        sum(estimate_tokens(row.text) for row in log),
        sum(estimate_tokens(row.text) for row in rows),
    )


def _of_facts(
    gold: Gold, log: Sequence[LogRow], verdicts: Mapping[str, Sequence[AtomVerdict]], rows: Sequence[KeptRow], by: Judge
) -> Iterator[ScoreFigure]:
    lasting = [verdict for its in verdicts.values() for verdict in its]
    yield fact_scores.retention(RETENTION, lasting, lambda verdict: verdict.kept)
    yield fact_scores.retention(VERBATIM, lasting, lambda verdict: verdict.fate == "verbatim")
    yield fact_scores.supersession(gold.replaced, verdicts["replaced"], rows, by)
    yield fact_scores.noise_gone(gold, rows, by)
    yield fact_scores.still_open(verdicts["open"], by)
    yield fact_scores.unsettled(gold.unsettled, rows, by)
    yield fact_scores.ruling_stands(verdicts["asserted"], by)
    yield fact_scores.attribution(lasting, log)
    yield fact_scores.dates(lasting)


def _of_rows(gold: Gold, log: Sequence[LogRow], rows: Sequence[KeptRow], by: Judge) -> Iterator[ScoreFigure]:
    yield row_scores.grounded(log, gold, rows, by)
    yield row_scores.never_said(gold, rows, by)
    yield row_scores.sources(log, rows, by)
    yield row_scores.said_once(rows, by)
