"""An imported model is a sentence model as any other: step 2 on top of it, a shortlist, int8."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from safetensors.torch import load_file

from docnmt.cli import main
from docnmt.config import DecodingConfig
from docnmt.data.subwords import NamedSubwords
from docnmt.decoding.translator import load
from docnmt.document import ParallelDocument
from docnmt.interop.convert import import_model
from docnmt.model.context import is_document_parameter
from docnmt.recipes import load_recipe
from docnmt.training.two_step import settled
from tests.builders import lines, parallel_documents
from tests.marian_folders import write_huggingface, write_marian

pytest.importorskip("transformers", reason="transformers is not installed: it writes the folders that are imported")

LANGUAGES = (">>en<<", ">>deu<<")
RECIPE = """
output = "run"
data.documents = [{ source = "train.fr", target = "train.en" }]
data.dev = [{ source = "dev.fr", target = "dev.en" }]
context.start = "START"
validation.decode = true
[document]
start_from = "imported"
updates = 2
batch_tokens = 600
learning_rate = RATE
warmup = 1
validate_every = 2
"""


def write_texts(folder, name, documents) -> None:
    for side, language in (("source", "fr"), ("target", "en")):
        text = "\n\n".join("\n".join(getattr(document, side)) for document in documents)
        (folder / f"{name}.{language}").write_text(text + "\n", encoding="utf-8")


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """A folder with an imported model of several languages, and documents."""
    root = tmp_path_factory.mktemp("place")
    write_marian(root / "marian", write_huggingface(root / "hf", more=LANGUAGES), more=LANGUAGES)
    import_model(str(root / "marian"), root / "imported", languages=("fr", "en"))
    write_texts(root, "train", parallel_documents([6, 5], seed=1))
    write_texts(root, "dev", parallel_documents([4], seed=2))
    return root


def train(place, start, rate):
    recipe = place / f"{start}.toml"
    recipe.write_text(RECIPE.replace("START", start).replace("RATE", rate).replace('"run"', f'"run-{start}"'))
    assert main(["train", str(recipe), "--step", "document"]) == 0
    return place / f"run-{start}" / "document" / "model"


def test_step_2_trains_the_context_alone(place, capsys):
    model = train(place, "paper", "1.0")
    before, after = (load_file(folder / "weights.safetensors") for folder in (place / "imported", model))
    theta_s = {name for name in after if not is_document_parameter(name)}
    assert theta_s == set(before) and all(torch.equal(before[name], after[name]) for name in theta_s)
    # No gradients and no optimiser state of what is frozen, the softmax and the embeddings above all.
    checkpoint = next((model.parent / "checkpoints").glob("*"))
    held = {name for file in checkpoint.glob("*.safetensors") for name in load_file(file)}
    assert held and all("context" in name for name in held)
    translator = load(model)
    assert translator.card.model.search == "marian" and translator.card.decoding.beam == 3
    assert isinstance(translator.source, NamedSubwords)
    assert len(translator.translate(lines(4))) == 4


def test_it_decodes_as_the_imported_model_but_for_what_the_recipe_says(place):
    (place / "own.toml").write_text(RECIPE.replace("START", "paper").replace("RATE", "1.0"))
    recipe = load_recipe(place / "own.toml")
    own = load(place / "imported").card.decoding
    assert settled(recipe, ("document",)).decoding == own
    wider = replace(recipe, decoding=DecodingConfig(beam=7))
    assert settled(wider, ("document",)).decoding == replace(own, beam=7) and own.length_penalty != 0.6


def test_it_can_start_as_exactly_the_imported_model(place):
    document, sentence = load(train(place, "sentence", "0.0")), load(place / "imported")
    pair = ParallelDocument("d", *(tuple(side) for side in (lines(5), lines(5, seed=3))))
    for one, other in zip(*(next(translator.score([pair])) for translator in (document, sentence)), strict=True):
        assert one.log_probabilities == pytest.approx(other.log_probabilities, abs=1e-4)
    assert document.translate(lines(5)) == sentence.translate(lines(5))


def test_a_shortlist_and_int8(place, tmp_path, capsys):
    int8 = tmp_path / "int8"
    assert main(["quantize", str(place / "imported"), "-o", str(int8)]) == 0
    texts = [str(place / name) for name in ("train.fr", "train.en")]
    assert main(["shortlist", str(int8), *texts, "--frequent", "20"]) == 0
    translator = load(int8)
    assert translator.shortlist is not None and translator.int8
    assert len(translator.translate(lines(6))) == 6
    with_all = translator.translate(lines(6), options=replace(translator.options, shortlist=False))
    near = sum(a == b for a, b in zip(load(place / "imported").translate(lines(6)), with_all, strict=True))
    assert near >= 2  # a random model: its choices are close to each other


OURS = """
output = "ours"
data.documents = [{ source = "train.fr", target = "train.en" }]
data.dev = [{ source = "dev.fr", target = "dev.en" }]
subwords.vocabulary = 330
context.start = "sentence"
validation.decode = true
[model]
width = 32
filter_width = 64
heads = 2
encoder_layers = 1
decoder_layers = 1
positions = "marian"
start = "zero"
norm_epsilon = 1e-6
output_bias = true
[sentence]
updates = 6
batch_tokens = 600
validate_every = 6
warmup = 3
[document]
updates = 6
batch_tokens = 600
validate_every = 6
warmup = 3
"""


def test_through_marians_files_step_2_gives_the_same_bits_as_without(place, monkeypatch, capsys):
    """So whatever step 2 reaches on a model of ours, it reaches on that model exported and imported again."""
    monkeypatch.chdir(place)
    (place / "ours.toml").write_text(OURS)
    assert main(["train", "ours.toml"]) == 0
    assert main(["export", "--to", "marian", "ours/sentence/model", "-o", "exported"]) == 0
    assert main(["import", "exported", "-o", "again", "--languages", "fr-en"]) == 0
    assert main(["train", "ours.toml", "--set", "document.start_from=again", "--set", "output=theirs"]) == 0
    ours, theirs = (load_file(place / run / "document" / "model" / "weights.safetensors") for run in ("ours", "theirs"))
    assert ours.keys() == theirs.keys() and all(torch.equal(ours[name], theirs[name]) for name in ours)
    one, other = (load(place / run / "document" / "model") for run in ("ours", "theirs"))
    pair = ParallelDocument("d", *(tuple(side) for side in (lines(5), lines(5, seed=3))))
    assert next(one.score([pair])) == next(other.score([pair]))
