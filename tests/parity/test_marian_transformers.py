"""Imported with --as huggingface a model computes what transformers computes; by default what Marian does."""

from __future__ import annotations

import pytest
import torch

from docnmt.data.context import Neighbours
from docnmt.data.packing import pack
from docnmt.decoding.beam import beam_search
from docnmt.decoding.translator import load
from docnmt.decoding.units import SENTENCE_RULE
from docnmt.document import Document
from docnmt.interop.convert import import_model
from tests.builders import in_target_language, lines
from tests.marian_folders import OPUS, write_huggingface

transformers = pytest.importorskip("transformers", reason="transformers is not installed: no Marian to compare with")

CASES = [("all", "swish"), ("target", "relu"), ("none", "gelu")]
STRANGE = ["", "le ☃ chat 🙂", "l’été…", "LE CHAT", "   le   pain  ", "no on 1 y"]
SENTENCES = [*lines(14, seed=5), *STRANGE]


@pytest.fixture(scope="module", params=CASES, ids=lambda case: "-".join(case))
def both(request, tmp_path_factory):
    """The folder, transformers' model, and ours."""
    root = tmp_path_factory.mktemp("both")
    model = write_huggingface(root / "hf", *request.param)
    import_model(str(root / "hf"), root / "ours", "huggingface")
    return root / "hf", model, load(root / "ours")


def test_ids_are_those_of_its_tokenizer(both):
    folder, _, ours = both
    tokenizer = transformers.MarianTokenizer.from_pretrained(folder)
    assert [ours.source.whole(ids) for ids in ours.source.encode(SENTENCES)] == tokenizer(SENTENCES)["input_ids"]
    targets = [*in_target_language(SENTENCES)]
    expected = tokenizer(text_target=targets)["input_ids"]
    assert [[*ids, ours.target.eos] for ids in ours.target.encode(targets)] == expected


def check_logits(model, ours, sentences):
    sources, targets = ours.source.encode(sentences), ours.target.encode(in_target_language(sentences))
    for source, target in zip(sources, targets, strict=True):
        pair = ours.pair(source, target, Neighbours(), SENTENCE_RULE)
        with torch.inference_mode():
            found = ours.model.softmax(ours.model(ours.batch([pair])))
            decoder = torch.tensor([[model.config.decoder_start_token_id, *target]])
            expected = model(torch.tensor([[*source, ours.source.eos]]), decoder_input_ids=decoder).logits[0]
        torch.testing.assert_close(found, expected, atol=2e-4, rtol=1e-4)


def check_words(model, ours, sentences, beam, longest) -> int:
    """How many ended by themselves; the others were cut, and are not compared."""
    (document,) = ours.translate_documents([Document("d", tuple(sentences))], beam=beam, length_penalty=1.0)
    given = {"num_beams": beam, "do_sample": False, "max_length": longest, "bad_words_ids": [[ours.target.bos]]}
    ended = 0
    for sentence, translated in zip(sentences, document.sentences, strict=True):
        ids = ours.source.encode([sentence])[0]
        if not ids:
            assert translated.text == ""
            continue
        with torch.inference_mode():
            words = model.generate(torch.tensor([[*ids, ours.source.eos]]), **given)[0, 1:].tolist()
        if ours.target.eos in words[: longest - 2]:
            ended += 1
            assert translated.text == ours.target.decode([words[: words.index(ours.target.eos)]])[0]
    return ended


def test_the_same_logits(both):
    _, model, ours = both
    check_logits(model, ours, SENTENCES)


@pytest.mark.parametrize("beam", [1, 4])
def test_the_same_words(both, beam):
    _, model, ours = both
    assert check_words(model, ours, SENTENCES, beam, 64) > 8


@pytest.mark.slow
def test_at_opus_mts_own_size(tmp_path):
    """Random weights, 512 wide, 6 + 6 layers and 60,000 words."""
    words = tuple(f"word{n}" for n in range(60_000))
    model = write_huggingface(tmp_path / "hf", more=words, noise=0.1, **OPUS)
    import_model(str(tmp_path / "hf"), tmp_path / "ours", "huggingface")
    ours = load(tmp_path / "ours")
    check_logits(model, ours, SENTENCES[:4])
    sources = [ours.source.whole(ids) for ids in ours.source.encode(SENTENCES[:4])]
    found = beam_search(
        ours.model, pack(sources), None, bos=ours.target.bos, eos=ours.target.eos, beam=1, lengths=[8] * 4
    )
    given = {"num_beams": 1, "do_sample": False, "min_new_tokens": 8, "max_new_tokens": 8}
    with torch.inference_mode():
        expected = [tuple(model.generate(torch.tensor([ids]), **given)[0, 1:].tolist()) for ids in sources]
    assert [best.tokens for (best,) in found] == expected
    assert len({word for words in expected for word in words}) > 2  # it is not one word again and again


def test_by_default_it_is_marians_arithmetic(both, tmp_path):
    folder, _, theirs = both
    import_model(str(folder), tmp_path / "marian")
    ours = load(tmp_path / "marian").card.model
    assert (ours.positions, ours.start, ours.norm_epsilon, ours.search) == ("marian", "zero", 1e-6, "marian")
    assert len(load(tmp_path / "marian").target) == len(theirs.target) - 1  # no <pad>
