"""benchmarks/decoding.py with a tiny model: every part runs, and every system writes translations of the lengths it is
told, or the benchmark stops."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks.decoders.material import SIZES, alike, cut, random_shortlist, spread

SCRIPT = Path(__file__).parents[2] / "benchmarks" / "decoding.py"
REFERENCE, SENTENCE, DOCUMENT = "CTranslate2 int8", "docnmt sentence int8", "docnmt document int8"


def run(folder: Path, *options: str) -> dict:
    pytest.importorskip("ctranslate2", reason='needs CTranslate2: pip install "docnmt[bench]"')
    pytest.importorskip("matplotlib", reason='needs matplotlib: pip install "docnmt[plots]"')
    found, plot = folder / "found.json", folder / "plot.png"
    arguments = ["--quick", *options, "--json", str(found), "--plot", str(plot)]
    done = subprocess.run([sys.executable, str(SCRIPT), *arguments], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert plot.read_bytes().startswith(b"\x89PNG")
    (figures,) = json.loads(found.read_text())["sizes"].values()
    assert done.stdout.count(f"│ {REFERENCE} ") == len(figures)  # a table for each part
    return figures


def test_throughput_and_latency(tmp_path):
    figures = run(tmp_path, "--systems", SENTENCE, DOCUMENT, "--only", "throughput", "latency")
    assert list(figures) == ["throughput", "latency"]
    for part in figures.values():
        assert list(part) == [REFERENCE, SENTENCE, DOCUMENT]
    assert all(row["tokens_per_second"] > 0 for row in figures["throughput"].values())
    assert figures["throughput"][REFERENCE]["to_reference"] == 1
    assert all(row["best"] > 0 for row in figures["latency"].values())


def test_all_parts_with_all_systems(tmp_path):
    pytest.importorskip("transformers", reason='needs transformers: pip install "docnmt[bench]"')
    figures = run(tmp_path)
    assert len(figures["throughput"]) == 10
    assert all(row["tokens_per_second"] > 0 for row in figures["throughput"].values())
    assert list(figures["growth"][SENTENCE]["tokens_per_second"]) == ["1", "3"]
    assert list(figures["load"]) == list(figures["cores"]) == [REFERENCE, SENTENCE, DOCUMENT]


def test_a_model_as_opus_mt_has_them_in_all_systems(tmp_path):
    pytest.importorskip("transformers", reason='needs transformers: pip install "docnmt[bench]"')
    figures = run(tmp_path, "--sizes", "opus", "--only", "throughput")
    assert len(figures["throughput"]) == 10


def test_lengths_are_natural_and_forced_ones_a_little_longer():
    groups = spread(SIZES["small"], 8)
    sources = [len(sentence.source) for group in groups for sentence in group]
    assert len(sources) == 8 * 64
    assert 23 < sum(sources) / len(sources) < 27
    assert min(sources) >= 4 and max(sources) <= 90
    for group in groups:
        (length,) = {sentence.length for sentence in group}
        assert all(length - 4 < len(sentence.source) <= length for sentence in group)
    contexts = [len(sentence.context) for group in groups for sentence in group]
    assert 48 < sum(contexts) / len(contexts) < 52


def test_batches_hold_every_sentence_once_and_one_length_each():
    groups = spread(SIZES["small"], 8)
    for size in (16, 48):
        batches = cut(groups, size, workers=2)
        given, held = (sorted(id(sentence) for part in parts for sentence in part) for parts in (groups, batches))
        assert given == held
        assert all(len({sentence.length for sentence in batch}) == 1 and len(batch) <= size for batch in batches)
    assert [len(batch) for batch in cut(alike(SIZES["tiny"], 3, 24), 64, workers=2)] == [2, 1]  # work for both


def test_a_shortlist_leaves_about_800_words_to_any_batch():
    words = SIZES["base"].vocabulary
    shortlist = random_shortlist(words, words)
    for size in (16, 64):
        for batch in cut(spread(SIZES["base"], 4), size, workers=2):
            assert 700 < len(set().union(*(shortlist.candidates(s.source).tolist() for s in batch))) <= 801
