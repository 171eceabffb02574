"""What a model process translates at once: sentences of several documents, each with what it sees of its own."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from docnmt.decoding.alignment import align
from docnmt.decoding.results import OFF, Options, TranslatedSentence
from docnmt.document import ContextSpec, Document, context_positions
from docnmt.documents.marks import Links
from docnmt.documents.placeholders import without
from docnmt.documents.translate import Sentence, Sentences, Translated

if TYPE_CHECKING:
    from docnmt.decoding.terms import Glossary
    from docnmt.decoding.translator import Translator


@dataclass(frozen=True)
class Excerpt:
    """A stretch of one document, and the places in it to translate; the others are context."""

    sentences: tuple[str, ...]
    places: tuple[int, ...]

    @property
    def characters(self) -> int:
        return sum(map(len, self.sentences))


def whole(sentences: Sequence[str], previous: Sequence[str] = ()) -> Excerpt:
    """All sentences at once, after some that are context."""
    return Excerpt((*previous, *sentences), tuple(range(len(previous), len(previous) + len(sentences))))


def one_by_one(sentences: Sequence[str], context: ContextSpec, previous: Sequence[str] = ()) -> Iterator[Excerpt]:
    """For each sentence itself and what it sees."""
    said = (*previous, *sentences)
    for place in range(len(previous), len(said)):
        seen = sorted((place, *context_positions(place, len(said), context)))
        yield Excerpt(tuple(said[i] for i in seen), (seen.index(place),))


def translate_excerpts(
    translator: Translator, excerpts: Sequence[Excerpt], context: bool, nbest: int, glossary: Glossary | None = None
) -> list[list[TranslatedSentence]]:
    """For each excerpt the translations of its places."""
    texts = [excerpt.sentences[place] for excerpt in excerpts for place in excerpt.places]
    sentences = [Sentence(text, translate=any(map(str.isalpha, without(text)))) for text in texts]
    found = ExcerptTranslations(translator, options(translator, context, nbest, glossary), excerpts)
    translated = iter(zip(*found.ranked(sentences), strict=True))
    scores = iter(found.scores())
    return [[_joined(next(translated), next(scores)) for _ in excerpt.places] for excerpt in excerpts]


def options(translator: Translator, context: bool, nbest: int = 1, glossary: Glossary | None = None) -> Options:
    return replace(translator.options, nbest=nbest, context=None if context else OFF, glossary=glossary)


def _joined(ranked: tuple[Translated, ...], scores: tuple[float, ...]) -> TranslatedSentence:
    return TranslatedSentence(tuple(each.text for each in ranked[: len(scores)]), scores)


class ExcerptTranslations:
    """Translations of the places of many excerpts, counted through. All that a text can be are found at once, and
    remembered: they are asked for rank by rank."""

    def __init__(self, translator: Translator, options: Options, excerpts: Sequence[Excerpt]):
        self.translator, self.options, self.excerpts = translator, options, excerpts
        self.at = [(n, place) for n, excerpt in enumerate(excerpts) for place in excerpt.places]
        self._first: dict[int, TranslatedSentence] = {}  # of the sentences as they are
        self._known: dict[tuple[int, str], TranslatedSentence] = {}  # of what was read in their places

    def ranked(self, sentences: Sequence[Sentence]) -> list[list[Translated]]:
        """The best translations of all places, their second best, and so on. Where there are no more, the last."""
        batch = Sentences("", sentences)
        return [batch.translate(Rank(self, rank), range(len(batch))) for rank in range(self.options.nbest)]

    def scores(self) -> list[tuple[float, ...]]:
        """Of all places, once they are translated; as many as there are different translations."""
        return [self._first[n].scores if n in self._first else (0.0,) for n in range(len(self.at))]

    def texts(self, wanted: Mapping[int, str]) -> dict[int, tuple[str, ...]]:
        """What the texts that are read in some places can be, best first."""
        new = {n: text for n, text in wanted.items() if (n, text) not in self._known}
        for n, sentence in self._decoded(new).items():
            self._known[n, new[n]] = sentence
            self._first.setdefault(n, sentence)
        return {n: self._known[n, text].texts for n, text in wanted.items()}

    def _decoded(self, wanted: Mapping[int, str]) -> dict[int, TranslatedSentence]:
        chosen = sorted({self.at[n][0] for n in wanted})
        contexts = [Document(str(n), self.excerpts[n].sentences) for n in chosen]
        read = {self.at[n]: text for n, text in wanted.items()}
        rule = self.translator.rule(self.options.context)
        in_order = rule is not None and rule.remembers  # it needs its own translations of the other sentences
        documents = [
            Document(str(n), tuple(read.get((n, i), s if in_order else "") for i, s in enumerate(context.sentences)))
            for n, context in zip(chosen, contexts, strict=True)
        ]
        context_from = None if in_order else contexts
        results = self.translator.translate_documents(documents, context_from=context_from, options=self.options)
        found = dict(zip(chosen, results, strict=True))
        return {n: found[self.at[n][0]].sentences[self.at[n][1]] for n in wanted}


@dataclass(frozen=True)
class Rank:
    """The places as if they were sentences of one file, each in its translation of one rank."""

    found: ExcerptTranslations
    rank: int

    def translate(self, name: str, sentences: Sequence[str], block: range, wanted: Mapping[int, str]) -> dict[int, str]:
        ranked = self.found.texts(wanted)
        return {n: texts[min(self.rank, len(texts) - 1)].strip() for n, texts in ranked.items()}

    def align(self, pairs: Sequence[tuple[str, str]]) -> Sequence[Links]:
        return align(self.found.translator, pairs)
