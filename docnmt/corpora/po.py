"""gettext catalogues as parallel text: a file is a document, its messages in their order.

What has no finished translation (nothing, or one marked fuzzy) leaves a gap; obsolete entries are no part of the text.
"""

from __future__ import annotations

from collections.abc import Iterator

from docnmt.base.errors import BadInput
from docnmt.base.lines import InputFile
from docnmt.corpora.assembly import Reading, Row, documents_from_rows
from docnmt.corpora.markup import same_language
from docnmt.corpora.sentence_pairs import Pair, good_rows, sentence_pairs
from docnmt.document import GAP, ParallelDocument
from docnmt.documents.messages import message
from docnmt.documents.plural_forms import PluralForms
from docnmt.documents.po import PoEntry, decoded, header_fields, read_entries


def read_po(file: InputFile, reading: Reading) -> Iterator[ParallelDocument]:
    """The messages are the source, unless the header says that the translations are in the source language."""
    for document in documents_from_rows(_rows(file, reading), file.name, reading):
        if document.filled:
            yield document


def _rows(file: InputFile, reading: Reading) -> Iterator[Row]:
    text, _ = decoded(file.content(), file.name)
    entries = read_entries(text, file.name)
    header = header_fields(entries)
    forms = PluralForms.parse(header.get("plural-forms", ""))
    language, (source, target) = header.get("language", ""), reading.languages
    if language and source and target and not any(same_language(language, wanted) for wanted in (source, target)):
        problem = f"translations in {language} where {source} to {target} is wanted"
        remedy = "Leave the file out, or correct `Language` in its header."
        reading.on_bad(BadInput("other languages", problem, remedy, file=file.name))
        return
    swap = bool(language and source) and same_language(language, source) and not same_language(language, target)
    languages = (target, source) if swap else (source, target)
    for entry in entries:
        if entry.is_header:
            continue
        document = f"{file.stem}:{entry.line}" if reading.pairs else file.stem
        texts = messages(entry, forms) if entry.translated else ()
        pairs = [pair for text in texts for pair in _pairs(*text, languages)] or [(GAP, GAP)]
        if swap:
            pairs = [(right, left) for left, right in pairs]
        yield from good_rows(pairs, entry.line, document, file.name, reading)


def messages(entry: PoEntry, forms: PluralForms | None) -> Iterator[Pair]:
    """Each message of an entry and its translation, if it has one."""
    assert entry.msgid is not None
    if entry.plural is None:
        yield entry.msgid.text, entry.forms[min(entry.forms)].text
        return
    of_one = 0 if forms is None else forms.of_one
    if of_one in entry.forms and len(entry.forms) > 1:
        yield entry.msgid.text, entry.forms[of_one].text
    yield entry.plural.text, entry.forms[max(entry.forms)].text


def _pairs(source: str, target: str, languages: tuple[str, str]) -> list[Pair]:
    sides = [[segment.text for segment in message(text).segments] for text in (source, target)]
    if len(sides[0]) != len(sides[1]):
        sides = [[" ".join(lines)] if lines else [] for lines in sides]
    if len(sides[0]) != len(sides[1]):
        return []  # one of the two has no text at all
    return [pair for left, right in zip(*sides, strict=True) for pair in sentence_pairs(left, right, languages)]
