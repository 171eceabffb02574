"""`context.representation = "encoder"`: the context is what the frozen encoder says of each sentence before.

What holds of every system is proved of it as well: tests/every_system.py.
"""

from __future__ import annotations

import pytest
import torch

from docnmt.base.errors import DocnmtError
from docnmt.config import ContextConfig
from docnmt.data.context import Before, HistoryRule
from docnmt.data.packing import make_batch, pack, pack_contexts
from docnmt.decoding.beam import beam_search
from docnmt.decoding.translator import Translator
from docnmt.document import ContextSpec, Document
from docnmt.engine import Engine, EngineState
from docnmt.engine.native import accelerator
from docnmt.evaluation.context_gain import context_gain
from docnmt.evaluation.context_trace import attention_by_word, gate_by_layer, traced
from docnmt.model.context import is_document_parameter
from docnmt.model.transformer import DecoderState
from docnmt.model_folder import load_model, save_model, weights_of
from docnmt.systems import system_of
from tests.builders import (
    BOS,
    CONNECTIONS,
    EOS,
    INTEGRATIONS,
    SOURCE_WORDS,
    STARTS,
    TARGET_WORDS,
    logits_of,
    make_model,
    parallel_documents,
    random_sentences,
    sentence_model_of,
    with_end,
)
from tests.every_system import briefly_trained

ENCODED = "attention-encoder-states"  # in tests/every_system.py
HEADS = [4, pytest.param(2, marks=pytest.mark.skipif(accelerator() is None, reason="the C extension is not built"))]


def encoded(**settings: object) -> ContextConfig:
    return ContextConfig(representation="encoder", **settings)


def histories(count: int, seed: int = 0) -> list[Before]:
    """One to three sentences before, the last sentence of the batch at the begin of its document."""
    found = [Before(with_end(random_sentences(1 + i % 3, SOURCE_WORDS, seed + i))) for i in range(count - 1)]
    return [*found, Before([[BOS]])]


def batch_of(contexts: list[Before], seed: int = 0):
    sources = with_end(random_sentences(len(contexts), SOURCE_WORDS, seed))
    return make_batch(sources, contexts, random_sentences(len(contexts), TARGET_WORDS, seed + 1), BOS, EOS)


@torch.no_grad()
def test_each_sentence_is_encoded_by_itself_and_marked_with_its_distance():
    model = make_model(context=encoded(previous=3))
    sentence, marks = sentence_model_of(model), model.context_encoder.distance
    contexts = histories(7)
    c, segments = model.represent(pack_contexts(contexts, BOS))
    assert segments.lengths.tolist() == [len(context) for context in contexts]
    for found, context in zip(c.split(segments.lengths.tolist()), contexts, strict=True):
        far = len(context.sources)
        alone = [sentence.encode(pack([ids])).states + marks[far - 1 - i] for i, ids in enumerate(context.sources)]
        torch.testing.assert_close(found, torch.cat(alone))


@torch.no_grad()
def test_a_sentence_farther_back_than_in_training_has_the_farthest_mark():
    model = make_model(context=encoded(previous=2))
    c, _ = model.represent(pack_contexts([Before([[5, EOS]] * 4)], BOS))
    near, *others = c.split(2)[::-1]
    assert not torch.allclose(near, others[0])
    for other in others[1:]:
        torch.testing.assert_close(other, others[0])


def test_theta_d_has_no_context_encoder_but_the_marks():
    model = make_model(context=encoded(previous=2))
    assert model.get_parameter("context_encoder.distance").shape == (2, 16)
    assert [name for name, _ in model.named_parameters() if name.startswith("context")] == ["context_encoder.distance"]


@pytest.mark.parametrize("connection", CONNECTIONS)
def test_step_2_can_start_as_exactly_the_sentence_model(connection):
    model = make_model(context=encoded(start="sentence", connection=connection), shaken=False)
    batch = batch_of(histories(5))
    torch.testing.assert_close(logits_of(model, batch), logits_of(sentence_model_of(model), batch))


def test_the_encoder_is_read_not_trained_through():
    model = make_model(context=encoded(integration="decoder"))
    c, _ = model.represent(pack_contexts(histories(3), BOS))
    c.sum().backward()
    assert [name for name, p in model.named_parameters() if p.grad is not None] == ["context_encoder.distance"]
    assert is_document_parameter("context_encoder.distance")


def test_it_reads_no_sentences_after():
    rule = system_of("transformer", "attention").rule(encoded())
    assert rule is HistoryRule
    with pytest.raises(DocnmtError, match="only reads sentences before"):
        rule(ContextSpec(1, 1), 256, BOS, EOS)


# ---- decoding ----


@pytest.mark.parametrize("heads", HEADS)
@pytest.mark.parametrize("start", STARTS)
@pytest.mark.parametrize("integration", INTEGRATIONS)
def test_the_engine_writes_what_the_model_writes(integration, start, heads):
    model = make_model(context=encoded(integration=integration, start=start), heads=heads)
    sources, contexts = pack(with_end(random_sentences(9, SOURCE_WORDS, 3))), histories(9)

    def search(decoder, state, given):
        found = beam_search(decoder, sources, given, bos=BOS, eos=EOS, start=state, beam=3, nbest=3)
        return [hypothesis for sentence in found for hypothesis in sentence]

    for given in (pack_contexts(contexts, BOS), None):
        ours = search(Engine(model, int8=False), EngineState, given)
        plain = search(model, DecoderState, given)
        assert [h.tokens for h in ours] == [h.tokens for h in plain]
        assert [h.score for h in ours] == pytest.approx([h.score for h in plain], abs=1e-4)


def test_a_saved_model_translates_as_before(tmp_path):
    loaded = briefly_trained(ENCODED)
    save_model(tmp_path / "m", weights_of(loaded.model), loaded.card, loaded.source, loaded.target, {})
    documents = [Document(d.id, d.source) for d in parallel_documents([4, 1, 3], seed=9)]
    again = load_model(tmp_path / "m")
    assert again.card.context.representation == "encoder"
    one, other = (
        [[s.text for s in d.sentences] for d in Translator(model).translate_documents(documents)]
        for model in (loaded, again)
    )
    assert one == other


# ---- what is shown of it ----


def test_what_words_looked_at_is_told_by_sentence_and_end_marks_together():
    translator, documents = Translator(briefly_trained(ENCODED)), parallel_documents([4], seed=9)
    sources = documents[0].source
    ids, wanted = translator.source.encode(sources), translator.target.encode(documents[0].target)
    rule = translator.card.rule(translator.source)
    for position in range(4):
        batch = make_batch(
            [[*ids[position], rule.eos]], [rule.context(rule.around(ids, position))], [wanted[position]], BOS, EOS
        )
        pieces = [*translator.target.pieces(wanted[position]), "</s>"]
        with traced(translator.model) as trace:
            found = attention_by_word(translator, sources, position, pieces, batch, trace)
        before = sources[max(0, position - 2) : position]
        assert ["".join(c["words"]).strip() for c in found.context] == list(before)
        assert not any(c["cut"] for c in found.context)
        weights = trace["decoder 1"].weights[0].mean(0)  # [target pieces, context pieces]
        lengths = [len(ids[i]) + 1 for i in range(max(0, position - 2), position)] or [1]
        ends = torch.tensor(lengths).cumsum(0) - 1
        expected = weights[:, ends].sum(1)[-1]  # of the end mark's row
        assert found.attention["decoder"][0, -1, -1] == pytest.approx(float(expected), abs=1e-6)
        assert found.attention["decoder"][0].sum(-1) == pytest.approx(1, abs=1e-5)


def test_context_gain_and_gates_are_there():
    translator, documents = Translator(briefly_trained(ENCODED)), parallel_documents([4, 1, 3], seed=9)
    assert set(gate_by_layer(translator, documents)) == {"encoder 1", "decoder 1"}
    assert len(context_gain(translator, documents).totals()) == 8
