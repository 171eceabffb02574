"""From sentences of documents to translations: the one path for texts, files, requests and the page."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from docnmt.decoding.phrases import missing
from docnmt.decoding.scoring import align
from docnmt.document import ContextSpec, Document, check_characters
from docnmt.documents.marks import Links
from docnmt.documents.translate import FileSentences, Sentence, Translated, has_words, translate_sentences

if TYPE_CHECKING:
    from docnmt.decoding.translator import Options, Translator


@dataclass(frozen=True)
class Excerpt:
    """Sentences of one document in reading order, and which of them to translate; the others are context."""

    sentences: Sequence[str]
    wanted: Mapping[int, Sentence]  # by their places in the document
    first: int = 0  # the place of the first of `sentences`; negative for sentences before the document
    name: str = ""  # of the document

    @classmethod
    def of_texts(cls, sentences: Sequence[str], places: Iterable[int] | None = None) -> Excerpt:
        """A document given as strings, and the places of those to translate; all of them if None."""
        chosen = ((place, sentences[place]) for place in (range(len(sentences)) if places is None else places))
        return cls(sentences, {place: Sentence(text, translate=has_words(text)) for place, text in chosen})

    def __len__(self) -> int:
        """Sentences to translate."""
        return len(self.wanted)

    @property
    def characters(self) -> int:
        return sum(map(len, self.sentences))

    def part(self, wanted: Mapping[int, Sentence], context: ContextSpec) -> Excerpt:
        """Some of the sentences with what they see of the document."""
        begin = max(0, min(wanted) - context.previous - self.first)
        end = max(wanted) + context.following + 1 - self.first
        return Excerpt(self.sentences[begin:end], wanted, self.first + begin, self.name)

    def one_by_one(self, context: ContextSpec) -> Iterator[Excerpt]:
        """Each sentence to translate, with what it sees."""
        return (self.part({place: sentence}, context) for place, sentence in self.wanted.items())


Place = tuple[int, int]  # the number of an excerpt, and a place in its document


@dataclass(frozen=True)
class ExcerptMachine:
    """A translator as documents/ needs it."""

    translator: Translator
    options: Options
    excerpts: Sequence[Excerpt]

    def translate(self, texts: Mapping[Place, str]) -> dict[Place, list[str]]:
        in_order = self.translator.rule(
            self.options.context
        ).remembers  # it needs its own translations of the other sentences
        chosen = sorted({number for number, _ in texts})
        contexts = [Document(self.excerpts[n].name, tuple(self.excerpts[n].sentences)) for n in chosen]
        documents = []
        for number, context in zip(chosen, contexts, strict=True):
            places = enumerate(context.sentences, self.excerpts[number].first)
            # An empty sentence is not decoded.
            read = (texts.get((number, place), text if in_order else "") for place, text in places)
            documents.append(Document(context.id, tuple(read)))
        context_from = None if in_order else contexts
        results = self.translator.translate_documents(documents, context_from=context_from, options=self.options)
        found: dict[Place, list[str]] = {}
        for number, result in zip(chosen, results, strict=True):
            for place, sentence in enumerate(result.sentences, self.excerpts[number].first):
                found[number, place] = [text.strip() for text in sentence.texts]
        return {place: found[place] for place in texts}

    def align(self, pairs: Sequence[tuple[str, str]]) -> Sequence[Links]:
        return align(self.translator, pairs)


def translate_excerpts(
    translator: Translator, options: Options, excerpts: Sequence[Excerpt]
) -> list[dict[int, list[Translated]]]:
    """For each excerpt the translations of its sentences by their places, the best first.

    Placeholders and marks are kept; a sentence with nothing to translate comes back as it is.
    """
    wanted = {(n, place): sentence for n, excerpt in enumerate(excerpts) for place, sentence in excerpt.wanted.items()}
    found = translate_sentences(wanted, ExcerptMachine(translator, options, excerpts))
    if options.glossary is not None:
        for key, (best, *others) in found.items():
            unmet = missing(options.glossary.phrases(wanted[key].text), best.text) if wanted[key].translate else ()
            found[key] = [replace(best, unmet=tuple((each.source, each.text) for each in unmet)), *others]
    return [{place: found[n, place] for place in excerpt.wanted} for n, excerpt in enumerate(excerpts)]


def whole(sentences: Sequence[Sentence], previous: Sequence[str] = (), name: str = "") -> Excerpt:
    """A document to be translated in one go; `previous` are sentences before it, which are context."""
    texts = (*previous, *(sentence.text for sentence in sentences))
    return Excerpt(texts, dict(enumerate(sentences)), -len(previous), name)


def translate_best(translator: Translator, options: Options, excerpt: Excerpt) -> list[Translated]:
    """The best translation of each sentence of an excerpt."""
    (found,) = translate_excerpts(translator, options, [excerpt])
    return [ranked[0] for ranked in found.values()]


def translate_text(translator: Translator, options: Options, text: str, previous: Sequence[str]) -> str:
    """Plain text: split into sentences, translated as one document and joined again."""
    check_characters(text)
    file = FileSentences(text.encode(), "text.txt", translator.card.languages)
    found = translate_best(translator, options, whole(file.sentences, previous, file.name)) if len(file) else []
    return file.write(iter(found)).decode()
