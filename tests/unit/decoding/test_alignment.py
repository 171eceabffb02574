"""Word alignment: a model whose attention is known gives known links, and spans are right in any text."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from docnmt.config import ContextConfig, DecodingConfig, ModelConfig
from docnmt.decoding.scoring import _words, align
from docnmt.decoding.translator import Translator
from docnmt.model.base import TranslationModel, select
from docnmt.model.rnnsearch import RNNsearch
from docnmt.model_folder import LoadedModel, ModelCard
from tests.builders import lines, loaded_model, make_model, random_batch, shake, subwords


@torch.no_grad()
def looks_at_its_own_place(layers: int = 1, looking: int = 0):
    """A model whose layer `looking` looks, when it writes the n-th piece, at the n-th piece of the source; all else in
    it adds nothing to the positions. Its other layers look everywhere alike."""
    words = len(subwords())
    sizes = {"width": 64, "heads": 1, "decoder_layers": layers}
    model = make_model(context=ContextConfig(kind="none"), source_words=words, target_words=words, **sizes)
    for name, parameter in model.named_parameters():
        if not name.endswith("norm.weight"):
            parameter.zero_()
        else:
            parameter.fill_(1.0)
    attention = model.decoder[looking].source_attention
    attention.query.weight.copy_(torch.eye(64) * 5)
    attention.key_value.weight[:64].copy_(torch.eye(64) * 5)
    card = ModelCard(model.model_config, ContextConfig(kind="none"), DecodingConfig(), "fr", "fr")
    return Translator(LoadedModel(model, card, subwords(), subwords()))


def as_text(pair, links):
    source, target = pair
    return [(source[a:b], target[c:d]) for (a, b), (c, d) in links]


# ---- known attention ----


def test_a_copy_is_aligned_with_itself():
    sentences = [sentence for sentence in lines(12, seed=4) if sentence.count(",") < 2]
    found = align(looks_at_its_own_place(), [(s, s) for s in sentences])
    for sentence, links in zip(sentences, found, strict=True):
        assert all(source == target for source, target in links)
        assert [sentence[a:b] for (a, b), _ in links] == sentence.replace(".", " .").replace(",", " ,").split()


def test_a_piece_belongs_to_the_attention_that_wrote_it():
    assert [len(ids) for ids in subwords().encode(["le", "la"])] == [1, 1]
    (links,) = align(looks_at_its_own_place(), [("le  la le", "la le la")])
    assert links == [((0, 2), (0, 2)), ((4, 6), (3, 5)), ((7, 9), (6, 8))]


def test_words_are_not_linked_with_marks():
    (links,) = align(looks_at_its_own_place(), [("le chat .", "le . chat")])
    assert as_text(("le chat .", "le . chat"), links) == [("le", "le"), ("chat", "chat"), (".", ".")]
    assert align(looks_at_its_own_place(), [("le chat", "!")]) == [[]]


@pytest.mark.parametrize(("layers", "looking"), [(1, 0), (2, 1), (3, 2), (6, 4)])
def test_the_layer_that_is_read(layers, looking):
    sentence = "le chat voit la mer"
    (links,) = align(looks_at_its_own_place(layers, looking), [(sentence, sentence)])
    assert [source for source, target in links if source == target] == [source for source, _ in links]


# ---- any text ----


ODD = st.lists(
    st.sampled_from(
        ["le chat", "ﬁn", "½", "  ", "…", "é", "e\u0301", "😀", "Ａ．", "l'été", "我喜欢猫", "\u00a0", "a_b"]
    ),
    max_size=4,
).map("".join)


@given(source=ODD, target=ODD)
@settings(max_examples=30, deadline=None)
def test_spans_are_words_of_the_texts(source, target):
    (links,) = align(Translator(loaded_model()), [(source, target)])
    for (a, b), (c, d) in links:
        for word in (source[a:b], target[c:d]):
            assert word and not any(character.isspace() for character in word)
            assert len(word) == 1 or not any(character in "'…．😀" for character in word)
    assert links == sorted(set(links))
    words = {source[a:b] for (a, b), _ in links}
    if "chat" in source and "chat" in target:
        assert any("chat" in word for word in words)  # a word of either side always has a link


def test_words_in_scripts_without_spaces_are_pieces():
    assert _words("我喜欢猫。", {0, 1, 3, 4}) == [(0, 1), (1, 3), (3, 4), (4, 5)]
    assert _words("ab cd", {0, 1, 3}) == [(0, 2), (3, 5)]
    assert _words("用X线", {0, 1, 2}) == [(0, 1), (1, 2), (2, 3)]
    assert _words("का e\u0301t", set()) == [(0, 2), (3, 6)]


def test_characters_that_are_normalised_away():
    text = "le\u200b \u200b chat \ufeff"
    (links,) = align(looks_at_its_own_place(), [(text, text)])
    own = {text[a:b] for (a, b), target in links if (a, b) == target}
    assert own >= {"le", "chat"}


def test_nothing_to_align():
    assert align(Translator(loaded_model()), []) == []
    assert align(Translator(loaded_model()), [("", "le"), ("le", ""), ("  ", " ")]) == [[], [], []]


def test_a_sentence_beyond_the_models_length_is_not_aligned():
    long = " ".join(lines(12, seed=3))
    translator = Translator(loaded_model())
    assert len(subwords().encode([long])[0]) > translator.card.model.max_length
    found = align(translator, [(long, "le"), ("le", long), ("le chat", "la mer")])
    assert found[:2] == [[], []] and found[2]


@pytest.mark.parametrize("batch_tokens", [1, 60, 100_000])
def test_batches_change_nothing(batch_tokens):
    translator = Translator(loaded_model())
    pairs = list(zip(lines(9, seed=1), lines(9, seed=2), strict=True))
    expected = [align(translator, [pair])[0] for pair in pairs]
    translator.options = replace(translator.options, batch_tokens=batch_tokens)
    assert align(translator, pairs) == expected


# ---- models ----


def test_the_model_is_left_as_it_was():
    translator = Translator(loaded_model())
    before = translator.translate(["le chat voit la mer."])
    align(translator, [("le chat", "le chat")])
    assert all(not module._forward_hooks for module in translator.model.modules())
    assert translator.translate(["le chat voit la mer."]) == before


def test_attention_of_a_recurrent_model_is_that_of_each_step():
    torch.manual_seed(0)
    model = shake(RNNsearch(ModelConfig(kind="rnnsearch", width=16), ContextConfig(kind="none"), 23, 19)).eval()
    batch = random_batch(4, context=False)
    with torch.no_grad():
        found = model.alignment(batch).numpy()
    ends = np.cumsum([0, *batch.target_in.segments.lengths.tolist()])
    with torch.no_grad():
        annotations = model.encode(batch.source)
        for i, (begin, end) in enumerate(pairwise(ends)):
            own = select(annotations, torch.tensor([i]))
            s = own.start
            for step, word in enumerate(batch.target_in.tokens[begin:end]):
                _, weights = model.attend(s, own)
                np.testing.assert_allclose(found[i][step], weights[0].numpy(), atol=1e-6)
                s, _ = model.step(s, model.read(model.embed(model.target_embedding, word[None])), own)
            assert found[i][: end - begin].sum(axis=1) == pytest.approx(1.0, abs=1e-5)


def test_a_model_without_a_known_attention_gives_no_links():
    class Another(TranslationModel):
        pass

    loaded = loaded_model()
    another = Another(loaded.model.model_config, loaded.card.context)
    another.weight = torch.nn.Parameter(torch.zeros(1))
    translator = Translator(replace(loaded, model=another))
    assert align(translator, [("le chat", "la mer"), ("rien", "rien")]) == [[], []]
