"""The sentence model against two implementations that others wrote, with the same weights."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from benchmarks.decoders.transformers_model import as_marian
from docnmt.config import ContextConfig
from docnmt.data.packing import make_batch, pack
from docnmt.decoding.beam import beam_search
from docnmt.model.layers import sinusoids
from docnmt.model.transformer import DocumentTransformer
from tests.builders import (
    BOS,
    EOS,
    SOURCE_WORDS,
    TARGET_WORDS,
    fit,
    logits_of,
    make_model,
    random_sentences,
    with_end,
)

PAD = 0
NO_CONTEXT = ContextConfig(kind="none")


def pad(sentences: list[list[int]]) -> torch.Tensor:
    longest = max(map(len, sentences))
    return torch.tensor([[*sentence, *[PAD] * (longest - len(sentence))] for sentence in sentences])


def copy_linear(ours: nn.Linear, theirs: nn.Linear) -> None:
    theirs.weight.copy_(ours.weight)
    theirs.bias.copy_(ours.bias)


def problem(count: int, source_words: int, target_words: int, seed: int = 0):
    """Sentences of several lengths: ours packed, theirs padded."""
    sources = with_end(random_sentences(count, source_words, seed, longest=9))
    targets = random_sentences(count, target_words, seed + 1, longest=9)
    batch = make_batch(sources, None, targets, BOS, EOS)
    return batch, pad(sources), pad([[BOS, *target] for target in targets])


# ---- torch.nn.Transformer ----


@torch.no_grad()
def as_torch(model: DocumentTransformer) -> tuple[nn.TransformerEncoder, nn.TransformerDecoder]:
    config = model.model_config
    sizes = {
        "d_model": config.width,
        "nhead": config.heads,
        "dim_feedforward": config.filter_width,
        "activation": "relu",
        "norm_first": False,
        "batch_first": True,
    }
    # No norm after the last layer: post-norm layers end in one already.
    encoder = nn.TransformerEncoder(
        nn.TransformerEncoderLayer(**sizes), config.encoder_layers, norm=None, enable_nested_tensor=False
    )
    decoder = nn.TransformerDecoder(nn.TransformerDecoderLayer(**sizes), config.decoder_layers, norm=None)
    for ours, theirs in zip([*model.encoder, *model.decoder], [*encoder.layers, *decoder.layers], strict=True):
        theirs.self_attn.in_proj_weight.copy_(ours.attention.query_key_value.weight)
        theirs.self_attn.in_proj_bias.copy_(ours.attention.query_key_value.bias)
        copy_linear(ours.attention.output, theirs.self_attn.out_proj)
        copy_linear(ours.after_attention.norm, theirs.norm1)
        copy_linear(ours.feed_forward.inner, theirs.linear1)
        copy_linear(ours.feed_forward.outer, theirs.linear2)
        if isinstance(theirs, nn.TransformerEncoderLayer):
            copy_linear(ours.after_feed_forward.norm, theirs.norm2)
            continue
        cross = ours.source_attention
        theirs.multihead_attn.in_proj_weight.copy_(torch.cat([cross.query.weight, cross.key_value.weight]))
        theirs.multihead_attn.in_proj_bias.copy_(torch.cat([cross.query.bias, cross.key_value.bias]))
        copy_linear(cross.output, theirs.multihead_attn.out_proj)
        copy_linear(ours.after_source_attention.norm, theirs.norm2)
        copy_linear(ours.after_feed_forward.norm, theirs.norm3)
    return encoder.eval(), decoder.eval()


@torch.no_grad()
def torch_logits(model: DocumentTransformer, source: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
    encoder, decoder = as_torch(model)
    width = model.model_config.width

    def embed(weight: torch.Tensor, tokens: torch.Tensor) -> torch.Tensor:
        table = sinusoids(tokens.shape[1], width, torch.device("cpu"))
        return weight[tokens] * width**0.5 + table[: tokens.shape[1]]

    padding = source == PAD
    memory = encoder(embed(model.source_embedding.weight, source), src_key_padding_mask=padding)
    states = decoder(
        embed(model.target_embedding.weight, target),
        memory,
        tgt_mask=nn.Transformer.generate_square_subsequent_mask(target.shape[1]),
        memory_key_padding_mask=padding,
        tgt_is_causal=True,
    )
    return (states @ model.softmax.weight.T)[target != PAD]


@pytest.mark.parametrize("tie", ["none", "target"])
@pytest.mark.parametrize("settings", [{}, {"width": 24, "heads": 3, "encoder_layers": 3, "decoder_layers": 1}], ids=str)
def test_against_torch_nn_transformer(tie, settings):
    model = make_model(context=NO_CONTEXT, tie=tie, **settings)
    batch, source, target = problem(6, SOURCE_WORDS, TARGET_WORDS)
    expected = torch_logits(model, source, target)
    torch.testing.assert_close(logits_of(model, batch), expected, atol=1e-5, rtol=1e-5)


def test_a_document_model_with_its_context_off_against_torch_nn_transformer():
    model = make_model()
    batch, source, target = problem(6, SOURCE_WORDS, TARGET_WORDS)
    torch.testing.assert_close(logits_of(model, batch), torch_logits(model, source, target), atol=1e-5, rtol=1e-5)


# ---- Marian, as in transformers ----


def marian_of(model: DocumentTransformer):
    pytest.importorskip("transformers", reason="transformers is not installed: no Marian to compare with")
    marian = as_marian(model, begin=BOS, end=EOS)
    table = sinusoids(80, model.model_config.width, torch.device("cpu"))[:80]
    for side in (marian.model.encoder, marian.model.decoder):
        # Marian keeps its own table of positions: it is ours.
        torch.testing.assert_close(side.embed_positions.weight[:80], table, atol=1e-5, rtol=0)
    return marian


@pytest.mark.parametrize("tie", ["all", "target", "none"])
def test_against_marian(tie):
    source_words, target_words = (31, 31) if tie == "all" else (SOURCE_WORDS, TARGET_WORDS)
    model = make_model(context=NO_CONTEXT, tie=tie, source_words=source_words, target_words=target_words)
    batch, source, target = problem(6, source_words, target_words)
    with torch.no_grad():
        found = marian_of(model)(input_ids=source, attention_mask=source != PAD, decoder_input_ids=target).logits
    torch.testing.assert_close(logits_of(model, batch), found[target != PAD], atol=1e-4, rtol=1e-4)


def test_greedy_decoding_against_marian():
    # Greedy only: transformers' beam search takes an end mark among the best `beam`, the paper's code among twice that.
    model = make_model(1, context=NO_CONTEXT, tie="all", source_words=31, target_words=31, dropout=0.0, shaken=False)
    copying = (make_batch(with_end(s), None, s, BOS, EOS) for s in (random_sentences(24, 31, n) for n in range(40)))
    fit(model, copying, 0.01)
    marian = marian_of(model)
    limit = 12
    for ids in with_end(random_sentences(6, 31, seed=100)):
        found = marian.generate(
            input_ids=torch.tensor([ids]),
            num_beams=1,
            do_sample=False,
            max_new_tokens=limit,
        )
        theirs = found[0, 1:].tolist()
        theirs = theirs[: theirs.index(EOS)] if EOS in theirs else theirs
        ((ours,),) = beam_search(model, pack([ids]), None, bos=BOS, eos=EOS, beam=1, extra_length=limit - len(ids))
        assert list(ours.tokens) == theirs
