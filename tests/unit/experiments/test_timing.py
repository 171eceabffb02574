"""How long training will take, and what an update costs: all of it before anything is trained."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace

import pytest
import torch

from docnmt.config import (
    ContextConfig,
    DocumentStepConfig,
    HardwareConfig,
    ModelConfig,
    Recipe,
    SentenceStepConfig,
    SubwordConfig,
)
from docnmt.document import ContextSpec
from docnmt.experiments import timing
from docnmt.experiments.job import planned
from docnmt.experiments.runs import Run, RunStatus
from docnmt.experiments.tables import Systems
from docnmt.experiments.timing import GIGABYTE, Cost, Estimates, Range, Shape, cost_of, cost_table

SHAPE = Shape(300, 310, 6, 7)
SMALL = Recipe(
    model=ModelConfig(width=16, filter_width=24, heads=4, encoder_layers=1, decoder_layers=1),
    subwords=SubwordConfig(vocabulary=300),
    hardware=HardwareConfig(device="cpu"),
)
NONE = ContextConfig(kind="none")


def runs_of(recipe: Recipe) -> dict[str, Run]:
    systems = Systems(recipe)
    found = [systems.sentence(), systems.document(), systems.from_scratch(), systems.control("none")]
    return {run.name: run for (run,) in found}


# ---- shapes ----


def test_the_shape_is_that_of_the_prepared_data():
    cards = [
        {"sentences": 3, "source_tokens": 20, "target_tokens": 25},
        {"sentences": 1, "source_tokens": 4, "target_tokens": 3},
    ]
    stores = [SimpleNamespace(card=card) for card in cards]
    prepared = SimpleNamespace(source=range(300), target=range(310), documents=stores[0], sentences=stores[1])
    assert Shape.of(prepared) == Shape(300, 310, 7, 8)  # 24 and 28 pieces in four sentences, and the end mark


def test_before_there_is_data_the_recipe_tells_the_vocabulary():
    shape = Shape.expected(SMALL)
    assert (shape.source_vocabulary, shape.target_vocabulary) == (300, 300)


# ---- the estimates ----


def counting(monkeypatch) -> Estimates:
    """Estimates that do not look at the clock but count: a sentence takes a second."""
    estimates = Estimates(SHAPE)
    estimates.timed = []

    def second(recipe, context, frozen, most):
        estimates.timed.append((context, frozen))
        return Range(1.0, 2.0)

    monkeypatch.setattr(estimates, "_sentence_seconds", second)
    return estimates


@pytest.fixture
def estimates(monkeypatch) -> Estimates:
    return counting(monkeypatch)


def test_time_goes_with_updates_and_the_size_of_batches(estimates):
    run = runs_of(SMALL)["sentence"]
    once = estimates.seconds(run, 10)
    assert 0 < once.low == once.high / 2
    assert estimates.seconds(run, 30).low == pytest.approx(3 * once.low) and estimates.seconds(run, 0) == Range(0, 0)
    twice = replace(SMALL, sentence=replace(SMALL.sentence, batch_tokens=2 * SMALL.sentence.batch_tokens))
    assert estimates.seconds(runs_of(twice)["sentence"], 10).high == pytest.approx(2 * once.high)
    thrice = replace(SMALL, sentence=replace(SMALL.sentence, accumulation=3))
    assert estimates.seconds(runs_of(thrice)["sentence"], 10).low == pytest.approx(3 * once.low)
    assert len(estimates.timed) == 2  # the model is the same in all of them, the size of batches in all but one


def test_runs_that_cost_the_same_are_timed_once(estimates):
    for name in ("sentence", "document", "control-none", "from-scratch"):
        for seed in (1, 2):
            estimates.seconds(runs_of(replace(SMALL, seed=seed))[name], 10)
    without = replace(SMALL.context, previous=0)  # what the control reads
    assert estimates.timed == [(NONE, False), (SMALL.context, True), (without, True), (SMALL.context, False)]


def test_where_sentences_are_the_same_in_each_update_a_longer_context_takes_longer(monkeypatch):
    """Whatever fills the batches, time goes with what is read: here a second for each sentence of the context."""
    estimates = Estimates(SHAPE)
    monkeypatch.setattr(
        estimates, "_sentence_seconds", lambda recipe, context, frozen, most: Range(1.0 + context.previous, 9.0)
    )
    systems = Systems(SMALL)
    named = {f"previous-{n}": systems.document(f"previous-{n}", previous=n) for n in (1, 3)}
    named |= {"own": systems.document(), "none": systems.control("none"), "shuffled": systems.control("shuffled")}
    taken = {name: estimates.seconds(runs[0], 1).low for name, runs in named.items()}
    a_sentence = taken["none"]
    expected = {"previous-1": 2, "own": 3, "previous-3": 4, "none": 1, "shuffled": 3}
    assert taken == pytest.approx({name: count * a_sentence for name, count in expected.items()})


def test_a_batch_has_the_sentences_and_contexts_that_the_recipe_means():
    device = torch.device("cpu")
    assert SHAPE.sentences(SMALL, ContextConfig(kind="none")).batch(device, 1000).context is None
    for previous in (1, 3):
        context = ContextConfig(previous=previous)
        assert context.spec == ContextSpec(previous)
        sentences = SHAPE.sentences(SMALL, context)
        batch = sentences.batch(device, 1000)
        assert batch.context.segments.lengths.unique().tolist() == [5 * previous + 1]
        assert batch.source.segments.lengths.unique().tolist() == [6]
        assert batch.target_in.segments.lengths.unique().tolist() == [7]
        total = sum(len(part.tokens) for part in (batch.source, batch.context, batch.target_in))
        assert 900 < total == sentences.tokens * sentences.in_batch(1000) <= 1000
    trimmed = SHAPE.sentences(SMALL, ContextConfig(previous=3, max_tokens=5)).batch(device, 1000)
    assert trimmed.context.segments.lengths.unique().tolist() == [5]


def test_a_real_model_takes_some_time():
    found = Estimates(SHAPE).seconds(runs_of(SMALL)["document"], 1)
    assert 0 < found.low < found.high < 600


def timed(monkeypatch, seconds) -> list[tuple[int, int]]:
    """The source length and the tokens of every batch; `seconds` tells how long one of so many tokens takes."""
    made, now = [], [0.0]

    def passing(stopwatch, batch, smoothing=0.1):
        tokens = len(batch.source.tokens) + len(batch.target_in.tokens)
        made.append((int(batch.source.segments.lengths[0]), tokens))
        now[0] += seconds(tokens)
        return seconds(tokens)

    monkeypatch.setattr(timing.Stopwatch, "seconds", passing)
    monkeypatch.setattr(timing.time, "perf_counter", lambda: now[0])
    return made


def test_an_estimate_rests_on_batches_of_several_lengths(monkeypatch):
    made = timed(monkeypatch, lambda tokens: 1.0)
    found = Estimates(SHAPE)._sentence_seconds(SMALL, NONE, False, 1000)
    warming, *lengths = (length for length, _ in made)
    assert lengths == sorted(set(lengths)) and len(lengths) == 3 and warming == lengths[1]
    a_sentence = (6 + 7) / 1000  # seconds
    assert found.low < a_sentence < found.high


def test_batches_are_as_large_as_the_recipes(monkeypatch):
    """A recurrent network goes through a small batch as slowly as through a large one: here in 0.1 seconds."""
    made = timed(monkeypatch, lambda tokens: 0.1 + tokens * 1e-5)
    found = Estimates(SHAPE)._sentence_seconds(SMALL, NONE, False, 10_000)
    assert [tokens for _, tokens in made[-3:]] == [pytest.approx(10_000, rel=0.01)] * 3
    truth = (0.1 + 10_000 * 1e-5) / 10_000 * (6 + 7)
    assert truth / 1.5 < found.low < truth < found.high < truth * 1.5


def test_a_slow_batch_is_not_made_larger(monkeypatch):
    made = timed(monkeypatch, lambda tokens: tokens * 3e-4)
    Estimates(SHAPE)._sentence_seconds(SMALL, NONE, False, 10_000)
    assert max(tokens for _, tokens in made) < 2_100
    made.clear()
    Estimates(SHAPE)._sentence_seconds(SMALL, NONE, False, 500)
    assert max(tokens for _, tokens in made) <= 500  # nor than the recipe's


def test_a_range_has_room_for_what_made_up_sentences_do_not_tell(monkeypatch):
    timed(monkeypatch, lambda tokens: tokens * 1e-3)
    found = Estimates(SHAPE)._sentence_seconds(SMALL, NONE, False, 1000)
    assert (found.low, found.high) == (pytest.approx(0.013 / timing.MARGIN), pytest.approx(0.013 * timing.MARGIN))


def test_what_rests_on_less_is_not_told(monkeypatch):
    def out_of_memory(sentences, device, tokens):
        if len(sentences.source) > SHAPE.source_length:
            raise torch.OutOfMemoryError
        return original(sentences, device, tokens)

    original = timing.Sentences.batch
    monkeypatch.setattr(timing.Sentences, "batch", out_of_memory)
    run = runs_of(SMALL)["sentence"]
    estimates = Estimates(SHAPE)
    assert estimates.seconds(run, 10) is None
    table = planned({run: RunStatus(0, False)}, estimates)
    assert table.rows[0][-1] == "unknown" and table.notes[0].startswith("Unknown:")


# ---- what an update takes: `docnmt train --dry-run` ----

COST_MODEL = ModelConfig(width=16, filter_width=32, heads=2, encoder_layers=1, decoder_layers=1)
COST_RECIPE = Recipe(
    model=COST_MODEL,
    context=ContextConfig(),
    subwords=SubwordConfig(vocabulary=300),
    sentence=SentenceStepConfig(batch_tokens=600),
    document=DocumentStepConfig(batch_tokens=1200),
)


def test_in_step_2_the_sentence_model_is_frozen_and_all_else_is_trained():
    sentence, document = cost_of(COST_RECIPE, "sentence"), cost_of(COST_RECIPE, "document")
    assert sentence.frozen == 0 and document.frozen == sentence.trained and document.trained > 0
    free = cost_of(replace(COST_RECIPE, document=replace(COST_RECIPE.document, freeze=False)), "document")
    assert (free.frozen, free.trained) == (0, document.frozen + document.trained)
    assert min(sentence.seconds.low, document.seconds.low) > 0 and document.memory >= sentence.memory > 10**7


def test_the_time_of_an_update_is_that_of_the_fastest_and_of_the_slowest_after_the_first_two(monkeypatch):
    """The first two tell the memory, and warm up; what they take does not count."""
    lengths, ticks, now = [], iter([50, 50, 3, 4, 8]), [0.0]

    def passing(stopwatch, batch, smoothing):
        lengths.append(int(batch.source.segments.lengths[0]))
        now[0] += next(ticks)

    monkeypatch.setattr(timing.Stopwatch, "seconds", passing)
    monkeypatch.setattr(timing.time, "perf_counter", lambda: now[0])
    assert cost_of(COST_RECIPE, "sentence").seconds == Range(3, 8)
    half, usual, short, again, long = lengths
    assert half == usual == again and short < usual < long


def test_the_batch_that_fits_grows_with_the_room_that_is_left():
    cost = Cost(1, 1, Range(1.0, 2.0), memory=2 * GIGABYTE, more=1e6)  # 6 GB are left, a megabyte a token
    assert cost.fitting(1_000) == 7_000
    assert replace(cost, memory=20 * GIGABYTE).fitting(1_000) == 0


def test_the_table_has_a_row_for_each_step(monkeypatch, tmp_path):
    class Here:
        """A pool that is this process."""

        def __init__(self, *_):
            pass

        def __enter__(self):
            return self

        def __exit__(self, *_):
            pass

        def submit(self, function, *arguments):
            value = function(*arguments)
            return type("Done", (), {"result": lambda self: value})()

    monkeypatch.setattr(timing, "ProcessPoolExecutor", Here)
    monkeypatch.chdir(tmp_path)
    table = cost_table(COST_RECIPE, ("sentence", "document"))
    assert [row[0] for row in table.rows] == ["sentence", "document"]
    assert [figures["trained"] > 0 for figures in table.figures] == [True, True]
    assert not any(tmp_path.iterdir())


def test_what_step_2_starts_from_must_be_there(tmp_path):
    recipe = replace(COST_RECIPE, document=replace(COST_RECIPE.document, start_from=str(tmp_path / "nothing")))
    with pytest.raises(Exception, match="no sentence model to start from"):
        cost_table(recipe, ("document",))
