"""What the two caches have in common: the words they remember, what they see, and a memory that is empty."""

from __future__ import annotations

import pytest
import torch

from docnmt.base.errors import DocnmtError
from docnmt.config import ContextConfig
from docnmt.data.context import Before, MemoryRule
from docnmt.data.packing import pack_contexts
from tests.builders import BOS, EOS
from tests.every_system import ALL, document_batch, make_system, plain_batch, rule_of, scores, some_document

# ---- the words of a history ----


def test_words_of_a_history_in_order_without_marks():
    before = [
        Before([[5, EOS], [6, EOS]], [[7, 8], [9]]),
        Before([[BOS]], [[]]),
        Before([[5, EOS], [EOS], [6, EOS]], [[4, 4, 4], [], [5]]),
    ]
    history = pack_contexts(before, BOS)
    words, places = history.remembered_words()
    assert words.tolist() == [[-1, 7, 8, 9], [-1, -1, -1, -1], [4, 4, 4, 5]]
    assert torch.equal(history.target.tokens[places][words >= 0], words[words >= 0])
    assert history.owners.tolist() == [0, 0, 1, 2, 2, 2]


def test_no_words_at_all():
    words, places = pack_contexts([Before([[BOS]], [[]])] * 2, BOS).remembered_words()
    assert words.shape == places.shape == (2, 0)


# ---- what they see ----


@pytest.mark.parametrize("name", ["cache", "continuous-cache", "rnnsearch-cache"])
def test_they_remember_translations(name):
    assert ALL[name].system.rule(ALL[name].config) is MemoryRule


def test_words_that_are_left_out_are_passed_over_and_make_room_for_earlier_ones():
    left_out = torch.zeros(20, dtype=torch.bool)
    left_out[[8, 4]] = True
    before = [
        Before([[5, EOS], [6, EOS]], [[7, 8], [8, 9]]),
        Before([[5, EOS]], [[4, 8]]),
        Before([[5, EOS]], [[10, 4, 11, 12]]),
    ]
    history = pack_contexts(before, BOS)
    words, places = history.remembered_words(left_out)
    assert words.tolist() == [[-1, 7, 9], [-1, -1, -1], [10, 11, 12]]
    assert torch.equal(history.target.tokens[places][words >= 0], words[words >= 0])


def test_topics_are_learned_from_the_documents_and_all_else_by_updates():
    fixed = {name for name, p in make_system(ALL["cache"]).named_parameters() if not p.requires_grad}
    assert fixed == {"context_stop_words", *(f"context_topics.{part}" for part in ("log_prior", "evidence", "words"))}


@pytest.mark.parametrize(("key", "value"), [("cache_words", 0), ("topic_words", -1)])
def test_sizes_that_make_no_sense(key, value):
    with pytest.raises(DocnmtError, match=f"context.{key}: {value} is too small"):
        ContextConfig(**{key: value})


@pytest.mark.parametrize("name", ["cache-without-topics", "continuous-cache"])
def test_an_empty_memory_leaves_the_sentence_model(name):
    """Alone, where there is no word in the whole batch, and beside others that have one."""
    case, document = ALL[name], some_document()
    model, rule = make_system(case), rule_of(case)
    expected = scores(model, plain_batch(document))[0]
    for end in (1, 5):
        batch = document_batch(rule, document, range(end))
        # Sums over a whole batch are rounded in another order: a few units in the last place.
        torch.testing.assert_close(scores(model, batch)[0], expected, atol=1e-6, rtol=1e-6)
        with torch.no_grad():
            on, off = (
                case.system.state(model, model.encode(batch.source, c), 1)
                .logits(torch.full((end,), BOS))
                .log_softmax(1)[0]
                for c in (batch.context, None)
            )
        torch.testing.assert_close(on, off, atol=1e-6, rtol=0)


@pytest.mark.parametrize("name", ["cache", "rnnsearch-cache"])
def test_at_every_step_the_mixture_is_a_distribution(name):
    case, document = ALL[name], some_document()
    model, batch = make_system(case), document_batch(rule_of(case), document)
    with torch.inference_mode():
        state = case.system.state(model, model.encode(batch.source, batch.context), 1)
        for word in (BOS, 4, 7, EOS):
            total = state.logits(torch.full((5,), word)).logsumexp(1)
            torch.testing.assert_close(total, torch.zeros(5), atol=1e-5, rtol=0)
