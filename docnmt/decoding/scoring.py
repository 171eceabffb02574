"""What a model says about given translations: how probable they are, sentence by sentence in the context of their
documents, and which of their words come from which words of the source."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from docnmt.base.errors import DocnmtError
from docnmt.data.context import ContextRule, Ids, Neighbours
from docnmt.data.packing import Batch, make_batch, own_parts
from docnmt.decoding.units import SENTENCE_RULE, AnyDocument, Pair, source_of, with_contexts, within_budget
from docnmt.document import NO_CONTEXT, ContextSpec, Document, ParallelDocument, context_positions, windows
from docnmt.model_folder import LoadedModel
from docnmt.text.scripts import in_word, unspaced

if TYPE_CHECKING:
    from docnmt.decoding.translator import Translator

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
        for window in windows(with_contexts(documents, context_from), self.WINDOW, lambda pair: len(pair[0])):
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
                "this model uses no context: it translates each sentence by itself\n"
                "  Do not give a context, or use a document-level model."
            )
        return SENTENCE_RULE

    def around(self, document: AnyDocument, positions: Iterable[int], rule: ContextRule) -> list[Neighbours]:
        """What the sentences at these positions see when they are scored, with the translations of a parallel document
        if the rule needs them."""
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


# ---- which words belong together, read off the decoder's attention ----

# One pass over sentence and translation, as in scoring. What the decoder attends to while it writes a piece
# tells where the piece comes from.

Span = tuple[int, int]  # characters from the first up to the second
Links = list[tuple[Span, Span]]  # a word of the source and one of the translation, in the order of the source
Matrix = NDArray[np.float32]


def align(translator: Translator, pairs: Sequence[tuple[str, str]]) -> list[Links]:
    """For each sentence and its translation the words that belong together.

    A word may have several links; a mark of punctuation may have none. Empty for a sentence beyond the model's length,
    and for systems whose attention is not available.
    """
    links: list[Links] = [[] for _ in pairs]
    encoded = [
        (translator.source.encode_with_spans(source), translator.target.encode_with_spans(target))
        for source, target in pairs
    ]
    lengths = [tuple(len(ids) for ids, _ in both) for both in encoded]
    longest = translator.card.model.max_length
    fit = [i for i, (source, target) in enumerate(lengths) if 0 < source <= longest and 0 < target <= longest]
    fit.sort(key=lambda i: lengths[i])
    for places in within_budget([(lengths[i][0] + 1, lengths[i][1] + 1) for i in fit], translator.options.batch_tokens):
        chosen = [fit[place] for place in places]
        sides = ((encoded[i][0][0], encoded[i][1][0]) for i in chosen)
        batch = translator.batch([translator.pair(*both, Neighbours(), SENTENCE_RULE) for both in sides])
        with torch.inference_mode():
            attention = translator.model.alignment(batch).float().cpu().numpy()
        for i, weights in zip(chosen, attention, strict=True):
            words = (_Side(text, spans) for text, (_, spans) in zip(pairs[i], encoded[i], strict=True))
            links[i] = _link(weights[: lengths[i][1], : lengths[i][0]], *words)
    return links


class _Side:
    """The words of a sentence and which pieces each has a part in."""

    def __init__(self, text: str, spans: Sequence[Span]):
        # A piece is where its first visible character is: a space may be a piece of its own, and of the pieces that
        # one character is normalised or spelt into only the last one has a place in the text.
        begins = [len(text) - len(text[begin:].lstrip()) for begin, _ in spans]
        ends = [max(begin + 1, end) for begin, (_, end) in zip(begins, spans, strict=True)]
        self.words = _words(text, {*begins, *ends})
        firsts, lasts = np.array(self.words, dtype=int).reshape(-1, 2).T[:, :, None]  # 2 x [words, 1]
        self.parts = ((np.array(begins) < lasts) & (firsts < np.array(ends))).astype(np.float32)  # [words, pieces]
        self.marks = np.array([not in_word(text[begin]) for begin, _ in self.words], dtype=bool)


def _words(text: str, cuts: set[int]) -> list[Span]:
    """Runs of letters and digits, and every other visible character by itself; scripts without spaces cut at `cuts`."""
    words: list[Span] = []
    for i, character in enumerate(text):
        goes_on = words and words[-1][1] == i and in_word(character) and in_word(text[i - 1])
        if goes_on and not (i in cuts and (unspaced(character) or unspaced(text[i - 1]))):
            words[-1] = (words[-1][0], i + 1)
        elif not character.isspace():
            words.append((i, i + 1))
    return words


def _link(weights: Matrix, source: _Side, target: _Side) -> Links:
    """Each word of the translation with the source word it comes from; then each source word that is left, marks apart,
    with its own strongest. Words go with words and marks with marks."""
    if not weights.size:
        return []
    # What the pieces of a word look at on average, and all that they see of the other word.
    counts = np.maximum(target.parts.sum(axis=1, keepdims=True), 1)  # normalising may leave no piece of a character
    seen = target.parts @ weights @ source.parts.T / counts  # [target words, source words]
    seen[target.marks[:, None] != source.marks] = 0
    seen /= np.maximum(seen.sum(axis=0), 1e-9)  # some words, above all the last mark, are attended to from everywhere
    linked = {(int(seen[t].argmax()), t) for t in range(len(seen)) if seen[t].any()}
    left = set(np.flatnonzero(~source.marks).tolist()) - {s for s, _ in linked}
    linked |= {(s, int(seen[:, s].argmax())) for s in left if seen[:, s].any()}
    return [(source.words[s], target.words[t]) for s, t in sorted(linked)]
