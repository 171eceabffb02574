"""Files of many kinds: take the text out, translate it, put it back."""

from docnmt.files.kinds import KINDS, is_document, kind_of, read_document
from docnmt.files.translation import translate_bytes, translate_file

__all__ = ["KINDS", "is_document", "kind_of", "read_document", "translate_bytes", "translate_file"]
