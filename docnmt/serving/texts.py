"""Strings of a request as one document: cut into sentences as files are, translated, and put together again."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from docnmt.decoding.files import languages_of
from docnmt.documents.translate import FileSentences, Translated
from docnmt.serving.excerpts import ExcerptTranslations, options, whole
from docnmt.serving.models import ModelInfo
from docnmt.serving.pool import Pool
from docnmt.serving.requests import ENDINGS, TextsAsked

if TYPE_CHECKING:
    from docnmt.decoding.results import TranslatedSentence
    from docnmt.decoding.translator import Translator

SHORT = 2_000  # characters that are cut and put together at once; more would keep other requests waiting


class Texts:
    def __init__(self, texts: Sequence[str], format: str, languages: tuple[str, str]):
        self.parts = [FileSentences(text.encode(), f"q{ENDINGS[format]}", languages) for text in texts]
        self.sentences = [sentence for part in self.parts for sentence in part.sentences]

    @property
    def texts(self) -> list[str]:
        return [sentence.text for sentence in self.sentences]

    def joined(self, translations: Iterable[Translated]) -> list[str]:
        waiting: Iterator[Translated] = iter(translations)
        return [part.write(waiting).decode() for part in self.parts]

    def ranked(self, found: dict[int, TranslatedSentence]) -> list[list[str]]:
        """All strings in their best translations, in their second best ..."""
        said = [found[position].texts for position in range(len(self.sentences))]
        return [
            self.joined(Translated(each[min(rank, len(each) - 1)]) for each in said)
            for rank in range(max(map(len, said), default=1))
        ]


async def translate_texts(pool: Pool, info: ModelInfo, asked: TextsAsked) -> list[list[str]]:
    """For each string its translations, the best first, no two the same."""
    nbest = min(1 + asked.alternatives, info.most)
    if asked.format == "html":  # where tags belong is known to the model alone
        ranked = await pool.call(translate_html, asked, nbest, model=info.name)
    else:
        languages = info.source_language, info.target_language
        document = await _aside(asked, Texts, asked.texts, asked.format, languages)
        before = await _aside(asked, Texts, asked.previous, asked.format, languages)
        translated = pool.translate(
            document.texts,
            previous=before.texts,
            model=info.name,
            context=asked.context,
            nbest=nbest,
            glossary=asked.glossary,
        )
        found = {position: sentence async for position, sentence in translated}
        ranked = await _aside(asked, document.ranked, found)
    return [list(dict.fromkeys(each)) for each in zip(*ranked, strict=True)]


async def _aside(asked: TextsAsked, function: Any, *arguments: object) -> Any:
    """In a thread, unless it is so little that a thread costs more."""
    if sum(map(len, asked.texts)) + sum(map(len, asked.previous)) < SHORT:
        return function(*arguments)
    return await asyncio.to_thread(function, *arguments)


def translate_html(translator: Translator, asked: TextsAsked, nbest: int) -> list[list[str]]:
    """All strings in their best translations, in their second best ..."""
    document, before = (Texts(texts, "html", languages_of(translator)) for texts in (asked.texts, asked.previous))
    excerpt = whole(document.texts, before.texts)
    how = options(translator, asked.context, nbest, asked.glossary)
    found = ExcerptTranslations(translator, how, [excerpt])
    return [document.joined(each) for each in found.ranked(document.sentences)]
