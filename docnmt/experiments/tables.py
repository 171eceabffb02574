"""Which runs stand in which row of the tables: those of the paper (paper.toml), and the one of all systems.

Rows that claim a gain from context are followed by their controls: the same step 2, trained as long and decoded with
contexts of other documents, and with empty ones. What such a control gains is no gain from context.
"""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, TypeVar

from docnmt.config import Recipe, StepConfig
from docnmt.experiments.runs import Run

_PAPER = tomllib.loads((Path(__file__).parent / "paper.toml").read_text(encoding="utf-8"))

TABLES = tuple(_PAPER["tables"])
EFFICIENCY = {name: tuple(figures.split()) for name, figures in _PAPER["efficiency"].items()}
BASES = {"rnnsearch": "Bahdanau et al. (2015)", "transformer": "Vaswani et al. (2017)"}  # model.kind -> its authors
MODELS = {"rnnsearch": "RNNsearch", "transformer": "Transformer"}  # as the paper calls them

# A row beside the paper's model that the paper does not have.
OURS = "ours: starts as the sentence model"
OURS_NOTE = (
    "This work is the paper's model, LayerNorm(lambda H + (1 - lambda) Sub(H)). Next to it is ours "
    '(context.start = "sentence"), H + (1 - lambda) Sub(H), which is exactly the sentence model when step 2 begins.'
)


# ---- other systems, as changes to a recipe ----


@dataclass(frozen=True)
class Rival:
    """A system that the paper stands beside; paper.toml says what the factors are for."""

    name: str  # of its runs
    authors: str
    base: str  # model.kind
    context: Mapping[str, Any]
    document: Mapping[str, Any] = field(default_factory=dict)
    batch: int = 1
    rate: float = 1.0
    longer: int = 1

    def of(self, recipe: Recipe) -> Recipe:
        step = replace(
            _clipped(recipe.document, self.base),
            batch_tokens=self.batch * recipe.document.batch_tokens,
            learning_rate=self.rate * recipe.document.learning_rate,
            updates=self.longer * recipe.document.updates,
        )
        return replace(
            recipe,
            model=replace(recipe.model, kind=self.base),
            context=replace(recipe.context, **self.context),
            document=replace(step, **self.document),
        )


RIVALS = {name: Rival(name, **entry) for name, entry in _PAPER["rivals"].items()}

Step = TypeVar("Step", bound=StepConfig)


def _clipped(step: Step, base: str) -> Step:
    """Bahdanau et al. (2015) scale gradients down to a norm of 1, and so do all on RNNsearch here, unless the recipe
    has a limit of its own."""
    return replace(step, clip=1.0) if base == "rnnsearch" and not step.clip else step


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

    def rival(self, name: str) -> tuple[Run, ...]:
        """Step 2 of another system after step 1 of its base."""
        rival = RIVALS[name]
        return self._each(lambda recipe: Run(name, rival.of(recipe), "document", _base_run(recipe, rival.base)))

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
            # To start as the sentence model makes no sense where there is none.
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
    # Step 1 has no context, and the recipe's own may not exist for another base.
    model, context = replace(recipe.model, kind=kind), replace(recipe.context, kind="none")
    changed = replace(recipe, model=model, context=context, sentence=_clipped(recipe.sentence, kind))
    return Run(f"sentence-{kind}", changed, "sentence")


# ---- tables ----


@dataclass(frozen=True)
class Row:
    labels: tuple[str, ...]
    runs: tuple[Run, ...] = ()  # one a seed; none: a system that only the paper has figures for
    paper: tuple[str, ...] = ()
    rule: bool = False  # a line above
    control: bool = False  # the recipe's own model with wrong contexts
    baseline: tuple[Run, ...] = ()  # what its gain is measured against, where that is not the table's


@dataclass(frozen=True)
class PaperTable:
    name: str
    title: str
    headings: tuple[str, ...]
    paper_columns: tuple[str, ...]
    rows: tuple[Row, ...]
    on_dev: bool  # the paper chose this setting on its development set
    baseline: tuple[Run, ...]  # what gains are measured against
    own: tuple[Run, ...]  # the recipe's own model
    notes: tuple[str, ...]


def make_table(name: str, systems: Systems) -> PaperTable:
    """A table of the paper with the controls of the recipe's own model below its rows."""
    entry = _PAPER["tables"][name]
    headings, ours = tuple(entry["headings"]), entry.get("ours", False)
    blank = ("",) * (len(headings) - 1)
    rows = [_row(systems, **row) for row in entry["rows"]]
    if ours:
        rows.append(Row((OURS, MODELS["transformer"])[: len(headings)], systems.ours()))
    rows += [
        Row(("control: shuffled context", *blank), systems.control("shuffled"), rule=True, control=True),
        Row(("control: no context", *blank), systems.control("none"), control=True),
    ]
    return PaperTable(
        name,
        entry["title"],
        headings,
        tuple(entry["columns"].split()),
        tuple(rows),
        on_dev=entry.get("on_dev", False),
        baseline=systems.sentence(),
        own=systems.document(),
        notes=(OURS_NOTE,) if ours else (),
    )


def _row(
    systems: Systems,
    labels: Sequence[str],
    paper: str,
    rule: bool = False,
    baseline: str = "",
    **run: Mapping[str, Any],
) -> Row:
    ((method, arguments),) = run.items()
    runs = getattr(systems, method)(**arguments)
    return Row(tuple(labels), runs, tuple(paper.split()), rule, baseline=systems.base(baseline) if baseline else ())


def needed_by(tables: Sequence[PaperTable]) -> list[Run]:
    groups = [(table.baseline, *(runs for row in table.rows for runs in (row.baseline, row.runs))) for table in tables]
    return [run for group in groups for runs in group for run in runs]


def all_systems(systems: Systems) -> list[Row]:
    """Each base and the systems on it, labelled with their authors, their base, and their context."""

    def row(authors: str, runs: tuple[Run, ...], baseline: tuple[Run, ...] = ()) -> Row:
        recipe = runs[0].recipe
        context = f"{recipe.context.kind}, {recipe.context.previous} before" if baseline else "none"
        return Row((authors, MODELS[recipe.model.kind], context), runs, baseline=baseline, rule=not baseline)

    rows = []
    for base, authors in BASES.items():
        baseline = systems.base(base)
        rivals = [rival for rival in RIVALS.values() if rival.base == base]
        rows += [row(authors, baseline), *(row(rival.authors, systems.rival(rival.name), baseline) for rival in rivals)]
    baseline = systems.sentence()
    return [*rows, row("this work", systems.paper_model(), baseline), row(OURS, systems.ours(), baseline)]
