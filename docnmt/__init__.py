"""docnmt: document-level translation.

>>> import docnmt
>>> translator = docnmt.load("runs/demo/document/model")
>>> translator.translate(["Mes amis sont allés au tribunal.", "Bien sûr, l'avocat était très utile."])
['My friends went to court.', 'Of course, the lawyer was very useful.']
>>> translator.translate(["Mes amis ont dîné au restaurant.", "Bien sûr, l'avocat était très utile."])
['My friends dined at the restaurant.', 'Of course, the avocado was very useful.']
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from docnmt.base.errors import BadInput, DocnmtError
from docnmt.document import ContextSpec, Document, ParallelDocument
from docnmt.version import __version__

if TYPE_CHECKING:
    from docnmt.decoding.results import SentenceScore, TranslatedDocument, TranslatedSentence
    from docnmt.decoding.translator import Translator, load

__all__ = [
    "BadInput",
    "ContextSpec",
    "DocnmtError",
    "Document",
    "ParallelDocument",
    "SentenceScore",
    "TranslatedDocument",
    "TranslatedSentence",
    "Translator",
    "__version__",
    "load",
]


def __getattr__(name: str) -> Any:
    # torch takes seconds to import: only those who load a model pay for it
    if name in __all__:
        from docnmt.decoding import translator

        return getattr(translator, name)
    raise AttributeError(f"module 'docnmt' has no attribute {name!r}")
