"""What the systems make of the recipe's dev and test documents, and their scores: over seeds, against a baseline."""

from __future__ import annotations

import json
import re
import statistics
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from docnmt.base.errors import DocnmtError
from docnmt.base.files import owned, write_json
from docnmt.base.progress import Progress
from docnmt.config import Recipe
from docnmt.decoding.translator import load
from docnmt.document import NO_CONTEXT
from docnmt.evaluation.metrics import Metric, corpus_statistics, make_metric
from docnmt.evaluation.scores import OTHER, by_domain, warn_of_tokens
from docnmt.evaluation.significance import Difference, compare
from docnmt.evaluation.test_sets import TestSet, joined, read_test_set, shuffled
from docnmt.experiments.runs import Run, RunStore
from docnmt.model_folder import model_key


@dataclass
class Translations:
    """Translates with the models of a recipe's runs, or finds, beside each run, that it has been done before."""

    recipe: Recipe
    progress: Progress

    def of(self, model: Path, test: TestSet, contexts: str) -> list[str]:
        """One text a sentence; `contexts` is "own", "shuffled" or "none", as in `document.context_from`."""
        title = re.sub(r"[^\w.-]+", "-", test.title)
        path = model.parent / "translations" / f"{title}.{contexts}.json"
        decoding = asdict(replace(self.recipe.decoding, batch_tokens=1))  # the size of batches changes nothing
        key: list[object] = [model_key(model), test.key, decoding]
        texts = _read(path, key)
        if texts is None:
            with owned(path.parent, wait=self.progress.say):  # whoever else wants it waits
                texts = _read(path, key)
                if texts is None:
                    texts = self._translate(model, test, contexts)
                    path.parent.mkdir(exist_ok=True)
                    write_json(path, {"key": key, "translations": texts})
        return texts

    def _translate(self, model: Path, test: TestSet, contexts: str) -> list[str]:
        translator, decoding = load(model, self.recipe.hardware.device), self.recipe.decoding
        found = translator.translate_documents(
            test.sources,
            context_from=shuffled(test.sources, self.recipe.seed) if contexts == "shuffled" else None,
            context=NO_CONTEXT if contexts == "none" else None,
            beam=decoding.beam,
            length_penalty=decoding.length_penalty,
            batch_tokens=decoding.batch_tokens,
        )
        total = sum(map(len, test.documents))
        tracked = self.progress.track(
            found, f"translate {test.title}", total=total, unit="sentences", size=lambda d: len(d.sentences)
        )
        return [sentence.text for document in tracked for sentence in document.sentences]


def _read(path: Path, key: list[object]) -> list[str] | None:
    """The translations kept in a file, if they are those of this key."""
    try:
        table = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    return table["translations"] if table.get("key") == key else None


# ---- the columns of the tables ----

ALL = "All"


@dataclass(frozen=True)
class Subset:
    """What a column of a table stands for: a set, or some of its documents."""

    title: str
    test: TestSet
    documents: frozenset[int] | None = None  # None: all of them


@dataclass(frozen=True)
class Subsets:
    """The columns of a recipe's tables."""

    dev: Subset
    tests: tuple[Subset, ...]  # each test set, all of them as one, then their domains
    whole: Subset  # all test documents


def gain_word(metric: Metric) -> str:
    return "gain" if metric.higher_is_better else "difference"  # a negative gain would be read as a loss


def metric_of(recipe: Recipe) -> Metric:
    config = recipe.evaluation
    return make_metric(config.metric, language=recipe.data.target_language, tokenized=config.tokenized)


def parts_of(recipe: Recipe) -> Subsets:
    for role in ("dev", "test"):
        if not getattr(recipe.data, role):
            raise DocnmtError(f"the recipe has no {role} documents\n  Set data.{role}.")
    named = recipe.data.dev[0].name if len(recipe.data.dev) == 1 else ""
    dev = joined(named or "Dev", [read_test_set(files, recipe) for files in recipe.data.dev])
    sets = [read_test_set(files, recipe) for files in recipe.data.test]
    whole = Subset(ALL, joined(ALL, sets)) if len(sets) > 1 else Subset("Test", sets[0])
    singles, first = [], 0
    for each in sets if len(sets) > 1 else []:
        end = first + len(each.documents)
        singles.append(Subset(each.title, whole.test, frozenset(range(first, end))))
        first = end
    parts = Subsets(Subset(dev.title, dev), (*singles, whole, *_domains(recipe, whole.test)), whole)
    _check(parts)
    if not recipe.evaluation.tokenized:
        references = {part.title: part.test.references[0] for part in (parts.dev, parts.whole)}
        warn_of_tokens(references, "evaluation.tokenized = true")
    return parts


def _check(parts: Subsets) -> None:
    """Finds now what would stop the tables after hours of training."""
    titles = [*(part.title for part in (parts.dev, *parts.tests)), "95 %", "p"]
    for title in titles:
        if titles.count(title) > 1:
            raise DocnmtError(f"two columns of the tables would be named {title!r}\n  Give each set a name of its own.")
    for part in (parts.dev, parts.whole):
        if len({document.id for document in part.test.documents}) < 2:
            raise DocnmtError(
                f"{part.title}: only one document, but the control takes its contexts from other documents\n"
                "  Give two documents or more."
            )


def _domains(recipe: Recipe, whole: TestSet) -> list[Subset]:
    if not recipe.evaluation.domains:
        return []
    domains = by_domain([document.id for document in whole.documents], recipe.evaluation.domains)
    return [Subset(name, whole, frozenset(chosen)) for name, chosen in domains.items() if name != OTHER]


# ---- scores: over seeds, and against a baseline ----


@dataclass(frozen=True)
class Score:
    """Of one system on one set; several values where several seeds were trained."""

    values: tuple[float, ...]

    def __str__(self) -> str:
        mean = statistics.fmean(self.values)
        return f"{mean:.2f}" if len(self.values) == 1 else f"{mean:.2f} ± {statistics.stdev(self.values):.2f}"


@dataclass
class Scoreboard:
    store: RunStore
    translations: Translations
    metric: Metric
    _statistics: dict[tuple[Path, str, str, str], tuple[NDArray, NDArray]] = field(default_factory=dict)

    def score(self, runs: Sequence[Run], part: Subset, contexts: str = "") -> Score:
        return Score(tuple(self.metric.score(self.rows(run, part, contexts)[0].sum(axis=0)) for run in runs))

    def difference(self, baseline: Sequence[Run], runs: Sequence[Run], part: Subset) -> Difference:
        """Of all seeds together: a document is drawn with what each seed made of it."""
        ours, theirs = ([self.rows(run, part) for run in side] for side in (runs, baseline))
        documents = np.concatenate([found for _, found in ours])
        rows, base = (np.concatenate([values for values, _ in side]) for side in (ours, theirs))
        return compare(self.metric, base, rows, documents)

    def texts(self, run: Run, test: TestSet, contexts: str = "") -> list[str]:
        return self.translations.of(self.store.model(run), test, contexts or as_trained(run))

    def rows(self, run: Run, part: Subset, contexts: str = "") -> tuple[NDArray, NDArray]:
        """The metric's statistics, and the document of each of their rows; by default with contexts as in training."""
        contexts = contexts or as_trained(run)
        wanted = (self.store.model(run), part.test.key, part.test.reference_key, contexts)
        if wanted not in self._statistics:
            texts = self.texts(run, part.test, contexts)
            found = corpus_statistics(self.metric, texts, part.test.references, part.test.document_of)
            self._statistics[wanted] = found
        rows, documents = self._statistics[wanted]
        if part.documents is None:
            return rows, documents
        inside = np.isin(documents, list(part.documents))
        return rows[inside], documents[inside]


def as_trained(run: Run) -> str:
    return run.recipe.document.context_from if run.step == "document" else "own"
