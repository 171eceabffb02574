"""Translating and scoring whole documents: the Python API behind `docnmt translate` and `docnmt score`."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from itertools import chain
from pathlib import Path
from typing import Any

import torch

from docnmt.base.errors import DocnmtError
from docnmt.config import DecodingConfig
from docnmt.data.context import ContextRule
from docnmt.data.packing import pack, pack_contexts
from docnmt.decoding.beam import Model, Start, beam_search, rule_of
from docnmt.decoding.constraints import Constraints
from docnmt.decoding.phrases import Phrase, Spelling, missing
from docnmt.decoding.scoring import OFF, Scorer
from docnmt.decoding.terms import Binding, Glossary, TermCheck
from docnmt.decoding.units import (
    AnyDocument,
    Unit,
    UnitMaker,
    batches,
    check_previous,
    continued,
    in_parallel,
    source_of,
    with_contexts,
)
from docnmt.document import ContextSpec, Document, windows
from docnmt.engine import Engine, EngineState
from docnmt.engine.layers import has_int8
from docnmt.engine.native import MISSING, accelerator
from docnmt.engine.shortlist import Shortlist
from docnmt.model.transformer import DocumentTransformer
from docnmt.model_folder import LoadedModel, choose_device, load_model


@dataclass(frozen=True)
class Options(DecodingConfig):
    """How to decode: what the recipe has set, and what may be chosen for each call."""

    nbest: int = 1  # translations per sentence
    context: ContextSpec | str | None = None  # None: as the model was trained; "off": as if it had no context modules
    glossary: Glossary | None = None
    shortlist: bool = True  # only words of the model's shortlist, if it has one

    def __post_init__(self) -> None:
        for name in ("beam", "nbest", "batch_tokens"):
            value = getattr(self, name)
            if not isinstance(value, int) or isinstance(value, bool):
                raise DocnmtError(f"{name}: {value!r} is not a whole number\n  Give a number such as 4.")
        super().__post_init__()
        if isinstance(self.context, str) and self.context != OFF:
            ContextSpec.parse(self.context)  # reports a bad spec before any work is done
        elif not isinstance(self.context, ContextSpec | str | None):
            raise DocnmtError(
                f"context: {self.context!r} is not a context\n"
                '  Write "previous=1", "none", or "off" for the sentence model.'
            )
        if not 1 <= self.nbest <= (2 * self.beam if self.beam > 1 else 1):
            raise DocnmtError(
                f"{self.nbest} translations per sentence are not possible with a beam of {self.beam}\n"
                "  Ask for at least one and at most twice the beam, or for one with a beam of one."
            )

    def changed(self, *, glossary: Glossary | Mapping[str, str] | None = None, **given: Any) -> Options:
        """A copy with other values; None leaves a value as it is. A glossary may be a mapping of terms."""
        if glossary is not None and not isinstance(glossary, Glossary):
            glossary = Glossary.of(glossary)
        given["glossary"] = glossary
        return replace(self, **{name: value for name, value in given.items() if value is not None})


@dataclass(frozen=True)
class TranslatedSentence:
    texts: tuple[str, ...]  # best first
    scores: tuple[float, ...]  # log-probability over length penalty, of all that the decoder wrote
    unmet: tuple[Phrase, ...] = ()  # terms of the glossary that are missing in the best one

    @property
    def text(self) -> str:
        return self.texts[0]


@dataclass(frozen=True)
class TranslatedDocument:
    id: str
    sentences: tuple[TranslatedSentence, ...]


class Translator(Scorer):
    """A model ready for use: `docnmt.load` makes one.

    A document is a list of sentences, and each is translated with those around it as its context. As many sentences
    come out as go in, in order. Sentences of all documents are decoded together, which makes it fast.
    """

    def __init__(self, loaded: LoadedModel, shortlist: Shortlist | None = None):
        super().__init__(loaded)
        self.int8, self.shortlist = loaded.int8, shortlist
        self.options = Options(**vars(self.card.decoding))
        self.terms = TermCheck()  # of everything translated with a glossary

    def __repr__(self) -> str:
        card = self.card
        seen = f"{card.context.kind} context, {card.context.spec}" if card.context.active else "no context"
        held = f"{card.model.kind}{', int8' * self.int8}"
        return f"<Translator {card.source_language}-{card.target_language}: {held}, {seen}, on {self.device}>"

    @cached_property
    def spelling(self) -> Spelling:
        return Spelling.of(self.target)

    @cached_property
    def forbidden(self) -> list[int]:
        """Pieces that the decoder never writes."""
        return self.target.ids(self.card.model.forbidden)

    @cached_property
    def engine(self) -> Engine | None:
        """The model packed for decoding on a CPU; None for other kinds of models and on other devices."""
        if type(self.model) is not DocumentTransformer or self.device.type != "cpu":
            return None
        if accelerator() is None:
            warnings.warn(MISSING, stacklevel=2)
        return Engine(self.model, self.int8 and has_int8(), self.shortlist)

    def way(self, options: Options) -> str:
        """How it decodes, in words."""
        if self.engine is None:
            return f"the {self.card.model.kind} on {self.device}"
        threads = torch.get_num_threads()
        parts = ["int8" if self.engine.int8 else "float32", f"{threads} thread{'s' * (threads > 1)}"]
        if self.shortlist is not None:
            parts.append("shortlist" if options.shortlist else "all words")
        return f"the packed engine: {', '.join(parts)}"

    def translate(
        self,
        document: Document | Sequence[str],
        *,
        previous: Sequence[str] = (),
        context: ContextSpec | str | None = None,
        glossary: Glossary | Mapping[str, str] | None = None,
        beam: int | None = None,
        options: Options | None = None,
    ) -> list[str]:
        """Translates one document, given as a list of sentences, into as many sentences.

        `translate_nbest` returns several translations of each, `translate_documents` their scores, too.

        previous: sentences before it, seen as context and not translated (a chat line by line, a text that continues)
        context: what a sentence sees of its document, such as "previous=1,following=1"; "none" is an empty context,
            "off" the sentence model; None is as the model was trained
        glossary: terms and how they are to be translated, {"carte mère": "motherboard"}
        beam: hypotheses per sentence; 1 is greedy; None is the value of the model's recipe
        options: everything else, such as dataclasses.replace(translator.options, length_penalty=0.8)
        """
        chosen = (options or self.options).changed(context=context, glossary=glossary, beam=beam)
        return [sentence.text for sentence in self._one(document, previous, chosen)]

    def translate_nbest(
        self,
        document: Document | Sequence[str],
        nbest: int,
        *,
        previous: Sequence[str] = (),
        context: ContextSpec | str | None = None,
        glossary: Glossary | Mapping[str, str] | None = None,
        beam: int | None = None,
        options: Options | None = None,
    ) -> list[list[str]]:
        """For each sentence of a document its `nbest` translations, best first; everything else as for `translate`.

        At most twice as many as the beam has hypotheses; a sentence may have fewer. `translate_documents` has their
        scores.
        """
        chosen = (options or self.options).changed(context=context, glossary=glossary, beam=beam, nbest=nbest)
        return [list(sentence.texts) for sentence in self._one(document, previous, chosen)]

    def translate_text(
        self,
        text: str,
        *,
        previous: Sequence[str] = (),
        context: ContextSpec | str | None = None,
        glossary: Glossary | Mapping[str, str] | None = None,
        beam: int | None = None,
        options: Options | None = None,
    ) -> str:
        """Translates plain text: it is split into sentences, translated as one document and joined again.

        Paragraphs, lines, indentation and list markers are kept. Everything else as for `translate`.
        """
        from docnmt.decoding.excerpts import translate_text  # loaded only if text has to be split into sentences

        if not isinstance(text, str):
            raise DocnmtError("translate_text takes a string\n  For a list of sentences, use translate([...]).")
        check_previous(previous)
        chosen = (options or self.options).changed(context=context, glossary=glossary, beam=beam)
        return translate_text(self, chosen, text, previous)

    def translate_documents(
        self,
        documents: Iterable[Document],
        *,
        context_from: Iterable[AnyDocument] | None = None,
        previous: Sequence[str] = (),
        context: ContextSpec | str | None = None,
        glossary: Glossary | Mapping[str, str] | None = None,
        beam: int | None = None,
        nbest: int | None = None,
        length_penalty: float | None = None,
        batch_tokens: int | None = None,
        shortlist: bool | None = None,
        options: Options | None = None,
    ) -> Iterator[TranslatedDocument]:
        """Translates a stream of documents, however many and long they are; with scores and n-best lists.

        context_from: other documents to take the contexts from, sentence by sentence (what does a wrong context do?)
        previous: sentences before the first document, seen and not translated; a system that needs its own
            translations of them makes these, too, but does not return them
        nbest: translations per sentence, at most twice as many as the beam has hypotheses
        length_penalty: alpha of Wu et al. (2016); batch_tokens: source and context of a batch, with padding; shortlist:
            False for any word of the vocabulary, even if the model has a shortlist
        Everything else as for `translate`.
        """
        check_previous(previous)
        chosen = (options or self.options).changed(
            context=context,
            glossary=glossary,
            beam=beam,
            nbest=nbest,
            length_penalty=length_penalty,
            batch_tokens=batch_tokens,
            shortlist=shortlist,
        )
        rule = self.rule(chosen.context)
        pairs = with_contexts(documents, context_from)
        skip = 0  # sentences of the first document that were put before it
        if previous and rule.spec.previous and (first := next(pairs, None)) is not None:
            far = 0 if rule.remembers else max(0, len(previous) - rule.spec.previous)
            seen = tuple(previous[far:])
            pairs, skip = chain([continued(seen, *first, rule)], pairs), len(seen)
        for window in windows(pairs, self.WINDOW, lambda pair: len(pair[0])):
            wanted = [_phrases(document, chosen.glossary) for document, _ in window]
            units = self._decode_documents(window, rule, chosen, wanted)
            for (document, _), sentences, each in zip(window, units, wanted, strict=True):
                joined = tuple(self._join(parts, chosen.nbest) for parts in sentences[skip:])
                for sentence, phrases, found in zip(document.sentences[skip:], each[skip:], joined, strict=True):
                    self.terms.note(document.id, sentence, found.text, len(phrases), found.unmet)
                yield TranslatedDocument(document.id, joined)
                skip = 0

    # ---- inside ----

    def _one(
        self, document: Document | Sequence[str], previous: Sequence[str], options: Options
    ) -> tuple[TranslatedSentence, ...]:
        if isinstance(document, str) or not isinstance(document, Document | Iterable):
            raise DocnmtError(
                f"a document is a list of sentences, not a {type(document).__name__}\n"
                "  Write translate([sentence, sentence]), or translate_text(text), which splits text into sentences."
            )
        if not isinstance(document, Document):
            document = Document("document", tuple(document))
        (result,) = self.translate_documents([document], previous=previous, options=options)
        return result.sentences

    def _decode_documents(
        self,
        window: Sequence[tuple[Document, AnyDocument]],
        rule: ContextRule,
        options: Options,
        phrases: Sequence[Sequence[Sequence[Phrase]]],
    ) -> list[list[list[Unit]]]:
        """For each sentence of each document its units, decoded.

        All go at once; or, if what was written for the previous sentences is part of a sentence's context, one of each
        document at a time. Contexts from other documents then have their own translations, which are made first.
        """
        sources = [self.source.encode(document.sentences) for document, _ in window]
        contexts = [
            ids if other is document else self.source.encode(source_of(other))
            for ids, (document, other) in zip(sources, window, strict=True)
        ]
        own: list[list[list[int]]] = [[] for _ in window]  # what was written so far
        written = dict(enumerate(own))
        if rule.remembers:
            foreign = {n: Document(other.id, source_of(other)) for n, (d, other) in enumerate(window) if other is not d}
            nothing = [_phrases(document, None) for document in foreign.values()]
            theirs = [(document, document) for document in foreign.values()]
            decoded = self._decode_documents(theirs, rule, options, nothing) if foreign else []
            written |= {n: list(map(_tokens, units)) for n, units in zip(foreign, decoded, strict=True)}
        made = UnitMaker(self.source, self.card.model.max_length, rule)
        units: list[list[list[Unit]]] = [[] for _ in window]
        longest = max(len(document) for document, _ in window)
        for places in [range(n, n + 1) for n in range(longest)] if rule.remembers else [range(longest)]:
            batch: list[Unit] = []
            for n, (document, _) in enumerate(window):
                for i in places[: len(document) - places.start]:
                    around = rule.around(contexts[n], i, written[n])
                    units[n].append(made.units(document, i, sources[n][i], around, phrases[n][i]))
                    batch += units[n][i]
            self._decode(batch, rule, options)
            if rule.remembers:
                for n, sentences in enumerate(units):
                    own[n] += map(_tokens, sentences[places.start :])
        return units

    def _decode(self, units: list[Unit], rule: ContextRule, options: Options) -> None:
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
        rule: ContextRule,
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
        if constraints is None and not all(found):
            raise DocnmtError(
                "the model's scores are infinite or NaN: its weights are too large, as after a training that diverged\n"
                "  Train it again with a lower learning rate or with clip = 1.0."
            )
        for unit, best in zip(batch, found, strict=True):
            unit.length = len(best[0].tokens) + 1 if best else unit.length
            unit.best = [replace(h, tokens=tuple(rule.own(h.tokens, unit.around))) for h in best]

    def _join(self, parts: list[Unit], nbest: int) -> TranslatedSentence:
        if not parts:
            return TranslatedSentence(("",), (0.0,))
        texts: list[list[str]] = [[] for _ in range(nbest)]
        scores = [0.0] * nbest
        for part in parts:
            found = self.target.decode([hypothesis.tokens for hypothesis in part.best])
            if part.text is not None:
                found = [part.text]
            for n in range(nbest):  # a part may have fewer hypotheses than requested: its last one is used
                at = min(n, len(found) - 1)
                texts[n].append(found[at])
                scores[n] += part.best[at].score
        count = min(nbest, max(len(part.best) for part in parts))
        whole = tuple(" ".join(t) for t in texts[:count])
        asked = [phrase for part in parts for phrase in part.phrases]
        return TranslatedSentence(whole, tuple(scores[:count]), tuple(missing(asked, whole[0])) if asked else ())


def _tokens(parts: Sequence[Unit]) -> list[int]:
    """What was written for a sentence."""
    return [token for part in parts for token in part.best[0].tokens]


def _phrases(document: Document, glossary: Glossary | None) -> list[tuple[Phrase, ...]]:
    """What the translation of each sentence has to contain."""
    return [() if glossary is None else glossary.phrases(sentence) for sentence in document.sentences]


def load(folder: str | Path, device: str = "auto") -> Translator:
    """Loads a model folder, such as runs/demo/document/model, for translating and scoring.

    device: "cpu", "cuda" or "auto", which is a GPU if there is one
    """
    if not isinstance(folder, str | Path):
        raise DocnmtError(f'load takes the path of a model folder, not {folder!r:.40}\n  Write load("folder").')
    loaded = load_model(folder, choose_device(device))
    return Translator(loaded, Shortlist.read(Path(folder), loaded.source, loaded.target))
