"""Contexts as they are joined, batches as they are cut, and the order in which training sees them."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from docnmt.base.errors import DocnmtError
from docnmt.data.batches import Examples, Position, Stream, cut_into_batches, epoch_batches, in_order
from docnmt.data.context import Context, ContextRule, HistoryRule
from docnmt.data.packing import make_batch, pack
from docnmt.document import ContextSpec, ParallelDocument
from tests.builders import BOS, EOS, make_store, parallel_documents, subwords

SIZES = [5, 1, 3, 2]  # sentences of each document


def rule(previous: int = 2, following: int = 0, max_tokens: int = 256) -> ContextRule:
    return ContextRule(ContextSpec(previous, following), max_tokens, BOS, EOS)


@pytest.fixture(scope="module")
def stores(tmp_path_factory):
    folder = tmp_path_factory.mktemp("stores")
    return [
        make_store(folder / "a", parallel_documents(SIZES)),
        make_store(folder / "b", parallel_documents([4, 30, 6], seed=1)),
    ]


def examples_of(stores, context: ContextRule | None = None) -> Examples:
    return Examples(stores, subwords("source"), subwords("target"), context)


# ---- joining ----


def test_join_concatenates_with_one_end_mark_after_the_last():
    assert rule().join([[5, 6], [7]], []) == [5, 6, 7, EOS]
    assert rule().join([[5, 6]], [[7], [8, 9]]) == [5, 6, 7, 8, 9, EOS]


def test_where_there_is_no_context_there_is_a_begin_mark():
    assert rule().join([], []) == [BOS]
    assert rule().join([[], []], [[]]) == [BOS]  # empty sentences are no context either


def test_join_trims_at_the_far_ends():
    assert rule(max_tokens=4).join([[5, 6], [7, 8, 9]], []) == [7, 8, 9, EOS]
    assert rule(max_tokens=4).join([], [[5, 6], [7, 8, 9]]) == [5, 6, 7, EOS]
    assert rule(max_tokens=5).join([[5, 6, 7]], [[8, 9, 10]]) == [6, 7, 8, 9, EOS]
    assert rule(max_tokens=1).join([[5, 6, 7]], [[8]]) == [EOS]


def test_a_context_is_the_neighbours_and_not_the_sentence():
    document = [[10], [11, 12], [13], [14]]

    def seen(position: int, *spec: int) -> Context | None:
        return rule(*spec).context(rule(*spec).around(document, position))

    assert [seen(i) for i in range(4)] == [[BOS], [10, EOS], [10, 11, 12, EOS], [11, 12, 13, EOS]]
    assert seen(1, 1, 1) == [10, 13, EOS]
    assert seen(3, 0, 2) == [BOS]
    assert seen(2, 0, 0) == [BOS]


@given(
    before=st.lists(st.lists(st.integers(10, 99), max_size=6), max_size=4),
    after=st.lists(st.lists(st.integers(10, 99), max_size=6), max_size=4),
    max_tokens=st.integers(1, 20),
)
def test_a_joined_context_is_a_window_around_the_sentence(before, after, max_tokens):
    left, right = [t for s in before for t in s], [t for s in after for t in s]
    joined = rule(max_tokens=max_tokens).join(before, after)
    if not left and not right:
        assert joined == [BOS]
        return
    *kept, end = joined
    assert end == EOS and len(joined) == min(len(left) + len(right) + 1, max_tokens)
    assert any(kept == left[len(left) - n :] + right[: len(kept) - n] for n in range(min(len(left), len(kept)) + 1))


# ---- examples ----

RULES = [rule(), rule(1), rule(3, 2), rule(0, 3), rule(0, 0), rule(3, 2, max_tokens=17), rule(2, 0, max_tokens=1)]


@pytest.mark.parametrize("context", RULES, ids=str)
def test_context_lengths_are_those_of_the_contexts_made(stores, context):
    examples = examples_of(stores, context)
    made = [examples.batch([i]).context.segments.lengths.item() for i in range(len(examples))]
    assert examples.context_lengths.tolist() == made


@pytest.mark.parametrize("context", RULES, ids=str)
def test_contexts_are_those_of_each_document_alone(stores, context):
    # Numbered through over documents and stores, yet no context reaches into a neighbouring document.
    examples = examples_of(stores, context)
    documents = [*parallel_documents(SIZES), *parallel_documents([4, 30, 6], seed=1)]
    expected = []
    for document in documents:
        ids = subwords("source").encode(document.source)
        expected += [context.context(context.around(ids, i)) for i in range(len(ids))]
    assert [examples.batch([i]).context.tokens.tolist() for i in range(len(examples))] == expected


def test_the_first_sentence_of_each_document_has_the_begin_mark_alone(stores):
    examples = examples_of(stores[:1], rule())
    first = np.cumsum([0, *SIZES[:-1]])
    batch = examples.batch(first)
    assert batch.context.tokens.tolist() == [BOS] * len(SIZES)
    assert set(np.flatnonzero(examples.context_lengths == 1)) == set(first)


def test_empty_sentences_in_a_store(tmp_path):
    # Real corpora have them; lengths and contexts must still agree.
    document = ParallelDocument("d", ("", "le chat voit.", "", "rien"), ("", "x", "y", ""))
    examples = examples_of([make_store(tmp_path / "s", [document])], rule())
    assert examples.source_lengths.tolist()[0] == 1 and examples.target_lengths.tolist()[0] == 1
    made = [examples.batch([i]).context.tokens.tolist() for i in range(4)]
    assert made[:2] == [[BOS], [BOS]] and made[2] == made[3]
    assert examples.context_lengths.tolist() == [len(c) for c in made]


def test_a_batch_holds_the_sentences_with_their_marks(stores):
    examples = examples_of(stores, rule())
    documents = [*parallel_documents(SIZES), *parallel_documents([4, 30, 6], seed=1)]
    sources = subwords("source").encode([s for d in documents for s in d.source])
    targets = subwords("target").encode([s for d in documents for s in d.target])
    chosen = [0, 12, 3, 50, 11, 10]  # from both stores, in no order
    batch = examples.batch(chosen)
    lengths = batch.source.segments.lengths.tolist()
    assert [p.tolist() for p in batch.source.tokens.split(lengths)] == [[*sources[i], EOS] for i in chosen]
    lengths = batch.target_in.segments.lengths.tolist()
    assert [p.tolist() for p in batch.target_in.tokens.split(lengths)] == [[BOS, *targets[i]] for i in chosen]
    assert [p.tolist() for p in batch.target_out.split(lengths)] == [[*targets[i], EOS] for i in chosen]
    assert examples.source_lengths[chosen].tolist() == batch.source.segments.lengths.tolist()
    assert examples.target_lengths[chosen].tolist() == lengths


def test_without_a_rule_there_is_no_context(stores):
    examples = examples_of(stores)
    assert examples.batch([0, 1]).context is None
    assert not examples.context_lengths.any()
    assert len(examples) == len(stores[0]) + len(stores[1]) == sum(SIZES) + 40


def test_pack_and_make_batch():
    packed = pack([[4, 5], [6]])
    assert packed.tokens.tolist() == [4, 5, 6] and packed.segments.lengths.tolist() == [2, 1]
    batch = make_batch([[4, EOS]], [[BOS]], [[]], BOS, EOS)  # an empty target is its end mark alone
    assert batch.target_in.tokens.tolist() == [BOS] and batch.target_out.tolist() == [EOS]


# ---- order ----

BUDGETS = [1, 60, 150, 400, 10**6]


@pytest.mark.parametrize("context", [None, rule()], ids=["sentence", "document"])
@pytest.mark.parametrize("budget", BUDGETS)
def test_an_epoch_holds_every_example_once(stores, context, budget):
    examples = examples_of(stores, context)
    for batches in (epoch_batches(examples, budget, 7, 3), list(in_order(examples, budget))):
        assert sorted(np.concatenate(batches).tolist()) == list(range(len(examples)))


def padded_tokens(examples: Examples, batch) -> int:
    sides = (examples.source_lengths, examples.context_lengths, examples.target_lengths)
    return len(batch) * sum(int(side[batch].max()) for side in sides)


@pytest.mark.parametrize("context", [None, rule()], ids=["sentence", "document"])
@pytest.mark.parametrize("budget", BUDGETS)
def test_padded_tokens_stay_within_the_budget(stores, context, budget):
    examples = examples_of(stores, context)
    for batch in epoch_batches(examples, budget, 7, 0):
        # Only a single sentence that is over the budget by itself may break it.
        assert padded_tokens(examples, batch) <= budget or len(batch) == 1


def test_batches_are_as_full_as_the_budget_allows(stores):
    examples = examples_of(stores, rule())
    order = np.argsort(examples.target_lengths)
    batches = cut_into_batches(examples, order, 300)
    for batch, after in itertools.pairwise(batches):
        assert padded_tokens(examples, np.append(batch, after[0])) > 300


def test_one_seed_gives_one_order_and_epochs_differ(stores):
    examples = examples_of(stores, rule())

    def plan(seed: int, epoch: int) -> list[list[int]]:
        return [batch.tolist() for batch in epoch_batches(examples, 200, seed, epoch)]

    assert plan(1, 0) == plan(1, 0)
    assert plan(1, 0) != plan(1, 1)
    assert plan(1, 0) != plan(2, 0)
    assert plan(1, 1) != plan(0, 1) != plan(1, 0)


def test_in_order_is_the_same_each_time(stores):
    examples = examples_of(stores, rule())
    first, second = ([b.tolist() for b in in_order(examples, 200)] for _ in range(2))
    assert first == second


@pytest.mark.parametrize("cut", [0, 1, 5, 11, 12, 13, 29])
def test_going_on_from_a_position_equals_never_having_stopped(stores, cut):
    examples = examples_of(stores, rule())
    whole, end = Stream(examples, 300, seed=4).take(Position(), 30)
    head, position = Stream(examples, 300, seed=4).take(Position(), cut)
    tail, last = Stream(examples, 300, seed=4).take(position, 30 - cut)  # a new process
    assert [b.tolist() for b in head + tail] == [b.tolist() for b in whole]
    assert last == end
    assert end.epoch >= 1, "the test should cross an epoch's end"


def test_a_stream_runs_through_whole_epochs(stores):
    examples = examples_of(stores, rule())
    stream = Stream(examples, 300, seed=4)
    per_epoch = [len(stream.epoch(e)) for e in range(2)]
    taken, _ = stream.take(Position(), sum(per_epoch))
    seen = np.concatenate(taken)
    assert np.bincount(seen).tolist() == [2] * len(examples)


def test_one_batch_at_a_time_equals_many_at_once(stores):
    stream = Stream(examples_of(stores), 200, seed=4)
    many, _ = stream.take(Position(), 20)
    position, single = Position(), []
    for _ in range(20):
        (batch,), position = stream.take(position, 1)
        single.append(batch)
    assert [b.tolist() for b in single] == [b.tolist() for b in many]


def test_a_history_has_nothing_after_the_sentence():
    with pytest.raises(
        DocnmtError, match="only reads sentences before the current one\\n  Set the context's following to 0"
    ):
        HistoryRule(ContextSpec(1, 1), 256, BOS, EOS)
