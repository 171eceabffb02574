"""How often `docnmt corpus align` is right, on a corpus whose alignment is known.

    python benchmarks/alignment.py CORPUS --languages fr-en [--documents N] [--drop 0.1] [--shuffle]

Each document is a chapter. Its lines are cut into sentences again, on each side by itself, and aligned without what the
corpus knows. A pair is right if its two sides come from the same lines; the other figure is the share of lines that
are in right pairs. `--drop` leaves out target sentences at random, `--shuffle` puts them in another order: nothing of
that should align.
"""

from __future__ import annotations

import argparse
import random
import time

from docnmt.base.lines import CorpusFiles
from docnmt.base.progress import Progress
from docnmt.corpus.align import AlignedChapter, align_books
from docnmt.corpus.read import read_corpus
from docnmt.document import ParallelDocument
from docnmt.text.sentences import split

Sentence = tuple[str, int]  # and the line that it comes from


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("corpus")
    parser.add_argument("--languages", required=True)
    parser.add_argument("--documents", type=int, default=None)
    parser.add_argument("--drop", type=float, default=0.0)
    parser.add_argument("--shuffle", action="store_true")
    options = parser.parse_args()
    documents = list(read_corpus(CorpusFiles(path=options.corpus)))[: options.documents]
    languages = options.languages.split("-")
    generator = random.Random(1)
    sources, targets = ([sentences(d, side, languages[side]) for d in documents] for side in (0, 1))
    for chapter in targets:
        chapter[:] = [one for one in chapter if generator.random() >= options.drop]
        if options.shuffle:
            generator.shuffle(chapter)
    start = time.perf_counter()
    aligned = align_books(*([[text for text, _ in c] for c in side] for side in (sources, targets)), Progress())
    seconds = time.perf_counter() - start
    found = [judged(c, sources[c.number - 1], targets) for c in aligned]
    right, pairs, covered = (sum(column) for column in zip(*found, strict=True))
    lines = sum(len({line for _, line in chapter}) for chapter in sources)
    shares = [chapter.share for chapter in aligned]
    print(f"{len(aligned)} of {len(documents)} chapters, {sum(map(len, sources)):,} source sentences, {seconds:.0f} s")
    print(f"right: {100 * right / pairs:.2f} % of {pairs:,} pairs; {100 * covered / lines:.2f} % of {lines:,} lines")
    print(f"fit of the chapters: {100 * min(shares):.0f} to {100 * max(shares):.0f} %")


def sentences(document: ParallelDocument, side: int, language: str) -> list[Sentence]:
    lines = document.target if side else document.source
    return [(text.strip(), n) for n, line in enumerate(lines) for text in split(line, language) if text.strip()]


def judged(chapter: AlignedChapter, source: list[Sentence], targets: list[list[Sentence]]) -> tuple[int, int, int]:
    """Right pairs, pairs, lines in right pairs."""
    target = next(side for side in targets if [text for text, _ in side][:3] == chapter.target[:3])
    right, pairs = 0, 0
    covered: set[int] = set()
    for bead in chapter.beads:
        if bead.source and bead.target:
            one, other = (
                {side[i][1] for i in part if i < len(side)}
                for side, part in ((source, bead.source), (target, bead.target))
            )
            pairs += 1
            if one == other:
                right += 1
                covered |= one
    return right, pairs, len(covered)


if __name__ == "__main__":
    main()
