"""What context is worth to a model: the probability of every target token with its context, and
with wrong contexts.

CXMI (Fernandes et al., 2021, "Measuring and Increasing Context Usage in Context-Aware Machine
Translation") is the mean of log p(token | true context) - log p(token | no context) under one and
the same model.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray

from docnmt.base.errors import DocnmtError
from docnmt.base.files import write_json_lines
from docnmt.base.progress import Progress
from docnmt.data.packing import Batch
from docnmt.decoding.translator import Translator
from docnmt.decoding.units import Pair, within_budget
from docnmt.document import Document, ParallelDocument
from docnmt.evaluation.metrics import Floats, Ints, Mean, make_metric
from docnmt.evaluation.probe_words import ready_made
from docnmt.evaluation.significance import Difference, Interval, compare, interval
from docnmt.evaluation.test_sets import NONE, REPEATED, TRUE, Contexts, with_contexts
from docnmt.text.scripts import Word, words

Domains = Mapping[str, Sequence[int]]  # name -> numbers of documents
WordClasses = Mapping[str, Sequence[str]]

END = "⟨end⟩"  # how the mark after the last word is shown
# Sentences by their position in their document, from 1. Later ones are few, so they share a
# row.
POSITIONS = ((1, 1), (2, 2), (3, 3), (4, 5), (6, 10), (11, 20), (21, 50), (51, None))
WORDS, PUNCTUATION, ENDS = "all words", "punctuation", "end marks"
_PART = re.compile(r"[^\W_]+")  # of "he's", he and s


@dataclass(frozen=True)
class Gain:
    """By how much the true context makes a token more probable than another context does, in nats."""

    mean: float  # a token
    interval: Interval  # documents resampled
    total: float
    sentences: int
    tokens: int


@dataclass(frozen=True)
class WordGain:
    word: str
    count: int
    total: float

    @property
    def mean(self) -> float:
        return self.total / self.count


@dataclass(frozen=True)
class ContextGain:
    """The sentences of a corpus, numbered consecutively, and the log-probability of each target piece
    under each context.

    Gains are those of the true context over another one.
    """

    documents: tuple[str, ...]  # ids
    document: Ints  # of each sentence, an index into `documents`
    position: Ints  # of each sentence in its document, from 0
    pieces: tuple[tuple[str, ...], ...]  # of each sentence's target, the end mark last
    log_probabilities: Mapping[str, tuple[Floats, ...]]  # context -> sentences -> [pieces]
    seed: int = 1  # of shuffled contexts and resamples

    @cached_property
    def tokens(self) -> Ints:
        """[sentences]"""
        return np.array([len(pieces) for pieces in self.pieces])

    def gains(self, over: str = NONE) -> list[Floats]:
        """For each sentence its pieces' gains."""
        return [t - o for t, o in zip(self.log_probabilities[TRUE], self.log_probabilities[over], strict=True)]

    def totals(self, over: str = NONE) -> Floats:
        """Each sentence's gain, [sentences]"""
        return np.array([gains.sum() for gains in self.gains(over)])

    def gain(self, over: str = NONE) -> Gain:
        """CXMI over all sentences."""
        return self._gain(self._rows(over))

    def by_position(self, over: str = NONE) -> dict[str, Gain]:
        """By the sentence's place in its document."""
        return self._parts(in_ranges(self.position + 1, POSITIONS), over)

    def by_domain(self, domains: Domains, over: str = NONE) -> dict[str, Gain]:
        return self._parts({name: np.isin(self.document, own) for name, own in domains.items()}, over)

    def by_word_class(self, classes: WordClasses, over: str = NONE) -> dict[str, Gain]:
        """Nats a word, of each class that the corpus has; `tokens` of a gain counts words here. A
        word may be in several classes; punctuation and end marks are no words."""
        members = {name: frozenset(word.lower() for word in words) for name, words in classes.items()}
        rows = {name: np.zeros((len(self.pieces), 2)) for name in (*classes, WORDS, PUNCTUATION, ENDS)}
        for number, word, gain in self._words(over):
            parts = () if word.text == END else _PART.findall(word.text.lower())
            kinds = [name for name, known in members.items() if not known.isdisjoint(parts)]
            kinds.append(ENDS if word.text == END else WORDS if parts else PUNCTUATION)
            for kind in kinds:
                rows[kind][number] += gain, 1
        return {name: self._gain(own) for name, own in rows.items() if own.any()}

    def by_document(self, over: str = NONE) -> list[tuple[str, int, float]]:
        """Each document's id, tokens and mean gain."""
        sums, tokens = (
            np.bincount(self.document, values, len(self.documents)) for values in (self.totals(over), self.tokens)
        )
        return [(id, int(n), float(s / n)) for id, n, s in zip(self.documents, tokens, sums, strict=True) if n]

    def by_word(self, over: str = NONE) -> list[WordGain]:
        """Every word of the target side, upper and lower case together, the largest total gain first."""
        counts: Counter[str] = Counter()
        totals: defaultdict[str, float] = defaultdict(float)
        for _, word, gain in self._words(over):
            name = word.text if word.text == END else re.sub(r"^\W+|\W+$", "", word.text.lower()) or word.text
            counts[name] += 1
            totals[name] += gain
        return sorted((WordGain(w, counts[w], totals[w]) for w in counts), key=lambda word: (-word.total, word.word))

    def _words(self, over: str) -> Iterator[tuple[int, Word, float]]:
        """Each word with the number of its sentence and its gain."""
        for number, (pieces, gains) in enumerate(zip(self.pieces, self.gains(over), strict=True)):
            for word in target_words(pieces):
                yield number, word, float(gains[word.begin : word.end].sum())

    def _rows(self, over: str) -> Floats:
        """Each sentence's gain and tokens, [sentences, 2]"""
        return np.stack([self.totals(over), self.tokens], axis=1)

    def _parts(self, inside: Mapping[str, NDArray[np.bool_]], over: str) -> dict[str, Gain]:
        rows = self._rows(over)
        return {name: self._gain(rows * own[:, None]) for name, own in inside.items() if own.any()}

    def _gain(self, rows: Floats) -> Gain:
        """Sentences that have none of the tokens are left out: their documents have nothing to draw."""
        inside, metric = rows[:, 1] > 0, Mean("nats a token")
        total, tokens = rows[inside].sum(axis=0)
        around = interval(metric, rows[inside], self.document[inside], seed=self.seed)
        return Gain(float(total / tokens), around, float(total), int(inside.sum()), int(tokens))


def in_ranges(values: Ints, ranges: Sequence[tuple[int, int | None]]) -> dict[str, NDArray[np.bool_]]:
    """Which of the values are in each range, by the range as text: "3", "6-10", "51+"."""
    found = {}
    for first, last in ranges:
        name = f"{first}+" if last is None else str(first) if first == last else f"{first}-{last}"
        found[name] = (values >= first) & (values <= (last or np.inf))
    return found


def target_words(pieces: Sequence[str]) -> list[Word]:
    """The words of a scored sentence and, as the last, its end mark."""
    return [*words(pieces[:-1]), Word(END, len(pieces) - 1, len(pieces), True)]


def classes_of(languages: tuple[str, str]) -> WordClasses:
    """Those that probes are made of, if there are any for a pair of languages."""
    return {"/".join(one.swap): list(one.swap) for one in ready_made(languages) if not one.is_gender}


# ---- scoring ----


@dataclass(frozen=True)
class Encoded:
    """The sentences of a corpus, gaps left out, as ids, and as the model gets them with a context of every kind."""

    translator: Translator
    sources: list[list[int]]
    targets: list[list[int]]
    pairs: Mapping[str, list[Pair]]  # context -> sentences

    def batches(self, among: Sequence[int] | None = None) -> Iterator[list[int]]:
        """Sentences (of those given) that go together. Under every context they are the same ones,
        so that rounding, which depends on what a sentence is batched with, adds nothing to a
        difference."""
        chosen = range(len(self.sources)) if among is None else among
        order = sorted(chosen, key=lambda i: (len(self.targets[i]), len(self.sources[i])))
        sizes = []
        for i in order:
            same = [pairs[i] for pairs in self.pairs.values()]
            texts = max(len(pair.source) + len(pair.target) + 1 for pair in same)
            sizes.append((texts, max(len(pair.context or ()) for pair in same)))
        for places in within_budget(sizes, self.translator.options.batch_tokens):
            yield [order[place] for place in places]

    def batch(self, rows: Sequence[int], context: str = TRUE) -> Batch:
        return self.translator.batch([self.pairs[context][i] for i in rows])


def encode(
    translator: Translator,
    documents: Sequence[ParallelDocument],
    contexts: Mapping[str, Contexts[ParallelDocument]] | None = None,
) -> Encoded:
    """With the true contexts alone, if no others are given."""
    contexts = contexts or {TRUE: Contexts(documents, documents, translator.card.context.spec)}
    sources, targets = [], []
    for document in documents:
        sources += translator.source.encode([document.source[i] for i in document.filled])
        targets += translator.target.encode([document.target[i] for i in document.filled])
    pairs: dict[str, list[Pair]] = {}
    for name, kind in contexts.items():
        rule = translator.rule(kind.context)
        around = [
            each
            for own, other in zip(kind.documents, kind.context_from, strict=True)
            for each in translator.around(other, kind.positions(own), rule)
        ]
        pairs[name] = [translator.pair(*row, rule) for row in zip(sources, targets, around, strict=True)]
    return Encoded(translator, sources, targets, pairs)


def check_has_context(translator: Translator, documents: Sequence[ParallelDocument]) -> None:
    spec = translator.card.context.spec
    if not translator.card.context.active or spec.previous + spec.following == 0:
        raise DocnmtError(
            "this is a sentence model: it uses no context, so there is nothing to measure\n"
            "  Give a document-level model, for example runs/demo/document/model."
        )
    if all(len(document) < 2 for document in documents):
        raise DocnmtError(
            "no sentence of the corpus has a neighbour to serve as its context\n"
            "  Give documents of two or more sentences; docs/formats.md says how each format marks them."
        )


@torch.inference_mode()
def context_gain(
    translator: Translator, documents: Sequence[ParallelDocument], *, seed: int = 1, progress: Progress | None = None
) -> ContextGain:
    """Scores the target side of every document under the true, no, shuffled and repeated context.

    A system that sees the translations of its context would read the answer in a repeated one: it
    gets the others.
    """
    check_has_context(translator, documents)
    contexts = with_contexts(documents, translator.card.context.spec, seed)
    if translator.rule().sees_translations:
        del contexts[REPEATED]
    encoded = encode(translator, documents, contexts)
    count = len(encoded.sources)
    found: dict[str, list[Floats]] = {name: [np.empty(0)] * count for name in encoded.pairs}
    with (progress or Progress(quiet=True)).bar(f"score, {len(found)} contexts", count, "sentences") as advance:
        for rows in encoded.batches():
            for name, pairs in encoded.pairs.items():
                values = translator.log_probabilities([pairs[i] for i in rows])
                for i, part in zip(rows, values, strict=True):
                    found[name][i] = part.double().cpu().numpy()
            advance(len(rows))
    for name, pairs in encoded.pairs.items():  # the same input has the same result, to the last bit
        for i, (pair, none) in enumerate(zip(pairs, encoded.pairs[NONE], strict=True)):
            if pair == none:
                found[name][i] = found[NONE][i]
    target = translator.target
    return ContextGain(
        documents=tuple(document.id for document in documents),
        document=_document_numbers(documents),
        position=np.concatenate([np.array(document.filled, np.int64) for document in documents]),
        pieces=tuple(tuple(target.pieces([*ids, target.eos])) for ids in encoded.targets),
        log_probabilities={name: tuple(values) for name, values in found.items()},
        seed=seed,
    )


def _document_numbers(documents: Sequence[ParallelDocument]) -> Ints:
    """Of each sentence that is no gap."""
    return np.repeat(np.arange(len(documents)), [len(document.filled) for document in documents])


def write_tokens(path: str | Path, gain: ContextGain) -> None:
    """A JSON object a sentence: its pieces and their log-probabilities under each context."""
    rows = (
        {
            "document": gain.documents[gain.document[number]],
            "sentence": int(gain.position[number]) + 1,
            "pieces": pieces,
            **{name: values[number].tolist() for name, values in gain.log_probabilities.items()},
        }
        for number, pieces in enumerate(gain.pieces)
    )
    write_json_lines(path, rows)


# ---- translating ----


@dataclass(frozen=True)
class Quality:
    """Translations under each context, measured."""

    metric: str
    signature: str
    scores: Mapping[str, tuple[float, Interval]]
    differences: Mapping[str, Difference]  # to no context
    translations: Mapping[str, tuple[str, ...]]  # context -> sentences


def translation_quality(
    translator: Translator, documents: Sequence[ParallelDocument], *, seed: int = 1, progress: Progress | None = None
) -> Quality:
    """BLEU, lower case, of translations under each context, decoded as the model is meant to decode."""
    check_has_context(translator, documents)
    # First, as a tokenizer may be missing, which should be found before translating.
    metric = make_metric("bleu", language=translator.card.target_language, lowercase=True)
    shown = progress or Progress(quiet=True)
    translations = {}
    sources = [Document(document.id, document.source) for document in documents]
    for name, kind in with_contexts(sources, translator.card.context.spec, seed).items():
        results = translator.translate_documents(kind.documents, context_from=kind.context_from, context=kind.context)
        texts = (
            result.sentences[position].text
            for document, result in zip(kind.documents, results, strict=True)
            for position in kind.positions(document)
        )
        total = sum(len(source.filled) for source in sources)
        translations[name] = tuple(shown.track(texts, f"translate, context {name}", total=total, unit="sentences"))
    references = [[document.target[i] for document in documents for i in document.filled]]
    places = _document_numbers(documents)
    rows = {name: metric.statistics(texts, references) for name, texts in translations.items()}
    return Quality(
        metric.name,
        metric.signature,
        {name: (metric.score(s.sum(axis=0)), interval(metric, s, places, seed=seed)) for name, s in rows.items()},
        {name: compare(metric, rows[NONE], s, places, seed=seed) for name, s in rows.items() if name != NONE},
        translations,
    )
