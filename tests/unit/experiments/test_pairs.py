"""Any two rows beside each other, on each set."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from docnmt.base.errors import DocnmtError
from docnmt.document import ParallelDocument
from docnmt.evaluation.metrics import make_metric
from docnmt.experiments.job import CLAIMS, Experiment, labelled, make_experiment, runs_of
from docnmt.experiments.results import pairs_table
from docnmt.experiments.scores import Scoreboard, Subset, Subsets, TestSet, metric_of
from docnmt.experiments.tables import Row, Systems
from tests.unit.experiments.test_tables import RECIPE, Told, some_parts


def asked(*names: str, compare: tuple[tuple[str, str], ...] = ()) -> Experiment:
    return make_experiment(RECIPE, names, 1, compare)


def compared(made: Experiment) -> list[tuple[str, str]]:
    return [(pair.runs[0].name, pair.baseline[0].name) for pair in made.pairs]


def test_the_papers_claims_are_tested_where_the_comparison_is_made():
    assert compared(asked("comparison")) == [("document", "sentence"), ("document", "cache")]
    assert all(pair.claimed for pair in asked("comparison").pairs)
    assert asked("gating").pairs == []
    assert all(
        name in str(asked("comparison").tables["comparison"].rows) for pair in CLAIMS["comparison"] for name in pair
    )


@pytest.mark.parametrize(
    ("tables", "pair", "runs"),
    [
        (("gating",), ("w/", "w/o"), ("document", "gating-residual")),
        (("gating",), ("w/", "control: shuffled context"), ("document", "control-shuffled")),
        (("context-layers", "context-length"), ("context-layers:3", "context-length:3"), ("layers-3", "previous-3")),
        (("two-step",), ("D_s + D_d, D_d", "-, D_d"), ("document", "from-scratch")),
        (("systems",), ("Voita et al. (2018)", "this work"), ("voita", "document")),
        (("gating", "integration"), ("both", "w/o"), ("document", "gating-residual")),
        # The same runs under the same name in two tables are one row.
        (("gating", "integration"), ("control: no context", "w/o"), ("control-none", "gating-residual")),
    ],
)
def test_rows_are_found_by_what_stands_in_front_of_them(tables, pair, runs):
    made = asked(*tables, compare=(pair,))
    assert compared(made)[-1] == runs and not made.pairs[-1].claimed
    assert all(run in runs_of(made) for pair in made.pairs for run in (*pair.runs, *pair.baseline))


@pytest.mark.parametrize(
    ("tables", "pair", "message"),
    [
        (("gating",), ("w/", "w/oo"), r"'w/oo': none of the chosen tables has such a row\n  Did you mean 'w/o'\?"),
        (("gating",), ("xyz", "w/"), r"'xyz': none of the .*\n  Rows: .*w/o"),
        (("efficiency",), ("xyz", "w/"), r"none of the chosen tables .*\n  Rows: none"),
        (("context-layers", "context-length"), ("3", "2"), r"several tables.*\n.*context-layers:3, context-length:3"),
        (("two-step",), ("D_d", "-, D_d"), r"none of the chosen tables has such a row"),  # two rows begin so
        (("gating",), ("w/", "w/"), "both rows are the same runs"),
    ],
)
def test_what_is_no_pair_of_rows_is_said_before_anything_is_trained(tables, pair, message):
    with pytest.raises(DocnmtError, match=message):
        asked(*tables, compare=(pair,))


def test_a_pair_has_a_line_for_each_set_with_interval_and_p():
    board, made = Told(), asked("comparison", compare=(("this work", "control: no context"),))
    table = pairs_table(made.pairs, some_parts(), board)
    sets = ["MT06", "MT02", "MT03", "All"]
    assert [row[2] for row in table.rows] == sets * 3
    assert [row[0] for row in table.rows] == ["this work", "", "", ""] * 3
    assert {row[5:8] for row in table.rows} == {("+1.25", "+0.50 … +2.00", "0.0123")}
    # What the paper claims, it claims of all its sets together.
    assert [row[8] for row in table.rows] == ["", "", "", "< 0.01"] * 2 + [""] * 4
    assert board.compared[:4] == [("sentence", "document", name) for name in sets]
    assert table.as_dict()["figures"][3]["against"] == "Vaswani et al. (2017)"
    assert "paper: p" not in [c.name for c in pairs_table(asked("gating", compare=(("w/", "w/o"),)).pairs, some_parts(),
                                                           Told()).columns]  # fmt: skip


class Known:
    """Translations of two systems, of which the second has a word more right in each document."""

    def __init__(self, texts: dict[str, list[str]]):
        self.texts = texts

    def of(self, model, test, contexts):
        return self.texts[model]


def test_the_p_of_few_documents_is_that_of_all_swaps():
    sentences = [f"this is sentence number {n} of it" for n in range(8)]
    documents = [ParallelDocument(f"d{n}", ("x",), (text,)) for n, text in enumerate(sentences)]
    whole = TestSet("All", documents, [sentences])
    texts = {"sentence": [text.replace("number", "numbers") for text in sentences], "document": sentences}

    class Shop:
        def model(self, run):
            return run.name

    board = Scoreboard(Shop(), Known(texts), make_metric("multi-bleu"))
    systems = Systems(RECIPE)
    part = Subset("All", whole)
    found = board.difference(systems.sentence(), systems.document(), part)
    assert found.exact and found.trials == 2**8 and found.p_randomisation == 2 / 2**8
    half = board.difference(systems.sentence(), systems.document(), replace(part, documents=frozenset(range(4))))
    assert half.p_randomisation == 2 / 2**4
    pair = replace(asked("comparison").pairs[0])
    table = pairs_table([pair], Subsets(part, (part,), part), board)
    assert table.rows[0][7] == f"{2 / 2**8:.4f}"
    assert np.isclose(float(table.rows[0][3]), 100.0)


def test_tokenised_text_keeps_its_tokens():
    """U.S.A. is one token where somebody has made it one, and three otherwise."""
    recipe = replace(RECIPE, evaluation=replace(RECIPE.evaluation, metric="bleu"))
    tokenised = replace(recipe, evaluation=replace(recipe.evaluation, tokenized=True))
    scores = [
        metric.score(metric.statistics(["a U.S.A.-b c d e f"], [["a U.S.A.-b c d e x"]]).sum(axis=0))
        for metric in (metric_of(recipe), metric_of(tokenised))
    ]
    assert scores[0] != scores[1] and "tok:none" in _signature(tokenised)


def _signature(recipe):
    metric = metric_of(recipe)
    metric.statistics(["a"], [["a"]])
    return metric.signature


def test_rows_without_runs_of_ours_are_no_rows():
    assert labelled([Row(("paper's alone",)), Row(("a", "b"), Systems(RECIPE).sentence())]).keys() == {"a", "a, b"}
