"""What a glossary gains and costs: constrained search beside substitution by alignment, on one model and one test set.

    python benchmarks/terms.py MODEL TEST --train FILE [--first N] [--json FILE]

Terms are drawn from the references (see drawn_terms.py), at most two a sentence, and each is asked for where it was
drawn, as Dinu et al. (2019) do it:

    reference nouns   nouns and names, as glossaries have them, with the translation of the reference
    invented names    the same, with a made-up name, which takes the translation's place in the reference, too
    reference words   any content words, verbs and adverbs among them, with the translation of the reference

Ways to translate: without terms; constrained search alone; what `--glossary` does, constrained search and, where a term
is too improbable for it, substitution; substitution alone, in the best translation or, after a search for as many as
the beam is wide, in the one that lacks fewest terms. All begin with the first and then work on the sentences that lack
a term. Differences are to `--glossary`; 95 % intervals by a paired bootstrap of documents.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Sequence
from dataclasses import asdict, replace
from itertools import chain
from statistics import median
from time import process_time
from typing import Any, NamedTuple
from unittest.mock import patch

import numpy as np
from drawn_terms import Task, TermFinder, draw

from docnmt.base.files import write_json
from docnmt.base.lines import CorpusFiles
from docnmt.base.progress import Progress
from docnmt.base.report import Column, Table
from docnmt.corpus.read import read_corpus
from docnmt.decoding import terms as binding
from docnmt.decoding import translator as decoding
from docnmt.decoding.phrases import Phrase, missing
from docnmt.decoding.scoring import Links, align
from docnmt.decoding.terms import Glossary, substitute
from docnmt.decoding.units import Unit, batches
from docnmt.document import ParallelDocument
from docnmt.evaluation.metrics import Mean, make_metric
from docnmt.evaluation.significance import compare

GLOSSARIES = (  # nouns alone, invented
    ("reference nouns", True, False),
    ("invented names", True, True),
    ("reference words", False, False),
)
GLOSSARY = "--glossary"
TURNS = 7  # parts of the documents, each translated in every way before the next


class Drawn(Glossary):
    """Gives the terms drawn for each sentence and no others. It is asked for one sentence after another."""

    def __init__(self, phrases: Sequence[Sequence[tuple[Phrase, ...]]]):
        super().__init__(())
        object.__setattr__(self, "_next", chain.from_iterable(phrases))  # a glossary is frozen

    def phrases(self, sentence: str) -> tuple[Phrase, ...]:
        found: tuple[Phrase, ...] = next(self._next)  # type: ignore[attr-defined]
        assert all(sentence[slice(*phrase.at)] == phrase.source for phrase in found)
        return found


class Substitution(binding.Binding):
    """Puts the terms that a translation lacks in the place of the words for their source."""

    def bind(self, units: Sequence[Unit]) -> None:
        lacking = [unit for unit in units if unit.phrases and unit.sentence and self._lacking(unit)]
        self.search_again(lacking)
        texts = []
        for unit in lacking:
            found = self.translator.target.decode([hypothesis.tokens for hypothesis in unit.best])
            texts.append(min(found, key=lambda text: len(missing(unit.phrases, text))))
        pairs = [(unit.sentence, text) for unit, text in zip(lacking, texts, strict=True)]
        for unit, text, links in zip(lacking, texts, align(self.translator, pairs), strict=True):
            unit.text = put_in(text, links, missing(unit.phrases, text))

    def search_again(self, units: Sequence[Unit]) -> None:
        pass


def put_in(text: str, links: Links, phrases: Sequence[Phrase]) -> str:
    """The text with those of the phrases that have a place; side by side where they have the same one."""
    placed: list[Phrase] = []
    for phrase in sorted(phrases, key=lambda phrase: phrase.at):
        beside = [replace(placed[-1], text=f"{placed[-1].text} {phrase.text}")] if placed else []
        for tried in ([*placed, phrase], [*placed[:-1], *beside]):
            if substitute(text, links, tried) is not None:
                placed = tried
                break
    return substitute(text, links, placed) or text


class SubstitutionInBest(Substitution):
    """Does so in the one of several translations that lacks fewest terms."""

    def search_again(self, units: Sequence[Unit]) -> None:
        options = replace(self.options, nbest=self.options.beam)
        for batch in batches(units, options.beam, options.batch_tokens):
            self.translator.search(batch, self.rule, options)


class Way(NamedTuple):
    kind: type[binding.Binding] | None = binding.Binding
    foreign: float = binding.FOREIGN


WAYS = {
    "without": Way(None),
    "constrained search": Way(foreign=math.inf),
    GLOSSARY: Way(),
    "substitution": Way(Substitution),
    "substitution, n best": Way(SubstitutionInBest),
}


def translate(translator: decoding.Translator, task: Task, way: Way, part: slice) -> tuple[list[str], float]:
    """The translations, and the processor's seconds: others may be at work on the machine."""
    start = process_time()
    kind, glossary = way.kind or binding.Binding, Drawn(task.phrases[part]) if way.kind else None
    with patch.object(decoding, "Binding", kind), patch.object(binding, "FOREIGN", way.foreign):
        found = list(translator.translate_documents(task.documents[part], glossary=glossary))
    return [sentence.text for document in found for sentence in document.sentences], process_time() - start


def measure(translator: decoding.Translator, task: Task, progress: Progress) -> list[dict[str, Any]]:
    """A row for each way."""
    bleu, percent = make_metric("bleu", language=translator.card.target_language), Mean("percent")
    places = np.repeat(np.arange(len(task.documents)), [len(d) for d in task.documents])
    asked = [phrases for document in task.phrases for phrases in document]
    texts: dict[str, list[str]] = {way: [] for way in WAYS}
    seconds: dict[str, list[float]] = {way: [] for way in WAYS}
    cuts = [n * len(task.documents) // TURNS for n in range(TURNS + 1)]
    for part in progress.track(map(slice, cuts, cuts[1:]), "translate", total=TURNS, unit="parts"):
        for way in WAYS:  # a machine is faster at one time and slower at another
            found, taken = translate(translator, task, WAYS[way], part)
            texts[way] += found
            seconds[way].append(taken)
    statistics = {way: bleu.statistics(found, [task.references]) for way, found in texts.items()}
    met = {
        way: np.array([(100.0 * (len(p) - len(missing(p, t))), len(p)) for p, t in zip(asked, found, strict=True)])
        for way, found in texts.items()
    }
    return [
        {
            "way": way,
            "met": asdict(compare(percent, met[GLOSSARY], met[way], places)),
            "bleu": asdict(compare(bleu, statistics[GLOSSARY], statistics[way], places)),
            "signature": bleu.signature,
            "seconds": seconds[way],
            "times": median(a / b for a, b in zip(seconds[way], seconds["without"], strict=True)),
            "texts": texts[way],
            "references": task.references,
        }
        for way in WAYS
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", metavar="MODEL")
    parser.add_argument("test", metavar="TEST", help="parallel documents, French the source")
    parser.add_argument("--train", required=True, metavar="FILE", help="parallel documents to learn translations from")
    parser.add_argument("--first", type=int, metavar="N", help="sentences of each document (default: all)")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--json", default="", metavar="FILE")
    options = parser.parse_args()
    progress, translator = Progress(), decoding.load(options.model)
    documents = [
        ParallelDocument(d.id, d.source[: options.first], d.target[: options.first])
        for d in read_corpus(CorpusFiles(path=options.test))
    ]
    finder = TermFinder([*documents, *read_corpus(CorpusFiles(path=options.train))], progress)
    figures = {}
    for name, nouns, invented in GLOSSARIES:
        task = draw(documents, finder, nouns, invented, options.seed)
        figures[name] = rows = measure(translator, task, progress)
        asked = [len(phrases) for document in task.phrases for phrases in document]
        title = f"{name}: {sum(asked):,} in {sum(map(bool, asked)):,} of {len(asked):,} sentences"
        heads = "met, %", "difference", "95 %", "BLEU", "difference", "95 %", "p", "seconds", "times"
        table = Table(title, [Column("", text=True), *map(Column, heads)], notes=[f"BLEU: {rows[0]['signature']}"])
        for row in rows:
            cells = [f"{row['met']['system']:.1f}", *_beside(row["met"]), f"{row['bleu']['system']:.2f}"]
            cells += [*_beside(row["bleu"]), f"{row['bleu']['p_randomisation']:.4f}"]
            table.add(row["way"], *cells, f"{sum(row['seconds']):.1f}", f"{row['times']:.2f}")
        print(table.markdown(), flush=True)
    if options.json:
        write_json(options.json, figures)


def _beside(found: dict[str, Any]) -> tuple[str, str]:
    interval = found["interval"]
    return f"{found['difference']:+.2f}", f"{interval['low']:+.2f} … {interval['high']:+.2f}"


if __name__ == "__main__":
    main()
