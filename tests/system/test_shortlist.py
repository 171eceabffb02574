"""`docnmt shortlist`, from the command line to translations here and in CTranslate2."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import numpy as np
import pytest

from benchmarks.decoders.ctranslate2_writer import export
from docnmt.data.subwords import Subwords
from docnmt.engine.shortlist import FILE, Shortlist
from tests.builders import subwords
from tests.system.conftest import Tiny, command


@pytest.fixture
def model(models: dict[str, Path], tmp_path) -> Path:
    """A copy that can be written to."""
    return Path(shutil.copytree(models["sentence"], tmp_path / "model"))


def source_lines(tiny: Tiny, count: int = 40) -> list[str]:
    text = (tiny.folder / "corpus" / "dev.fr").read_text(encoding="utf-8")
    return [line for line in text.splitlines() if line][:count]


def read(folder: Path) -> Shortlist | None:
    return Shortlist.read(folder, *(Subwords.load(folder / f"{side}.spm") for side in ("source", "target")))


def test_the_recipe_names_what_to_learn_from_and_what_to_try_it_on(tiny: Tiny, model, tmp_path):
    done = command(
        *("shortlist", model, tiny.recipe, "--frequent", 30, "--candidates", 8, "--json", tmp_path / "figures.json")
    )
    assert done.code == 0, done.err
    assert done.lines[0] == f"shortlist: {model / FILE}"
    assert "sentence pairs" in done.message
    (chosen,) = [row for row in json.loads((tmp_path / "figures.json").read_text())["figures"] if row["written"]]
    assert (chosen["frequent"], chosen["candidates"]) == (30, 8)
    assert chosen["covered"] > 0.97
    assert chosen["pieces"] < chosen["pieces_of_32"] < 400
    shortlist = read(model)
    assert shortlist is not None
    assert len(shortlist.always) == 30


def test_a_corpus_gives_the_same_as_the_recipe_that_names_it(tiny: Tiny, model, tmp_path):
    found = []
    for given in ([tiny.recipe], ["corpus/train.tsv"], ["corpus/train.fr", "corpus/train.en"]):
        files = [tiny.folder / file for file in given]
        done = command("shortlist", model, *files)
        assert done.code == 0, done.err
        found.append((model / FILE).read_bytes())
    assert found[0] == found[1] == found[2]


def test_into_another_model_of_the_same_subwords(tiny: Tiny, models, model, tmp_path):
    document = Path(shutil.copytree(models["document"], tmp_path / "document"))
    done = command("shortlist", model, tiny.folder / "corpus" / "train.tsv", "-o", document)
    assert done.code == 0, done.err
    assert read(document) is not None
    assert read(model) is None


def test_what_cannot_be_done_is_said(tiny: Tiny, model, tmp_path):
    corpus = tiny.folder / "corpus" / "train.tsv"
    assert "not a model folder" in command("shortlist", tmp_path, corpus).err
    other = Path(shutil.copytree(model, tmp_path / "other"))
    subwords("source").save(other / "source.spm")
    assert "its subwords differ from those of" in command("shortlist", model, corpus, "-o", other).err
    assert "no such file" in command("shortlist", model, tmp_path / "nothing.tsv").err
    assert "'-1' is not a whole number" in command("shortlist", model, corpus, "--candidates", "-1").err
    assert "give only the recipe" in command("shortlist", model, tiny.recipe, corpus).err.lower()
    assert "give one with --dev" in command("shortlist", model, corpus, "--json", tmp_path / "f.json").err.lower()
    empty = tmp_path / "empty.toml"
    empty.write_text("")
    assert "no sentence pairs to learn from" in command("shortlist", model, empty).err
    bad = tmp_path / "bad.tsv"
    bad.write_text("a\tun\tone\na\tdeux\t\na\ttrois\tthree\n", encoding="utf-8")
    assert "line 2" in command("shortlist", model, bad).err
    assert "line 2" in command("shortlist", model, corpus, "--dev", bad).err
    assert not (model / FILE).exists()
    done = command("shortlist", model, bad, "--skip-bad")
    assert done.code == 0
    assert "skipped 1 bad places" in done.err
    assert "learning from 2 sentence pairs" in done.err


def test_ctranslate2_writes_words_of_the_shortlist_alone(tiny: Tiny, model, tmp_path):
    ctranslate2 = pytest.importorskip("ctranslate2", reason='needs CTranslate2: pip install "docnmt[bench]"')
    assert command("shortlist", model, tiny.recipe, "--frequent", 5, "--candidates", 1).code == 0
    export(model, tmp_path / "exported")
    source, target = (Subwords.load(model / f"{side}.spm") for side in ("source", "target"))
    shortlist = Shortlist.read(model, source, target)
    assert shortlist is not None
    vocabulary = {piece: number for number, piece in enumerate(target.pieces(range(len(target))))}
    translator = ctranslate2.Translator(str(tmp_path / "exported"), intra_threads=1)
    ids = source.encode(source_lines(tiny))

    def translate(batch: list[list[int]], use_vmap: bool) -> list[set[int]]:
        found = translator.translate_batch(
            [source.pieces(row) for row in batch], beam_size=2, max_decoding_length=20, use_vmap=use_vmap
        )
        return [{vocabulary[piece] for piece in result.hypotheses[0]} for result in found]

    marks = {vocabulary[mark] for mark in ("<unk>", "<s>", "</s>")}  # CTranslate2 adds them
    strayed = 0
    for row in ids:
        allowed = {*shortlist.candidates(row).tolist(), *marks}
        assert translate([row], use_vmap=True)[0] <= allowed
        strayed += not translate([row], use_vmap=False)[0] <= allowed
    assert strayed > len(ids) / 4  # left to itself the model writes other words
    # A batch shares its words: no more of them, and no fewer than each sentence has alone.
    together = set().union(*(shortlist.candidates(row).tolist() for row in ids), marks)
    assert set().union(*translate(ids, use_vmap=True)) <= together


def test_the_vocabulary_map_says_what_the_shortlist_says(tiny: Tiny, model, tmp_path):
    pytest.importorskip("ctranslate2", reason='needs CTranslate2: pip install "docnmt[bench]"')
    export(model, tmp_path / "plain")
    assert not (tmp_path / "plain" / "vmap.txt").exists()
    assert command("shortlist", model, tiny.recipe, "--frequent", 20, "--candidates", 3).code == 0
    export(model, tmp_path / "exported")
    rows = (tmp_path / "exported" / "vmap.txt").read_text(encoding="utf-8").splitlines()
    read = {piece: set(added.split(" ")) for piece, added in (row.split("\t") for row in rows)}
    source, target = (Subwords.load(model / f"{side}.spm") for side in ("source", "target"))
    shortlist = Shortlist.read(model, source, target)
    assert shortlist is not None
    for row in source.encode(source_lines(tiny)):
        pieces = read[""].union(*(read[piece] for piece in source.pieces(row)))
        assert pieces == set(target.pieces(np.asarray(shortlist.candidates(row))))
