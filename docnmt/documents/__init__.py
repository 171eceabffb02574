"""Files of many kinds: extract the text, translate it, put it back."""

from docnmt.documents.segment import KINDS, is_document, kind_of, read_document

__all__ = ["KINDS", "is_document", "kind_of", "read_document"]
