"""`docnmt export --to marian` and `--to huggingface`: what goes out comes in again, and transformers reads it."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch

from docnmt.cli import main
from docnmt.config import ContextConfig, DecodingConfig
from docnmt.decoding.translator import load
from docnmt.interop.convert import import_model
from docnmt.model_folder import ModelCard, load_model, save_model, weights_of
from tests.builders import lines, make_model, subwords
from tests.marian_folders import write_huggingface, write_marian

transformers = pytest.importorskip("transformers", reason="transformers is not installed: it reads what is exported")

MARIANS = {"positions": "marian", "start": "zero", "norm_epsilon": 1e-6}


@pytest.fixture(scope="module", params=["all", "target", "none"])
def imported(request, tmp_path_factory):
    """The tying, transformers' model, a folder in Marian's layout, and what was imported from it."""
    root = tmp_path_factory.mktemp("export")
    model = write_huggingface(root / "hf", request.param)
    write_marian(root / "marian", model, request.param)
    import_model(str(root / "marian"), root / "imported", languages=("fr", "en"))
    return request.param, model, root


@pytest.mark.parametrize("to", ["marian", "huggingface"])
def test_what_goes_out_comes_in_again(imported, tmp_path, to):
    _, _, root = imported
    assert main(["export", "--to", to, str(root / "imported"), "-o", str(tmp_path / "out")]) == 0
    import_model(str(tmp_path / "out"), tmp_path / "again", languages=("fr", "en"))
    before, after = load_model(root / "imported"), load_model(tmp_path / "again")
    assert before.card == after.card
    assert before.source.content == after.source.content and before.target.content == after.target.content
    one, other = weights_of(before.model), weights_of(after.model)
    assert list(one) == list(other) and all(torch.equal(one[name], other[name]) for name in one)


def same_weights(one, other) -> bool:
    """But for the positions, which are computed for as many as the configuration says."""
    names = [name for name in one.state_dict() if "embed_positions" not in name]
    return all(torch.equal(one.state_dict()[name], other.state_dict()[name]) for name in names)


def test_transformers_reads_it(imported, tmp_path):
    _, model, root = imported
    main(["export", "--to", "huggingface", str(root / "imported"), "-o", str(tmp_path / "out")])
    again = transformers.MarianMTModel.from_pretrained(tmp_path / "out").eval()
    assert same_weights(model, again)
    tokenizer = transformers.MarianTokenizer.from_pretrained(tmp_path / "out")
    ours = load_model(root / "imported").source
    assert tokenizer(lines(5))["input_ids"] == [ours.whole(ids) for ids in ours.encode(lines(5))]


def test_as_transformers_it_goes_back_as_it_came(imported, tmp_path):
    _, model, root = imported
    import_model(str(root / "hf"), tmp_path / "theirs", "huggingface")
    main(["export", "--to", "huggingface", str(tmp_path / "theirs"), "-o", str(tmp_path / "out")])
    again = transformers.MarianMTModel.from_pretrained(tmp_path / "out")
    assert same_weights(model, again)


def save_own(folder, context=None, **settings):
    """A model of ours, with a SentencePiece model for each side."""
    source, target = subwords("source"), subwords("target")
    context = context or ContextConfig(kind="none")
    model = make_model(context=context, source_words=len(source), target_words=len(target), **settings)
    card = ModelCard(model.model_config, context, DecodingConfig(), "fr", "en")
    save_model(folder, weights_of(model), card, source, target, {})


def test_a_model_of_ours_with_marians_arithmetic_goes_out_as_its_sentence_model(tmp_path, capsys):
    save_own(tmp_path / "ours", ContextConfig(), **MARIANS)
    assert main(["export", "--to", "marian", str(tmp_path / "ours"), "-o", str(tmp_path / "out")]) == 0
    assert "without context" in capsys.readouterr().out
    import_model(str(tmp_path / "out"), tmp_path / "again", languages=("fr", "en"))
    one, other = load(tmp_path / "ours"), load(tmp_path / "again")
    greedy = replace(one.options, beam=1, length_penalty=0.0)
    first = [text[:20] for text in one.translate(lines(4), context="off", options=greedy)]
    assert first == [text[:20] for text in other.translate(lines(4), options=greedy)]  # which end each in their own way


@pytest.mark.parametrize(
    ("settings", "to", "said"),
    [
        ({}, "marian", 'model.positions = "marian", model.start = "zero"'),
        ({}, "huggingface", "uses features that Marian does not have"),
        (MARIANS, "huggingface", "needs both of the same size"),
    ],
)
def test_what_cannot_go_out_is_told(tmp_path, capsys, settings, to, said):
    save_own(tmp_path / "ours", **settings)
    assert main(["export", "--to", to, str(tmp_path / "ours"), "-o", str(tmp_path / "out")]) == 2
    assert said in capsys.readouterr().err and not (tmp_path / "out").exists()
