"""Cleaning a corpus: filters for pairs and documents, what they removed, and a report of it."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Container, Iterable, Iterator
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from typing import Any

from docnmt.base.errors import DocnmtError, OnBad
from docnmt.base.lines import CorpusFiles
from docnmt.base.report import Table, columns
from docnmt.corpus.inspect import UNSPACED, count_words, text_hash
from docnmt.corpus.read import read_corpus
from docnmt.document import GAP, ParallelDocument
from docnmt.text.scripts import script_of

# ---- What filters look at in a text: its size, its scripts, its letters and its numbers ----

CHARACTERS_A_WORD = 1.7  # in Chinese and similar scripts, per English word
SHORT = 8  # words: shorter sentences often differ in length for good reasons

_NUMBER = re.compile(r"\d+")
_THOUSANDS = re.compile(r"(?<=\d)[.,'’\u00a0\u2009\u202f ](?=\d{3}(?!\d))")
_NUMERALS = re.compile("[一二三四五六七八九十百千万亿两〇]")
_WORDS = re.compile(rf"{UNSPACED.pattern}|[^\W\d_]+")


def size(text: str) -> float:
    """The number of words, comparable between languages with and without spaces."""
    if text.isascii():
        return len(text.split())
    unspaced = len(UNSPACED.findall(text))
    return unspaced / CHARACTERS_A_WORD + count_words(text) - unspaced


def similar_size(left: str, right: str, most: float) -> bool:
    """Whether neither text is more than `most` times as long as the other; short ones may differ twice as much."""
    sizes = max(1.0, size(left)), max(1.0, size(right))
    if min(sizes) < SHORT:
        most *= 2
    return max(sizes) <= most * min(sizes)


def numbers(text: str) -> Counter[str]:
    """The numbers of a text, however thousands and decimals are marked."""
    return Counter(found.lstrip("0") or "0" for found in _NUMBER.findall(_THOUSANDS.sub("", text)))


def word_key(text: str) -> tuple[str, ...]:
    """The words of a text without case, numbers and marks; characters where there are no spaces."""
    return tuple(_WORDS.findall(text.casefold()))


# ---- The filters for a sentence pair ----

# Each returns True for a pair to be removed, and sees only that pair.

Filter = Callable[[str, str], bool]

# In the order in which they run: a pair is counted under the first filter that it fails.
EXPLAINED = {
    "garbage": "control or private characters, signs of a broken encoding, or too few letters",
    "markup": "HTML tags or entities left in the text",
    "length": "more words on one side than allowed",
    "ratio": "one side many times as long as the other",
    "script": "not written in the letters of its language",
    "copy": "the target repeats the source, or nearly",
    "numbers": "numbers on one side that the other does not have",
    "repeated pair": "the same pair occurred before (a short one: more often than allowed)",
    "repeated document": "the whole document occurred before",
}

_BROKEN = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\ufffd-\uffff\ue000-\uf8ff]|Ã[\x80-\xbf]|â€|\\\\[nt](?=[A-Z ])"
)
_MARKUP = re.compile(
    r"</?(?:a|b|i|u|p|br|hr|div|span|em|strong|font|table|t[rdh]|[uo]l|li|h[1-6]|img|code|pre|tt|su[bp]|center|big|small)"
    r"(?:\s[^<>]*)?/?>|&(?:amp|lt|gt|quot|apos|nbsp|#\d+|#x[0-9a-f]+);",
    re.IGNORECASE,
)
_FEWEST_LETTERS = 0.5
_SMALL = 12  # numbers up to here are often written as words
_SHARED = 0.75  # the share of equal words from which a target is a copy with a word or two changed
_FOREIGN = 4  # words in another script, such as names, that any text may have


@dataclass(frozen=True)
class Limits:
    words: int = 200  # per side
    ratio: float = 4.0
    repeats: int = 5  # of a pair with fewer than four words; longer pairs are kept once


def pair_filters(languages: tuple[str, str], limits: Limits) -> dict[str, Filter]:
    """All filters by name. Scripts are checked if the languages are known."""
    found: dict[str, Filter] = {
        "garbage": _garbage,
        "markup": _markup,
        "length": lambda source, target: max(size(source), size(target)) > limits.words,
        "ratio": lambda source, target: not similar_size(source, target, limits.ratio),
        "copy": _copy,
        "numbers": _numbers_disagree,
    }
    if all(languages):
        found["script"] = partial(_wrong_script, tuple(map(script_of, languages)))
    return {name: found[name] for name in EXPLAINED if name in found}


def _garbage(source: str, target: str) -> bool:
    for text in (source, target):
        letters = sum(map(str.isalpha, text)) / max(1, len("".join(text.split())))
        if _BROKEN.search(text) or letters < _FEWEST_LETTERS:
            return True
    return False


def _markup(source: str, target: str) -> bool:
    return any(_MARKUP.search(text) for text in (source, target))


def _wrong_script(scripts: tuple[re.Pattern[str], ...], source: str, target: str) -> bool:
    for text, script in zip((source, target), scripts, strict=True):
        words = _WORDS.findall(text)  # a character of a script without spaces counts as a word
        inside = sum(script.match(word) is not None for word in words)
        outside = len(words) - inside
        if not inside or (outside > _FOREIGN and outside > inside):
            return True
    return False


def _copy(source: str, target: str) -> bool:
    left, right = source.casefold().split(), target.casefold().split()
    if left == right:
        return True
    shared = (Counter(left) & Counter(right)).total()
    return len(left) >= 4 and shared >= _SHARED * max(len(left), len(right))


def _numbers_disagree(source: str, target: str) -> bool:
    """A small number, or one that may be written in Chinese characters, may be missing on one side."""
    left, right = numbers(source), numbers(target)
    only_left, only_right = left - right, right - left
    if only_left and only_right:
        return True
    large = any(len(n) > 2 or int(n) > _SMALL for n in (only_left or only_right))
    return large and not _NUMERALS.search(source + target)


# ---- Several corpora read as one ----


def read_all(corpora: Iterable[CorpusFiles], languages: tuple[str, str], on_bad: OnBad) -> Iterator[ParallelDocument]:
    """The documents of all corpora. An id that an earlier corpus also has is prefixed with the name of its corpus."""
    seen: set[str] = set()
    for corpus in corpora:
        for document in read_corpus(corpus, languages=languages, on_bad=on_bad):
            name = document.id if document.id not in seen else f"{corpus.title}/{document.id}"
            if name in seen:
                raise DocnmtError(f"{corpus}: document {name} occurs twice\n  Rename one of the two, or its file.")
            seen.add(name)
            yield replace(document, id=name)


# ---- Running the filters over documents ----

# A removed pair leaves a gap, so that sentences that were apart do not become neighbours.

EXAMPLES = 3
SHORT_PAIR = 4  # words: labels and titles, which may well repeat in a corpus


@dataclass(frozen=True)
class Removed:
    """A removed pair."""

    document: str
    position: int
    source: str
    target: str


@dataclass
class Counts:
    """How much was read, what was removed and why, and how much is left."""

    documents: int = 0
    pairs: int = 0
    gaps: int = 0  # that existed before cleaning
    documents_left: int = 0
    pairs_left: int = 0
    removed: dict[str, int] = field(default_factory=dict)  # filter -> pairs
    examples: dict[str, list[Removed]] = field(default_factory=dict)


class Cleaner:
    """Filters a stream of documents, and remembers hashes of pairs and documents to find repetitions."""

    def __init__(
        self, languages: tuple[str, str] = ("", ""), limits: Limits | None = None, without: Iterable[str] = ()
    ):
        off = set(without)
        if unknown := sorted(off - EXPLAINED.keys()):
            raise DocnmtError(f"unknown filter {unknown[0]!r}\n  Choose from {', '.join(EXPLAINED)}.")
        self.limits = limits or Limits()
        filters = {**pair_filters(languages, self.limits), "repeated pair": self._is_repeated_pair}
        self.filters = {name: removes for name, removes in filters.items() if name not in off}
        self.active = tuple(name for name in EXPLAINED if name in {*self.filters, "repeated document"} - off)
        self.counts = Counts(removed=dict.fromkeys(self.active, 0))
        self._pairs: Counter[bytes] = Counter()
        self._documents: set[bytes] = set()

    def clean(self, documents: Iterable[ParallelDocument]) -> Iterator[ParallelDocument]:
        """The documents that still have pairs, with gaps in place of removed ones."""
        counts = self.counts
        for document in documents:
            filled = document.filled
            counts.documents += 1
            counts.pairs += len(filled)
            counts.gaps += len(document) - len(filled)
            repeated = "repeated document" in self.active and self._is_repeated(document)
            kept = set()
            for i in filled:
                source, target = document.source[i], document.target[i]
                failed = (name for name, removes in self.filters.items() if removes(source, target))
                reason = "repeated document" if repeated else next(failed, "")
                if not reason:
                    kept.add(i)
                    continue
                counts.removed[reason] += 1
                shown = counts.examples.setdefault(reason, [])
                if len(shown) < EXAMPLES:
                    shown.append(Removed(document.id, i, source, target))
            if kept:
                counts.documents_left += 1
                counts.pairs_left += len(kept)
                yield with_gaps(document, kept)

    def _is_repeated(self, document: ParallelDocument) -> bool:
        known = len(self._documents)
        self._documents.add(text_hash("\n".join((*document.source, *document.target))))
        return len(self._documents) == known

    def _is_repeated_pair(self, source: str, target: str) -> bool:
        key = text_hash(f"{source}\n{target}")
        self._pairs[key] += 1
        short = min(size(source), size(target)) < SHORT_PAIR
        return self._pairs[key] > (self.limits.repeats if short else 1)


def with_gaps(document: ParallelDocument, kept: Container[int]) -> ParallelDocument:
    """The document with only the pairs at these positions; the others become gaps."""
    sides = document.source, document.target
    source, target = (tuple(text if i in kept else GAP for i, text in enumerate(side)) for side in sides)
    return ParallelDocument(document.id, source, target)


# ---- What cleaning did: for the terminal, as Markdown and as JSON ----

_LONGEST = 160  # characters of an example


def table(cleaner: Cleaner) -> Table:
    counts = cleaner.counts
    made = Table("Removed", columns("filter", "what it removes", "pairs", text=2))
    for name in cleaner.active:
        made.add(name, EXPLAINED[name], f"{counts.removed[name]:,}")
    share = counts.pairs_left / counts.pairs if counts.pairs else 0.0
    made.notes.append(
        f"{counts.pairs:,} pairs in {counts.documents:,} documents were read; {counts.pairs_left:,} ({share:.1%}) in "
        f"{counts.documents_left:,} are left. A pair counts under the first filter that it fails; it leaves a gap."
    )
    return made


def examples(cleaner: Cleaner) -> Table:
    made = Table("Examples", columns("filter", "where", "pair", text=3))
    for name in cleaner.active:
        for number, removed in enumerate(cleaner.counts.examples.get(name, ())):
            texts = f"{_short(removed.source)} | {_short(removed.target)}"
            made.add("" if number else name, f"{removed.document}, {removed.position + 1}", texts, rule=not number)
    return made


def _short(text: str) -> str:
    shown = "".join(character if character.isprintable() else "\ufffd" for character in text)
    return shown if len(shown) <= _LONGEST else shown[: _LONGEST - 1] + "…"


def markdown(cleaner: Cleaner) -> str:
    return f"{table(cleaner).markdown()}\n{examples(cleaner).markdown()}"


def as_dict(cleaner: Cleaner) -> dict[str, Any]:
    return {"limits": asdict(cleaner.limits), **asdict(cleaner.counts)}
