"""The paper's tables: which systems stand in which row, and the figures the paper has there.

Rows that claim a gain from context are followed by their controls: the same step 2, trained as long and decoded with
contexts of other documents, and with empty ones. What such a control gains is no gain from context.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from docnmt.config import Recipe
from docnmt.experiments import paper
from docnmt.experiments.paper import MODELS, RIVALS, Rival, with_base
from docnmt.experiments.runs import Run


@dataclass(frozen=True)
class Row:
    labels: tuple[str, ...]
    runs: tuple[Run, ...] = ()  # one a seed; none: a system that only the paper has figures for
    paper: tuple[str, ...] = ()
    rule: bool = False  # a line above
    control: bool = False  # the recipe's own model with wrong contexts
    baseline: tuple[Run, ...] = ()  # what its gain is told against, where that is not the table's


@dataclass(frozen=True)
class PaperTable:
    name: str
    title: str
    headings: tuple[str, ...]
    paper_columns: tuple[str, ...]
    rows: tuple[Row, ...]
    on_dev: bool = False  # the paper chose this setting on its development set
    baseline: tuple[Run, ...] = ()  # what differences are told against
    own: tuple[Run, ...] = ()  # the recipe's own model
    notes: tuple[str, ...] = ()


class Systems:
    """The runs of a recipe and its variants, one for each seed."""

    def __init__(self, recipe: Recipe, seeds: int = 1):
        self.recipe = recipe
        self.seeds = [recipe.seed + k for k in range(seeds)]

    def sentence(self, corpora: str = "all") -> tuple[Run, ...]:
        """Step 1 alone: the Transformer."""
        return self._each(lambda recipe: _sentence_run(recipe, corpora))

    def base(self, kind: str) -> tuple[Run, ...]:
        """Step 1 alone, of a model of this kind."""
        return self._each(lambda recipe: _base_run(recipe, kind))

    def rival(self, rival: Rival) -> tuple[Run, ...]:
        """Step 2 of another system after step 1 of its base."""
        return self._each(lambda recipe: Run(rival.name, rival.of(recipe), "document", _base_run(recipe, rival.base)))

    def document(self, name: str = "document", corpora: str = "all", **changes: Any) -> tuple[Run, ...]:
        """Step 2 after step 1, with changes to the recipe's context."""

        def make(recipe: Recipe) -> Run:
            context, step = replace(recipe.context, **changes), recipe.document
            if context.previous != recipe.context.previous and step.batches_for < 0:
                step = replace(step, batches_for=recipe.context.previous)  # the same sentences in each update
            changed = replace(recipe, context=context, document=step)
            start = _sentence_run(recipe, corpora)
            same = changed == recipe and start == _sentence_run(recipe, "all")
            return Run("document" if same else name, changed, "document", start)

        return self._each(make)

    def paper_model(self) -> tuple[Run, ...]:
        """Step 2 with the paper's own connections, whatever the recipe's."""
        return self.document("paper-start", start="paper")

    def ours(self) -> tuple[Run, ...]:
        """Step 2 with ours, which start as exactly the sentence model."""
        return self.document("sentence-start", start="sentence")

    def control(self, contexts: str) -> tuple[Run, ...]:
        """The recipe's own step 2 with wrong contexts."""

        def make(recipe: Recipe) -> Run:
            changed = replace(recipe, document=replace(recipe.document, context_from=contexts))
            return Run(f"control-{contexts}", changed, "document", _sentence_run(recipe, "all"))

        return self._each(make)

    def from_scratch(self) -> tuple[Run, ...]:
        """The whole document model on the documents alone, for as many updates as both steps have together, at the
        rate of a model that begins with nothing: step 1's."""

        def make(recipe: Recipe) -> Run:
            first = recipe.sentence
            step = replace(
                recipe.document,
                freeze=False,
                updates=first.updates + recipe.document.updates,
                learning_rate=first.learning_rate,
                warmup=first.warmup,
                cooldown=first.cooldown,
            )
            # The start that equals the sentence model makes no sense where there is none.
            context = replace(recipe.context, start="paper")
            return Run("from-scratch", replace(recipe, document=step, context=context), "document")

        return self._each(make)

    def _each(self, make: Callable[[Recipe], Run]) -> tuple[Run, ...]:
        return tuple(make(replace(self.recipe, seed=seed)) for seed in self.seeds)


def _sentence_run(recipe: Recipe, corpora: str) -> Run:
    if corpora == "all" or not recipe.data.sentences:  # without D_s, the documents are all there is
        return Run("sentence", recipe, "sentence")
    return Run(f"sentence-{corpora}", replace(recipe, sentence=replace(recipe.sentence, corpora=corpora)), "sentence")


def _base_run(recipe: Recipe, kind: str) -> Run:
    if kind == recipe.model.kind:
        return _sentence_run(recipe, "all")
    return Run(f"sentence-{kind}", with_base(recipe, kind), "sentence")


# ---- one function a table ----


def context_length(systems: Systems) -> PaperTable:
    rows = [
        Row((str(n),), systems.document(f"previous-{n}", previous=n), (figure,))
        for n, figure in paper.CONTEXT_LENGTH.items()
    ]
    return PaperTable(
        "context-length",
        "Effect of context length",
        ("# sent.",),
        ("MT06",),
        tuple(rows),
        on_dev=True,
    )


def context_layers(systems: Systems) -> PaperTable:
    rows = [
        Row((str(n),), systems.document(f"layers-{n}", layers=n), (figure,))
        for n, figure in paper.CONTEXT_LAYERS.items()
    ]
    return PaperTable(
        "context-layers",
        "Effect of self-attention layer number (N_c)",
        ("# Layer",),
        ("MT06",),
        tuple(rows),
        on_dev=True,
    )


def comparison(systems: Systems) -> PaperTable:
    """The paper has no row for RNNsearch alone, which the systems on it are told against here."""
    ours = {
        "Vaswani et al. (2017)": systems.sentence(),
        "this work": systems.paper_model(),
        **{rival.authors: systems.rival(rival) for rival in RIVALS.values() if rival.authors in paper.COMPARISON},
    }
    rows = [
        Row(
            (method, model),
            ours[method],
            figures,
            rule=method in ("Vaswani et al. (2017)", "this work"),
            baseline=systems.base("rnnsearch") if model == MODELS["rnnsearch"] else (),
        )
        for method, (model, figures) in paper.COMPARISON.items()
    ]
    return PaperTable(
        "comparison",
        "Comparison with previous work (the paper: Chinese-English)",
        ("Method", "Model"),
        paper.NIST,
        (*rows, Row((paper.OURS, MODELS["transformer"]), systems.ours())),
        notes=(paper.OURS_NOTE,),
    )


def french_english(systems: Systems) -> PaperTable:
    ours = {"Transformer": systems.sentence(), "this work": systems.paper_model()}
    rows = [Row((name,), ours[name], figures) for name, figures in paper.FRENCH_ENGLISH.items()]
    return PaperTable(
        "french-english",
        "Comparison with Transformer (the paper: French-English)",
        ("Method",),
        ("Dev", "Test"),
        (*rows, Row((paper.OURS,), systems.ours())),
        notes=(paper.OURS_NOTE,),
    )


def two_step(systems: Systems) -> PaperTable:
    runs = (
        systems.sentence("documents"),
        systems.sentence(),
        systems.from_scratch(),
        systems.document("after-sentence-documents", corpora="documents"),
        systems.document(),
    )
    sizes = {"-": "-", "940K": "D_d", "2M": "D_s + D_d"}
    rows = [
        Row((sizes[sent], sizes[doc]), run, figures)
        for ((sent, doc), figures), run in zip(paper.TWO_STEP.items(), runs, strict=True)
    ]
    return PaperTable(
        "two-step",
        "Effect of two-step training (the paper: D_d 940K pairs, D_s + D_d 2M)",
        ("sent.", "doc."),
        paper.NIST,
        tuple(rows),
    )


def integration(systems: Systems) -> PaperTable:
    rows = [
        Row(
            (name,),
            systems.sentence() if name == "none" else systems.document(f"integration-{name}", integration=name),
            figures,
        )
        for name, figures in paper.INTEGRATION.items()
    ]
    return PaperTable(
        "integration",
        "Effect of context integration",
        ("Integration",),
        paper.NIST,
        tuple(rows),
    )


def gating(systems: Systems) -> PaperTable:
    connections = {"w/o": "residual", "w/": "gate"}
    rows = [
        Row((name,), systems.document(f"gating-{connections[name]}", connection=connections[name]), figures)
        for name, figures in paper.GATING.items()
    ]
    return PaperTable(
        "gating",
        "Effect of context gating",
        ("Gating",),
        paper.NIST,
        tuple(rows),
    )


TABLES: dict[str, Callable[[Systems], PaperTable]] = {
    "context-length": context_length,
    "context-layers": context_layers,
    "comparison": comparison,
    "french-english": french_english,
    "two-step": two_step,
    "integration": integration,
    "gating": gating,
}


def make_table(name: str, systems: Systems) -> PaperTable:
    """A table of the paper with the controls of the recipe's own model below its rows."""
    table = TABLES[name](systems)
    blank = ("",) * (len(table.headings) - 1)
    controls = (
        Row(("control: shuffled context", *blank), systems.control("shuffled"), rule=True, control=True),
        Row(("control: no context", *blank), systems.control("none"), control=True),
    )
    return replace(table, rows=(*table.rows, *controls), own=systems.document(), baseline=systems.sentence())


def needed_by(tables: Sequence[PaperTable]) -> list[Run]:
    groups = [(table.baseline, *(runs for row in table.rows for runs in (row.baseline, row.runs))) for table in tables]
    return [run for group in groups for runs in group for run in runs]
