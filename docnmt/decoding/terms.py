"""A glossary: terms of the source and how they are to be translated, wherever they occur.

One term a line, its translation after a tab; lines that begin with # are comments:

    carte mère	motherboard
    # as the manual has it
    Bureau	Desktop

A term written in small letters is found in any case, "bureau" in "Bureau" and "BUREAU", too; one with a capital only as
it is written. Terms are whole words, except in scripts without spaces; of several that begin at one place the longest
counts. Translations come out as they are written, with a capital where they begin a sentence.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from docnmt.base.errors import BadInput, DocnmtError
from docnmt.base.lines import Flaw, InputFile
from docnmt.base.report import Column, Table
from docnmt.decoding.phrases import Phrase, parts_words

LONGEST_TERM = 200  # characters


@dataclass(frozen=True)
class Term:
    source: str
    target: str

    @property
    def exact(self) -> bool:
        """Whether it is found only as it is written."""
        return self.source != self.source.lower()

    @cached_property
    def pattern(self) -> re.Pattern[str]:
        """Any space stands for any other, and so do apostrophes."""
        words = (re.sub("['’]", "['’]", re.escape(word)) for word in self.source.split())
        return re.compile(r"\s+".join(words), 0 if self.exact else re.IGNORECASE)


@dataclass(frozen=True)
class Glossary:
    terms: tuple[Term, ...]

    @classmethod
    def of(cls, terms: Mapping[str, str]) -> Glossary:
        """From a mapping of terms to their translations."""
        if not isinstance(terms, Mapping) or not all(isinstance(text, str) for pair in terms.items() for text in pair):
            raise DocnmtError(
                f"a glossary maps terms to their translations, {terms!r} does not\n"
                '  Write glossary={"carte mère": "motherboard"}, or glossary=Glossary.read(path).'
            )
        return cls(_gathered("glossary", enumerate(terms.items(), 1)))

    @classmethod
    def read(cls, path: str | Path) -> Glossary:
        with InputFile(str(path)) as file:
            found = _gathered(file.name, _lines(file))
        if not found:
            raise DocnmtError(f"{path}: has no terms\n  Write one a line: the term, a tab, its translation.")
        return cls(found)

    def found_in(self, sentence: str) -> list[tuple[Term, tuple[int, int]]]:
        """The terms that occur in a sentence, none inside another, and the characters they stand at."""
        text = unicodedata.normalize("NFC", sentence)
        found, end = [], 0
        for place, head in _heads(text):
            if place < end:
                continue
            for term in self._by_head.get(head, ()):
                match = term.pattern.match(text, place)
                if match and _whole(text, *match.span()):
                    found.append((term, match.span()))
                    end = match.end()
                    break
        return found

    def phrases(self, sentence: str) -> tuple[Phrase, ...]:
        """What a translation of the sentence has to contain."""
        return tuple(Phrase(term.target, term.source, at) for term, at in self.found_in(sentence))

    @cached_property
    def _by_head(self) -> dict[str, list[Term]]:
        """Terms by what they begin with; the longest first, and of two alike the one that is more particular."""
        heads: dict[str, list[Term]] = {}
        for term in sorted(self.terms, key=lambda term: (-len(term.source), not term.exact)):
            heads.setdefault(next(head for _, head in _heads(term.source)), []).append(term)
        return heads


def _lines(file: InputFile) -> Iterator[tuple[int, Sequence[str]]]:
    """The columns of those lines that are to be terms."""
    for number, line in enumerate(file.lines(2 * LONGEST_TERM + 1), 1):
        if isinstance(line, Flaw):
            raise BadInput(line.kind, line.problem, line.remedy, file=file.name, line=number)
        if line.strip() and not line.startswith("#"):
            yield number, line.split("\t")


def _gathered(file: str, lines: Iterable[tuple[int, Sequence[str]]]) -> tuple[Term, ...]:
    terms: dict[str, tuple[int, Term]] = {}
    for number, columns in lines:
        term = _term(columns, file, number)
        first, known = terms.setdefault(term.source, (number, term))
        if known != term:
            raise BadInput(
                "conflicting terms",
                f"{term.source!r} is {term.target!r} here and {known.target!r} in line {first}",
                "A term has one translation: leave one of the lines out.",
                file=file,
                line=number,
            )
    return tuple(term for _, term in terms.values())


def _term(given: Sequence[str], file: str, number: int) -> Term:
    columns = [" ".join(unicodedata.normalize("NFC", column).split()) for column in given]
    if len(columns) != 2:
        problem = "no tab" if len(columns) == 1 else f"{len(columns)} columns"
        remedy = "Write a term, one tab, and its translation."
        raise BadInput("not a term", f"{problem} in a glossary", remedy, file=file, line=number)
    for column, side in zip(columns, ("term", "translation"), strict=True):
        if not column:
            raise BadInput(
                "empty side", f"the {side} is empty", "Fill it in, or remove the line.", file=file, line=number
            )
        if len(column) > LONGEST_TERM:
            problem, remedy = f"the {side} has {len(column):,} characters", f"A term has at most {LONGEST_TERM}."
            raise BadInput("long term", problem, remedy, file=file, line=number)
    return Term(*columns)


def _heads(text: str) -> Iterator[tuple[int, str]]:
    """Where a term may begin, and what it is looked up by there: a word in small letters, or a single character."""
    place = 0
    while place < len(text):
        end = place + 1
        if not parts_words(text[place]):
            while end < len(text) and not parts_words(text[end]):
                end += 1
        if not text[place].isspace():
            yield place, text[place:end].lower()
        place = end


def _whole(text: str, begin: int, end: int) -> bool:
    """Whether no word is cut in two at either end."""
    return all(not 0 < cut < len(text) or parts_words(text[cut - 1]) or parts_words(text[cut]) for cut in (begin, end))


# ---- What became of the terms in a run ----


@dataclass(frozen=True)
class UnmetTerm:
    document: str
    sentence: str
    translation: str
    term: str
    wanted: str


@dataclass
class TermCheck:
    found: int = 0  # terms in the sentences that were translated
    unmet: list[UnmetTerm] = field(default_factory=list)

    def note(self, document: str, sentence: str, translation: str, found: int, unmet: Sequence[Phrase]) -> None:
        """A sentence of a document, how many terms it has, and those that its translation lacks."""
        self.found += found
        self.unmet += [UnmetTerm(document, sentence, translation, each.source, each.text) for each in unmet]

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)

    def take(self) -> dict[str, Any]:
        """All that was noted so far, for JSON; after that nothing is."""
        noted = self.as_dict()
        self.found, self.unmet = 0, []
        return noted

    def give(self, noted: Mapping[str, Any]) -> None:
        """Notes what was taken elsewhere."""
        self.found += noted["found"]
        self.unmet += [UnmetTerm(**term) for term in noted["unmet"]]

    def table(self) -> Table:
        columns = [Column(name, text=True) for name in ("document", "term", "wanted", "sentence", "translation")]
        table = Table("Terms of the glossary that could not be met", columns)
        for term in self.unmet:
            table.add(term.document, term.term, term.wanted, _short(term.sentence), _short(term.translation))
        return table

    def summary(self) -> str:
        return f"glossary: {self.found - len(self.unmet):,} of {self.found:,} terms met"


def _short(text: str) -> str:
    return text if len(text) <= 80 else f"{text[:79]}…"
