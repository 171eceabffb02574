"""What the two caches have in common: context off, batch mates, decoding word by word, freezing, documents in order."""

from __future__ import annotations

import functools

import pytest
import torch

from docnmt.config import ContextConfig, DecodingConfig
from docnmt.corpora.batches import make_batch, pack_contexts
from docnmt.corpora.contexts import Before, MemoryRule
from docnmt.decoding.beam import beam_search
from docnmt.decoding.translator import Translator
from docnmt.document import Document
from docnmt.errors import DocnmtError
from docnmt.model.context import is_document_parameter
from docnmt.model.transformer import DocumentTransformer
from docnmt.model_folder import LoadedModel, ModelCard, load_model, save_model, weights_of
from docnmt.systems import system_of
from docnmt.systems.remembered import owners, remembered_words
from tests.builders import (
    BOS,
    EOS,
    SOURCE_WORDS,
    TARGET_WORDS,
    fit,
    make_store,
    model_config,
    parallel_documents,
    random_sentences,
    sentence_model_of,
    shake,
    subwords,
    with_end,
)

KINDS = {
    "cache": ContextConfig(kind="cache", cache_words=6, topic_words=4),
    "cache without topics": ContextConfig(kind="cache", cache_words=6, topic_words=0),
    "continuous-cache": ContextConfig(kind="continuous-cache", cache_words=5),
}
every_kind = pytest.mark.parametrize("context", KINDS.values(), ids=KINDS)
COUNTS = (1, 3, 2, 1, 3)  # sentences before each of a batch; the first's is the begin mark alone


def make_system(context: ContextConfig, seed: int = 0, shaken: bool = True, **settings: object) -> DocumentTransformer:
    torch.manual_seed(seed)
    system = system_of("transformer", context.kind)
    model = system.model(model_config(**settings), context, SOURCE_WORDS, TARGET_WORDS)
    topics, model.context_topics = getattr(model, "context_topics", None), None
    if shaken:
        shake(model, seed)
    if topics is not None:  # as if learned
        topics.evidence.normal_()
        topics.words.random_(3, TARGET_WORDS)
        model.context_topics = topics
    return model.eval()


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


def scores(model, batch) -> list[torch.Tensor]:
    """Log-probabilities of each target."""
    with torch.no_grad():
        return list(model.loss(batch)[1].split(batch.target_in.segments.lengths.tolist()))


# ---- the words of a history ----


def test_words_of_a_history_in_order_without_marks():
    before = [
        Before([[5, EOS], [6, EOS]], [[7, 8], [9]]),
        Before([[BOS]], [[]]),
        Before([[5, EOS], [EOS], [6, EOS]], [[4, 4, 4], [], [5]]),
    ]
    history = pack_contexts(before, BOS)
    words, places = remembered_words(history)
    assert words.tolist() == [[-1, 7, 8, 9], [-1, -1, -1, -1], [4, 4, 4, 5]]
    assert torch.equal(history.target.tokens[places][words >= 0], words[words >= 0])
    assert owners(history).tolist() == [0, 0, 1, 2, 2, 2]


def test_no_words_at_all():
    words, places = remembered_words(pack_contexts([Before([[BOS]], [[]])] * 2, BOS))
    assert words.shape == places.shape == (2, 0)


# ---- context on and off ----


@every_kind
def test_they_remember_translations(context):
    assert system_of("transformer", context.kind).rule(context) is MemoryRule


@pytest.mark.parametrize(("key", "value"), [("cache_words", 0), ("topic_words", -1)])
def test_sizes_that_make_no_sense(key, value):
    with pytest.raises(DocnmtError, match=f"context.{key}: {value} is too small"):
        ContextConfig(**{key: value})


@every_kind
def test_context_off_is_the_sentence_model_to_the_bit(context):
    model, (sources, before, targets) = make_system(context), parts()
    base, off = sentence_model_of(model), batch_of(sources, None, targets)
    with torch.no_grad():
        assert torch.equal(model(off), base(off))
        for smoothing in (0.0, 0.1):
            pairs = zip(model.loss(off, smoothing), base.loss(off, smoothing), strict=True)
            assert all(torch.equal(a, b) for a, b in pairs)
        state = system_of("transformer", context.kind).state(model, model.encode(off.source), 1)
        plain = system_of("transformer", "none").state(base, base.encode(off.source), 1)
        words = torch.full((len(sources),), BOS)
        assert torch.equal(state.logits(words), plain.logits(words))
    moved = zip(scores(model, off), scores(model, batch_of(sources, before, targets)), strict=True)
    assert all((a - b).abs().max() > 1e-3 for a, b in list(moved)[1:])


@pytest.mark.parametrize("kind", ["cache without topics", "continuous-cache"])
def test_an_empty_memory_leaves_the_sentence_model(kind):
    """Alone, where there is no word in the whole batch, and beside others that have one."""
    model, (sources, before, targets) = make_system(KINDS[kind]), parts()
    expected = scores(model, batch_of(sources[:1], None, targets[:1]))[0]
    for end in (1, 5):
        batch = batch_of(sources[:end], before[:end], targets[:end])
        torch.testing.assert_close(scores(model, batch)[0], expected, atol=1e-6, rtol=0)
        with torch.no_grad():
            state = system_of("transformer", model.context_config.kind).state
            on, off = (
                state(model, model.encode(batch.source, c), 1).logits(torch.full((end,), BOS)).log_softmax(1)[0]
                for c in (batch.context, None)
            )
        torch.testing.assert_close(on, off, atol=1e-6, rtol=0)


@every_kind
def test_a_batch_of_empty_memories_can_be_trained_on(context):
    model, (sources, _, targets) = make_system(context), parts()
    for _, parameter in model.sentence_parameters():
        parameter.requires_grad_(False)
    model.loss(batch_of(sources, [Before([[BOS]], [[]])] * 5, targets), 0.1)[0].backward()
    found = [p.grad for p in model.parameters() if p.grad is not None]
    assert found and all(gradient.isfinite().all() for gradient in found)


# ---- batch mates ----


@every_kind
def test_alone_or_in_a_batch(context):
    model = make_system(context)
    for source, before, target, together in zip(*parts(), scores(model, batch_of(*parts())), strict=True):
        (alone,) = scores(model, batch_of([source], [before], [target]))
        torch.testing.assert_close(alone, together, atol=1e-5, rtol=1e-5)


# ---- word by word ----


@every_kind
def test_word_by_word_is_the_whole_target_at_once(context):
    """Two hypotheses a sentence, which change places at every step; two sentences leave the batch on the way."""
    model, beam = make_system(context), 2
    sources, before, targets = parts()
    targets = [[(target * 6)[:5] for target in targets], [(target * 7)[1:6] for target in targets]]  # all go in step
    batches = [batch_of(sources, before, each) for each in targets]
    whole = torch.stack([torch.stack(scores(model, b)) for b in batches], 1)  # [sentences, beam, length]
    given, wanted = (
        torch.stack([tokens.unflatten(0, (5, 6)) for tokens in side], 1)
        for side in ([b.target_in.tokens for b in batches], [b.target_out for b in batches])
    )
    alive = torch.arange(len(sources))
    with torch.inference_mode():
        memory = model.encode(batches[0].source, batches[0].context)
        state = system_of("transformer", context.kind).state(model, memory, beam)
        for step in range(6):
            logits = state.logits(given[alive, :, step].flatten())
            if context.kind == "cache":
                torch.testing.assert_close(logits.logsumexp(1), torch.zeros(len(alive) * beam), atol=1e-5, rtol=0)
            found = logits.log_softmax(1).gather(1, wanted[alive, :, step].flatten()[:, None]).unflatten(0, (-1, beam))
            torch.testing.assert_close(found[..., 0], whole[alive, :, step], atol=1e-5, rtol=1e-5)
            state.reorder(torch.arange(len(alive) * beam).unflatten(0, (-1, beam)).flip(1).flatten())
            whole, given, wanted = whole.flip(1), given.flip(1), wanted.flip(1)
            if step in (1, 3):
                kept = torch.arange(len(alive))[1:] if step == 1 else torch.tensor([0, 2, 3])
                alive = alive[kept]
                state.keep(kept)


# ---- freezing ----


@every_kind
@pytest.mark.parametrize("frozen", [True, False], ids=["frozen", "all"])
def test_an_update_moves_all_of_theta_d_and_theta_s_only_if_it_is_not_frozen(context, frozen):
    model = make_system(context, shaken=False).train()
    for _, parameter in model.sentence_parameters():
        parameter.requires_grad_(not frozen)
    start = {name: p.detach().clone() for name, p in model.named_parameters()}
    optimiser = torch.optim.Adam([p for p in model.parameters() if p.requires_grad], lr=1e-2)
    for step in range(2):
        optimiser.zero_grad()
        model.loss(batch_of(*parts(seed=step)), smoothing=0.1)[0].backward()
        optimiser.step()
    for name, parameter in model.named_parameters():
        learned = name.startswith("context_topics.")  # before, from the documents: not by updates
        assert learned == (is_document_parameter(name) and not parameter.requires_grad)
        moves = (is_document_parameter(name) or not frozen) and not learned
        assert torch.equal(parameter, start[name]) != moves, name


@every_kind
def test_a_sentence_model_loads_into_it(context):
    model = make_system(context)
    missing = model.load_weights(weights_of(sentence_model_of(make_system(context, seed=1))))
    assert missing == [name for name, _ in model.document_parameters()]


# ---- through a document ----


@functools.cache
def loaded_system(kind: str) -> LoadedModel:
    """Trained for a moment, so that translations end and differ. Shared: do not change it."""
    source, target = subwords("source"), subwords("target")
    context, system = KINDS[kind], system_of("transformer", KINDS[kind].kind)
    torch.manual_seed(3)
    config = model_config(dropout=0.0, width=32, filter_width=48, encoder_layers=1, decoder_layers=1, max_length=40)
    model = system.model(config, context, len(source), len(target))
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

    return LoadedModel(fit(model, map(batch, range(100, 130)), 0.01), card, source, target)


def documents(sizes=(4, 1, 0, 3), seed: int = 7) -> list[Document]:
    return [Document(d.id, d.source) for d in parallel_documents(sizes, seed)]


def texts(translated) -> list[list[str]]:
    return [[sentence.text for sentence in document.sentences] for document in translated]


every_loaded = pytest.mark.parametrize("kind", ["cache without topics", "continuous-cache"])


@every_loaded
def test_documents_together_are_as_each_alone(kind):
    translator = Translator(loaded_system(kind))
    found = texts(translator.translate_documents(documents()))
    assert [len(document) for document in found] == [4, 1, 0, 3]
    assert len({text for document in found for text in document}) > 3, "too much alike to prove anything"
    assert found == [translator.translate(document) for document in documents()]
    assert found == texts(translator.translate_documents(documents(), batch_tokens=1))


@every_loaded
def test_the_memory_is_what_was_written_in_this_document(kind, monkeypatch):
    loaded, seen = loaded_system(kind), {}

    def recording(model, source, context, **options):
        found = beam_search(model, source, context, **options)
        words = remembered_words(context).words
        sentences = source.tokens.split(source.segments.lengths.tolist())
        for sentence, row, best in zip(sentences, words, found, strict=True):
            seen[tuple(sentence.tolist())] = row[row >= 0].tolist(), best[0].tokens
        return found

    monkeypatch.setattr("docnmt.decoding.translator.beam_search", recording)
    given = documents([5, 3])
    list(Translator(loaded).translate_documents(given))
    for document in given:
        ids = [(*sentence, loaded.source.eos) for sentence in loaded.source.encode(document.sentences)]
        for i, sentence in enumerate(ids):
            last = [word for before in ids[max(0, i - 2) : i] for word in seen[before][1]]
            assert seen[sentence][0] == last


@every_loaded
def test_another_context_changes_translations_and_scores(kind):
    translator = Translator(loaded_system(kind))
    pairs = parallel_documents([5], 7)
    (right,), (without,) = (list(translator.score(pairs, context=c)) for c in (None, "none"))
    assert right[0].log_probabilities == pytest.approx(without[0].log_probabilities, abs=1e-5)  # it has none anyhow
    assert all(abs(a.total - b.total) > 1e-4 for a, b in zip(right[1:], without[1:], strict=True))
    found = translator.translate_documents(documents([5]), nbest=3, context_from=documents([5], seed=8))
    plain = translator.translate_documents(documents([5]), nbest=3)
    values = [[sentence.scores for sentence in next(d).sentences] for d in (found, plain)]
    assert values[0][0] == pytest.approx(values[1][0]) and values[0][1:] != values[1][1:]


@pytest.mark.parametrize("kind", KINDS)
def test_a_model_folder_comes_back_to_the_bit(kind, tmp_path):
    loaded = loaded_system(kind)
    system = system_of("transformer", loaded.card.context.kind)
    if system.learn is not None:
        system.learn(loaded.model, make_store(tmp_path / "store", parallel_documents([4, 6, 5])))
    save_model(tmp_path / "model", weights_of(loaded.model), loaded.card, loaded.source, loaded.target, {})
    again = load_model(tmp_path / "model")
    assert type(again.model) is type(loaded.model)
    theirs = weights_of(again.model)
    assert all(torch.equal(value, theirs[name]) for name, value in weights_of(loaded.model).items())
    (document,) = documents([3])
    assert Translator(again).translate(document) == Translator(loaded).translate(document)
