"""Translating and scoring whole documents: the Python API behind `docnmt translate` and `docnmt score`."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from functools import cached_property, partial
from itertools import chain, islice
from pathlib import Path
from typing import Unpack

import numpy as np
import torch
from torch import Tensor

from docnmt.base.errors import DocnmtError
from docnmt.data.batches import make_batch, own_parts, pack, pack_contexts
from docnmt.data.context import ContextRule, Ids, Neighbours
from docnmt.data.packing import Batch
from docnmt.decoding.beam import Model, Start, beam_search
from docnmt.decoding.binding import Binding
from docnmt.decoding.constraints import Constraints
from docnmt.decoding.phrases import Phrase, missing
from docnmt.decoding.results import (
    OFF,
    Changes,
    Choice,
    Options,
    SentenceScore,
    TranslatedDocument,
    TranslatedSentence,
)
from docnmt.decoding.rules import rule_of
from docnmt.decoding.spelling import Spelling
from docnmt.decoding.terms import Glossary, TermCheck
from docnmt.decoding.units import (
    AnyDocument,
    Pair,
    Unit,
    UnitMaker,
    batches,
    continued,
    in_parallel,
    source_of,
    windows,
    with_contexts,
    within_budget,
)
from docnmt.document import NO_CONTEXT, ContextSpec, Document, ParallelDocument, context_positions
from docnmt.engine import Engine, EngineState
from docnmt.engine.matrices import has_int8
from docnmt.engine.native import MISSING, accelerator
from docnmt.engine.shortlist import Shortlist
from docnmt.model.transformer import DocumentTransformer
from docnmt.model_folder import LoadedModel, choose_device, load_model


class Translator:
    """A model ready for use. Sentences of all documents decode together; results come in order, N in and N out."""

    WINDOW = 4096  # sentences sorted by length together; memory does not grow beyond it

    def __init__(self, loaded: LoadedModel, shortlist: Shortlist | None = None):
        self.model, self.card = loaded.model, loaded.card
        self.int8, self.shortlist = loaded.int8, shortlist
        self.source, self.target = loaded.source, loaded.target
        self.terms = TermCheck()  # of glossaries, in all that was translated
        self.options = Options(
            beam=self.card.decoding.beam,
            length_penalty=self.card.decoding.length_penalty,
            batch_tokens=self.card.decoding.batch_tokens,
        )

    @cached_property
    def spelling(self) -> Spelling:
        return Spelling.of(self.target)

    @cached_property
    def forbidden(self) -> list[int]:
        """Pieces that are never written."""
        return self.target.ids(self.card.model.forbidden)

    @cached_property
    def engine(self) -> Engine | None:
        """The model packed for decoding on a CPU; None where it is another kind of model, or elsewhere."""
        if type(self.model) is not DocumentTransformer or self.device.type != "cpu":
            return None
        if accelerator() is None:
            warnings.warn(MISSING, stacklevel=2)
        return Engine(self.model, self.int8 and has_int8(), self.shortlist)

    def way(self, options: Options) -> str:
        """How it decodes, for people."""
        if self.engine is None:
            return f"the {self.card.model.kind} on {self.device}"
        threads = torch.get_num_threads()
        parts = ["int8" if self.engine.int8 else "float32", f"{threads} thread{'s' * (threads > 1)}"]
        if self.shortlist is not None:
            parts.append("shortlist" if options.shortlist else "all words")
        return f"the packed engine: {', '.join(parts)}"

    @property
    def device(self) -> torch.device:
        return next(self.model.parameters()).device

    def translate(
        self, document: Document | Sequence[str], *, previous: Sequence[str] = (), **changes: Unpack[Changes]
    ) -> list[str]:
        """Translates one document, given as such or as a list of its sentences. `previous` are sentences before it,
        seen as its context and not translated: a chat line by line, a text that goes on."""
        if isinstance(document, str):
            raise DocnmtError("a document is a list of sentences, not a string\n  Write translate([text]).")
        if not isinstance(document, Document):
            document = Document("document", tuple(document))
        (result,) = self.translate_documents([document], previous=previous, **changes)
        return [sentence.text for sentence in result.sentences]

    def translate_documents(
        self,
        documents: Iterable[Document],
        *,
        context_from: Iterable[AnyDocument] | None = None,
        previous: Sequence[str] = (),
        **changes: Unpack[Changes],
    ) -> Iterator[TranslatedDocument]:
        """Translates documents as they come. `context_from` gives other documents to take the contexts from, sentence
        by sentence (to show what a wrong context does). `previous` are sentences before the first document, seen and
        not translated; a system that needs its own translations of them makes these, too, and keeps them to itself."""
        if isinstance(previous, str):
            raise DocnmtError("what was said before is a list of sentences, not a string\n  Write previous=[text].")
        chosen = replace(self.options, **changes)
        rule = self.rule(chosen.context)
        pairs = with_contexts(documents, context_from)
        skip = 0  # sentences of the first document that are not its own
        if rule is not None and previous and (first := next(pairs, None)) is not None:
            far = 0 if rule.remembers else max(0, len(previous) - rule.spec.previous)
            seen = tuple(previous[far:])
            pairs, skip = chain([continued(seen, *first, rule)], pairs), len(seen)
        for window in windows(pairs, self.WINDOW):
            wanted = [_phrases(document, chosen.glossary) for document, _ in window]
            if rule is not None and rule.remembers:
                units = self._decode_in_order(window, rule, chosen, wanted)
            else:
                units = [self._units(*pair, rule, each) for pair, each in zip(window, wanted, strict=True)]
                self._decode([unit for document in units for sentence in document for unit in sentence], rule, chosen)
            for (document, _), sentences, each in zip(window, units, wanted, strict=True):
                joined = tuple(self._join(parts, chosen.nbest) for parts in sentences[skip:])
                for sentence, phrases, found in zip(document.sentences[skip:], each[skip:], joined, strict=True):
                    self.terms.note(document.id, sentence, found.text, len(phrases), found.unmet)
                yield TranslatedDocument(document.id, joined)
                skip = 0

    def score(
        self,
        documents: Iterable[ParallelDocument],
        *,
        context: ContextSpec | str | None = None,
        context_from: Iterable[AnyDocument] | None = None,
    ) -> Iterator[list[SentenceScore]]:
        """For each document the log-probabilities of its own target sentences; a gap has none.

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
        """Several translations of one sentence beside each other, choice by choice.

        Of a document only the sentence and what the model sees as its context are looked at.
        """
        rule, waiting = self.rule(context), iter(choices)
        while window := list(islice(waiting, max(1, self.WINDOW // 4))):  # a choice is several sentences
            pairs = [pair for choice in window for pair in self._choice(choice, rule)]
            scores = self._score_all(pairs)
            for choice in window:
                yield list(islice(scores, len(choice.translations)))

    # ---- what the model gets ----

    def rule(self, context: ContextSpec | str | None = None) -> ContextRule | None:
        """What a sentence sees of its document; None for a model that sees nothing, or is not to."""
        if context == OFF:
            return None
        if isinstance(context, str):
            context = ContextSpec.parse(context)
        if not self.card.context.active:
            if context not in (None, NO_CONTEXT):
                raise DocnmtError(
                    "the model sees no context: it translates each sentence alone\n"
                    "  Leave the context out, or use a document model."
                )
            return None
        return self.card.rule(self.source, context, self.target)

    def around(self, document: AnyDocument, positions: Iterable[int], rule: ContextRule | None) -> list[Neighbours]:
        """What sentences at these positions see when they are scored, the translations of a parallel document with it;
        nothing where there is no rule."""
        if rule is None:
            return [Neighbours() for _ in positions]
        ids = self.source.encode(source_of(document))
        translations: list[list[int]] = []
        if rule.sees_translations:
            if isinstance(document, Document):
                raise DocnmtError(
                    f"document {document.id}: it gives contexts to a system that sees their translations, too\n"
                    "  Give a ParallelDocument, which has them."
                )
            translations = self.target.encode(document.target)
        return [rule.around(ids, position, translations) for position in positions]

    def pair(self, source: Ids, target: Ids, around: Neighbours, rule: ContextRule | None) -> Pair:
        own = len(target) + 1
        if rule is None:
            return Pair(self.source.whole(source), None, target, own)
        read = self.source.whole(rule.source(source, around))
        return Pair(read, rule.context(around), rule.target(target, around), own)

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
        """For each pair of a batch those of its own pieces and of the end mark."""
        batch = self.batch(pairs)
        return own_parts(self.model.loss(batch)[1], batch, [pair.own for pair in pairs])

    # ---- inside: translating ----

    def _units(
        self, document: Document, other: AnyDocument, rule: ContextRule | None, phrases: Sequence[Sequence[Phrase]]
    ) -> list[list[Unit]]:
        """For each sentence its units."""
        ids = self.source.encode(document.sentences)
        others = ids if other is document else self.source.encode(source_of(other))
        around = [Neighbours() if rule is None else rule.around(others, i) for i in range(len(ids))]
        made = UnitMaker(self.source, self.card.model.max_length, rule)
        return [made.units(document, i, ids[i], around[i], phrases[i]) for i in range(len(ids))]

    def _decode_in_order(
        self,
        window: Sequence[tuple[Document, AnyDocument]],
        rule: ContextRule,
        options: Options,
        phrases: Sequence[Sequence[Sequence[Phrase]]],
    ) -> list[list[list[Unit]]]:
        """A sentence of each document at a time: what was written for the ones before is part of the next one's
        context. Contexts from other documents have their own translations, made first."""
        foreign = {n: Document(other.id, source_of(other)) for n, (d, other) in enumerate(window) if other is not d}
        nothing = [_phrases(d, None) for d in foreign.values()]
        theirs = self._decode_in_order([(d, d) for d in foreign.values()], rule, options, nothing) if foreign else []
        written = {n: [self._written(parts) for parts in units] for n, units in zip(foreign, theirs, strict=True)}
        sources = [self.source.encode(document.sentences) for document, _ in window]
        contexts = [self.source.encode(foreign[n].sentences) if n in foreign else ids for n, ids in enumerate(sources)]
        made = UnitMaker(self.source, self.card.model.max_length, rule)
        units: list[list[list[Unit]]] = [[] for _ in window]
        own: list[list[list[int]]] = [[] for _ in window]
        for position in range(max(len(document) for document, _ in window)):
            here = [n for n, (document, _) in enumerate(window) if position < len(document)]
            for n in here:
                around = rule.around(contexts[n], position, written.get(n, own[n]))
                sentence, wanted = sources[n][position], phrases[n][position]
                units[n].append(made.units(window[n][0], position, sentence, around, wanted))
            self._decode([unit for n in here for unit in units[n][position]], rule, options)
            for n in here:
                own[n].append(self._written(units[n][position]))
        return units

    def _written(self, parts: list[Unit]) -> list[int]:
        return [token for part in parts for token in part.best[0].tokens]

    def _decode(self, units: list[Unit], rule: ContextRule | None, options: Options) -> None:
        if self.engine is None:
            for batch in batches(units, options.beam, options.batch_tokens):
                self.search(batch, rule, options)
        else:
            most = self.engine.sentences(len(units), options.beam)
            made = list(batches(units, options.beam, options.batch_tokens, most))
            in_parallel(made[::-1], partial(self.search, rule=rule, options=options))
        Binding(self, rule, options).bind(units)

    def search(
        self,
        batch: Sequence[Unit],
        rule: ContextRule | None,
        options: Options,
        constraints: Constraints | None = None,
    ) -> None:
        model: Model = self.model
        start: Start = self.card.system.state
        if self.engine is not None:
            whole = constraints is not None or not options.shortlist
            model, start = self.engine.without_shortlist if whole else self.engine, EngineState
        found = beam_search(
            model,
            pack([unit.source for unit in batch], self.device),
            pack_contexts([unit.context for unit in batch], self.target.bos, self.device),
            bos=self.target.bos,
            eos=self.target.eos,
            beam=options.beam,
            alpha=options.length_penalty,
            nbest=options.nbest,
            rule=rule_of(self.card.model.search, constraints is not None),
            forbidden=self.forbidden,
            start=start,
            constraints=constraints,
        )
        for unit, best in zip(batch, found, strict=True):
            unit.length = len(best[0].tokens) + 1 if best else unit.length
            unit.best = [replace(h, tokens=tuple(rule.own(h.tokens, unit.around))) if rule else h for h in best]

    def _join(self, parts: list[Unit], nbest: int) -> TranslatedSentence:
        if not parts:
            return TranslatedSentence(("",), (0.0,))
        texts: list[list[str]] = [[] for _ in range(nbest)]
        scores = [0.0] * nbest
        for part in parts:
            found = self.target.decode([hypothesis.tokens for hypothesis in part.best])
            if part.text is not None:
                found = [part.text]
            for n in range(nbest):  # a sentence may have fewer hypotheses than asked for: its last stands in
                at = min(n, len(found) - 1)
                texts[n].append(found[at])
                scores[n] += part.best[at].score
        count = min(nbest, max(len(part.best) for part in parts))
        whole = tuple(" ".join(t) for t in texts[:count])
        asked = [phrase for part in parts for phrase in part.phrases]
        return TranslatedSentence(whole, tuple(scores[:count]), tuple(missing(asked, whole[0])) if asked else ())

    # ---- inside: scoring ----

    def _choice(self, choice: Choice, rule: ContextRule | None) -> list[Pair]:
        """The choice's translations, each with the context of their sentence."""
        document, position, translations, before = choice
        visible = () if rule is None else context_positions(position, len(document), rule.spec)
        places = sorted((position, *visible))
        at = places.index(position)
        ids = self.source.encode([document.sentences[i] for i in places])
        if rule is None:
            around = [Neighbours()] * len(translations)
        elif rule.sees_translations and at:
            if len(before) != len(translations):
                raise DocnmtError(
                    f"document {document.id}, sentence {position + 1}: the system sees the translations of the "
                    "sentences before, which are not given\n  Give them with each translation, as Choice.before."
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
        for places in within_budget(sizes, self.options.batch_tokens):
            rows = [order[place] for place in places]
            found = self.log_probabilities([pairs[i] for i in rows])
            for i, values in zip(rows, found, strict=True):
                written = [*pairs[i].target, self.target.eos]
                pieces = self.target.pieces(written[len(written) - pairs[i].own :])
                results[i] = SentenceScore(tuple(pieces), tuple(values.tolist()))
        return (result for result in results if result is not None)


def _phrases(document: Document, glossary: Glossary | None) -> list[tuple[Phrase, ...]]:
    """What the translation of each sentence has to contain."""
    return [() if glossary is None else glossary.phrases(sentence) for sentence in document.sentences]


def load(folder: str | Path, device: str = "auto") -> Translator:
    """Loads a model folder for translating and scoring."""
    loaded = load_model(folder, choose_device(device))
    return Translator(loaded, Shortlist.read(Path(folder), loaded.source, loaded.target))
