"""Strings of a request as one document: cut into sentences as files are, translated, and put together again."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from docnmt.decoding.files import languages_of
from docnmt.documents.translate import FileSentences, Translated
from docnmt.serving.excerpts import ExcerptMachine, options, ranked, whole
from docnmt.serving.pool import Pool
from docnmt.serving.worker import ModelInfo

if TYPE_CHECKING:
    from docnmt.decoding.translator import Translator

SHORT = 5_000  # characters that are split at once; more would keep other requests waiting
ENDINGS = {"text": ".txt", "html": ".html"}  # of the files that are read in the same way


class Texts:
    def __init__(self, texts: Sequence[str], format: str, languages: tuple[str, str]):
        self.parts = [FileSentences(text.encode(), f"q{ENDINGS[format]}", languages) for text in texts]
        self.sentences = [sentence for part in self.parts for sentence in part.sentences]

    def joined(self, translations: Iterable[Translated]) -> list[str]:
        waiting: Iterator[Translated] = iter(translations)
        return [part.write(waiting).decode() for part in self.parts]


async def translate_texts(
    pool: Pool, info: ModelInfo, texts: Sequence[str], format: str, context: bool, nbest: int
) -> list[list[str]]:
    """For each string its translations, the best first, no two the same."""
    if format == "html":  # where tags belong is known to the model alone
        ranked = await pool.call(translate_html, texts, context, min(nbest, info.most), model=info.name)
    else:
        languages = info.source_language, info.target_language
        if sum(map(len, texts)) < SHORT:
            document = Texts(texts, format, languages)
        else:
            document = await asyncio.to_thread(Texts, texts, format, languages)
        sentences = [sentence.text for sentence in document.sentences]
        translated = pool.translate(sentences, model=info.name, context=context, nbest=nbest)
        found = {position: sentence.texts async for position, sentence in translated}
        said = [found[position] for position in range(len(sentences))]
        ranked = [
            document.joined(Translated(each[min(rank, len(each) - 1)]) for each in said)
            for rank in range(max(map(len, said), default=1))
        ]
    return [list(dict.fromkeys(each)) for each in zip(*ranked, strict=True)]


def translate_html(translator: Translator, texts: Sequence[str], context: bool, nbest: int) -> list[list[str]]:
    """All strings in their best translations, in their second best ..."""
    document = Texts(texts, "html", languages_of(translator))
    excerpt = whole([sentence.text for sentence in document.sentences])
    machine = ExcerptMachine(translator, options(translator, context, nbest), [excerpt])
    return [document.joined(each) for each in ranked(machine, document.sentences)]
