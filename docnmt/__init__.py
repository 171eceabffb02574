"""docnmt: document-level translation.

>>> import docnmt
>>> translator = docnmt.load("runs/demo/document/model")
>>> translator.translate(["Mes amis sont allés au tribunal.", "Bien sûr, l'avocat était très utile."])
['My friends went to court.', 'Of course, the lawyer was very useful.']
>>> translator.translate_text("Mes amis ont dîné au restaurant. Bien sûr, l'avocat était très utile.")
'My friends dined at the restaurant. Of course, the avocado was very useful.'

A document is a list of sentences; what a sentence means depends on those before it. `docnmt.translate_file`
translates files and keeps their layout; `translator.score` tells how probable given translations are.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from docnmt.base import __version__
from docnmt.base.errors import BadInput, DocnmtError
from docnmt.document import ContextSpec, Document, ParallelDocument

if TYPE_CHECKING:
    from docnmt.decoding.files import translate_file
    from docnmt.decoding.scoring import SentenceScore
    from docnmt.decoding.terms import Glossary
    from docnmt.decoding.translator import Options, TranslatedDocument, TranslatedSentence, Translator, load

__all__ = [
    "BadInput",
    "ContextSpec",
    "DocnmtError",
    "Document",
    "Glossary",
    "Options",
    "ParallelDocument",
    "SentenceScore",
    "TranslatedDocument",
    "TranslatedSentence",
    "Translator",
    "__version__",
    "load",
    "translate_file",
]


_NOT_IN_TRANSLATOR = {"Glossary": "terms", "SentenceScore": "scoring", "translate_file": "files"}


def __getattr__(name: str) -> object:
    # torch takes seconds to import: only loading a model pays for it
    if name not in __all__:
        raise AttributeError(f"module 'docnmt' has no attribute {name!r}")
    return getattr(import_module(f"docnmt.decoding.{_NOT_IN_TRANSLATOR.get(name, 'translator')}"), name)


def __dir__() -> list[str]:
    return [*__all__, "__doc__", "__file__", "__name__", "__path__"]
