"""The demo corpus: documents made of cues and the sentences that need them, in three splits; as files, and back."""

from __future__ import annotations

import json
import random
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from docnmt.base.errors import BadInput, DocnmtError
from docnmt.base.files import write_atomically, write_json_lines
from docnmt.corpus.rows import write_text, write_tsv
from docnmt.demo.phenomena import SPLITS, Author, Sentence
from docnmt.document import ParallelDocument

PHENOMENA = ("sense", "pronoun", "possessive", "cohesion", "emotion")


@dataclass(frozen=True, slots=True)
class ContextWord:
    """One context-dependent word of one target sentence."""

    position: int  # of the sentence in its document
    phenomenon: str  # one of PHENOMENA
    distance: int  # how many sentences back the cue is: 1 or 2
    right: str  # as it stands in the target: "lawyer", "He"
    wrong: tuple[str, ...]  # what would fit as well without context: ("avocado",)


@dataclass(frozen=True, slots=True)
class DemoDocument:
    """A document with its context-dependent words."""

    document: ParallelDocument
    words: tuple[ContextWord, ...]
    wrong_targets: tuple[tuple[str, ...], ...]  # for each word, the target sentence with each wrong word in its place
    frames: tuple[str, ...]  # for each sentence, the id of its frame


# ---- documents made of cues and the sentences that need them ----

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
    draft = _Draft(author)
    if author.rng.random() < 0.2:
        draft.add_plain(nobody=False)
    for phenomenon in author.rng.choices(tuple(_SHARES), tuple(_SHARES.values()), k=draft.length):
        draft.add(phenomenon)
    while len(draft.sentences) < _FEWEST_SENTENCES:
        draft.add_plain(nobody=False)
    source, target, frames = zip(*((s.source, s.target, s.frame) for s in draft.sentences), strict=True)
    document = ParallelDocument(document_id, source, target)
    return DemoDocument(document, tuple(draft.words), tuple(draft.wrong_targets), frames)


class _Draft:
    """A document in the making."""

    def __init__(self, author: Author) -> None:
        self.author, self.length = author, author.rng.randint(_FEWEST_SENTENCES, _MOST_SENTENCES)
        author.new_document()
        self.sentences: list[Sentence] = []
        # A man named two sentences back could be another "he": then an impersonal sentence must come between.
        self.last_names_somebody = False
        self.words: list[ContextWord] = []
        self.wrong_targets: list[tuple[str, ...]] = []

    def add_plain(self, *, nobody: bool) -> None:
        self.last_names_somebody = not nobody
        self.sentences.append(self.author.plain(nobody=nobody))

    def add(self, phenomenon: str) -> None:
        """Add what shows the phenomenon, if there is room for it."""
        cues = 2 if phenomenon == "cohesion" else 1
        distances = [1 if self.author.rng.random() < _NEAR else 2 for _ in range(cues)]
        apart = phenomenon in _REFERRING and distances[0] == 1 and self.last_names_somebody
        if self.length - len(self.sentences) < apart + sum(distances) + cues:
            return
        if apart:
            self.add_plain(nobody=True)
        for distance in distances:
            self._add_unit(phenomenon, distance)

    def _add_unit(self, phenomenon: str, distance: int) -> None:
        unit = getattr(self.author, phenomenon)()
        self.sentences.append(unit.cue)
        if distance == 2:
            self.add_plain(nobody=True)
        wrong = tuple(reading.word for reading in unit.wrong)
        self.words.append(ContextWord(len(self.sentences), phenomenon, distance, unit.right.word, wrong))
        self.wrong_targets.append(tuple(reading.sentence.target for reading in unit.wrong))
        self.sentences.append(unit.right.sentence)
        self.last_names_somebody = phenomenon not in _REFERRING


# ---- the corpus as files, and back ----

_README = """\
A demo corpus, French to English, made by docnmt out of its own words and grammar
({documents} documents, seed {seed}).

train.tsv, dev.tsv, test.tsv   document id TAB source sentence TAB target sentence, one sentence per line
train.fr, train.en, ...        the same as plain text, with an empty line between documents
context-words.jsonl            dev and test: the target words that only the sentences before decide, with the
                               words that would fit as well without them
contrastive.jsonl              test: for each such word the right target sentence and the wrong ones, with the
                               document around them

phenomenon   sense, pronoun, possessive, cohesion or emotion
distance     how many sentences back the deciding sentence is: 1 or 2
position     of the sentence in its document, counted from 0

Train, dev and test share no document and no sentence frame (a sentence pattern with its slots open).
"""


def write_demo_corpus(folder: Path, documents: int, seed: int) -> None:
    """Generate the corpus and write it into `folder`, each file whole or not at all."""
    corpus = generate(documents, seed)
    folder.mkdir(parents=True, exist_ok=True)
    for split, demo in corpus.items():
        parallel = [d.document for d in demo]
        write_tsv(str(folder / f"{split}.tsv"), parallel)
        write_text(str(folder / f"{split}.fr"), str(folder / f"{split}.en"), parallel)
    write_json_lines(folder / "context-words.jsonl", _context_words((*corpus["dev"], *corpus["test"])))
    write_json_lines(folder / "contrastive.jsonl", _contrastive(corpus["test"]))
    with write_atomically(folder / "README.txt") as file:
        file.write(_README.format(documents=documents, seed=seed))


def read_context_words(path: Path) -> dict[tuple[str, int], list[ContextWord]]:
    """The words of `context-words.jsonl`, by document id and sentence position."""
    words: dict[tuple[str, int], list[ContextWord]] = {}
    with path.open(encoding="utf-8") as lines:
        for number, line in enumerate(lines, start=1):
            try:
                row = json.loads(line)
                word = ContextWord(
                    int(row["position"]),
                    str(row["phenomenon"]),
                    int(row["distance"]),
                    str(row["right"]),
                    tuple(row["wrong"]),
                )
                key = (str(row["document"]), word.position)
            except (ValueError, KeyError, TypeError) as error:
                raise BadInput(
                    "bad context word",
                    f"not a context word: {line.strip()[:80]!r} ({error!r})",
                    "Each line must be a JSON object with document, position, phenomenon, distance, right and wrong.",
                    file=str(path),
                    line=number,
                ) from error
            words.setdefault(key, []).append(word)
    return words


def _context_words(demo: Iterable[DemoDocument]) -> Iterator[dict[str, Any]]:
    for d in demo:
        for word in d.words:
            yield {"document": d.document.id, **asdict(word)}


def _contrastive(demo: Iterable[DemoDocument]) -> Iterator[dict[str, Any]]:
    for d in demo:
        source, target = d.document.source, d.document.target
        for word, wrong_targets in zip(d.words, d.wrong_targets, strict=True):
            at = word.position
            yield {
                "document": d.document.id,
                "position": at,
                "phenomenon": word.phenomenon,
                "distance": word.distance,
                "previous": source[:at],
                "following": source[at + 1 :],
                "source": source[at],
                "right": target[at],
                "wrong": wrong_targets,
                "previous_target": target[:at],
            }
