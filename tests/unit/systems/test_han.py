"""The hierarchical attention network of Miculicich et al. (2018): its equations in NumPy, context off, decoding word by
word, batch mates, freezing, and what it remembers of a document."""

from __future__ import annotations

import functools
import itertools

import numpy as np
import pytest
import torch

from docnmt.config import ContextConfig, DecodingConfig
from docnmt.corpora.batches import make_batch, pack_contexts
from docnmt.corpora.contexts import Before, HistoryRule, MemoryRule
from docnmt.decoding.beam import beam_search
from docnmt.decoding.translator import Translator
from docnmt.document import Document
from docnmt.model.context import is_document_parameter
from docnmt.model_folder import LoadedModel, ModelCard, load_model, save_model, weights_of
from docnmt.systems import system_of
from docnmt.systems.han import SYSTEM, HanState, HanTransformer
from tests.builders import (
    BOS,
    EOS,
    INTEGRATIONS,
    SOURCE_WORDS,
    STARTS,
    TARGET_WORDS,
    fit,
    logits_of,
    model_config,
    parallel_documents,
    random_sentences,
    sentence_model_of,
    shake,
    subwords,
    with_end,
)

HEADS, WIDTH = 4, 16  # of model_config
COUNTS = (1, 3, 2, 1, 3)  # sentences before each of a batch; the first's is the begin mark alone


def han(integration: str = "both", start: str = "paper", connection: str = "gate", **settings: object) -> ContextConfig:
    return ContextConfig(kind="han", integration=integration, start=start, connection=connection, **settings)


def make_han(context: ContextConfig, seed: int = 0, shaken: bool = True, **settings: object) -> HanTransformer:
    torch.manual_seed(seed)
    model = HanTransformer(model_config(**settings), context, SOURCE_WORDS, TARGET_WORDS)
    return (shake(model, seed) if shaken else model).eval()


def parts(counts: tuple[int, ...] = COUNTS, seed: int = 0) -> tuple[list, list[Before], list]:
    """Sources, what stands before each, and targets."""
    sources = with_end(random_sentences(len(counts), SOURCE_WORDS, seed))
    targets = random_sentences(len(counts), TARGET_WORDS, seed + 1)
    before = [
        Before(
            with_end(random_sentences(count, SOURCE_WORDS, seed + 10 + i)),
            random_sentences(count, TARGET_WORDS, seed + 20 + i),
        )
        for i, count in enumerate(counts)
    ]
    before[0] = Before([[BOS]], [[]])
    return sources, before, targets


def batch_of(sources, before, targets):
    return make_batch(sources, before, targets, BOS, EOS)


every_place = pytest.mark.parametrize("integration", INTEGRATIONS)
VARIANTS = [han(integration, start) for integration, start in itertools.product(INTEGRATIONS, STARTS)]
every_variant = pytest.mark.parametrize("context", VARIANTS, ids=lambda c: f"{c.integration}-{c.start}")

# ---- the equations, for one state at a time ----


def array(tensor: torch.Tensor) -> np.ndarray:
    return tensor.detach().double().numpy()


def affine(x, layer):
    return x @ array(layer.weight).T + array(layer.bias)


def layer_norm(x, norm):
    x = (x - x.mean(-1, keepdims=True)) / np.sqrt(x.var(-1, keepdims=True) + 1e-5)
    return x * array(norm.weight) + array(norm.bias)


def multi_head(query, memory, attention):
    """One state attends to some others, which are keys and values."""
    q, (k, v) = affine(query, attention.query), np.split(affine(memory, attention.key_value), 2, axis=-1)
    size = WIDTH // HEADS
    heads = []
    for part in (slice(n * size, (n + 1) * size) for n in range(HEADS)):
        weights = np.exp(k[:, part] @ q[part] / np.sqrt(size))
        heads.append(weights / weights.sum() @ v[:, part])
    return affine(np.concatenate(heads), attention.output)


def summary(h_t, before, network):
    """d_t"""
    q_w = layer_norm(h_t, network.before_words)
    s = np.stack([layer_norm(multi_head(q_w, h_j, network.words), network.after_words) for h_j in before])
    m = multi_head(layer_norm(h_t, network.before_sentences), s, network.sentences)
    inner = np.maximum(0, affine(layer_norm(m, network.before_feed_forward), network.feed_forward.inner))
    return m + affine(inner, network.feed_forward.outer)


def with_context(h, before, network, start):
    """h~_t for each of a sentence's states, [words, width]"""
    changed = []
    for h_t in h:
        d_t = summary(h_t, before, network)
        gate = network.connection.gate
        lam = 1 / (1 + np.exp(-(array(gate.w_i.weight) @ h_t + array(gate.w_s.weight) @ d_t)))
        if start == "paper":
            changed.append(layer_norm(lam * h_t + (1 - lam) * d_t, network.connection.norm))
        else:
            changed.append(h_t + (1 - lam) * d_t)
    return np.stack(changed)


@every_variant
def test_the_whole_model_is_its_base_with_the_equations_above_encoder_and_decoder(context):
    """The base computes each sentence alone, also those before; the equations do the rest, state by state."""
    model = make_han(context).double()
    base = sentence_model_of(model).double()
    base.load_weights(dict(model.sentence_parameters()))
    sources, before, targets = parts()
    with torch.no_grad():
        whole = batch_of(sources, before, targets)
        found = model(whole).split(whole.target_in.segments.lengths.tolist())
        for source, history, target, states in zip(sources, before, targets, found, strict=True):
            alone = batch_of([source], None, [target])
            memory = base.encode(alone.source)
            past = [batch_of([s], None, [t]) for s, t in zip(history.sources, history.translations, strict=True)]
            read = [base.encode(b.source) for b in past]
            if model.context_in_encoder is not None:
                h_j = [array(m.states) for m in read]
                changed = with_context(array(memory.states), h_j, model.context_in_encoder, context.start)
                memory = memory._replace(states=torch.from_numpy(changed))
            expected = array(base.decode(alone.target_in, memory).states)
            if model.context_in_decoder is not None:
                h_j = [array(base.decode(b.target_in, m).states) for b, m in zip(past, read, strict=True)]
                expected = with_context(expected, h_j, model.context_in_decoder, context.start)
            np.testing.assert_allclose(array(states), expected, atol=1e-9)


def test_residual_is_the_model_without_its_gate():
    context = han("decoder", "sentence", "residual")
    model = make_han(context).double()
    sources, before, targets = parts((1,))
    batch, off = (batch_of(sources, around, targets) for around in (before, None))
    with torch.no_grad():
        past = batch_of(before[0].sources, None, before[0].translations)
        h, h_j = array(model(off)), array(model.decode(past.target_in, model.encode(past.source)).states)
        expected = np.stack([h_t + summary(h_t, [h_j], model.context_in_decoder) for h_t in h])
        np.testing.assert_allclose(array(model(batch)), expected, atol=1e-9)


# ---- parts, context on and off ----


def test_it_is_registered():
    assert system_of("transformer", "han") is SYSTEM


@pytest.mark.parametrize(
    ("integration", "expected"), [("encoder", HistoryRule), ("decoder", MemoryRule), ("both", MemoryRule)]
)
def test_only_the_decoder_needs_translations(integration, expected):
    assert SYSTEM.rule(han(integration)) is expected


@every_variant
def test_context_off_is_the_sentence_model_to_the_bit(context):
    model = make_han(context)
    sources, before, targets = parts()
    off = batch_of(sources, None, targets)
    assert torch.equal(logits_of(model, off), logits_of(sentence_model_of(model), off))
    assert (logits_of(model, off) - logits_of(model, batch_of(sources, before, targets))).abs().max() > 0.01


def test_without_a_place_there_is_no_network():
    assert not list(make_han(han("none")).document_parameters())


@every_place
def test_start_sentence_starts_as_exactly_the_sentence_model(integration):
    model = make_han(han(integration, "sentence"), shaken=False)
    sources, before, targets = parts()
    off = logits_of(model, batch_of(sources, None, targets))
    assert torch.equal(logits_of(model, batch_of(sources, before, targets)), off)
    paper = make_han(han(integration), shaken=False)
    assert not torch.allclose(logits_of(paper, batch_of(sources, before, targets)), off)


@every_place
def test_start_sentence_leaves_the_sentence_model_in_small_steps(integration):
    model, batch = make_han(han(integration, "sentence"), shaken=False), batch_of(*parts())
    start = logits_of(model, batch)
    optimiser = torch.optim.Adam([p for _, p in model.document_parameters()], lr=1e-3)
    model.loss(batch)[0].backward()
    optimiser.step()
    assert 0 < (logits_of(model, batch) - start).abs().max() < 0.05


@every_place
def test_each_sentence_before_matters_on_the_side_that_is_read(integration):
    model = make_han(han(integration))
    sources, before, targets = parts((1, 3))
    plain = logits_of(model, batch_of(sources[1:], before[1:], targets[1:]))
    for j in range(3):
        changed = [list(s) for s in before[1].sources], [list(t) for t in before[1].translations]
        changed[0][j][0] = changed[0][j][0] % (SOURCE_WORDS - 3) + 3
        moved = logits_of(model, batch_of(sources[1:], [Before(changed[0], before[1].translations)], targets[1:]))
        assert (moved - plain).abs().max() > 1e-4
        changed[1][j][0] = changed[1][j][0] % (TARGET_WORDS - 3) + 3
        moved = logits_of(model, batch_of(sources[1:], [Before(before[1].sources, changed[1])], targets[1:]))
        assert ((moved - plain).abs().max() > 1e-4) == (integration != "encoder")


# ---- batch mates ----


@every_place
def test_alone_or_in_a_batch(integration):
    model = make_han(han(integration))
    together = batch_of(*parts())
    found = logits_of(model, together).split(together.target_in.segments.lengths.tolist())
    for source, before, target, expected in zip(*parts(), found, strict=True):
        alone = logits_of(model, batch_of([source], [before], [target]))
        torch.testing.assert_close(alone, expected, atol=1e-5, rtol=1e-5)


def test_a_target_word_does_not_see_those_after_it():
    model = make_han(han())
    sources, before, targets = parts((1, 2), seed=3)
    targets[1] = [5, 6, 7, 8]
    first = logits_of(model, batch_of(sources[1:], before[1:], targets[1:]))
    second = logits_of(model, batch_of(sources[1:], before[1:], [[5, 6, 9, 8]]))
    same = (first - second).abs().amax(1) < 1e-6
    assert same.tolist() == [True, True, True, False, False]


# ---- word by word ----


@every_place
@pytest.mark.parametrize("context_on", [True, False], ids=["context", "off"])
def test_word_by_word_is_the_whole_target_at_once(integration, context_on):
    """Two hypotheses a sentence, which change places at every step; two sentences leave the batch on the way."""
    model, beam = make_han(han(integration)), 2
    sources, before, targets = parts()
    targets = [[(target * 6)[:5] for target in targets], [(target * 7)[1:6] for target in targets]]  # all go in step
    batches = [batch_of(sources, before if context_on else None, each) for each in targets]
    shape = len(sources), 6
    whole = torch.stack([logits_of(model, b).unflatten(0, shape) for b in batches], 1)  # [sentences, beam, length, ...]
    words = torch.stack([b.target_in.tokens.unflatten(0, shape) for b in batches], 1)  # [sentences, beam, length]
    alive = torch.arange(len(sources))
    with torch.inference_mode():
        state = HanState(model, model.encode(batches[0].source, batches[0].context), beam)
        for step in range(6):
            found = state.logits(words[alive, :, step].flatten()).unflatten(0, (-1, beam))
            torch.testing.assert_close(found, whole[alive, :, step], atol=1e-5, rtol=1e-5)
            state.reorder(torch.arange(len(alive) * beam).unflatten(0, (-1, beam)).flip(1).flatten())
            whole, words = whole.flip(1), words.flip(1)
            if step in (1, 3):
                kept = torch.arange(len(alive))[1:] if step == 1 else torch.tensor([0, 2, 3])
                alive = alive[kept]
                state.keep(kept)


@every_place
def test_beam_search_scores_as_the_model_does(integration):
    model = make_han(han(integration), seed=2)
    sources, before, _ = parts()
    context = pack_contexts(before, BOS)
    source = batch_of(sources, None, [[]] * len(sources)).source
    found = beam_search(model, source, context, bos=BOS, eos=EOS, beam=3, extra_length=4, start=HanState)
    ended = 0
    for i, (best,) in enumerate(found):
        batch = batch_of([sources[i]], [before[i]], [list(best.tokens)])
        with torch.no_grad():
            log_p = model.loss(batch)[1]
        total = log_p.sum().item()
        if len(best.tokens) == len(sources[i]) + 4:  # cut off: the end mark was not counted
            total -= log_p[-1].item()
        else:
            ended += 1
        assert best.log_probability == pytest.approx(total, abs=1e-3)
    assert ended


# ---- freezing ----


@every_variant
def test_training_theta_d_moves_all_of_it_and_nothing_else(context):
    model = make_han(context, shaken=False).train()
    for _, parameter in model.sentence_parameters():
        parameter.requires_grad_(False)
    start = {name: p.detach().clone() for name, p in model.named_parameters()}
    optimiser = torch.optim.Adam([p for p in model.parameters() if p.requires_grad], lr=1e-2)
    for step in range(3):
        optimiser.zero_grad()
        model.loss(batch_of(*parts(seed=step)), smoothing=0.1)[0].backward()
        optimiser.step()
    for name, parameter in model.named_parameters():
        assert torch.equal(parameter, start[name]) != is_document_parameter(name), name
        assert (parameter.grad is None) != is_document_parameter(name), name


@every_place
def test_a_sentence_model_loads_into_it(integration):
    model = make_han(han(integration))
    missing = model.load_weights(weights_of(sentence_model_of(make_han(han(integration), seed=1))))
    assert missing == [name for name, _ in model.document_parameters()]


def test_the_states_before_are_read_and_not_trained_through():
    """A word that stands only in the sentences before gets no gradient, though nothing is frozen."""
    model = make_han(han())
    batch = batch_of([[5, 6, EOS]], [Before([[7, 8, EOS]], [[9]])], [[4, 5]])
    model.loss(batch)[0].backward()
    moved = model.source_embedding.weight.grad.abs().sum(1) > 0
    assert moved.nonzero().flatten().tolist() == [EOS, 5, 6]


# ---- through a document ----


@functools.cache
def loaded_han(integration: str) -> LoadedModel:
    """Trained for a moment, so that translations end and differ. Shared: do not change it."""
    source, target = subwords("source"), subwords("target")
    context = han(integration, previous=2)
    torch.manual_seed(3)
    config = model_config(dropout=0.0, width=32, filter_width=48, encoder_layers=1, decoder_layers=1, max_length=40)
    model = HanTransformer(config, context, len(source), len(target))
    card = ModelCard(config, context, DecodingConfig(beam=2), "fr", "en")
    rule = card.rule(source)

    def batch(seed: int):
        (document,) = parallel_documents([20], seed=seed)
        ids, translations = source.encode(document.source), target.encode(document.target)
        return make_batch(
            [[*sentence, source.eos] for sentence in ids],
            [rule.of(ids, i, translations) for i in range(len(ids))],
            translations,
            target.bos,
            target.eos,
        )

    fit(model, map(batch, range(100, 130)), 0.01)
    return LoadedModel(model, card, source, target)


def documents(sizes=(4, 1, 0, 3), seed: int = 7) -> list[Document]:
    return [Document(d.id, d.source) for d in parallel_documents(sizes, seed)]


def texts(translated) -> list[list[str]]:
    return [[sentence.text for sentence in document.sentences] for document in translated]


@pytest.mark.parametrize("integration", ["encoder", "both"])
def test_documents_together_are_as_each_alone(integration):
    translator = Translator(loaded_han(integration))
    found = texts(translator.translate_documents(documents()))
    assert [len(document) for document in found] == [4, 1, 0, 3]
    assert len({text for document in found for text in document}) > 4, "too much alike to prove anything"
    assert found == [translator.translate(document) for document in documents()]
    assert found == texts(translator.translate_documents(documents(), batch_tokens=1))


def rows(packed) -> list[list[int]]:
    return [part.tolist() for part in packed.tokens.split(packed.segments.lengths.tolist())]


def test_it_remembers_the_last_translations_in_order_and_none_of_another_document(monkeypatch):
    loaded = loaded_han("both")
    seen = {}

    def recording(model, source, context, **options):
        found = beam_search(model, source, context, **options)
        ends = context.counts.cumsum(0).tolist()
        for sentence, begin, end, best in zip(rows(source), [0, *ends], ends, found, strict=False):
            seen[tuple(sentence)] = rows(context.source)[begin:end], rows(context.target)[begin:end], best[0].tokens
        return found

    monkeypatch.setattr("docnmt.decoding.translator.beam_search", recording)
    given = documents([5, 3])
    list(Translator(loaded).translate_documents(given))
    for document in given:
        ids = [[*sentence, loaded.source.eos] for sentence in loaded.source.encode(document.sentences)]
        written = [[loaded.target.bos, *seen[tuple(sentence)][2]] for sentence in ids]
        for i, sentence in enumerate(ids):
            sources, translations, _ = seen[tuple(sentence)]
            assert sources == (ids[max(0, i - 2) : i] or [[loaded.source.bos]])
            assert translations == (written[max(0, i - 2) : i] or [[loaded.target.bos]])


@pytest.mark.parametrize("integration", ["encoder", "both"])
def test_another_context_changes_translations_and_scores(integration):
    translator = Translator(loaded_han(integration))
    pairs, others = parallel_documents([5], 7), parallel_documents([5], 8)
    (right,), (wrong,) = (list(translator.score(pairs, context_from=c)) for c in (None, others))
    assert right[0].total == pytest.approx(wrong[0].total, abs=1e-4)  # a first sentence has no context
    assert all(abs(a.total - b.total) > 1e-3 for a, b in zip(right[1:], wrong[1:], strict=True))
    found = translator.translate_documents(documents([5]), nbest=3, context_from=documents([5], seed=8))
    plain = translator.translate_documents(documents([5]), nbest=3)
    scores = [[sentence.scores for sentence in next(d).sentences] for d in (found, plain)]
    assert scores[0][0] == pytest.approx(scores[1][0]) and scores[0][1:] != scores[1][1:]


def test_a_model_folder_comes_back_to_the_bit(tmp_path):
    loaded = loaded_han("both")
    save_model(tmp_path / "model", weights_of(loaded.model), loaded.card, loaded.source, loaded.target, {})
    again = load_model(tmp_path / "model")
    assert isinstance(again.model, HanTransformer)
    theirs = weights_of(again.model)
    assert all(torch.equal(value, theirs[name]) for name, value in weights_of(loaded.model).items())
    (document,) = documents([3])
    assert Translator(again).translate(document) == Translator(loaded).translate(document)
