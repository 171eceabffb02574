"""Terms to ask for, drawn from a test set, and the references that have them: for `benchmarks/terms.py`.

One or two content words whose translation stands in the reference, as model 1 of Brown et al. (1993), learnt in both
directions, has it. So they do not depend on the attention that substitution by alignment relies on.
"""

from __future__ import annotations

import random
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from docnmt.base.progress import Progress
from docnmt.decoding.phrases import Phrase
from docnmt.decoding.scoring import Span
from docnmt.document import Document, ParallelDocument
from docnmt.engine.shortlist import Side, TrainingPairs, learn_lexicon

WORD = re.compile(r"[^\W\d_]+")
PROBABLE = 0.1  # a translation in both directions
COMMON = 0.02  # a word in more than this share of the pairs is no content word
MOST = 2  # terms a sentence
BEFORE_NOUNS = frozenset(
    WORD.findall("le la les l un une des du au aux ce cet cette ces mon ma mes ton ta tes son sa ses")
)


class Occurrence(NamedTuple):
    """A term in a sentence and its translation in the reference, each by its characters."""

    source: Span
    target: Span
    noun: bool


class TermFinder:
    """Finds words that are each other's translation in a sentence and its reference."""

    def __init__(self, documents: Sequence[ParallelDocument], progress: Progress):
        pairs = [pair for d in documents for pair in zip(d.source, d.target, strict=True) if all(pair)]
        sides, self.ids, self.common = [], [], []
        for texts in zip(*pairs, strict=True):
            sentences = [WORD.findall(text.lower()) for text in texts]
            counts = Counter(word for sentence in sentences for word in set(sentence))
            ids = {word: n for n, word in enumerate(counts)}
            sides.append(Side.of([[ids[word] for word in sentence] for sentence in sentences]))
            self.ids.append(ids)
            self.common.append({word for word, count in counts.items() if count > COMMON * len(pairs)})
        self.lexicons: list[dict[tuple[int, int], float]] = []
        for one, other in (sides, sides[::-1]):
            found = learn_lexicon(TrainingPairs(one, other, len(pairs)), progress, least=PROBABLE)
            entries = zip(found.source.tolist(), found.target.tolist(), strict=True)
            self.lexicons.append(dict(zip(entries, found.probability.tolist(), strict=True)))

    def find(self, source: str, target: str) -> Iterator[Occurrence]:
        """Runs of one and two words that stand side by side in both languages, in either order."""
        sides = [list(WORD.finditer(text)) for text in (source, target)]
        links = self._links([[word.group().lower() for word in side] for side in sides])
        for first in range(len(sides[0])):
            for count in (1, 2):
                linked = sorted(links.get(f, -1) for f in range(first, first + count))
                if linked[0] < 0 or linked[-1] - linked[0] != count - 1:
                    continue
                at = sides[0][first].start(), sides[0][first + count - 1].end()
                to = sides[1][linked[0]].start(), sides[1][linked[-1]].end()
                if all(" ".join(WORD.findall(text)) == text for text in (source[slice(*at)], target[slice(*to)])):
                    named = first > 0 and source[at[0]].isupper() and target[to[0]].isupper()
                    after = first > 0 and sides[0][first - 1].group().lower() in BEFORE_NOUNS
                    yield Occurrence(at, to, named or after)

    def _links(self, words: Sequence[Sequence[str]]) -> dict[int, int]:
        """Content words that stand there once and are each other's most probable translation."""
        places = [
            {self.ids[side][w]: n for n, w in enumerate(words[side]) if self._is_content(side, w, words[side])}
            for side in (0, 1)
        ]
        p = {
            (f, e): there * back
            for f in places[0]
            for e in places[1]
            if (there := self.lexicons[0].get((f, e))) and (back := self.lexicons[1].get((e, f)))
        }
        best = [{}, {}]  # type: list[dict[int, tuple[int, int]]]
        for pair in sorted(p, key=p.__getitem__):
            best[0][pair[0]] = best[1][pair[1]] = pair
        return {places[0][f]: places[1][e] for f, e in best[0].values() if best[1][e] == (f, e)}

    def _is_content(self, side: int, word: str, words: Sequence[str]) -> bool:
        return len(word) > 3 and word not in self.common[side] and words.count(word) == 1


def invented_name(term: str, seed: int) -> str:
    """The same one for a term everywhere."""
    draw = random.Random(f"{seed} {term.lower()}")
    syllables = (draw.choice("bdfgklmnprstvz") + draw.choice("aeiou") for _ in range(draw.randint(2, 3)))
    return ("".join(syllables) + draw.choice("lnrskx")).capitalize()


class Task(NamedTuple):
    """Documents, what each of their translations is to contain, and the references that have it."""

    documents: list[Document]
    phrases: list[list[tuple[Phrase, ...]]]
    references: list[str]


def draw(test: Sequence[ParallelDocument], finder: TermFinder, nouns: bool, invented: bool, seed: int) -> Task:
    asked: list[list[tuple[Phrase, ...]]] = []
    references: list[str] = []
    for document in test:
        asked.append([])
        for source, target in zip(document.source, document.target, strict=True):
            shuffled = [each for each in finder.find(source, target) if each.noun or not nouns]
            random.Random(f"{seed} {source}").shuffle(shuffled)
            chosen: list[Occurrence] = []
            for each in shuffled:
                apart = all(each.source[1] <= c.source[0] or c.source[1] <= each.source[0] for c in chosen)
                if apart and len(chosen) < MOST:
                    chosen.append(each)
            phrases, reference = [], target
            for each in sorted(chosen, key=lambda each: -each.target[0]):  # from the end, as places before it stay
                term, wanted = source[slice(*each.source)], target[slice(*each.target)]
                if invented:
                    wanted = invented_name(term, seed)
                    reference = reference[: each.target[0]] + wanted + reference[each.target[1] :]
                phrases.append(Phrase(wanted, term, each.source))
            asked[-1].append(tuple(phrases))
            references.append(reference)
    return Task([Document(d.id, d.source) for d in test], asked, references)
