"""Two books side by side: the best beads, words learnt on the way, and texts that are not each other's translation."""

from __future__ import annotations

import itertools
import json
import os
import random
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from docnmt.base.errors import DocnmtError
from docnmt.base.progress import Progress
from docnmt.cli import main
from docnmt.corpus.align import align_books, good_chapters, read_book
from docnmt.corpus.align_scores import Bead, best_beads
from docnmt.text.sentences import split

SHARED = Path(os.environ.get("DOCNMT_SHARED") or Path(__file__).parents[4] / "shared")
NOVELS = SHARED / "data" / "discourse" / "novels.fr-en.bovary.tsv"
QUIET = Progress(quiet=True)

# ---- beads ----


def every_way(n: int, m: int, shapes) -> list[list[Bead]]:
    if not n and not m:
        return [[]]
    return [
        [*before, Bead(range(n - a, n), range(m - b, m))]
        for a, b in [*shapes, (1, 0), (0, 1)]
        if a <= n and b <= m
        for before in every_way(n - a, m - b, shapes)
    ]


@pytest.mark.parametrize(("n", "m"), list(itertools.product(range(5), range(4))))
def test_no_other_way_through_has_a_better_score(n, m):
    generator = np.random.default_rng([n, m])
    shapes = [(1, 1), (1, 2), (2, 1)]
    scores = {(a, b): generator.normal(size=(n - a + 1, m - b + 1)) for a, b in shapes if a <= n and b <= m}

    def score(beads: list[Bead]) -> float:
        total = 0.0
        for source, target in beads:
            shape = len(source), len(target)
            total += scores[shape][source.start, target.start] if shape in scores else (-0.7, -0.3)[shape == (0, 1)]
        return total

    found = best_beads(scores, (-0.7, -0.3), (n, m))
    assert [i for bead in found for i in bead.source] == list(range(n))
    assert [j for bead in found for j in bead.target] == list(range(m))
    assert score(found) == pytest.approx(max(map(score, every_way(n, m, shapes))))


# ---- books ----

SYLLABLES = [a + b for a in "bcdfglmnprstv" for b in ("a", "e", "i", "o", "u", "an", "er", "il")]


def words(count: int, seed: int) -> list[str]:
    generator = random.Random(seed)
    return ["".join(generator.choices(SYLLABLES, k=generator.randint(1, 3))) for _ in range(count)]


def book(chapters: int, seed: int) -> list[list[tuple[str, str]]]:
    """Sentences of an invented language, some words often and most seldom, with their translations: other words, in
    another order."""
    generator = random.Random(seed)
    ours, theirs = words(400, 1), words(400, 2)
    weights = [1 / (rank + 3) for rank in range(400)]
    made = []
    for _ in range(chapters):
        chapter = []
        for _ in range(60):
            chosen = generator.choices(range(400), weights, k=generator.randint(3, 25))
            other = [theirs[n] for n in chosen]
            generator.shuffle(other)
            chapter.append((" ".join(ours[n] for n in chosen) + ".", " ".join(other) + "."))
        made.append(chapter)
    return made


def sides(made: list[list[tuple[str, str]]]) -> tuple[list[list[str]], list[list[str]]]:
    return [[one for one, _ in chapter] for chapter in made], [[other for _, other in chapter] for chapter in made]


def test_sentences_find_each_other_though_some_are_cut_or_missing():
    made = book(8, seed=3)
    source, target = sides(made)
    known = dict(pair for chapter in made for pair in chapter)
    generator = random.Random(5)
    for chapter in target:
        for at in sorted(generator.sample(range(len(chapter)), 8), reverse=True):
            halves = chapter[at].split(" ")
            if at % 2 or len(halves) < 12:
                del chapter[at]
            else:  # one sentence has become two
                chapter[at : at + 1] = [" ".join(halves[: len(halves) // 2]), " ".join(halves[len(halves) // 2 :])]
    right = total = 0
    for chapter in align_books(source, target, QUIET):
        assert chapter.share > 0.5
        document = chapter.document("book")
        for one, other in zip(document.source, document.target, strict=True):
            if one:
                total += 1
                right += known.get(one) == other
    assert right / total > 0.95 and right > 0.85 * len(known)


def test_a_chapter_that_one_book_does_not_have_is_left_out():
    source, target = sides(book(8, seed=3))
    for number, chapter in enumerate(source):
        chapter[0] = target[number][0] = f"Chapter {100 + number}"
    aligned = align_books(source, target[:3] + target[4:], QUIET)
    assert [chapter.number for chapter in aligned] == [1, 2, 3, 5, 6, 7, 8]
    assert all(chapter.target[0] == chapter.source[0] for chapter in aligned)


@pytest.mark.parametrize("how", ["lines in another order", "another book"])
def test_what_is_no_translation_is_refused(how):
    source, target = sides(book(8, seed=3))
    if how == "another book":
        target = sides(book(8, seed=4))[1]
    else:
        for chapter in target:
            random.Random(1).shuffle(chapter)
    with pytest.raises(DocnmtError, match="0 of 8 chapters align"):
        good_chapters(align_books(source, target, QUIET), ("a", "b"))


def test_figures_are_the_same_in_every_process():
    """Hashes of strings differ from process to process, and with them the order of sets: it must not reach the sums."""
    script = (
        "from docnmt.corpus.align import align_books\n"
        "from tests.unit.corpus.test_align import QUIET, book, sides\n"
        "print([(chapter.beads, chapter.fits) for chapter in align_books(*sides(book(3, seed=3)), QUIET)])"
    )
    said = {
        subprocess.run(
            [sys.executable, "-c", script],
            env={**os.environ, "PYTHONHASHSEED": seed},
            cwd=Path(__file__).parents[3],
            stdout=subprocess.PIPE,
            check=True,
        ).stdout
        for seed in ("1", "2", "3")
    }
    assert len(said) == 1


def test_chapters_begin_at_headings():
    text = "The book\n\nPart one\n\nI\n\nA first day. It rained.\n\nIII men came.\n\nII.\n\nA second day.\n"
    assert read_book(text.encode(), "book.txt", "en") == [
        ["The book"],
        ["Part one", "I", "A first day.", "It rained.", "III men came."],
        ["II.", "A second day."],
    ]


def test_two_files_become_a_corpus(tmp_path, capsys):
    paths = [tmp_path / "book.fr.txt", tmp_path / "book.en.md"]
    made = book(6, seed=3)
    for path, mark, side in zip(paths, ("Chapitre", "# Chapter"), (0, 1), strict=True):
        path.write_text(
            "".join(
                f"{mark} {n}\n\n" + "\n\n".join(pair[side].capitalize() for pair in chapter) + "\n\n"
                for n, chapter in enumerate(made, 1)
            ),
            encoding="utf-8",
        )
    output, figures = tmp_path / "book.tsv", tmp_path / "figures.json"
    command = ["corpus", "align", *map(str, paths), "-o", str(output), "--languages", "fr-en", "--json", str(figures)]
    assert main(command) == 0
    rows = [line.split("\t") for line in output.read_text(encoding="utf-8").splitlines()]
    assert {row[0] for row in rows} == {f"book/chapter-{n}" for n in range(1, 7)}
    known = {one.capitalize(): other.capitalize() for chapter in made for one, other in chapter}
    assert sum(known.get(row[1]) == row[2] for row in rows) > 0.95 * len(known)
    assert all(row["taken"] for row in json.loads(figures.read_text()))
    assert "Of 6 and 6 chapters, 6 are accepted" in capsys.readouterr().out.replace("\n", " ")


@pytest.mark.skipif(not NOVELS.exists(), reason="needs the novels beside the repository: ../shared/data/discourse")
def test_a_novel_is_aligned_as_it_was_before():
    """Lines of the corpus, cut into sentences again: those of one line belong together."""
    source, target, lines = [], [], []
    for number, line in enumerate(NOVELS.read_text(encoding="utf-8").splitlines()[:370]):
        _, french, english = line.split("\t")
        for text, language, side, where in ((french, "fr", source, 0), (english, "en", target, 1)):
            for sentence in split(text, language):
                side.append(sentence.strip())
                lines.append((where, number))
    places = [[number for where, number in lines if where == side] for side in (0, 1)]
    (chapter,) = align_books([source], [target], QUIET)
    pairs = [bead for bead in chapter.beads if bead.source and bead.target]
    right = sum({places[0][i] for i in one} == {places[1][j] for j in other} for one, other in pairs)
    assert right / len(pairs) > 0.97 and len(pairs) > 330
