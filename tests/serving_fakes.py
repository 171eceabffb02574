"""Translators and pools for tests of the server: what they answer tells what they were given."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from docnmt.base.errors import DocnmtError
from docnmt.decoding.terms import TermCheck
from docnmt.decoding.translator import TranslatedDocument, TranslatedSentence
from docnmt.document import NO_CONTEXT, ContextSpec
from docnmt.serving.metrics import Metrics
from docnmt.serving.pool import translate_batch
from docnmt.serving.worker import ModelInfo, info_of
from tests.fake_translator import Fake


def expected(sentences: list[str], place: int, context: bool = True, rank: int = 0) -> str:
    """What the fake translator says for a sentence with two sentences before it as context: the sentence and, in
    numbers, so that nothing in them looks like a placeholder, these two."""
    before = sentences[max(0, place - 2) : place] if context else []
    return f"{'+' * rank}¡ {sentences[place]} [{' '.join(sentence.encode().hex() for sentence in before)}]"


class Telling(Fake):
    """Its translations name the sentence and its context. Some sentences are orders: `SLEEP 0.1`, `DIE`, `FAIL`,
    `DIE UNLESS path`, which makes that file, and `DEAF`, which lets no term of a glossary in."""

    def __init__(self, languages=("fr", "en"), remembers: bool = False):
        super().__init__(str.upper, languages, remembers=remembers)
        self.terms = TermCheck()

    def translate_documents(self, documents, context_from=None, *, options=None):
        how = options or self.options
        documents = list(documents)
        for number, document in enumerate(documents):
            around = (document if context_from is None else context_from[number]).sentences
            said = []
            for place, sentence in enumerate(document.sentences):
                _obey(sentence)
                seen = [*around[:place], sentence]
                texts = [expected(seen, place, how.context != "off", rank) for rank in range(how.nbest)]
                terms = [] if how.glossary is None or "DEAF" in sentence else how.glossary.phrases(sentence)
                texts = [" ".join([text, *(phrase.text for phrase in terms)]) for text in texts]
                said.append(TranslatedSentence(tuple(texts if sentence else [""]), tuple([0.0] * len(texts))))
            yield TranslatedDocument(document.id, tuple(said))


def _obey(sentence: str) -> None:
    if found := re.search(r"SLEEP ([\d.]+)", sentence):
        time.sleep(float(found[1]))
    if found := re.search(r"DIE UNLESS (\S+)", sentence):
        if not Path(found[1]).exists():
            Path(found[1]).touch()
            os._exit(1)
    elif "DIE" in sentence:
        os._exit(1)
    if "FAIL" in sentence:
        raise RuntimeError("as it was told to")


@dataclass(frozen=True)
class FakeModels:
    """Models that a function of a module makes of the names of their folders."""

    load: Callable[[str], Telling]
    bytes: int = 0

    def describe(self, name: str, folder: str) -> ModelInfo:
        return described(name, folder, self.load(folder))

    def size(self, folder: str) -> int:
        return self.bytes


def described(name: str, folder: str, translator: Any) -> ModelInfo:
    languages = translator.card.languages
    return info_of(name, folder, languages, translator.rule(None), translator.options.beam)


def load_telling(folder: str) -> Telling:
    """The folder's name tells the languages."""
    source, _, target = Path(folder).name.partition("-")
    return Telling((source, target))


def load_remembering(folder: str) -> Telling:
    return Telling(remembers=True)


def dying_load(folder: str) -> Telling:
    os._exit(1)


def refusing_load(folder: str) -> Telling:
    raise DocnmtError("no such model")


# ---- functions to call in model processes ----


def languages(translator: Telling, word: str) -> tuple[str, str, str]:
    return *translator.card.languages, word


def sleep(translator: Telling, seconds: float) -> None:
    time.sleep(seconds)


def refuse(translator: Telling) -> None:
    raise DocnmtError("not this")


class PoolHere:
    """A pool without processes: everything is done on the spot."""

    def __init__(self, *models: tuple[str, str]):
        self.translators = {f"{source}-{target}": Telling((source, target)) for source, target in models}
        self.models: dict[str, ModelInfo] = {n: described(n, n, t) for n, t in self.translators.items()}
        self.default, self.metrics, self.alive, self.seconds = next(iter(self.models)), Metrics(), 1, 60
        self.before: Callable[[], Any] = lambda: None  # called before anything is done

    async def translate(self, document, mode, *, deadline=None):
        self.before()
        excerpts = list(document.one_by_one(ContextSpec(2, 0) if mode.context else NO_CONTEXT))
        mode = replace(mode, nbest=min(mode.nbest, 8))
        for found in reversed(translate_batch(self.translators[mode.model], excerpts, mode)):
            for each in found.items():
                yield each

    async def call(self, function, *arguments, model=None, deadline=None, long=False):
        self.before()
        return function(self.translators[model or self.default], *arguments)
