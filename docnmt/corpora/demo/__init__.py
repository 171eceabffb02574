"""An embedded French to English corpus in which some words can only be translated with the sentences before."""

from docnmt.corpora.demo.files import read_context_words, write_demo_corpus
from docnmt.corpora.demo.generate import generate
from docnmt.corpora.demo.items import PHENOMENA, ContextWord, DemoDocument

__all__ = ["PHENOMENA", "ContextWord", "DemoDocument", "generate", "read_context_words", "write_demo_corpus"]
