"""`docnmt demo`: the whole paper in a few minutes, on the embedded corpus."""

from __future__ import annotations

import os
import re
import shutil
import sys
import time
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from docnmt.base.files import write_json
from docnmt.base.lines import CorpusFiles
from docnmt.base.progress import Progress
from docnmt.config import Recipe
from docnmt.corpus.read import read_corpus
from docnmt.decoding.translator import load
from docnmt.demo.corpus import PHENOMENA, ContextWord, read_context_words, write_demo_corpus
from docnmt.document import Document, ParallelDocument, context_sentences
from docnmt.evaluation.metrics import make_metric
from docnmt.evaluation.test_sets import shuffled
from docnmt.training.two_step import train

# ---- accuracy on words that only context can decide, and on all other words ----

Words = Mapping[tuple[str, int], Sequence[ContextWord]]  # by document id and sentence position


@dataclass
class Tally:
    right: int = 0
    total: int = 0

    def add(self, right: int, total: int = 1) -> None:
        self.right += right
        self.total += total

    @property
    def percent(self) -> float:
        return 100 * self.right / self.total if self.total else float("nan")


@dataclass
class ContextWordAccuracy:
    words: Tally = field(default_factory=Tally)  # context-dependent ones
    other_words: Tally = field(default_factory=Tally)
    by_kind: dict[tuple[str, int], Tally] = field(default_factory=dict)  # (phenomenon, distance)
    chance: float = 0.0  # percent, for guessing among the words that fit without context

    def of(self, kind: str | int) -> Tally:
        """Of one phenomenon, or at one distance."""
        tallies = [tally for kinds, tally in self.by_kind.items() if kind in kinds]
        return Tally(sum(t.right for t in tallies), sum(t.total for t in tallies))


def is_right(word: ContextWord, translation: str) -> bool:
    """Whether a translation has the right word and none of those that would be wrong."""
    return _has(translation, word.right) and not any(_has(translation, wrong) for wrong in word.wrong)


def accuracy(words: Words, sentences: Iterable[tuple[str, int, str, str]]) -> ContextWordAccuracy:
    """Over sentences given as (document id, position, reference, translation)."""
    result = ContextWordAccuracy()
    chances = []
    for document, position, reference, translation in sentences:
        others = Counter(_tokens(reference))
        for word in words.get((document, position), ()):
            right = is_right(word, translation)
            result.words.add(right)
            result.by_kind.setdefault((word.phenomenon, word.distance), Tally()).add(right)
            chances.append(1 / (1 + len(word.wrong)))
            others -= Counter(_tokens(word.right))
        result.other_words.add((others & Counter(_tokens(translation))).total(), others.total())
    result.chance = 100 * sum(chances) / len(chances) if chances else float("nan")
    return result


def _tokens(text: str) -> list[str]:
    return re.findall(r"\w+(?:'\w+)?", text.lower())


def _has(text: str, words: str) -> bool:
    return re.search(rf"(?<!\w){re.escape(words)}(?!\w)", text, re.IGNORECASE) is not None


# ---- the demo ----

DOCUMENTS, SEED = 4500, 1
SENTENCE, DOCUMENT, SHUFFLED = "sentence model", "document model", "document model, shuffled context"
SHORT = {SENTENCE: "sentence", DOCUMENT: "document", SHUFFLED: "shuffled"}
Translated = list[list[str]]  # the sentences of each document


def run_demo(recipe: Recipe, progress: Progress, console: Console, json_path: str = "") -> dict[str, Any]:
    started = time.monotonic()
    corpus = Path(recipe.output) / "corpus"
    write_demo_corpus(corpus, DOCUMENTS, SEED)
    recipe = _with_corpus(recipe, corpus)
    progress.say(f"corpus: {DOCUMENTS:,} documents, French to English, in {corpus}")
    models = train(recipe, ("sentence", "document"), progress)
    test = list(read_corpus(CorpusFiles(path=str(corpus / "test.tsv"))))
    outputs = _translate_all(test, models, progress)
    words = read_context_words(corpus / "context-words.jsonl")
    scores = {name: accuracy(words, _aligned(test, texts)) for name, texts in outputs.items()}
    bleu = {name: _bleu(test, texts) for name, texts in outputs.items()}
    _print_scores(console, scores, bleu)
    _print_changes(console, test, outputs, words, recipe)
    seconds = time.monotonic() - started
    model = models["document"]
    console.print(
        f"\nDone in {seconds:.0f} s. To translate a French text that uses the words this small model knows:\n"
    )
    for arguments in (f"translate {model} my-text.txt", f"serve {model}"):
        console.print(f"  {_typed()} {arguments}", markup=False, highlight=False, soft_wrap=True)
    console.print()
    figures = {"seconds": seconds, "systems": {name: _figures(scores[name], *bleu[name]) for name in outputs}}
    if json_path:
        write_json(json_path, figures)
    return figures


def _typed() -> str:
    """What to type for docnmt: as it was started."""
    started = Path(sys.argv[0])
    if started.stem != "docnmt":
        return f"{sys.executable} -m docnmt"
    found = shutil.which("docnmt")
    return "docnmt" if found and Path(found).samefile(started) else os.path.relpath(started)


def _with_corpus(recipe: Recipe, folder: Path) -> Recipe:
    """The recipe with its corpora taken from where they have just been written."""

    def here(path: str) -> str:
        return str(folder / Path(path).name)

    roles: dict[str, Any] = {
        role: tuple(replace(files, path=here(files.path)) for files in getattr(recipe.data, role))
        for role in ("documents", "sentences", "dev", "test")
    }
    evaluation = replace(recipe.evaluation, contrastive=here(recipe.evaluation.contrastive))
    return replace(recipe, data=replace(recipe.data, **roles), evaluation=evaluation)


def _translate_all(test: list[ParallelDocument], models: dict[str, Path], progress: Progress) -> dict[str, Translated]:
    sources = [Document(document.id, document.source) for document in test]
    document_model = load(models["document"])
    systems = {
        SENTENCE: (load(models["sentence"]), None),
        DOCUMENT: (document_model, None),
        SHUFFLED: (document_model, shuffled(sources, SEED)),
    }
    outputs = {}
    for name, (translator, foreign) in systems.items():
        tracked = progress.track(
            translator.translate_documents(sources, context_from=foreign),
            f"translate, {name}",
            total=sum(map(len, sources)),
            unit="sentences",
            size=lambda document: len(document.sentences),
        )
        outputs[name] = [[sentence.text for sentence in document.sentences] for document in tracked]
    return outputs


def _aligned(test: list[ParallelDocument], texts: Translated) -> list[tuple[str, int, str, str]]:
    return [
        (document.id, position, reference, text)
        for document, translated in zip(test, texts, strict=True)
        for position, (reference, text) in enumerate(zip(document.target, translated, strict=True))
    ]


def _bleu(test: list[ParallelDocument], texts: Translated) -> tuple[float, str]:
    """With its signature."""
    metric = make_metric("bleu", lowercase=True)
    references = [sentence for document in test for sentence in document.target]
    statistics = metric.statistics([text for document in texts for text in document], [references])
    return metric.score(statistics.sum(axis=0)), metric.signature


def _print_scores(console: Console, scores: dict[str, ContextWordAccuracy], bleu: dict[str, tuple[float, str]]) -> None:
    chance, count = scores[DOCUMENT].chance, scores[DOCUMENT].words.total
    title = f"\nHeld-out documents: {count} context-dependent words, guessing gets {chance:.0f} %"
    table = _table(title, "BLEU", "context-dependent words", "all other words")
    for name, score in scores.items():
        table.add_row(
            name, f"{bleu[name][0]:.1f}", f"{score.words.percent:.1f} %", f"{score.other_words.percent:.1f} %"
        )
    console.print(table)
    title = "Context-dependent words right, by kind and by how many sentences back the cue is"
    detail = _table(title, *PHENOMENA, "1 back", "2 back")
    for name, score in scores.items():
        detail.add_row(SHORT[name], *(f"{score.of(kind).percent:.0f} %" for kind in (*PHENOMENA, 1, 2)))
    console.print(detail)
    console.print(f"BLEU: {bleu[DOCUMENT][1]}", highlight=False)


def _table(title: str, *figures: str) -> Table:
    table = Table(title=title)
    table.add_column("")
    for heading in figures:
        table.add_column(heading, justify="right")
    return table


def _print_changes(
    console: Console, test: list[ParallelDocument], outputs: dict[str, Translated], words: Words, recipe: Recipe
) -> None:
    """Three sentences, each with another kind of word, that context put right."""
    shown: list[set[str]] = []
    console.print("\nWhere context changed the outcome:", style="bold")
    for document, plain, informed in zip(test, outputs[SENTENCE], outputs[DOCUMENT], strict=True):
        for position, (without, with_context) in enumerate(zip(plain, informed, strict=True)):
            here = words.get((document.id, position), ())
            kinds = {w.phenomenon for w in here if is_right(w, with_context) and not is_right(w, without)}
            if len(shown) == 3 or not kinds or any(kinds & others for others in shown):
                continue
            shown.append(kinds)
            table = Table(
                show_header=False, box=None, padding=(0, 2), title=f"\n{', '.join(kinds)}", title_justify="left"
            )
            for sentence in context_sentences(document.source, position, recipe.context.spec):
                table.add_row("context", sentence, style="dim")
            table.add_row("source", document.source[position])
            table.add_row("reference", document.target[position])
            table.add_row(SENTENCE, without)
            table.add_row(DOCUMENT, with_context, style="bold")
            console.print(table)


def _figures(score: ContextWordAccuracy, bleu: float, signature: str) -> dict[str, Any]:
    return {
        "bleu": bleu,
        "bleu_signature": signature,
        "context_words": score.words.percent,
        "context_words_count": score.words.total,
        "chance": score.chance,
        "other_words": score.other_words.percent,
        "by_phenomenon": {kind: score.of(kind).percent for kind in PHENOMENA},
        "by_distance": {str(distance): score.of(distance).percent for distance in (1, 2)},
    }
