"""What holds of every system, whatever its equations; each function proves one of these things of a small model."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest
import torch

from docnmt.decoding.beam import Hypothesis, beam_search
from docnmt.document import NO_CONTEXT
from docnmt.model.context import is_document_parameter
from docnmt.model_folder import weights_of
from docnmt.systems import system_of
from tests.builders import BOS, EOS
from tests.every_system import (
    Case,
    base_of,
    document_batch,
    make_system,
    plain_batch,
    rule_of,
    scores,
    some_document,
)


@torch.no_grad()
def context_off_is_the_base_to_the_bit(case: Case) -> None:
    model, off = make_system(case), plain_batch(some_document())
    base = base_of(case, model)
    assert torch.equal(model(off), base(off))
    for smoothing in (0.0, 0.1):
        pairs = zip(model.loss(off, smoothing), base.loss(off, smoothing), strict=True)
        assert all(torch.equal(one, other) for one, other in pairs)
    words = torch.full((2 * off.source.segments.count,), BOS)
    states = (model, case.system.state), (base, system_of(case.base, "none").state)
    one, other = (state(m, m.encode(off.source), 2).logits(words) for m, state in states)
    assert torch.equal(one, other)


def context_matters(case: Case) -> None:
    """To every sentence but the first: the sentences before are changed, and with them its probability."""
    model, rule, document = make_system(case), rule_of(case), some_document()
    others = some_document(seed=7)
    for i in range(1, 5):
        after_others = (*others[0][:i], document[0][i]), (*others[1][:i], document[1][i])
        own, foreign = (scores(model, document_batch(rule, d, [i]))[0] for d in (document, after_others))
        last = len(document[1][i]) + 1  # the sentence's own words: a rule may put others before them
        assert (own[-last:] - foreign[-last:]).abs().max() > 1e-4


def batch_mates_do_not(case: Case) -> None:
    model, rule, document = make_system(case), rule_of(case), some_document()
    for i, together in enumerate(scores(model, document_batch(rule, document))):
        (alone,) = scores(model, document_batch(rule, document, [i]))
        torch.testing.assert_close(alone, together, atol=1e-5, rtol=1e-5)


def word_by_word_is_all_at_once(case: Case) -> None:
    _word_by_word(case, context=True)


def word_by_word_is_all_at_once_without_context(case: Case) -> None:
    _word_by_word(case, context=False)


def _word_by_word(case: Case, context: bool) -> None:
    """Two hypotheses a sentence, which change places at every step; a sentence leaves the batch at its end."""
    model, rule, document = make_system(case), rule_of(case), some_document()
    written = document[1], [target[::-1] for target in document[1]]
    if context:
        batches = [document_batch(rule, document, written=each) for each in written]
    else:
        batches = [plain_batch((document[0], each)) for each in written]
    whole = [scores(model, batch) for batch in batches]  # [hypothesis][sentence], each [length]
    lengths = batches[0].target_in.segments.lengths.tolist()
    given, wanted = (
        [tokens.split(lengths) for tokens in side]
        for side in ([b.target_in.tokens for b in batches], [b.target_out for b in batches])
    )
    alive, order = list(range(len(lengths))), (0, 1)
    assert len(set(lengths)) > 2
    with torch.inference_mode():
        state = case.system.state(model, model.encode(batches[0].source, batches[0].context), 2)
        for step in range(max(lengths)):
            rows = [(h, i) for i in alive for h in order]
            log_p = state.logits(torch.stack([given[h][i][step] for h, i in rows])).log_softmax(1)
            found = log_p.gather(1, torch.stack([wanted[h][i][step] for h, i in rows])[:, None])[:, 0]
            expected = torch.stack([whole[h][i][step] for h, i in rows])
            torch.testing.assert_close(found, expected, atol=2e-5, rtol=1e-5)
            state.reorder(torch.arange(len(rows)).unflatten(0, (-1, 2)).flip(1).flatten())
            order = order[::-1]
            stay = [place for place, i in enumerate(alive) if lengths[i] > step + 1]
            if stay and len(stay) < len(alive):
                state.keep(torch.tensor(stay))
                alive = [alive[place] for place in stay]


def beam_search_scores_as_the_model_does(case: Case) -> None:
    """A random model hardly ever writes the end mark, so each word that it begins with has a turn at being one."""
    model, rule, document = make_system(case, seed=2), rule_of(case), some_document()
    batch = document_batch(rule, document, written=[[]] * 5)

    def search(end: int) -> list[Hypothesis]:
        options = {"bos": BOS, "eos": end, "beam": 3, "extra_length": 4, "start": case.system.state}
        return [best for (best,) in beam_search(model, batch.source, batch.context, **options)]

    limits, ended = (batch.source.segments.lengths + 4).tolist(), 0
    for end in (EOS, *{best.tokens[0] for best in search(EOS) if best.tokens}):
        for i, best in enumerate(search(end)):
            asked = document_batch(replace(rule, target_eos=end), document, [i], [best.tokens])
            (log_p,) = scores(model, asked)
            cut = len(best.tokens) == limits[i]  # then the end mark was not counted
            assert best.log_probability == pytest.approx((log_p[:-1] if cut else log_p).sum().item(), abs=1e-3)
            ended += not cut
    assert ended


def updates_with_the_base_frozen_move_what_is_added_and_nothing_else(case: Case) -> None:
    _updates(case, frozen=True)


def updates_with_nothing_frozen_move_everything(case: Case) -> None:
    _updates(case, frozen=False)


def _updates(case: Case, frozen: bool) -> None:
    """What is learned from the documents themselves is not trained: it stays."""
    model, rule = make_system(case, shaken=False).train(), rule_of(case)
    moving = {name for name, p in model.named_parameters() if p.requires_grad}
    if frozen:
        for _, parameter in model.sentence_parameters():
            parameter.requires_grad_(False)
        moving = {name for name in moving if is_document_parameter(name)}
    start = {name: p.detach().clone() for name, p in model.named_parameters()}
    optimiser = torch.optim.Adam([p for p in model.parameters() if p.requires_grad], lr=1e-2)
    for step in range(3):  # what lies behind matrices that begin as zeros has a gradient once they have moved
        optimiser.zero_grad()
        model.loss(document_batch(rule, some_document(8, step)), 0.1)[0].backward()
        optimiser.step()
    moved = {name for name, p in model.named_parameters() if not torch.equal(p, start[name])}
    assert moved == moving
    assert {name for name, p in model.named_parameters() if p.grad is not None} == moving


def first_sentences_can_be_trained_on(case: Case) -> None:
    """A batch in which no sentence has any before it."""
    model, rule = make_system(case), replace(rule_of(case), spec=NO_CONTEXT)
    model.loss(document_batch(rule, some_document()), 0.1)[0].backward()
    found = [p.grad for p in model.parameters() if p.grad is not None]
    assert found and all(gradient.isfinite().all() for gradient in found)


def weights_of_the_base_fit(case: Case) -> None:
    model = make_system(case)
    missing = model.load_weights(weights_of(base_of(case, make_system(case, seed=1))))
    assert missing == [name for name, _ in model.document_parameters()]


CHECKS: tuple[Callable[[Case], None], ...] = (
    context_off_is_the_base_to_the_bit,
    context_matters,
    batch_mates_do_not,
    word_by_word_is_all_at_once,
    word_by_word_is_all_at_once_without_context,
    beam_search_scores_as_the_model_does,
    updates_with_the_base_frozen_move_what_is_added_and_nothing_else,
    updates_with_nothing_frozen_move_everything,
    first_sentences_can_be_trained_on,
    weights_of_the_base_fit,
)


def checks_of(case: Case) -> list[Callable[[Case], None]]:
    """Of a system that adds no parameters none can be frozen."""
    frozen = updates_with_the_base_frozen_move_what_is_added_and_nothing_else
    return [check for check in CHECKS if case.freeze or check is not frozen]
