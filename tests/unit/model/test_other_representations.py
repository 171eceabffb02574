"""`context.representation = "embedding"` and `"lstm"`, as in the paper's released code.

What holds of every system is proved of them as well: tests/every_system.py.
"""

from __future__ import annotations

import pytest
import torch

from docnmt.base.errors import DocnmtError
from docnmt.config import ContextConfig
from docnmt.engine import Engine, EngineState
from docnmt.model.transformer import DecoderState
from tests.builders import TARGET_WORDS, make_model, random_batch

KINDS = ("embedding", "lstm")


def of(kind: str, **settings: object):
    return make_model(context=ContextConfig(representation=kind), **settings)


@torch.no_grad()
def test_embeddings_are_those_of_the_words_wherever_they_stand():
    model, batch = of("embedding"), random_batch(6)
    c, segments = model.represent(batch.context)
    assert torch.equal(c, model.source_embedding.weight[batch.context.tokens] * 4)  # the root of 16
    assert segments is batch.context.segments


@torch.no_grad()
def test_an_lstm_reads_each_context_by_itself_in_both_directions():
    model, batch = of("lstm"), random_batch(6)
    c, segments = model.represent(batch.context)
    words = model.source_embedding.words(batch.context.tokens)
    lengths = segments.lengths.tolist()
    for found, alone in zip(c.split(lengths), words.split(lengths), strict=True):
        torch.testing.assert_close(found, model.context_encoder.lstm(alone[None])[0][0])


def test_an_lstm_begins_by_remembering():
    biases = dict(of("lstm", shaken=False).context_encoder.lstm.named_parameters())
    assert (biases["bias_ih_l0"] + biases["bias_hh_l0"]).tolist() == [0.0] * 8 + [1.0] * 8 + [0.0] * 16


def test_an_lstm_has_two_halves():
    with pytest.raises(DocnmtError, match="even"):
        of("lstm", width=15, heads=3)


@pytest.mark.parametrize("kind", KINDS)
@torch.no_grad()
def test_the_engine_computes_what_the_model_computes(kind):
    model, batch = of(kind), random_batch(6)
    engine = Engine(model, int8=False)
    ours = EngineState(engine, engine.encode(batch.source, batch.context), beam=2)
    plain = DecoderState(model, model.encode(batch.source, batch.context), 2)
    for step in range(4):
        words = (torch.arange(12) + step) % TARGET_WORDS
        torch.testing.assert_close(ours.logits(words), plain.logits(words), atol=1e-4, rtol=1e-4)
