"""Beam search with forced lengths, as benchmarks/decoding.py compares it: where nothing ends before its time, beams of
any program are the same. So the same weights must give the same words, to the token."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

from benchmarks.decoders.ctranslate2_writer import export
from benchmarks.decoders.material import random_shortlist
from benchmarks.decoders.transformers_model import as_marian
from docnmt.config import ContextConfig, DecodingConfig
from docnmt.data.packing import pack
from docnmt.data.subwords import PAD, UNK
from docnmt.decoding.beam import beam_search
from docnmt.engine import Engine, EngineState
from docnmt.engine.shortlist import Shortlist
from docnmt.model.transformer import DocumentTransformer
from docnmt.model_folder import ModelCard, save_model, weights_of
from tests.builders import BOS, EOS, make_model, random_sentences, subwords

BEAM, LENGTH = 4, 12

Sentences = list[list[int]]


@pytest.fixture(scope="module")
def model() -> DocumentTransformer:
    sizes = {"source_words": len(subwords("source")), "target_words": len(subwords("target"))}
    return make_model(4, context=ContextConfig(kind="none"), **sizes)


@pytest.fixture(scope="module")
def sentences(model) -> Sentences:
    return random_sentences(6, len(model.source_embedding.weight), seed=5, shortest=3, longest=9)


def decode(model: DocumentTransformer, sentences: Sentences, words: Shortlist | None = None) -> Sentences:
    forced = [LENGTH] * len(sentences)
    found = beam_search(
        Engine(model, int8=False, shortlist=words),
        pack([[*sentence, EOS] for sentence in sentences]),
        None,
        bos=BOS,
        eos=EOS,
        beam=BEAM,
        start=EngineState,
        lengths=forced,
    )
    best = [list(hypotheses[0].tokens) for hypotheses in found]
    assert [len(sentence) for sentence in best] == forced
    assert len({tuple(sentence) for sentence in best}) > 1
    return best


@pytest.fixture(scope="module")
def ours(model, sentences) -> Sentences:
    return decode(model, sentences)


def shortlist() -> Shortlist:
    made = random_shortlist(len(subwords("source")), len(subwords("target")), 60)
    return Shortlist(np.array([BOS, UNK, *made.always]), made.lexicon)  # CTranslate2 always lets these be written


@pytest.fixture(scope="module")
def exported(model, tmp_path_factory) -> Path:
    pytest.importorskip("ctranslate2", reason='needs CTranslate2: pip install "docnmt[bench]"')
    folder = tmp_path_factory.mktemp("forced")
    card = ModelCard(model.model_config, model.context_config, DecodingConfig(), "fr", "en")
    save_model(folder / "model", weights_of(model), card, subwords("source"), subwords("target"), {})
    shortlist().write(folder / "model")
    export(folder / "model", folder / "exported")
    return folder / "exported"


def of_ctranslate2(exported: Path, sentences: Sentences, use_vmap: bool = False) -> list[list[str]]:
    import ctranslate2

    found = ctranslate2.Translator(str(exported), intra_threads=1).translate_batch(
        [subwords("source").pieces(sentence) for sentence in sentences],
        beam_size=BEAM,
        min_decoding_length=LENGTH,
        max_decoding_length=LENGTH,
        use_vmap=use_vmap,
    )
    return [result.hypotheses[0] for result in found]


def test_ctranslate2(exported, sentences, ours):
    assert of_ctranslate2(exported, sentences) == [subwords("target").pieces(sentence) for sentence in ours]


def test_ctranslate2_with_the_same_shortlist(model, exported, sentences, ours):
    found = decode(model, sentences, shortlist())
    assert found != ours
    # Ours has a shortlist for each sentence, CTranslate2 one for a batch: so a sentence a batch.
    theirs = [of_ctranslate2(exported, [sentence], use_vmap=True)[0] for sentence in sentences]
    assert theirs == [subwords("target").pieces(row) for row in found]


def test_marian(model, sentences, ours):
    pytest.importorskip("transformers", reason="transformers is not installed: no Marian to compare with")
    longest = max(map(len, sentences))
    source = torch.tensor([[*sentence, EOS, *[PAD] * (longest - len(sentence))] for sentence in sentences])
    found = as_marian(model, begin=BOS, end=EOS).generate(
        input_ids=source,
        attention_mask=source != PAD,
        num_beams=BEAM,
        do_sample=False,
        min_new_tokens=LENGTH,
        max_new_tokens=LENGTH,
    )
    assert found[:, 1:].tolist() == ours
