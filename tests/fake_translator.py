"""A translator that is a function of a sentence, for tests of what is around it."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace

from docnmt.decoding.translator import Options, TranslatedDocument, TranslatedSentence
from docnmt.decoding.units import SENTENCE_RULE
from docnmt.document import ContextSpec


class Fake:
    """Translates by a function, and remembers what it was asked with which contexts.

    It aligns no words: where marks move with words, a test replaces `docnmt.decoding.excerpts.align`."""

    def __init__(self, say: Callable[[str], str], languages=("fr", "en"), previous=2, following=0, remembers=False):
        self.say, self.options = say, Options()
        self.card = SimpleNamespace(languages=languages)
        self.spec, self.remembers = ContextSpec(previous, following), remembers
        self.asked: list[tuple[str, tuple[str, ...]]] = []

    def rule(self, context):
        return SENTENCE_RULE if context == "off" else SimpleNamespace(spec=self.spec, remembers=self.remembers)

    def translate_documents(self, documents, context_from=None, **changes):
        for number, document in enumerate(documents):
            around = document.sentences if context_from is None else context_from[number].sentences
            assert len(around) == len(document)
            for place, sentence in enumerate(document.sentences):
                if sentence:
                    before = around[max(0, place - self.spec.previous) : place]
                    self.asked.append((sentence, (*before, *around[place + 1 : place + 1 + self.spec.following])))
            said = (TranslatedSentence((self.say(s) if s else "",), (0.0,)) for s in document.sentences)
            yield TranslatedDocument(document.id, tuple(said))


def backwards(text: str) -> str:
    return " ".join(reversed(text.split()))
