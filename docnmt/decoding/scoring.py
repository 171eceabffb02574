"""Scoring: how probable a model finds given translations, sentence by sentence in the context of their documents."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from docnmt.base.errors import DocnmtError
from docnmt.data.context import ContextRule, Ids, Neighbours
from docnmt.data.packing import Batch, make_batch, own_parts
from docnmt.decoding.units import SENTENCE_RULE, AnyDocument, Pair, source_of, windows, with_contexts, within_budget
from docnmt.document import NO_CONTEXT, ContextSpec, Document, ParallelDocument, context_positions
from docnmt.model_folder import LoadedModel

OFF = "off"  # as a context: bypasses the context modules, which leaves the sentence model


class Choice(NamedTuple):
    """Several translations of one sentence, given by its document and position."""

    document: Document
    position: int
    translations: Sequence[str]
    # for each translation those of all sentences before, for systems that see these
    before: Sequence[Sequence[str]] = ()


@dataclass(frozen=True)
class SentenceScore:
    """The log-probability of each piece of a given translation, the end mark's last."""

    pieces: tuple[str, ...]
    log_probabilities: tuple[float, ...]

    @property
    def total(self) -> float:
        return sum(self.log_probabilities)


class Scorer:
    """A model ready to score translations; a Translator can also make them."""

    WINDOW = 4096  # sentences that are sorted by length together, and held in memory

    def __init__(self, loaded: LoadedModel):
        self.model, self.card = loaded.model, loaded.card
        self.source, self.target = loaded.source, loaded.target

    @property
    def device(self) -> torch.device:
        return next(self.model.parameters()).device

    def score(
        self,
        documents: Iterable[ParallelDocument],
        *,
        context: ContextSpec | str | None = None,
        context_from: Iterable[AnyDocument] | None = None,
    ) -> Iterator[list[SentenceScore]]:
        """For each document the scores of its target sentences; a gap has no pieces.

        A system that sees the translations of its context is shown the reference's: then `context_from` has to be
        parallel, too.
        """
        rule = self.rule(context)
        for window in windows(with_contexts(documents, context_from), self.WINDOW):
            pairs: list[Pair] = []
            for document, other in window:
                sides = self.source.encode(document.source), self.target.encode(document.target)
                around = self.around(other, range(len(document)), rule)
                rows = list(zip(*sides, around, strict=True))
                pairs += [self.pair(*rows[i], rule) for i in document.filled]
            scores = self._score_all(pairs)
            for document, _ in window:
                found = dict(zip(document.filled, scores, strict=False))
                yield [found.get(i, SentenceScore((), ())) for i in range(len(document))]

    def score_choices(
        self, choices: Iterable[Choice], *, context: ContextSpec | str | None = None
    ) -> Iterator[list[SentenceScore]]:
        """For each choice the scores of its translations.

        Of a document only the sentence and what the model sees as its context are looked at.
        """
        rule, waiting = self.rule(context), iter(choices)
        while window := list(islice(waiting, max(1, self.WINDOW // 4))):  # a choice is several sentences
            pairs = [pair for choice in window for pair in self._choice(choice, rule)]
            scores = self._score_all(pairs)
            for choice in window:
                yield list(islice(scores, len(choice.translations)))

    # ---- what the model gets ----

    def rule(self, context: ContextSpec | str | None = None) -> ContextRule:
        """What a sentence sees of its document."""
        if context == OFF:
            return SENTENCE_RULE
        if isinstance(context, str):
            context = ContextSpec.parse(context)
        if self.card.context.active:
            return self.card.rule(self.source, context, self.target)
        if context not in (None, NO_CONTEXT):
            raise DocnmtError(
                "the model sees no context: it translates each sentence alone\n"
                "  Leave the context out, or use a document model."
            )
        return SENTENCE_RULE

    def around(self, document: AnyDocument, positions: Iterable[int], rule: ContextRule) -> list[Neighbours]:
        """What the sentences at these positions see when they are scored, with the translations of a parallel document
        where the rule asks for them."""
        ids = self.source.encode(source_of(document))
        translations: list[list[int]] = []
        if rule.sees_translations:
            if isinstance(document, Document):
                raise DocnmtError(
                    f"document {document.id}: this system also needs the translations of the context\n"
                    "  Give a ParallelDocument, which has them."
                )
            translations = self.target.encode(document.target)
        return [rule.around(ids, position, translations) for position in positions]

    def pair(self, source: Ids, target: Ids, around: Neighbours, rule: ContextRule) -> Pair:
        read = self.source.whole(rule.source(source, around))
        return Pair(read, rule.context(around), rule.target(target, around), len(target) + 1)

    def batch(self, pairs: Sequence[Pair]) -> Batch:
        return make_batch(
            [pair.source for pair in pairs],
            [pair.context for pair in pairs],
            [pair.target for pair in pairs],
            self.target.bos,
            self.target.eos,
            self.device,
        )

    @torch.inference_mode()
    def log_probabilities(self, pairs: Sequence[Pair]) -> list[Tensor]:
        """For each pair those of the pieces that are its own, and of the end mark."""
        batch = self.batch(pairs)
        return own_parts(self.model.loss(batch)[1], batch, [pair.own for pair in pairs])

    # ---- inside: scoring ----

    def _choice(self, choice: Choice, rule: ContextRule) -> list[Pair]:
        """Pairs of the sentence and each of its translations, in context."""
        document, position, translations, before = choice
        places = sorted((position, *context_positions(position, len(document), rule.spec)))
        at = places.index(position)
        ids = self.source.encode([document.sentences[i] for i in places])
        if rule.sees_translations and at:
            if len(before) != len(translations):
                raise DocnmtError(
                    f"document {document.id}, sentence {position + 1}: this system needs translations of the "
                    "preceding sentences\n  Pass them in Choice.before, a list for each candidate."
                )
            shown = (self.target.encode([known[i] for i in places[:at]]) for known in before)
            around = [rule.around(ids, at, known) for known in shown]
        else:
            around = [rule.around(ids, at)] * len(translations)
        targets = self.target.encode(translations)
        return [self.pair(ids[at], target, each, rule) for target, each in zip(targets, around, strict=True)]

    def _score_all(self, pairs: Sequence[Pair]) -> Iterator[SentenceScore]:
        results: list[SentenceScore | None] = [None] * len(pairs)
        order = np.lexsort(([len(pair.source) for pair in pairs], [len(pair.target) for pair in pairs]))
        sizes = [(len(pairs[i].source) + len(pairs[i].target) + 1, len(pairs[i].context or ())) for i in order]
        for places in within_budget(sizes, self.card.decoding.batch_tokens):
            rows = [order[place] for place in places]
            found = self.log_probabilities([pairs[i] for i in rows])
            for i, values in zip(rows, found, strict=True):
                written = [*pairs[i].target, self.target.eos]
                pieces = self.target.pieces(written[len(written) - pairs[i].own :])
                results[i] = SentenceScore(tuple(pieces), tuple(values.tolist()))
        return (result for result in results if result is not None)
