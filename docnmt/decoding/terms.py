"""A glossary: terms of the source and how they are to be translated, wherever they occur.

One term per line, its translation after a tab; lines that begin with # are comments:

    carte mère	motherboard
    # as the manual has it
    Bureau	Desktop

A term in lower case is found in any case, "bureau" also in "Bureau" and "BUREAU"; one with a capital only as
it is written. Terms are whole words, except in scripts without spaces; of several that begin at one place the longest
counts. Translations come out as they are written, with a capital where they begin a sentence.
"""

from __future__ import annotations

import math
import re
import unicodedata
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from docnmt.base.errors import BadInput, DocnmtError
from docnmt.base.files import json_hash
from docnmt.base.lines import InputFile
from docnmt.data.context import ContextRule
from docnmt.decoding.beam import Hypothesis
from docnmt.decoding.constraints import Constraints, Tracker
from docnmt.decoding.phrases import Phrase, missing, parts_words, with_capital
from docnmt.decoding.scoring import Links, Span, align
from docnmt.decoding.units import Unit, batches
from docnmt.text.scripts import in_word

if TYPE_CHECKING:
    from docnmt.decoding.translator import Options, Translator

LONGEST_TERM = 200  # characters


@dataclass(frozen=True)
class Term:
    source: str
    target: str

    @property
    def exact(self) -> bool:
        """Whether it is found only in the case it is written in."""
        return self.source != self.source.lower()

    @cached_property
    def pattern(self) -> re.Pattern[str]:
        """All kinds of spaces match each other, and so do both apostrophes."""
        words = (re.sub("['’]", "['’]", re.escape(word)) for word in self.source.split())
        return re.compile(r"\s+".join(words), 0 if self.exact else re.IGNORECASE)


@dataclass(frozen=True, eq=False)
class Glossary:
    terms: tuple[Term, ...]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Glossary) and self._digest == other._digest

    def __hash__(self) -> int:
        return hash(self._digest)

    @cached_property
    def _digest(self) -> str:
        """A queue compares glossaries again and again: not by thousands of terms each time."""
        return json_hash([(term.source, term.target) for term in self.terms])

    @classmethod
    def of(cls, terms: Mapping[str, str]) -> Glossary:
        """From a mapping of terms to their translations."""
        if not isinstance(terms, Mapping) or not all(isinstance(text, str) for pair in terms.items() for text in pair):
            raise DocnmtError(
                f"a glossary must map terms to their translations, not be {terms!r}\n"
                '  Write glossary={"carte mère": "motherboard"}, or glossary=Glossary.read(path).'
            )
        return cls(_gathered((Place(f"glossary, term {n}"), term) for n, term in enumerate(terms.items(), 1)))

    @classmethod
    def read(cls, path: str | Path) -> Glossary:
        with InputFile(str(path)) as file:
            found = _gathered(_lines(file))
        if not found:
            raise DocnmtError(f"{path}: contains no terms\n  Write one per line: the term, a tab, its translation.")
        return cls(found)

    def found_in(self, sentence: str) -> list[tuple[Term, tuple[int, int]]]:
        """The terms in a sentence, none inside another, and where they are, in characters."""
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
        """What a translation of the sentence must contain."""
        return tuple(Phrase(term.target, term.source, at) for term, at in self.found_in(sentence))

    @cached_property
    def _by_head(self) -> dict[str, list[Term]]:
        """Terms by their first word; the longest first, and among equals the one whose case counts."""
        heads: dict[str, list[Term]] = {}
        for term in sorted(self.terms, key=lambda term: (-len(term.source), not term.exact)):
            heads.setdefault(next(head for _, head in _heads(term.source)), []).append(term)
        return heads


class Place(NamedTuple):
    """Where a term comes from."""

    file: str
    line: int | None = None


def _lines(file: InputFile) -> Iterator[tuple[Place, Sequence[str]]]:
    """The columns of all lines that are not empty or comments."""
    for number, line in file.numbered_lines(2 * LONGEST_TERM + 1):
        if line.strip() and not line.startswith("#"):
            yield Place(file.name, number), line.split("\t")


def _gathered(lines: Iterable[tuple[Place, Sequence[str]]]) -> tuple[Term, ...]:
    terms: dict[str, tuple[Place, Term]] = {}
    for place, columns in lines:
        term = _term(columns, place)
        first, known = terms.setdefault(term.source, (place, term))
        if known != term:
            before = f"in line {first.line}" if first.line else "before"
            raise BadInput(
                "conflicting terms",
                f"{term.source!r} is translated as {term.target!r} here and as {known.target!r} {before}",
                "A term has one translation: remove one of the two.",
                **place._asdict(),
            )
    return tuple(term for _, term in terms.values())


def _term(given: Sequence[str], place: Place) -> Term:
    columns = [" ".join(column.split()) for column in given]
    if len(columns) != 2:
        problem = "no tab" if len(columns) == 1 else f"{len(columns)} columns instead of 2"
        remedy = "Write a term, one tab, and its translation."
        raise BadInput("not a term", f"{problem} in this line of the glossary", remedy, **place._asdict())
    for column, side in zip(columns, ("term", "translation"), strict=True):
        if not column:
            raise BadInput("empty side", f"the {side} is empty", "Fill it in, or remove both.", **place._asdict())
        if len(column) > LONGEST_TERM:
            problem, remedy = f"the {side} has {len(column):,} characters", f"A term has at most {LONGEST_TERM}."
            raise BadInput("long term", problem, remedy, **place._asdict())
    return Term(*(unicodedata.normalize("NFC", column) for column in columns))  # slow for thousands of accents


def _heads(text: str) -> Iterator[tuple[int, str]]:
    """Where a term may begin, and its key there: a word in lower case, or a single character."""
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
    """Whether both ends are ends of words."""
    return all(not 0 < cut < len(text) or parts_words(text[cut - 1]) or parts_words(text[cut]) for cut in (begin, end))


# ---- Translations that contain a glossary's terms ----

# Most contain them anyway. The others are searched again with constraints. But a phrase that the model finds very
# improbable, such as a name it has never seen, derails it: what it writes around the phrase makes no sense. Its own
# translation does; there the phrase replaces the words that are aligned to the term.

# How much a phrase may lower the log-probability of a translation. Of 6 to 12 this was best for a small French-English
# model with terms from references; invented names all lower it by more.
FOREIGN = 10.0


@dataclass(frozen=True)
class Binding:
    translator: Translator
    rule: ContextRule
    options: Options

    def bind(self, units: Sequence[Unit]) -> None:
        """Gives units new translations if theirs lack phrases."""
        lacking = [(unit, lacks) for unit in units if unit.phrases and (lacks := self._lacking(unit))]
        own = [unit.best[0] for unit, _ in lacking]
        floors = [self._floor(unit, lacks) for unit, lacks in lacking]
        self._search([unit for unit, _ in lacking], floors)
        lost = [(unit, best) for (unit, _), best in zip(lacking, own, strict=True) if not unit.best]
        self._put_in(lost)
        left = [unit for unit, _ in lost if not unit.best]
        self._search(left, [-math.inf] * len(left))

    def _lacking(self, unit: Unit) -> list[Phrase]:
        """The phrases that the worst of a unit's translations lacks."""
        texts = self.translator.target.decode([hypothesis.tokens for hypothesis in unit.best])
        return max((missing(unit.phrases, text) for text in texts), key=len)

    def _floor(self, unit: Unit, lacks: Sequence[Phrase]) -> float:
        """The log-probability below which hypotheses are dropped and the phrases put in by alignment; that cannot be
        done in parts of sentences and in n-best lists."""
        if not unit.sentence or self.options.nbest > 1:
            return -math.inf
        return unit.best[0].log_probability - FOREIGN * len(lacks)

    def _search(self, units: Sequence[Unit], floors: Sequence[float]) -> None:
        target = self.translator.target
        for unit, floor in zip(units, floors, strict=True):
            unit.tracker = Tracker(unit.phrases, self.translator.spelling, target.bos, unit.length, unit.breaks, floor)
        for batch in batches(units, self.options.beam, self.options.batch_tokens):
            trackers = [unit.tracker for unit in batch if unit.tracker is not None]
            constraints = Constraints(trackers, target.eos, self.options.beam, self.translator.forbidden)
            self.translator.search(batch, self.rule, self.options, constraints)
        for unit in units:
            unit.tracker = None  # it takes much memory

    def _put_in(self, lost: Sequence[tuple[Unit, Hypothesis]]) -> None:
        """Puts the phrases into the units' own translations where alignment finds a place for them."""
        target = self.translator.target
        texts = target.decode([own.tokens for _, own in lost])
        pairs = [(unit.sentence, text) for (unit, _), text in zip(lost, texts, strict=True)]
        for (unit, own), text, links in zip(lost, texts, align(self.translator, pairs), strict=True):
            changed = substitute(text, links, unit.phrases)
            if changed is not None:
                unit.best = [replace(own, tokens=tuple(target.encode([changed])[0]))]
                unit.text = changed  # the pieces may spell a normalised form of it


def substitute(translation: str, links: Links, phrases: Sequence[Phrase]) -> str | None:
    """The translation with all phrases put in; None if there is no place for one of them."""
    changes: list[tuple[Span, str]] = []
    for phrase in phrases:
        linked = sorted({to for of, to in links if _overlap(of, phrase.at)})
        begin, end = _longest_run([word for word in linked if in_word(translation[word[0]])], translation)
        if begin == end:
            continue
        first = not any(character.isalnum() for character in translation[:begin])
        text = with_capital(phrase.text) if first else phrase.text
        if translation[begin:end] != text and not any(_overlap((begin, end), place) for place, _ in changes):
            changes.append(((begin, end), text))
    for (begin, end), text in sorted(changes, reverse=True):
        translation = translation[:begin] + text + translation[end:]
    return None if missing(phrases, translation) else translation


def _overlap(one: Span, other: Span) -> bool:
    return one[0] < other[1] and other[0] < one[1]


def _longest_run(words: Sequence[Span], text: str) -> Span:
    """The longest run of these words with at most a space or a hyphen between them; an empty span for no words."""
    best = run = (0, 0)
    for begin, end in words:
        run = (run[0], end) if run[1] and text[run[1] : begin] in ("", " ", "-") else (begin, end)
        best = max(best, run, key=lambda span: span[1] - span[0])
    return best


# ---- Which terms were met in a run ----


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
        """Counts the terms of a translated sentence, and keeps those that its translation lacks."""
        self.found += found
        self.unmet += [UnmetTerm(document, sentence, translation, each.source, each.text) for each in unmet]

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)

    def take(self) -> dict[str, Any]:
        """What was noted so far, for JSON; then starts over."""
        noted = self.as_dict()
        self.found, self.unmet = 0, []
        return noted

    def give(self, noted: Mapping[str, Any]) -> None:
        """Adds what `take` gave, here or in another run."""
        self.found += noted["found"]
        self.unmet += [UnmetTerm(**term) for term in noted["unmet"]]

    def summary(self) -> str:
        return f"glossary: {self.found - len(self.unmet):,} of {self.found:,} terms met"
