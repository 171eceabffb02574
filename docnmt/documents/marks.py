"""Where marks go in a translation: to the words that translate the words they were at.

Words are linked by an alignment or, where there is none, by their relative position. Every mark comes out once, the
first of a pair before the second, and what was inside a pair is inside it again.
"""

from __future__ import annotations

import functools
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import accumulate

from docnmt.documents.inline import partners
from docnmt.documents.placeholders import find
from docnmt.documents.segment import Mark, Span
from docnmt.text.scripts import in_word, unspaced

Links = Sequence[tuple[Span, Span]]  # a word of the source and one of the translation, as characters


def project(source: str, target: str, marks: Sequence[Mark], links: Links = ()) -> list[Mark]:
    """The marks of a sentence in its translation. There may be only one of a pair: the other one is then in another
    sentence."""
    if source == target or not marks:
        return list(marks)
    words = _Projection(source, target, links)
    if not words.here or not words.there:
        return [replace(mark, at=len(target) if mark.at else 0) for mark in marks]
    pairs = partners(marks)
    around = _enclosing(marks, pairs)
    places = [0] * len(marks)
    for n, mark in enumerate(marks):
        if not mark.pair:
            places[n] = words.point(mark.at)
        elif n not in pairs:
            places[n] = words.end_of_first(mark.at) if mark.closing else words.start_of_last(mark.at)
        elif not mark.closing:
            places[n], places[pairs[n]] = words.span(mark.at, marks[pairs[n]].at)
    _keep_inside(marks, places, pairs, around)
    order = _order(marks, places, pairs, around)
    numbers = sorted(range(len(marks)), key=order.__getitem__)
    return [replace(marks[n], at=places[n]) for n in numbers]


def words_of(text: str) -> list[Span]:
    """Runs of letters and digits; all other characters but spaces, and those of scripts without spaces, one by one.
    A placeholder is one word: no mark may go inside it."""
    spans: list[Span] = []
    open_run = False
    whole = dict(find(text))
    until = 0
    for at, character in enumerate(text):
        if at in whole:
            until = whole[at]
            spans.append((at, until))
            open_run = False
        if at < until:
            continue
        if character.isspace():
            open_run = False
        elif in_word(character) and not unspaced(character):
            if open_run:
                spans[-1] = (spans[-1][0], at + 1)
            else:
                spans.append((at, at + 1))
            open_run = True
        else:
            spans.append((at, at + 1))
            open_run = False
    return spans


class _Projection:
    """From places in a sentence to places in its translation."""

    def __init__(self, source: str, target: str, links: Links):
        self.source, self.target = source, target
        self.here, self.there = words_of(source), words_of(target)
        self.ends, self.starts = [end for _, end in self.here], [start for start, _ in self.here]
        self.links: list[list[int]] = [[] for _ in self.here]  # for each word those of the translation
        self._range = functools.cache(self._best_range)  # hundreds of marks may be at the same words
        if self.here and self.there:
            for one, other in links:
                reached = _overlapping(self.there, *other)
                for word in _overlapping(self.here, *one):
                    self.links[word] += reached
            if not any(self.links):
                self.links = [[self._level(word)] for word in range(len(self.here))]

    def point(self, at: int) -> int:
        """A mark that stands alone stays after the word it directly follows, else before the next word."""
        before, after = bisect_right(self.ends, at) - 1, bisect_left(self.starts, at)
        if before + 1 < after:  # inside a word: after it
            return self._range(before + 1, after)[1]
        if before < 0:
            return 0
        if after == len(self.here):
            return len(self.target)
        behind = self.ends[before] == at and not (self._is_mark(before) and self.starts[after] == at)
        return self._range(before, before + 1)[1] if behind else self._range(after, after + 1)[0]

    def span(self, start: int, end: int) -> Span:
        inside = _overlapping(self.here, start, end)
        if not inside:
            at = self.point(start)
            return at, at
        return self._range(inside[0], inside[-1] + 1)

    def start_of_last(self, at: int) -> int:
        """For a mark that opens here and closes in a later sentence."""
        first = bisect_right(self.ends, at)
        if first == 0:
            return 0
        taken = _heaviest(reversed(self._weights(first, len(self.here))))
        return self.there[-taken][0] if taken else len(self.target)

    def end_of_first(self, at: int) -> int:
        """For a mark that closes here and opened in an earlier sentence."""
        last = bisect_left(self.starts, at)
        if last == len(self.here):
            return len(self.target)
        taken = _heaviest(self._weights(0, last))
        return self.there[taken - 1][1] if taken else 0

    def _best_range(self, first: int, last: int) -> Span:
        """The run of words in the translation that fits the words `first` up to `last` best: with most links
        from them and fewest from others."""
        outside = [*range(first), *range(last, len(self.here))]
        if all(self._is_mark(word) for word in outside):
            whole = self._all_but_marks(first, last)
            if whole is not None:
                return whole
        weights = self._weights(first, last)
        best, chosen = 0, (0, 0)
        total, begin = 0, 0
        for word, weight in enumerate(weights):
            if total <= 0:
                total, begin = 0, word
            total += weight
            if total > best:
                best, chosen = total, (begin, word)
        if not best:  # no links, or others have more
            chosen = self._level(first), max(self._level(first), self._level(last - 1))
        return self.there[chosen[0]][0], self.there[chosen[1]][1]

    def _all_but_marks(self, first: int, last: int) -> Span | None:
        """What covers all words covers all words again, with the punctuation at the ends if it covered that."""
        if last - first == len(self.here):
            return 0, len(self.target)
        spoken = [span for span in self.there if not _is_mark(self.target, span)]
        if not spoken or all(self._is_mark(word) for word in range(first, last)):
            return None
        return (
            0 if first == 0 else spoken[0][0],
            len(self.target) if last == len(self.here) else spoken[-1][1],
        )

    def _weights(self, first: int, last: int) -> list[int]:
        weights = [0] * len(self.there)
        for word, reached in enumerate(self.links):
            for other in reached:
                weights[other] += 1 if first <= word < last else -1
        return weights

    def _level(self, word: int) -> int:
        """The word at the same relative position in the translation."""
        start, end = self.here[word]
        centre = (start + end) / 2 / len(self.source) * len(self.target)
        return max(0, bisect_right(self.there, (centre, len(self.target))) - 1)

    def _is_mark(self, word: int) -> bool:
        return _is_mark(self.source, self.here[word])


def _is_mark(text: str, word: Span) -> bool:
    return word[1] - word[0] == 1 and not in_word(text[word[0]])


def _overlapping(words: Sequence[Span], start: int, end: int) -> range:
    first = bisect_right(words, start, key=lambda span: span[1])
    return range(first, max(first, bisect_left(words, end, key=lambda span: span[0])))


def _heaviest(weights: Iterable[int]) -> int:
    """How many of the first words have the greatest total weight; 0 if that is not positive."""
    sums = list(accumulate(weights))
    most = max(sums)
    return sums.index(most) + 1 if most > 0 else 0


def _enclosing(marks: Sequence[Mark], pairs: Mapping[int, int]) -> list[int | None]:
    """For each mark the one that opens the pair around it; the same for both of a pair."""
    around: list[int | None] = []
    stack: list[int] = []
    for n, mark in enumerate(marks):
        if n in pairs and mark.closing:
            stack.pop() if stack[-1] == pairs[n] else stack.remove(pairs[n])
            around.append(around[pairs[n]])
        else:
            around.append(stack[-1] if stack else None)
            if n in pairs:
                stack.append(n)
    return around


def _keep_inside(
    marks: Sequence[Mark], places: list[int], pairs: Mapping[int, int], around: Sequence[int | None]
) -> None:
    """A pair grows to hold the pairs inside it; a mark that stands alone moves into the pair around it."""
    for n, mark in enumerate(marks):  # inner pairs close first
        outer = around[n]
        if mark.closing and n in pairs and outer is not None:
            end = pairs[outer]
            places[outer], places[end] = min(places[outer], places[pairs[n]]), max(places[end], places[n])
    for n, mark in enumerate(marks):
        outer = around[n]
        if not mark.pair and outer is not None:
            places[n] = min(max(places[n], places[outer]), places[pairs[outer]])


def _order(
    marks: Sequence[Mark], places: Sequence[int], pairs: Mapping[int, int], around: Sequence[int | None]
) -> list[tuple[int, int, int, int]]:
    """By place; at one place first what closes, inner before outer, last what opens, outer before inner. What stands
    alone, or in an empty pair, stays on the inside of the pair around it."""
    before, closes, alone, opens, behind = range(5)
    keys: list[tuple[int, int, int, int]] = []
    for n, mark in enumerate(marks):
        far = places[pairs[n]] if n in pairs else -1 if mark.closing else 1 << 62
        side, inner, outer = alone, 0, around[n]
        if mark.pair and far != places[n]:
            side, inner = (closes if mark.closing else opens), -far
        elif outer is not None:
            end = pairs[outer]
            if places[outer] == places[end]:
                side = keys[outer][1]
            elif places[end] == places[n]:
                side = before
            elif places[outer] == places[n]:
                side = behind
        keys.append((places[n], side, inner, n))
    return keys
