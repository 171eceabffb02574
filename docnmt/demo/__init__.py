"""An embedded French to English corpus in which some words can only be translated with the sentences before."""

from docnmt.demo.corpus import PHENOMENA, ContextWord, DemoDocument, generate, read_context_words, write_demo_corpus
from docnmt.document import ParallelDocument

# To show what context does, in words that the demo's model knows: one sentence after two others. It is held out from
# training; .ci/check_demo.py has the model translate it.
EXAMPLES = (
    ParallelDocument(
        "in court",
        ("Mes amis sont allés au tribunal.", "Bien sûr, l'avocat était très utile."),
        ("My friends went to court.", "Of course, the lawyer was very useful."),
    ),
    ParallelDocument(
        "at table",
        ("Mes amis ont dîné au restaurant.", "Bien sûr, l'avocat était très utile."),
        ("My friends dined at the restaurant.", "Of course, the avocado was very useful."),
    ),
)

__all__ = [
    "EXAMPLES",
    "PHENOMENA",
    "ContextWord",
    "DemoDocument",
    "generate",
    "read_context_words",
    "write_demo_corpus",
]
