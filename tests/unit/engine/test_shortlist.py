"""A shortlist has what the sentences need: frequent pieces, translations, and all that copies the source."""

from __future__ import annotations

import os
import time
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from safetensors.numpy import save_file

from docnmt.base.errors import DocnmtError
from docnmt.base.progress import Progress
from docnmt.cli.model_tools import coverage_table
from docnmt.data.subwords import Subwords
from docnmt.engine.shortlist import (
    FILE,
    Lexicon,
    Shortlist,
    Side,
    TrainingPairs,
    coverage,
    learn_lexicon,
    make_shortlist,
    subwords_key,
)
from tests.builders import EOS, in_target_language, lines, parallel_documents, small_subwords, subwords

NOTHING_LEARNT = Lexicon(np.empty(0, np.int32), np.empty(0, np.int32), np.empty(0, np.float32))
NO_PAIRS = TrainingPairs(Side.of([]), Side.of([]), 0)


def pairs_of(seed: int, count: int = 200) -> TrainingPairs:
    return TrainingPairs.read(parallel_documents([count], seed), subwords("source"), subwords("target"))


def made(pairs: TrainingPairs, frequent: int, candidates: int) -> Shortlist:
    lexicon = learn_lexicon(pairs, Progress(quiet=True))
    return make_shortlist(lexicon, pairs, subwords("source"), subwords("target"), frequent, candidates)


@pytest.fixture(scope="module")
def shortlist() -> Shortlist:
    return made(pairs_of(1), 12, 4)


@pytest.fixture
def folder(tmp_path) -> Path:
    for side in ("source", "target"):
        subwords(side).save(tmp_path / f"{side}.spm")
    return tmp_path


# ---- what is in it ----


@given(st.lists(st.integers(0, 329), min_size=1, max_size=9))
def test_candidates_are_those_of_every_sentence_and_of_its_pieces(shortlist, source):
    found = shortlist.candidates(source)
    expected = set(shortlist.always.tolist())
    for piece in source:
        expected |= set(shortlist.lexicon[piece].tolist())
    assert found.dtype == np.int64
    assert found.tolist() == sorted(expected)


def test_always_has_the_most_frequent_pieces_and_the_end(shortlist):
    target = subwords("target")
    counts = np.bincount(pairs_of(1).target.tokens, minlength=len(target))
    frequent = set(shortlist.always.tolist()) - {target.eos}
    assert len(shortlist.always) == len(frequent) + 1 == 12
    others = np.delete(counts, [*frequent, target.eos])
    assert counts[list(frequent)].min() >= others.max()


def test_a_piece_brings_its_translations():
    shortlist = made(pairs_of(1, 400), 0, 4)
    source, target = subwords("source"), subwords("target")
    assert shortlist.always.tolist() == [target.eos]  # sentences end, whatever is asked for
    for text in ("le chat", "la mer", "rien"):
        (read,), (written,) = source.encode([text]), target.encode(in_target_language([text]))
        assert set(written) <= set(shortlist.candidates(read).tolist())


def test_what_is_copied_can_be_spelt():
    """With nothing learnt at all, names, signs and letters that the target has no piece for."""
    source, target = subwords("source"), subwords("target")
    shortlist = make_shortlist(NOTHING_LEARNT, NO_PAIRS, source, target)
    assert shortlist.always.tolist() == [target.eos]
    text = "Zoë écrit à Łódź : 東京 (n° 42), le chat."
    (read,) = source.encode([text])
    allowed = target.written()
    ids = {allowed[piece] for piece in shortlist.candidates(read)}
    assert spelt(" " + text, ids)


def spelt(text: str, parts: set[bytes]) -> bool:
    """Whether these parts can write the text, each as often as wanted."""
    whole = text.encode()
    reached = {0}
    for end in range(1, len(whole) + 1):
        reached |= {end} if any(whole[start:end] in parts for start in reached) else set()
    return len(whole) in reached


def test_a_piece_of_both_languages_is_copied_as_one():
    words = small_subwords(lines(200, seed=1), 330)
    shortlist = make_shortlist(NOTHING_LEARNT, NO_PAIRS, words, words)
    writes = [piece for piece, text in enumerate(words.written()) if text]
    letters = [piece for piece in writes if words.written().count(words.written()[piece]) == 1]
    assert len(letters) > 200
    assert [set(shortlist.candidates([piece]).tolist()) for piece in letters] == [
        {piece, words.eos} for piece in letters
    ]


def test_candidates_of_a_sentence_take_less_than_a_fifth_of_a_millisecond():
    random = np.random.default_rng(1)
    shortlist = Shortlist(np.arange(200), random.integers(0, 32_000, (32_000, 40)))
    source = random.integers(0, 32_000, 25)
    times = []
    for _ in range(20):
        started = time.perf_counter()
        shortlist.candidates(source)
        times.append(time.perf_counter() - started)
    assert min(times) < 0.0002


# ---- coverage ----


def test_coverage_counts_the_references_pieces():
    shortlist = Shortlist(np.array([2]), np.array([[2], [5], [6], [7]]))
    pairs = TrainingPairs(Side.of([[1], [2, 3], [3]]), Side.of([[5, 6], [6, 7, 5], [7]]), 3)
    found = coverage(shortlist, pairs)
    assert (found.covered, found.size) == (4 / 6, (2 + 3 + 2) / 3)  # 5; 6 and 7; 7
    assert found.together == 4  # 2, 5, 6, 7


def test_more_candidates_cover_more():
    pairs, held_out = pairs_of(1), pairs_of(2)
    covered = [coverage(made(pairs, 12, n), held_out) for n in (0, 2, 8)]
    assert [c.covered for c in covered] == sorted({c.covered for c in covered})
    assert [c.size for c in covered] == sorted({c.size for c in covered})
    assert covered[-1].covered > 0.98
    assert covered[-1].size < len(subwords("target")) / 4


def test_the_table_marks_what_was_written():
    pairs = pairs_of(1)
    table = coverage_table([(n, made(pairs, 12, n)) for n in (2, 4)], pairs_of(2), chosen=4)
    assert [row[0] for row in table.rows] == ["2", "4"]
    assert {row for row, _ in table.strong} == {1}
    assert [figures["written"] for figures in table.figures] == [False, True]


def test_no_translations_no_coverage(shortlist):
    with pytest.raises(DocnmtError, match="has no translations"):
        coverage(shortlist, NO_PAIRS)


# ---- in a model folder ----


def test_round_trip(shortlist, folder):
    shortlist.write(folder)
    again = Shortlist.read(folder, subwords("source"), subwords("target"))
    assert again is not None
    assert np.array_equal(again.always, shortlist.always)
    assert np.array_equal(again.lexicon, shortlist.lexicon)
    assert sorted(path.name for path in folder.iterdir()) == [FILE, "source.spm", "target.spm"]
    source = [3, 300, 17]
    assert np.array_equal(again.candidates(source), shortlist.candidates(source))


def test_a_folder_without(folder):
    assert Shortlist.read(folder, subwords("source"), subwords("target")) is None


def test_a_damaged_file_is_said(shortlist, folder):
    shortlist.write(folder)
    (folder / FILE).write_bytes((folder / FILE).read_bytes()[:-100])
    with pytest.raises(DocnmtError, match=rf"{FILE}: damaged .*\n.*docnmt shortlist again"):
        Shortlist.read(folder, subwords("source"), subwords("target"))


def test_a_word_that_changed_is_found(shortlist, folder):
    shortlist.write(folder)
    content = bytearray((folder / FILE).read_bytes())
    place = content.rindex(shortlist.lexicon[-1].tobytes())
    content[place : place + 4] = np.int32(shortlist.lexicon[-1][0] ^ 1).tobytes()  # another word of the vocabulary
    (folder / FILE).write_bytes(content)
    with pytest.raises(DocnmtError, match=rf"{FILE}: damaged \(its SHA-256 differs\)"):
        Shortlist.read(folder, subwords("source"), subwords("target"))


def test_a_pipe_is_not_waited_for(folder):
    os.mkfifo(folder / FILE)
    with pytest.raises(DocnmtError, match="not a regular file"):
        Shortlist.read(folder, subwords("source"), subwords("target"))


def test_a_file_without_the_tables_is_said(folder):
    save_file({"always": np.zeros(1, np.int32)}, folder / FILE)
    with pytest.raises(DocnmtError, match="damaged"):
        Shortlist.read(folder, subwords("source"), subwords("target"))


def test_a_shortlist_of_another_model_is_said(shortlist, folder):
    shortlist.write(folder)
    other: Subwords = small_subwords(lines(200, seed=2), 320)
    other.save(folder / "source.spm")
    with pytest.raises(DocnmtError, match=r"other subwords than the model's\n"):
        Shortlist.read(folder, subwords("source"), subwords("target"))


@pytest.mark.parametrize(
    ("always", "lexicon", "said"),
    [
        ([EOS, 340], np.full((330, 1), EOS), "piece 340 is not one of 340 target pieces"),
        ([EOS, 2**30], np.full((330, 1), EOS), "piece 1,073,741,824 is not one of 340 target pieces"),
        ([EOS], np.full((330, 2), -1), "piece -1 is not one of 340 target pieces"),
        ([EOS], np.full((329, 1), EOS), "329 source pieces, but the model has 330"),
        ([5, 6], np.full((330, 1), EOS), "the end mark is missing"),
        ([], np.full((330, 0), EOS), "the end mark is missing"),
        ([[EOS]], np.full((330, 1), EOS), r"tables of int32 \[1, 1\] and int32 \[330, 1\]"),
        ([EOS], np.full(330, EOS), r"tables of int32 \[1\] and int32 \[330\]"),
        ([EOS], np.full((330, 1), 2.5, np.float32), "int32 .* and float32"),
    ],
)
def test_tables_that_do_not_fit_the_vocabularies_are_said(folder, always, lexicon, said):
    whole = lexicon if lexicon.dtype == np.float32 else lexicon.astype(np.int32)
    save_file(
        {"always": np.array(always, np.int32), "lexicon": whole}, folder / FILE, {"subwords": subwords_key(folder)}
    )
    with pytest.raises(DocnmtError, match=rf"{FILE}: damaged \(.*{said}.*\)\n.*docnmt shortlist again"):
        Shortlist.read(folder, subwords("source"), subwords("target"))
