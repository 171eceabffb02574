"""Files of many kinds: take the text out, translate it, put it back."""

from docnmt.documents.segment import KINDS, is_document, kind_of, read_document
from docnmt.documents.translate import translate_bytes, translate_file

__all__ = ["KINDS", "is_document", "kind_of", "read_document", "translate_bytes", "translate_file"]
