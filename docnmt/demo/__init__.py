"""An embedded French to English corpus in which some words can only be translated with the sentences before."""

from docnmt.demo.corpus import PHENOMENA, ContextWord, DemoDocument, generate, read_context_words, write_demo_corpus

__all__ = ["PHENOMENA", "ContextWord", "DemoDocument", "generate", "read_context_words", "write_demo_corpus"]
