"""Translating and scoring whole documents: the Python API behind `docnmt translate` and `docnmt score`."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import TypedDict, TypeVar, Unpack, cast

import numpy as np
import torch

from docnmt.corpora.batches import make_batch, pack, pack_contexts
from docnmt.corpora.contexts import Context, ContextRule, Ids, Neighbours
from docnmt.corpora.subwords import Subwords
from docnmt.decoding.beam import Hypothesis, beam_search
from docnmt.device import choose_device
from docnmt.document import ContextSpec, Document, ParallelDocument, context_positions
from docnmt.errors import DocnmtError
from docnmt.model_folder import LoadedModel, load_model

OFF = "off"  # passes the context modules over: the sentence model


@dataclass(frozen=True)
class Options:
    """How to decode. `context` None: as the model was trained; "off": as if it had no context modules."""

    beam: int = 4
    length_penalty: float = 0.6
    nbest: int = 1
    context: ContextSpec | str | None = None
    batch_tokens: int = 4_000

    def __post_init__(self) -> None:
        if isinstance(self.context, str) and self.context != OFF:
            ContextSpec.parse(self.context)  # a spec that makes no sense is found here, before any work is done
        if self.beam < 1 or not 1 <= self.nbest <= (2 * self.beam if self.beam > 1 else 1):
            raise DocnmtError(
                f"beam {self.beam}, n-best {self.nbest}\n  Use a beam of 1 or more, n-best up to twice that."
            )


class Changes(TypedDict, total=False):
    """The options by name, for calls."""

    beam: int
    length_penalty: float
    nbest: int
    context: ContextSpec | str | None
    batch_tokens: int


@dataclass(frozen=True)
class TranslatedSentence:
    texts: tuple[str, ...]  # best first
    scores: tuple[float, ...]  # log-probability over length penalty

    @property
    def text(self) -> str:
        return self.texts[0]


@dataclass(frozen=True)
class TranslatedDocument:
    id: str
    sentences: tuple[TranslatedSentence, ...]

    def as_document(self) -> Document:
        return Document(self.id, tuple(sentence.text for sentence in self.sentences))


@dataclass(frozen=True)
class SentenceScore:
    """Log-probabilities of a given translation: each piece's, the end mark's last."""

    pieces: tuple[str, ...]
    log_probabilities: tuple[float, ...]

    @property
    def total(self) -> float:
        return sum(self.log_probabilities)


@dataclass
class _Unit:
    """What is decoded at once: a sentence, or a part of one that is too long; with its context."""

    source: list[int]
    context: Context | None
    best: list[Hypothesis] | None = None


class Translator:
    """A model ready for use. Sentences of all documents decode together; results come in order, N in and N out."""

    WINDOW = 4096  # sentences sorted by length together; memory does not grow beyond it

    def __init__(self, loaded: LoadedModel):
        self.model, self.card = loaded.model, loaded.card
        self.source, self.target = loaded.source, loaded.target
        self.options = Options(
            beam=self.card.decoding.beam,
            length_penalty=self.card.decoding.length_penalty,
            batch_tokens=self.card.decoding.batch_tokens,
        )

    @property
    def device(self) -> torch.device:
        return next(self.model.parameters()).device

    def translate(self, document: Document | Sequence[str], **changes: Unpack[Changes]) -> list[str]:
        """Translates one document, given as such or as a list of its sentences."""
        if isinstance(document, str):
            raise DocnmtError("a document is a list of sentences, not a string\n  Write translate([text]).")
        if not isinstance(document, Document):
            document = Document("document", tuple(document))
        (result,) = self.translate_documents([document], **changes)
        return [sentence.text for sentence in result.sentences]

    def translate_documents(
        self,
        documents: Iterable[Document],
        *,
        context_from: Iterable[Document] | None = None,
        **changes: Unpack[Changes],
    ) -> Iterator[TranslatedDocument]:
        """Translates documents as they come. `context_from` gives other documents to take the contexts from, sentence
        by sentence (to show what a wrong context does)."""
        chosen = replace(self.options, **changes)
        rule = self._rule(chosen.context)
        for window in _windows(_with_contexts(documents, context_from), self.WINDOW):
            if rule is not None and rule.remembers:
                units = self._decode_in_order(window, rule, chosen)
            else:
                units = [self._units(document, others, rule) for document, others in window]
                self._decode([unit for document in units for sentence in document for unit in sentence], chosen)
            for (document, _), sentences in zip(window, units, strict=True):
                yield TranslatedDocument(document.id, tuple(self._join(parts, chosen.nbest) for parts in sentences))

    def score(
        self,
        documents: Iterable[ParallelDocument],
        *,
        context: ContextSpec | str | None = None,
        context_from: Iterable[Document] | None = None,
    ) -> Iterator[list[SentenceScore]]:
        """For each document the log-probabilities of its own target sentences."""
        rule = self._rule(context)
        for window in _windows(_with_contexts(documents, context_from), self.WINDOW):
            sources, targets, around = [], [], []
            for document, others in window:
                found = self.target.encode(document.target)
                sources += self.source.encode(document.source)
                targets += found
                # A system that remembers its translations is given the reference's.
                around += self._around(document.source, others, rule, found)
            scores = self._score_all(sources, targets, around, rule)
            for document, _ in window:
                yield list(islice(scores, len(document)))

    def score_choices(
        self, choices: Iterable[tuple[Document, int, Sequence[str]]], *, context: ContextSpec | str | None = None
    ) -> Iterator[list[SentenceScore]]:
        """Several translations of one sentence, told by its document and position, beside each other.

        Of the document only the sentence and what the model sees as its context are looked at.
        """
        rule, waiting = self._rule(context), iter(choices)
        while window := list(islice(waiting, max(1, self.WINDOW // 4))):  # a choice is several sentences
            sources, targets, around = [], [], []
            for document, position, translations in window:
                visible = () if rule is None else context_positions(position, len(document), rule.spec)
                places = sorted((position, *visible))
                ids = self.source.encode([document.sentences[i] for i in places])
                at = places.index(position)
                sources += [ids[at]] * len(translations)
                around += [Neighbours() if rule is None else rule.around(ids, at)] * len(translations)
                targets += self.target.encode(translations)
            scores = self._score_all(sources, targets, around, rule)
            for _, _, translations in window:
                yield list(islice(scores, len(translations)))

    # ---- inside ----

    def _rule(self, context: ContextSpec | str | None) -> ContextRule | None:
        if context == OFF or not self.card.context.active:
            return None
        if isinstance(context, str):
            context = ContextSpec.parse(context)
        return self.card.rule(self.source, context)

    def _around(
        self,
        sentences: Sequence[str],
        others: Sequence[str],
        rule: ContextRule | None,
        translations: Sequence[Ids] = (),
    ) -> list[Neighbours]:
        """The neighbours of each sentence, taken from `others`."""
        if rule is None:
            return [Neighbours()] * len(sentences)
        ids = self.source.encode(others)
        return [rule.around(ids, i, translations) for i in range(len(sentences))]

    def _units(self, document: Document, others: Sequence[str], rule: ContextRule | None) -> list[list[_Unit]]:
        """For each sentence its units."""
        around = self._around(document.sentences, others, rule)
        ids = self.source.encode(document.sentences)
        return [self._parts(document.id, i, sentence, around[i], rule) for i, sentence in enumerate(ids)]

    def _parts(
        self, document: str, position: int, sentence: list[int], around: Neighbours, rule: ContextRule | None
    ) -> list[_Unit]:
        """None for an empty sentence, several for one beyond the model's length."""
        parts = split_long(sentence, self.card.model.max_length, self.source)
        if len(parts) > 1:
            warnings.warn(
                f"document {document}, sentence {position + 1}: {len(sentence):,} pieces, more than the model's "
                f"{self.card.model.max_length:,}; translated in {len(parts)} parts",
                stacklevel=2,
            )
        if rule is None:
            return [_Unit([*part, self.source.eos], None) for part in parts]
        context = rule.context(around)
        return [_Unit([*rule.source(part, around), self.source.eos], context) for part in parts]

    def _decode_in_order(
        self, window: list[tuple[Document, Sequence[str]]], rule: ContextRule, options: Options
    ) -> list[list[list[_Unit]]]:
        """A sentence of each document at a time: what was written for the ones before is part of the next one's
        context. Contexts from other documents have their own translations, made first."""
        foreign = [Document(d.id, tuple(others)) for d, others in window if others is not d.sentences]
        theirs = self._decode_in_order([(d, d.sentences) for d in foreign], rule, options) if foreign else []
        written = {d.id: [self._written(parts) for parts in units] for d, units in zip(foreign, theirs, strict=True)}
        sources = [self.source.encode(document.sentences) for document, _ in window]
        contexts = [
            ids if others is document.sentences else self.source.encode(others)
            for (document, others), ids in zip(window, sources, strict=True)
        ]
        units: list[list[list[_Unit]]] = [[] for _ in window]
        own: list[list[list[int]]] = [[] for _ in window]
        for position in range(max(len(document) for document, _ in window)):
            here = [n for n, (document, _) in enumerate(window) if position < len(document)]
            for n in here:
                document = window[n][0]
                around = rule.around(contexts[n], position, written.get(document.id, own[n]))
                units[n].append(self._parts(document.id, position, sources[n][position], around, rule))
            self._decode([unit for n in here for unit in units[n][position]], options)
            for n in here:
                own[n].append(self._written(units[n][position]))
        return units

    def _written(self, parts: list[_Unit]) -> list[int]:
        return [token for part in parts for token in (part.best or [Hypothesis(0, 0, ())])[0].tokens]

    def _decode(self, units: list[_Unit], options: Options) -> None:
        order = sorted(range(len(units)), key=lambda i: (len(units[i].source), len(units[i].context or ())))
        sizes = [(len(units[i].source), len(units[i].context or ())) for i in order]
        for places in within_budget(sizes, options.batch_tokens):
            batch = [units[order[place]] for place in places]
            found = beam_search(
                self.model,
                pack([unit.source for unit in batch], self.device),
                pack_contexts([unit.context for unit in batch], self.target.bos, self.device),
                bos=self.target.bos,
                eos=self.target.eos,
                beam=options.beam,
                alpha=options.length_penalty,
                nbest=options.nbest,
                start=self.card.system.state,
            )
            rule = self._rule(options.context)
            for unit, hypotheses in zip(batch, found, strict=True):
                unit.best = [replace(h, tokens=tuple(rule.own(h.tokens))) if rule else h for h in hypotheses]

    def _join(self, parts: list[_Unit], nbest: int) -> TranslatedSentence:
        if not parts:
            return TranslatedSentence(("",), (0.0,))
        texts: list[list[str]] = [[] for _ in range(nbest)]
        scores = [0.0] * nbest
        for part in parts:
            assert part.best
            found = self.target.decode([hypothesis.tokens for hypothesis in part.best])
            for n in range(nbest):  # a sentence may have fewer hypotheses than asked for: its last stands in
                at = min(n, len(found) - 1)
                texts[n].append(found[at])
                scores[n] += part.best[at].score
        count = min(nbest, max(len(part.best or ()) for part in parts))
        return TranslatedSentence(tuple(" ".join(t) for t in texts[:count]), tuple(scores[:count]))

    @torch.inference_mode()
    def _score_all(
        self, sources: list[list[int]], targets: list[list[int]], around: list[Neighbours], rule: ContextRule | None
    ) -> Iterator[SentenceScore]:
        results: list[SentenceScore | None] = [None] * len(sources)
        contexts: list[Context | None] = [None] * len(sources)
        read, written = cast("list[Ids]", sources), cast("list[Ids]", targets)
        if rule is not None:
            contexts = [rule.context(each) for each in around]
            read = [rule.source(*pair) for pair in zip(sources, around, strict=True)]
            written = [rule.target(*pair) for pair in zip(targets, around, strict=True)]
        order = np.lexsort(([len(s) for s in read], [len(t) for t in written]))
        sizes = [(len(read[i]) + len(written[i]) + 2, len(contexts[i] or ())) for i in order]
        for places in within_budget(sizes, self.options.batch_tokens):
            rows = [order[place] for place in places]
            batch = make_batch(
                [[*read[i], self.source.eos] for i in rows],
                [contexts[i] for i in rows],
                [written[i] for i in rows],
                self.target.bos,
                self.target.eos,
                self.device,
            )
            _, log_probabilities = self.model.loss(batch)
            found = log_probabilities.split(batch.target_in.segments.lengths.tolist())
            for i, values in zip(rows, found, strict=True):
                own = values.tolist()[len(written[i]) - len(targets[i]) :]  # what the rule put before is not told
                pieces = self.target.pieces([*targets[i], self.target.eos])
                results[i] = SentenceScore(tuple(pieces), tuple(own))
        return (result for result in results if result is not None)


def load(folder: str | Path, device: str = "auto") -> Translator:
    """Loads a model folder for translating and scoring."""
    return Translator(load_model(folder, choose_device(device)))


def split_long(ids: list[int], limit: int, subwords: Subwords) -> list[list[int]]:
    """Cuts a sentence of too many pieces into parts: after a mark of punctuation if there is one in the last half of
    a part, else before a word, else anywhere. No pieces gives no parts."""
    parts = []
    while len(ids) > limit:
        pieces = subwords.pieces(ids[: limit + 1])
        half = range(limit, limit // 2, -1)
        starts = [i for i in half if pieces[i].startswith("▁")]
        after_mark = [i for i in starts if pieces[i - 1][-1:] in ".!?;:,"]
        after_mark += [i for i in half if pieces[i - 1][-1:] in "。！？；：，"]  # no space follows these
        cut = (after_mark or starts or [limit])[0]
        parts.append(ids[:cut])
        ids = ids[cut:]
    return [*parts, ids] if ids else parts


D = TypeVar("D", Document, ParallelDocument)


def _with_contexts(
    documents: Iterable[D], context_from: Iterable[Document] | None
) -> Iterator[tuple[D, Sequence[str]]]:
    """Each document with the sentences its contexts are derived from: its own unless others are given."""
    others = None if context_from is None else iter(context_from)
    for document in documents:
        own = document.sentences if isinstance(document, Document) else document.source
        other = None if others is None else next(others, None)
        if others is not None and other is None:
            raise DocnmtError("there are fewer documents to take contexts from than documents\n  Give one for each.")
        yield document, own if other is None else other.sentences


def _windows(pairs: Iterator[tuple[D, Sequence[str]]], size: int) -> Iterator[list[tuple[D, Sequence[str]]]]:
    window: list[tuple[D, Sequence[str]]] = []
    sentences = 0
    for pair in pairs:
        window.append(pair)
        sentences += len(pair[0])
        if sentences >= size:
            yield window
            window, sentences = [], 0
    if window:
        yield window


def within_budget(sizes: list[tuple[int, int]], budget: int) -> Iterator[list[int]]:
    """Runs of places whose two sizes, padded to the longest of the run, stay within the budget; one place at least."""
    batch: list[int] = []
    widest = (0, 0)
    for place, size in enumerate(sizes):
        wider = max(widest[0], size[0]), max(widest[1], size[1])
        if batch and sum(wider) * (len(batch) + 1) > budget:
            yield batch
            batch, wider = [], size
        batch.append(place)
        widest = wider
    if batch:
        yield batch
