"""Documents out of cues and the sentences that need them, in three splits that share no sentence frame."""

from __future__ import annotations

import random

from docnmt.base.errors import DocnmtError
from docnmt.corpora.demo.grammar import SPLITS, Sentence
from docnmt.corpora.demo.items import ContextWord, DemoDocument
from docnmt.corpora.demo.phenomena import Author, Setting, Unit
from docnmt.document import ParallelDocument

_SMALLEST_SPLIT = 20
_MOST_SENTENCES, _FEWEST_SENTENCES = 10, 4
# How often each is tried. Cohesion comes in pairs (a term is kept), so it is drawn half as often as it occurs.
_SHARES = {"sense": 32, "pronoun": 24, "possessive": 22, "cohesion": 14, "emotion": 16}
_NEAR = 0.55  # the share of cues tried in the sentence just before; more of these find room
_REFERRING = ("pronoun", "possessive")


def generate(documents: int, seed: int) -> dict[str, list[DemoDocument]]:
    """The demo corpus, `documents` in all: some 90 % train, the rest dev and test. The same seed, the same corpus."""
    if documents < 3 * _SMALLEST_SPLIT:
        raise DocnmtError(
            f"a demo corpus of {documents} documents is too small to split\n"
            f"  Ask for {3 * _SMALLEST_SPLIT} documents or more."
        )
    dev, test = max(_SMALLEST_SPLIT, documents // 30), max(_SMALLEST_SPLIT, documents // 15)
    counts = {"train": documents - dev - test, "dev": dev, "test": test}
    corpus = {}
    for split in SPLITS:
        # A string seed goes through SHA-512, not through hash(): the same in every process.
        author = Author(split, random.Random(f"docnmt demo {seed} {split}"))
        corpus[split] = [_document(author, f"{split}-{number:05d}") for number in range(counts[split])]
    return corpus


def _document(author: Author, document_id: str) -> DemoDocument:
    rng = author.rng
    length = rng.randint(_FEWEST_SENTENCES, _MOST_SENTENCES)
    author.new_document()
    draft = _Draft(author, length)
    if rng.random() < 0.2:
        draft.add_plain(nobody=False)
    for phenomenon in rng.choices(tuple(_SHARES), tuple(_SHARES.values()), k=length):
        draft.add(phenomenon)
    while len(draft.sentences) < _FEWEST_SENTENCES:
        draft.add_plain(nobody=False)
    return draft.finish(document_id)


class _Draft:
    """A document in the making."""

    def __init__(self, author: Author, length: int) -> None:
        self.author, self.length = author, length
        self.sentences: list[Sentence] = []
        # A man named two sentences back could be another "he": then an impersonal sentence must come between.
        self.last_names_somebody = False
        self.setting: Setting | None = None
        self.words: list[ContextWord] = []
        self.wrong_targets: list[tuple[str, ...]] = []

    @property
    def room(self) -> int:
        return self.length - len(self.sentences)

    def add_plain(self, *, nobody: bool) -> None:
        self.last_names_somebody = not nobody
        self.sentences.append(self.author.plain(nobody=nobody))

    def add(self, phenomenon: str) -> None:
        """Add what shows the phenomenon, if there is room for it."""
        distances = [self._distance() for _ in range(2 if phenomenon == "cohesion" else 1)]
        apart = phenomenon in _REFERRING and distances[0] == 1 and self.last_names_somebody
        if self.room < apart + sum(distance + 1 for distance in distances):
            return
        if apart:
            self.add_plain(nobody=True)
        for distance in distances:
            self._add_unit(self._unit(phenomenon), distance)

    def _distance(self) -> int:
        return 1 if self.author.rng.random() < _NEAR else 2

    def _unit(self, phenomenon: str) -> Unit:
        if phenomenon == "cohesion":
            self.setting = self.setting or self.author.new_setting()
            return self.author.cohesion(self.setting)
        writers = {
            "sense": self.author.sense,
            "pronoun": self.author.pronoun,
            "possessive": self.author.possessive,
            "emotion": self.author.emotion,
        }
        return writers[phenomenon]()

    def _add_unit(self, unit: Unit, distance: int) -> None:
        self.sentences.append(unit.cue)
        if distance == 2:
            self.add_plain(nobody=True)
        position = len(self.sentences)
        self.sentences.append(unit.right.sentence)
        wrong = tuple(reading.word for reading in unit.wrong)
        self.words.append(ContextWord(position, unit.phenomenon, distance, unit.right.word, wrong))
        self.wrong_targets.append(tuple(reading.sentence.target for reading in unit.wrong))
        self.last_names_somebody = unit.phenomenon not in _REFERRING

    def finish(self, document_id: str) -> DemoDocument:
        document = ParallelDocument(
            document_id,
            tuple(sentence.source for sentence in self.sentences),
            tuple(sentence.target for sentence in self.sentences),
        )
        frames = tuple(sentence.frame for sentence in self.sentences)
        return DemoDocument(document, tuple(self.words), tuple(self.wrong_targets), frames)
