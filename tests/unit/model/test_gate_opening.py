"""`context.gate_opening`: how much of the context the gates let in at first."""

from __future__ import annotations

import pytest
import torch

from docnmt.base.errors import DocnmtError
from docnmt.config import ContextConfig
from docnmt.engine import Engine, EngineState
from docnmt.model.transformer import DecoderState
from tests.builders import STARTS, TARGET_WORDS, make_model, random_batch


@pytest.mark.parametrize("start", STARTS)
@pytest.mark.parametrize("opening", [0.05, 0.5, 0.9])
@torch.no_grad()
def test_gates_begin_as_open_as_asked_for(opening, start):
    model = make_model(context=ContextConfig(gate_opening=opening, start=start), width=256, shaken=False)
    gate = model.decoder[0].context.connection.gate
    assert (gate.w_i.bias is None) is (opening == 0.5)  # the paper's has none
    let_in = 1 - gate(torch.randn(50, 256) * 0.1, torch.zeros(50, 256))
    assert float(let_in.mean()) == pytest.approx(opening, abs=0.01)


@pytest.mark.parametrize("start", STARTS)
@torch.no_grad()
def test_the_engine_knows_the_bias(start):
    model, batch = make_model(context=ContextConfig(gate_opening=0.9, start=start)), random_batch(6)
    engine = Engine(model, int8=False)
    ours = EngineState(engine, engine.encode(batch.source, batch.context), beam=2)
    plain = DecoderState(model, model.encode(batch.source, batch.context), 2)
    for step in range(4):
        words = (torch.arange(12) + step) % TARGET_WORDS
        torch.testing.assert_close(ours.logits(words), plain.logits(words), atol=1e-4, rtol=1e-4)


@pytest.mark.parametrize("opening", [0.0, 1.0, -1.0])
def test_a_gate_is_never_quite_shut_or_open(opening):
    with pytest.raises(DocnmtError, match="gate_opening"):
        ContextConfig(gate_opening=opening)
