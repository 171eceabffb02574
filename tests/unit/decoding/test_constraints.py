"""Search under constraints: against exhaustive search, against the plain one, and against itself in other batches."""

from __future__ import annotations

import itertools

import pytest
import torch

from docnmt.data.packing import make_batch, pack
from docnmt.decoding.beam import Hypothesis, beam_search, length_penalty
from docnmt.decoding.constraints import WIDEST, Constraints, Tracker, beam_for
from docnmt.decoding.phrases import Phrase, Spelling, missing
from tests.builders import BOS, EOS, TARGET_WORDS, endless_model, make_model, random_sentences, toy_model, with_end

MARKS = {"bos": BOS, "eos": EOS}


Wish = tuple[Phrase, ...]


def wish_for(*texts: str) -> Wish:
    return tuple(Phrase(text, "x", (0, 1)) for text in texts)


def search(
    model,
    spelling,
    sources,
    wishes,
    contexts=None,
    *,
    extra_length,
    beam=4,
    length=None,
    breaks=None,
    floor=-torch.inf,
    **options,
):
    trackers = [
        Tracker(wish, spelling, BOS, length or len(source) + extra_length, after, floor)
        for wish, source, after in zip(wishes, sources, breaks or [0] * len(wishes), strict=True)
    ]
    options["extra_length"] = extra_length
    constraints = Constraints(trackers, EOS, beam)
    packed = None if contexts is None else pack(contexts)
    return beam_search(model, pack(sources), packed, **MARKS, beam=beam, constraints=constraints, **options)


def pieces(wish: Wish, spelling: Spelling) -> int:
    return Tracker(wish, spelling, BOS, 0).pieces


def text(spelling: Spelling, tokens) -> str:
    return spelling.text(tokens).decode().removeprefix(" ")


# ---- exhaustive search: words that can be written in several ways ----

PIECES = Spelling([b"", b"", b"", b" a", b"b", b" ab"])
OTHER = [0, 1, 3, 4, 5]
BEAM = 700  # at most 5^4 hypotheses go on
EXAMPLES = {
    "one": wish_for("ab"),
    "short": wish_for("a"),
    "beginning of another": wish_for("a", "ab"),
    "two words": wish_for("a ab"),
    "twice": wish_for("a", "a"),
    "nothing": wish_for(),
}


def asked_for(spelling: Spelling, wish: Wish, tokens) -> bool:
    return not missing(wish, text(spelling, tokens))


def exhaustive(model, source, wish: Wish, limit: int, alpha: float) -> list[Hypothesis]:
    """Every sequence within the limit that has what is asked for, best first."""
    sequences = [s for n in range(limit) for s in itertools.product(OTHER, repeat=n) if asked_for(PIECES, wish, s)]
    batch = make_batch([source] * len(sequences), None, sequences, BOS, EOS)
    with torch.no_grad():
        values = model.loss(batch)[1].split([len(s) + 1 for s in sequences])
    found = []
    for tokens, each in zip(sequences, values, strict=True):
        total = each.sum().item()
        found.append(Hypothesis(total / length_penalty(len(tokens) + 1, alpha), total, tokens))
    return sorted(found, reverse=True)


@pytest.mark.parametrize("name", EXAMPLES)
@pytest.mark.parametrize("seed", range(2))
def test_a_beam_large_enough_is_exhaustive(name, seed):
    wish = EXAMPLES[name]
    model = make_model(seed, source_words=6, target_words=6, decoder_layers=1, encoder_layers=1)
    source = [4, 5, EOS]
    limit = 5
    extra = limit - len(source) - pieces(wish, PIECES)
    for alpha, nbest in ((0.6, 1), (0.0, 7), (1.5, 7)):
        (found,) = search(model, PIECES, [source], [wish], beam=BEAM, alpha=alpha, nbest=nbest, extra_length=extra)
        best = exhaustive(model, source, wish, limit, alpha)
        assert len(best) > 7, "too few to prove anything"
        assert [h.tokens for h in found] == [h.tokens for h in best[:nbest]]
        assert [h.score for h in found] == pytest.approx([h.score for h in best[:nbest]], abs=1e-4)
        assert [h.log_probability for h in found] == pytest.approx([h.log_probability for h in best[:nbest]], abs=1e-4)


def test_words_written_in_several_ways_are_found_in_each():
    model = make_model(1, source_words=6, target_words=6, decoder_layers=1, encoder_layers=1)
    (found,) = search(model, PIECES, [[4, EOS]], [wish_for("ab")], beam=BEAM, nbest=60, extra_length=0)
    spelt = {tuple(token for token in h.tokens if token > 2) for h in found}
    assert {(5,), (3, 4)} <= spelt and (5, 4) not in spelt


# ---- any beam ----

LETTERS = [f" {letter}".encode() for letter in "pqrstuvw"] + [letter.encode() for letter in "pqrstuvw"]
WORDS = Spelling([b"", b"", b"", *LETTERS])
assert len(WORDS.written) == TARGET_WORDS
WISHES = [
    wish_for("p"),
    wish_for("pq", "r"),
    wish_for("w", "w"),
    wish_for("s t"),
    wish_for("uvw", "u"),
    wish_for("rs"),
    wish_for("p", "s r"),
    wish_for(),
    wish_for("qqq", "p", "r t"),
    wish_for("r"),
]


def problem(count: int = len(WISHES)):
    sources, contexts = (with_end(random_sentences(count, TARGET_WORDS, seed, longest=7)) for seed in (50, 51))
    contexts[0] = [BOS]
    return sources, contexts


def check(found, wishes) -> None:
    for hypotheses, wish in zip(found, wishes, strict=True):
        assert hypotheses and hypotheses == sorted(hypotheses, reverse=True)
        assert len({h.tokens for h in hypotheses}) == len(hypotheses)
        for h in hypotheses:
            assert asked_for(WORDS, wish, h.tokens), (wish, text(WORDS, h.tokens))
            assert EOS not in h.tokens


@pytest.mark.parametrize("beam", [1, 2, 4, 9])
def test_what_is_asked_for_is_there(beam):
    sources, contexts = problem()
    nbest = beam if beam > 1 else 1
    found = search(toy_model(), WORDS, sources, WISHES, contexts, beam=beam, nbest=nbest, extra_length=8)
    check(found, WISHES)


@pytest.mark.parametrize("with_context", [True, False], ids=["context", "off"])
def test_log_probabilities_are_those_of_the_whole_model(with_context):
    sources, contexts = problem()
    if not with_context:
        contexts = None
    found = search(toy_model(), WORDS, sources, WISHES, contexts, nbest=3, extra_length=8)
    for i, hypotheses in enumerate(found):
        count = len(hypotheses)
        around = None if contexts is None else [contexts[i]] * count
        batch = make_batch([sources[i]] * count, around, [h.tokens for h in hypotheses], BOS, EOS)
        with torch.no_grad():
            values = toy_model().loss(batch)[1].split([len(h.tokens) + 1 for h in hypotheses])
        for h, each in zip(hypotheses, values, strict=True):
            assert h.log_probability == pytest.approx(each.sum().item(), abs=1e-3)


@pytest.mark.parametrize("beam", [1, 4])
def test_batch_and_order_change_no_output(beam):
    sources, contexts = problem()

    def run(indices):
        found = search(
            toy_model(),
            WORDS,
            [sources[i] for i in indices],
            [WISHES[i] for i in indices],
            [contexts[i] for i in indices],
            beam=beam,
            nbest=beam,
            extra_length=8,
        )
        return [[h.tokens for h in hypotheses] for hypotheses in found]

    together = run(range(10))
    assert [run([i])[0] for i in range(10)] == together
    order = [7, 2, 9, 0, 4, 1, 8, 3, 6, 5]
    assert run(order) == [together[i] for i in order]


@pytest.mark.parametrize("beam", [1, 2, 4])
def test_where_nothing_is_asked_for_it_is_the_plain_search(beam):
    sources, contexts = problem()
    nothing = [wish_for()] * len(sources)
    options = {"nbest": beam, "extra_length": 8, "beam": beam}
    found = search(toy_model(), WORDS, sources, nothing, contexts, **options)
    plain = beam_search(toy_model(), pack(sources), pack(contexts), **MARKS, **options)
    assert [[h.tokens for h in each] for each in found] == [[h.tokens for h in each] for each in plain]
    scores = [[h.score for each in hypotheses for h in each] for hypotheses in (found, plain)]
    assert scores[0] == pytest.approx(scores[1], rel=1e-5)
    beside = search(toy_model(), WORDS, sources, [*nothing[:-1], wish_for("pqr")], contexts, **options)
    assert [[h.tokens for h in each] for each in beside[:-1]] == [[h.tokens for h in each] for each in plain[:-1]]


def test_a_phrase_that_comes_of_itself_changes_nothing():
    sources, contexts = problem(4)
    plain = beam_search(toy_model(), pack(sources), pack(contexts), **MARKS, extra_length=8)
    wishes = [wish_for(text(WORDS, best.tokens).split()[0]) for (best,) in plain]
    found = search(toy_model(), WORDS, sources, wishes, contexts, extra_length=8)
    assert [best.score for (best,) in found] >= [best.score - 1e-4 for (best,) in plain]


def test_what_cannot_be_spelt_is_passed_over():
    sources, contexts = problem(3)
    wishes = [wish_for("zebra"), wish_for("p", "zebra"), wish_for("é")]
    found = search(toy_model(), WORDS, sources, wishes, contexts, extra_length=8)
    plain = search(toy_model(), WORDS, sources, [wish_for(), wish_for("p"), wish_for()], contexts, extra_length=8)
    assert found == plain
    assert pieces(wishes[0], WORDS) == 0


def test_a_form_that_cannot_be_spelt_leaves_the_other():
    (found,) = search(toy_model(), WORDS, problem(1)[0], [wish_for("p q")], extra_length=8)  # there is no "P q"
    assert "p q" in text(WORDS, found[0].tokens)


def test_a_vocabulary_without_spaces():
    bare = Spelling([b"", b"", b"", *(letter.encode() for letter in "pqrstuvwxyzabcde")])
    (found,) = search(toy_model(), bare, problem(1)[0], [wish_for("pq")], extra_length=4)
    assert found  # nothing can end a word but the sentence


# ---- limits ----


@pytest.fixture
def endless():
    return endless_model()


def test_at_the_limit_those_are_left_that_have_done_most(endless):
    sources, _ = problem(2)
    wishes = [wish_for("pqrs"), wish_for("pq", "rs")]
    found = search(endless, WORDS, sources, wishes, nbest=3, extra_length=-3)
    for source, wish, hypotheses in zip(sources, wishes, found, strict=True):
        assert hypotheses
        for h in hypotheses:
            assert len(h.tokens) == len(source) - 3 + pieces(wish, WORDS)
            assert asked_for(WORDS, wish, h.tokens)


def test_longer_than_the_free_translation_gains_nothing():
    sources, contexts = problem(4)
    wishes = [wish_for("pq")] * 4
    for hypotheses in search(toy_model(), WORDS, sources, wishes, contexts, length=3, nbest=3, extra_length=8):
        for h in hypotheses:
            most = min(len(h.tokens) + 1, 3 + 2)
            assert h.score == pytest.approx(h.log_probability / length_penalty(most, 0.6))


def test_below_the_floor_there_is_nothing():
    sources, contexts = problem(4)
    wishes = [wish_for("pqrst")] * 4
    free = search(toy_model(), WORDS, sources, wishes, contexts, extra_length=8)
    best = sorted(hypotheses[0].log_probability for hypotheses in free)
    floor = (best[1] + best[2]) / 2
    found = search(toy_model(), WORDS, sources, wishes, contexts, extra_length=8, floor=floor)
    for hypotheses, unbound in zip(found, free, strict=True):
        assert all(h.log_probability > floor for h in hypotheses)
        if unbound[0].log_probability <= floor:
            assert not hypotheses or hypotheses[0].score > unbound[0].score
        else:
            assert hypotheses[0].score >= unbound[0].score - 1e-4  # it cannot be in the way of better ones
    assert any(found) and not all(found)


def test_what_is_asked_for_comes_after_the_breaks():
    model, steps = make_model(), itertools.count()

    def breaks_at_third_and_fourth(module, inputs, logits):
        if next(steps) in (2, 3):
            return torch.full_like(logits, -torch.inf).index_fill(-1, torch.tensor([BOS]), 0.0)
        return logits

    model.softmax.register_forward_hook(breaks_at_third_and_fourth)
    wishes, breaks = [wish_for("p"), wish_for("qr"), wish_for("s t", "r")], [1, 1, 2]
    found = search(model, WORDS, problem(3)[0], wishes, breaks=breaks, nbest=2, extra_length=8)
    for wish, count, hypotheses in zip(wishes, breaks, found, strict=True):
        assert hypotheses
        for h in hypotheses:
            places = [place for place, token in enumerate(h.tokens) if token == BOS]
            assert asked_for(WORDS, wish, h.tokens[places[count - 1] + 1 :])


def test_the_beam_grows_with_the_phrases_up_to_a_limit():
    assert beam_for(Tracker(wish_for(), WORDS, BOS, 9), 4) == 4
    assert beam_for(Tracker(wish_for("pqr", "s"), WORDS, BOS, 9), 4) == 8
    assert beam_for(Tracker(wish_for("pqrs" * 20), WORDS, BOS, 9), 4) == WIDEST
    assert beam_for(Tracker(wish_for("pqrs" * 20), WORDS, BOS, 9), 100) == 100
