"""The demo corpus as files, and back."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from docnmt.base.errors import BadInput
from docnmt.base.files import write_atomically
from docnmt.corpora.demo.generate import generate
from docnmt.corpora.demo.items import ContextWord, DemoDocument
from docnmt.corpus.rows import write_text, write_tsv

_README = """\
A demo corpus, French to English, made by docnmt out of its own words and grammar
({documents} documents, seed {seed}).

train.tsv, dev.tsv, test.tsv   document id TAB source sentence TAB target sentence, one sentence a line
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
    _write_rows(folder / "context-words.jsonl", _context_words((*corpus["dev"], *corpus["test"])))
    _write_rows(folder / "contrastive.jsonl", _contrastive(corpus["test"]))
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
                    "Each line holds a JSON object with document, position, phenomenon, distance, right and wrong.",
                    file=str(path),
                    line=number,
                ) from error
            words.setdefault(key, []).append(word)
    return words


def _described(d: DemoDocument, word: ContextWord) -> dict[str, Any]:
    return {
        "document": d.document.id,
        "position": word.position,
        "phenomenon": word.phenomenon,
        "distance": word.distance,
    }


def _context_words(demo: Iterable[DemoDocument]) -> Iterator[dict[str, Any]]:
    for d in demo:
        for word in d.words:
            yield {**_described(d, word), "right": word.right, "wrong": list(word.wrong)}


def _contrastive(demo: Iterable[DemoDocument]) -> Iterator[dict[str, Any]]:
    for d in demo:
        source, target = d.document.source, d.document.target
        for word, wrong_targets in zip(d.words, d.wrong_targets, strict=True):
            at = word.position
            yield {
                **_described(d, word),
                "previous": list(source[:at]),
                "following": list(source[at + 1 :]),
                "source": source[at],
                "right": target[at],
                "wrong": list(wrong_targets),
                "previous_target": list(target[:at]),
            }


def _write_rows(path: Path, rows: Iterable[dict[str, Any]]) -> None:
    with write_atomically(path) as file:
        file.writelines(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
