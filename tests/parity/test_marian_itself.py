"""Imported models against Marian: real ones, trained and run by it, where they are at hand.

They lie in models/marian of DOCNMT_SHARED, or of ../shared beside the repository, with Marian's own scores and outputs.
"""

from __future__ import annotations

import os
import shutil
from itertools import islice
from pathlib import Path

import pytest

from docnmt.base.errors import DocnmtError
from docnmt.decoding.translator import load
from docnmt.document import Document, ParallelDocument
from docnmt.interop.convert import import_model
from docnmt.model_folder import quantize_folder

SHARED = Path(os.environ.get("DOCNMT_SHARED") or Path(__file__).parents[3] / "shared")
MODELS = SHARED / "models" / "marian"
pytestmark = pytest.mark.skipif(not MODELS.is_dir(), reason=f"needs models that Marian made, in {MODELS}")

NAMES = ("opus-joint-yml", "separate-vocab-relu", "joint-spm")
LAYOUTS = ("", "/hf")  # Marian's own, and the same weights as Hugging Face's
SEARCHES = [(1, 1.0), (4, 1.0), (4, 0.6)]
VARIANTS = MODELS / "variants"


@pytest.fixture(scope="module")
def imported(tmp_path_factory):
    """A function that gives the translator of an imported folder; each is imported once."""
    made = {}

    def give(name, kind="marian"):
        if (name, kind) not in made:
            out = tmp_path_factory.mktemp("imported") / "model"
            import_model(str(MODELS / name), out, kind, ("fr", "en"))
            made[name, kind] = load(out, "cpu"), out
        return made[name, kind]

    return give


def read(name, *parts):
    return tuple(MODELS.joinpath(name.split("/")[0], *parts).read_text(encoding="utf-8").split("\n")[:-1])


def scores_of(translator, source, target):
    (found,) = translator.score([ParallelDocument("d", source, target)])
    return [sentence.total for sentence in found]


def text_of(name, line):
    """What Marian wrote, as text: without a vocabulary of SentencePiece's it writes pieces."""
    return line.strip() if name.startswith("joint-spm") else line.replace(" ", "").replace("▁", " ").strip()


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("name", NAMES)
def test_forced_scores(imported, name, layout):
    translator, _ = imported(name + layout)
    found = scores_of(translator, read(name, "text", "test.fr"), read(name, "text", "test.en"))
    expected = [float(line) for line in read(name, "marian", "score.ref.txt")]
    assert len(found) == 300 and found == pytest.approx(expected, abs=1e-3)


@pytest.mark.parametrize("name", ["opus-joint-yml/hf-fp16"])
def test_weights_in_float16_are_a_little_off(imported, name):
    translator, _ = imported(name)
    found = scores_of(translator, read(name, "text", "test.fr"), read(name, "text", "test.en"))
    expected = [float(line) for line in read(name, "marian", "score.ref.txt")]
    assert found == pytest.approx(expected, abs=0.05)


@pytest.mark.parametrize("name", NAMES)
def test_as_transformers_its_own_scores(imported, name):
    translator, _ = imported(f"{name}/hf", "huggingface")
    found = scores_of(translator, read(name, "text", "test.fr"), read(name, "text", "test.en"))
    pairs = [(a, b) for a, b in zip(found, read(name, "hf-score.ref.txt"), strict=True) if b[0] == "-"]  # not: too-long
    assert len(pairs) > 250 and [a for a, _ in pairs] == pytest.approx([float(b) for _, b in pairs], abs=1e-3)


@pytest.mark.slow
@pytest.mark.parametrize(("beam", "alpha"), SEARCHES)
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("name", NAMES)
def test_all_outputs_and_all_of_the_nbest_lists(imported, name, layout, beam, alpha):
    translator, _ = imported(name + layout)
    document, search = Document("d", read(name, "text", "test.fr")), f"beam{beam}.norm{alpha:g}"
    (found,) = translator.translate_documents([document], beam=beam, length_penalty=alpha, nbest=beam)
    outputs = [text_of(name, line) for line in read(name, "marian", f"out.{search}.txt")]
    assert [sentence.text.strip() for sentence in found.sentences] == outputs
    ours = [
        (n, text.strip(), score)
        for n, s in enumerate(found.sentences)
        for text, score in zip(s.texts, s.scores, strict=True)
    ]
    theirs = [line.split(" ||| ") for line in read(name, "marian", f"nbest.{search}.txt")]
    assert [(n, text) for n, text, _ in ours] == [(int(n), text_of(name, text)) for n, text, *_ in theirs]
    assert [score for *_, score in ours] == pytest.approx([float(row[3]) for row in theirs], abs=1e-4)


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_in_int8_nearly_the_same_words(imported, tmp_path, name):
    translator, folder = imported(name)
    quantize_folder(folder, tmp_path / "int8")
    source = Document("d", read(name, "text", "test.fr"))
    found, expected = load(tmp_path / "int8", "cpu").translate(source), translator.translate(source)
    assert sum(a == b for a, b in zip(found, expected, strict=True)) > 150


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_ids_are_those_of_transformers_tokenizer_on_real_lines(imported, name):
    """Of several languages, so that there is much that the vocabulary does not know."""
    transformers = pytest.importorskip("transformers", reason="transformers is not installed: no tokenizer to compare")
    folder = SHARED / "data" / "debian-mix"
    files = [folder / f"{pair}.{part}.tsv" for pair in ("fr-en", "zh-en") for part in ("dev", "test", "train")]
    if not all(file.exists() for file in files):
        pytest.skip(f"needs real lines, in {folder}")
    fields = [field for file in files for line in _first(file, 2000) for field in line.split("\t")]
    lines = ["", "🙂 ☃ 10,5 %", *fields][:20_000]
    tokenizer = transformers.MarianTokenizer.from_pretrained(MODELS / name / "hf")
    ours = imported(f"{name}/hf", "huggingface")[0].source
    found, expected = ours.encode(lines), tokenizer(lines)["input_ids"]
    assert len(lines) > 10_000 and [ours.whole(ids) for ids in found] == expected
    assert sum(ours.unk in ids for ids in found) > 1000


def _first(file, count):
    with open(file, encoding="utf-8", newline="\n") as opened:
        return [line.rstrip("\n") for line in islice(opened, count)]


# ---- variants ----


def variant(folder, name):
    """One of the variants with the vocabularies that it was trained with."""
    shutil.copytree(VARIANTS / name, folder)
    for path in (MODELS / "separate-vocab-relu").glob("*.vocab"):
        shutil.copy(path, folder)
    for side in ("source", "target"):
        shutil.copy(MODELS / "separate-vocab-relu" / f"{side}.spm", folder)
    return str(folder)


@pytest.mark.parametrize("name", ["untied", "trained-positions"])
def test_variants_that_are_the_same_model(tmp_path, name):
    import_model(variant(tmp_path / name, name), tmp_path / "out", languages=("fr", "en"))
    translator = load(tmp_path / "out", "cpu")
    sides = [(VARIANTS / f"test20.spm.{side}").read_text().split("\n")[:-1] for side in ("fr", "en")]
    texts = [tuple(line.replace(" ", "").replace("▁", " ").strip() for line in lines) for lines in sides]
    expected = [float(line) for line in (VARIANTS / name / "score.ref.txt").read_text().split()]
    assert scores_of(translator, *texts) == pytest.approx(expected, abs=1e-3)


@pytest.mark.parametrize(
    ("name", "said"),
    [("ssru-decoder", "transformer-decoder-autoreg: rnn"), ("prenorm", "transformer-preprocess: n")],
)
def test_variants_that_are_refused(tmp_path, name, said):
    with pytest.raises(DocnmtError, match=said):
        import_model(variant(tmp_path / name, name), tmp_path / "out", languages=("fr", "en"))
    assert not (tmp_path / "out").exists()
