"""Which files are read as documents with a layout, and by which module."""

from __future__ import annotations

from importlib import import_module
from pathlib import PurePath

from docnmt.base.errors import DocnmtError
from docnmt.files.segments import FileText

# The module of this package that reads a kind: it has read(data, name, languages) -> FileText. `name` is the file's,
# for errors; `languages` are those of source and target, "" where not known.
KINDS: dict[str, str] = {
    ".txt": "text",
    ".md": "markdown",
    ".markdown": "markdown",
    ".html": "html",
    ".htm": "html",
    ".xhtml": "html",
    ".epub": "epub",
    ".docx": "docx",
    ".odt": "odt",
    ".xliff": "xliff",
    ".xlf": "xliff",
    ".tmx": "tmx",
    ".po": "po",
    ".pot": "po",
    ".json": "json_strings",
    ".srt": "subtitles",
    ".vtt": "subtitles",
}
_FOREIGN = (".doc", ".pdf", ".rtf", ".xls", ".xlsx", ".ppt", ".pptx", ".ods", ".odp", ".pages", ".mobi", ".azw3")
PACKED = ("epub", "docx", "odt")  # no text to look at on a terminal


def kind_of(name: str) -> str:
    """Empty for a file that is no document with a layout, but lines of sentences."""
    return KINDS.get(PurePath(name).suffix.lower(), "")


def is_document(name: str) -> bool:
    if name.lower().endswith(_FOREIGN):
        raise DocnmtError(f"{name}: not a kind of file that is read\n  Save it as .docx, .odt, .html or .txt.")
    return bool(kind_of(name))


def read_document(data: bytes, name: str, languages: tuple[str, str] = ("", "")) -> FileText:
    kind = kind_of(name)
    if not kind:
        raise DocnmtError(f"{name}: not a kind of file that is known\n  Known are {', '.join(KINDS)}.")
    text: FileText = import_module(f"docnmt.files.{kind}").read(data, name, languages)
    return text
