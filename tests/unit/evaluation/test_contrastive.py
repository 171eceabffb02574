"""Contrastive items: their file, what a model says of them, and how that is counted."""

from __future__ import annotations

import gzip
import json
import math
from dataclasses import replace
from itertools import product
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from docnmt.base.errors import BadInput, DocnmtError
from docnmt.base.lines import InputFile
from docnmt.decoding.scoring import Choice, SentenceScore
from docnmt.decoding.translator import Translator
from docnmt.decoding.units import SENTENCE_RULE
from docnmt.demo import write_demo_corpus
from docnmt.document import Document
from docnmt.evaluation.contrastive import SENTENCE, WITH, WITHOUT, Verdict, judge, uses, with_shuffled_contexts
from docnmt.evaluation.contrastive_items import Item, read_items, record_of, write_items
from docnmt.evaluation.contrastive_report import (
    CONTRASTIVE,
    Accuracy,
    accuracy_table,
    as_json,
    groups,
    mcnemar,
    notes,
    signature,
)
from tests.builders import loaded_model, parallel_documents, sentence_model_of

ITEM = Item("d", "pronoun", ("elle dort.",), ("it sleeps.",), (("she sleeps.",), ("he sleeps.",)))


def read(path: Path) -> list[Item]:
    with InputFile(str(path)) as file:
        return read_items(file)


# ---- the file ----

SENTENCES = st.text(st.characters(exclude_categories=("C", "Zl", "Zp")), min_size=1, max_size=8).filter(str.strip)
COUNTS = st.none() | st.integers(0, 9)


@st.composite
def items(draw: st.DrawFn) -> Item:
    def passage(size: int) -> tuple[str, ...]:
        return tuple(draw(SENTENCES) for _ in range(size))

    scored, before = draw(st.integers(1, 3)), draw(st.integers(0, 3))
    return Item(
        document=draw(SENTENCES),
        phenomenon=draw(SENTENCES),
        source=passage(scored),
        right=passage(scored),
        wrong=tuple(passage(scored) for _ in range(draw(st.integers(1, 3)))),
        position=draw(COUNTS),
        distance=draw(COUNTS),
        previous=passage(before),
        following=passage(draw(st.integers(0, 2))),
        previous_target=passage(before * draw(st.integers(0, 1))),
    )


@settings(deadline=None, max_examples=60)
@given(st.lists(items(), min_size=1, max_size=4))
def test_what_is_written_is_read_again(tmp_path_factory, given_items):
    path = tmp_path_factory.mktemp("set") / "set.jsonl"
    write_items(path, given_items)
    assert read(path) == given_items
    assert len(path.read_bytes().split(b"\n")) == len(given_items) + 1  # an item a line


def test_only_five_fields_are_needed_and_sentences_may_be_strings(tmp_path):
    path = tmp_path / "set.jsonl.gz"
    short = {"document": "d", "phenomenon": "pronoun", "source": "elle dort.", "right": "it sleeps."}
    short["wrong"] = ["she sleeps.", "he sleeps."]
    path.write_bytes(gzip.compress(b"\n" + json.dumps(short).encode() + b"\n\n"))
    assert read(path) == [ITEM]


def test_an_item_of_the_same_text_is_kept_each_time(tmp_path):
    path = tmp_path / "set.jsonl"
    write_items(path, [ITEM, ITEM])
    assert read(path) == [ITEM, ITEM]


BAD = {
    "unknown field 'rigth'": {"rigth": "x"},
    "the field 'wrong' is missing": {"wrong": ...},
    "the field 'source' is missing": {"source": ...},
    "'document' must be a short, non-empty string": {"document": 7},
    "'phenomenon' must be a short, non-empty string": {"phenomenon": " "},
    "'wrong' must be a list of one or more translations, not \"she sleeps.\"": {"wrong": "she sleeps."},
    "'wrong' must be a list of one or more translations, not []": {"wrong": []},
    "'source' must be a sentence or a list of sentences, not 3": {"source": 3},
    "'right' must be a sentence or a list": {"right": ["a", None]},
    "'previous' must be a sentence or a list": {"previous": "elle est là."},
    "'right' has an empty sentence": {"right": "  "},
    "'wrong' has an empty sentence": {"wrong": ["a", []]},
    "control character U+0007 at character 2 of a sentence in 'previous'": {"previous": ["a\a"]},
    "1 source sentences, but a translation has 2": {"wrong": [["a", "b"]]},
    "2 source sentences, but a translation has 1": {"source": ["a", "b"]},
    "1 sentences in 'previous' but 2 in 'previous_target'": {"previous": ["a"], "previous_target": ["a", "b"]},
    "'distance' must be a whole number, 0 or more, not -1": {"distance": -1},
    "'position' must be a whole number, 0 or more, not true": {"position": True},
}


@pytest.mark.parametrize("said", BAD)
def test_a_bad_item_is_named_with_its_line(tmp_path, said):
    changed = {key: value for key, value in (record_of(ITEM) | BAD[said]).items() if value is not ...}
    path = tmp_path / "set.jsonl"
    path.write_text(f"{json.dumps(record_of(ITEM))}\n\n{json.dumps(changed)}\n", encoding="utf-8")
    with pytest.raises(BadInput) as error:
        read(path)
    assert str(error.value).startswith(f"{path}, line 3: {said}")
    assert "\n  " in str(error.value)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (b'{"document": ', "line 1: not valid JSON"),
        (b"[1]\n", "line 1: this line is not a JSON object"),
        (b'\n{"document": "\xff"}\n', "line 2: byte 0xFF at character 15 is not valid UTF-8"),
        (b"\n\n", "no items"),
    ],
)
def test_what_is_no_set_is_refused(tmp_path, text, said):
    path = tmp_path / "set.jsonl"
    path.write_bytes(text)
    with pytest.raises(DocnmtError, match=said):
        read(path)


def test_the_demo_corpus_writes_its_set_in_this_schema(tmp_path):
    write_demo_corpus(tmp_path, 60, seed=3)
    path = tmp_path / "contrastive.jsonl"
    found = read(path)
    assert [record_of(item) for item in found] == [json.loads(line) for line in path.open(encoding="utf-8")]
    assert len(found) > 10 and all(len(item.previous) >= (item.distance or 0) for item in found)


# ---- scoring ----


@pytest.fixture(scope="module")
def translator() -> Translator:
    return Translator(loaded_model())


@pytest.mark.parametrize("context", [None, "none", "off", "previous=1", "previous=1,following=2"])
@pytest.mark.parametrize("window", [1, 12, 4096])
def test_a_choice_scores_as_its_sentence_does_in_the_whole_document(translator, monkeypatch, context, window):
    documents = parallel_documents([5, 1, 3, 2], seed=11)
    whole = [score for document in translator.score(documents, context=context) for score in document]
    monkeypatch.setattr(Translator, "WINDOW", window)
    choices = [
        Choice(Document(d.id, d.source), position, [d.target[position], d.target[0], ""])
        for d in documents
        for position in range(len(d))
    ]
    found = list(translator.score_choices(choices, context=context))
    assert [len(scores) for scores in found] == [3] * len(whole)
    for scores, expected in zip(found, whole, strict=True):
        assert scores[0].pieces == expected.pieces
        assert scores[0].log_probabilities == pytest.approx(expected.log_probabilities, abs=1e-4)


def item_of(document, position: int, length: int = 1, wrong: str = "rien du tout.") -> Item:
    scored = slice(position, position + length)
    return Item(
        document.id,
        "test",
        document.source[scored],
        document.target[scored],
        (tuple(wrong for _ in range(length)), document.target[scored][::-1]),
        previous=document.source[:position],
        following=document.source[position + length :],
    )


@pytest.mark.parametrize("context", [None, "none", "off", "previous=1,following=1"])
def test_a_candidate_of_several_sentences_scores_the_sum_of_them(translator, context):
    (document,) = parallel_documents([6], seed=4)
    (scores,) = translator.score([document], context=context)
    ticks: list[int] = []
    one, two = judge(translator, [item_of(document, 3), item_of(document, 2, 3)], context, lambda: ticks.append(1))
    assert one.scores[0] == pytest.approx(scores[3].total, abs=1e-3)
    assert two.scores[0] == pytest.approx(sum(score.total for score in scores[2:5]), abs=1e-3)
    assert (len(one.scores), len(two.scores), len(ticks)) == (3, 3, 2)


def test_the_context_of_an_item_is_what_makes_the_difference(translator):
    (document,) = parallel_documents([6], seed=4)
    item = item_of(document, 3)
    alone = replace(item, previous=(), following=())

    def score(item: Item, context: str | None) -> float:
        return judge(translator, [item], context)[0].scores[0]

    assert score(item, None) != pytest.approx(score(alone, None), abs=1e-3)
    assert score(alone, None) == pytest.approx(score(item, "none"), abs=1e-4)
    assert score(item, "off") == pytest.approx(score(alone, "off"), abs=1e-4)
    # Two sentences before are the model's context: what is further off, and the target side, it does not see.
    near = replace(item, previous=item.previous[-2:], following=(), previous_target=("x", "y"))
    assert score(near, None) == pytest.approx(score(item, None), abs=1e-4)


class Saying:
    """In a translator's place: gives the scores it is told, candidate by candidate."""

    def __init__(self, *scores: float):
        self.scores = scores

    def rule(self, context=None):
        return SENTENCE_RULE

    def score_choices(self, choices, *, context):
        for _ in choices:
            yield [SentenceScore(("x",), (score,)) for score in self.scores]


@pytest.mark.parametrize(
    ("scores", "right"),
    [
        ((-1.0, -2.0, -3.0), True),
        ((-2.0, -1.0, -3.0), False),
        ((-2.0, -3.0, -1.0), False),
        ((-1.0, -1.0, -3.0), False),  # a tie
        ((-1.0, -3.0, -1.0), False),
    ],
)
def test_right_is_what_is_more_probable_than_every_wrong_one(scores, right):
    assert judge(Saying(*scores), [ITEM], None) == [Verdict(scores, right)]


def test_the_same_text_twice_is_a_tie_whatever_the_last_digits_say():
    same = replace(ITEM, wrong=(ITEM.right,))
    assert not judge(Saying(-1.0, -1.0000001), [same], None)[0].right
    (said,) = notes([replace(item, distance=0) for item in (same, ITEM)])
    assert said == "Items with a wrong candidate that is the same as the right one, counted as wrong: 1."


def test_columns_are_what_tells_what_context_does(translator):
    loaded = loaded_model()
    card = replace(loaded.card, context=replace(loaded.card.context, kind="none"))
    sentence = Translator(replace(loaded, model=sentence_model_of(loaded.model), card=card))
    assert uses(translator, None) == {WITH: None, WITHOUT: "none", SENTENCE: "off"}
    assert uses(translator, "previous=1") == {WITH: "previous=1", WITHOUT: "none", SENTENCE: "off"}
    assert uses(translator, "none") == {WITHOUT: "none"}
    assert uses(translator, "off") == {SENTENCE: "off"}
    assert uses(sentence, None) == uses(sentence, "previous=1") == {SENTENCE: None}
    assert "context:previous=2,following=0|p:mcnemar-exact" in signature(translator, None, 3)
    assert "context:previous=1|" in signature(translator, "previous=1", 3)
    assert "p:" not in signature(sentence, None, 3)


# ---- counting ----


@given(st.integers(0, 300), st.integers(1, 300))
def test_the_interval_is_wilsons(right, total):
    right = min(right, total)
    low, high = Accuracy(right, total).interval
    share = right / total
    assert 0 <= low <= 100 * share + 1e-9 and 100 * share - 1e-9 <= high <= 100
    for end in (low / 100, high / 100):  # shares at which what was found lies just 1.96 standard deviations off
        assert abs(share - end) == pytest.approx(1.959964 * math.sqrt(end * (1 - end) / total), abs=1e-6)


def test_more_items_make_the_interval_narrower():
    widths = [high - low for low, high in (Accuracy(n // 2, n).interval for n in (10, 100, 1000))]
    assert widths == sorted(widths, reverse=True) and widths[2] == pytest.approx(6.2, abs=0.1)


@given(st.lists(st.tuples(st.booleans(), st.booleans()), max_size=12))
def test_mcnemar_is_exact(pairs):
    first, second = [a for a, _ in pairs], [b for _, b in pairs]
    won = sum(a and not b for a, b in pairs)
    tosses = sum(a != b for a, b in pairs)
    off = abs(won - tosses / 2)
    as_far = [sum(coins) for coins in product((0, 1), repeat=tosses) if abs(sum(coins) - tosses / 2) >= off]
    assert mcnemar(first, second) == pytest.approx(len(as_far) / 2**tosses)
    assert mcnemar(second, first) == mcnemar(first, second)


def test_mcnemar_of_thousands_is_a_number():
    assert mcnemar([True] * 4000, [False] * 4000) == 0.0  # 2 ** -3999: too small for a float, but no error
    assert mcnemar([True, False] * 3000, [False, True] * 3000) == 1.0
    assert 0 < mcnemar([True] * 90 + [False] * 10, [False] * 90 + [True] * 10) < 1e-10


def judged(*right: bool) -> list[Verdict]:
    return [Verdict((-1.0, -2.0), value) for value in right]


def test_items_are_counted_under_their_phenomenon_and_distance():
    distances = (0, 1, 1, 3, 4, 9, None)
    found = [replace(ITEM, phenomenon="ab"[n % 2], distance=distance) for n, distance in enumerate(distances)]
    found[0] = replace(found[0], wrong=(("x",),))
    said = {
        WITH: judged(True, True, True, True, True, False, True),
        WITHOUT: judged(False, True, False, True, False, False, False),
    }
    result = groups(found, said)
    assert [(g.kind, g.name, len(g.items)) for g in result] == [
        ("all", "all", 7),
        ("phenomenon", "a", 4),
        ("phenomenon", "b", 3),
        ("distance", "0", 1),
        ("distance", "1", 2),
        ("distance", "3", 1),
        ("distance", ">3", 2),
        ("distance", "unknown", 1),
    ]
    for kind in ("phenomenon", "distance"):
        assert sorted(n for g in result if g.kind == kind for n in g.items) == list(range(7))
    everything, far = result[0], result[6]
    assert everything.accuracy == {WITH: Accuracy(6, 7), WITHOUT: Accuracy(2, 7)}
    assert everything.chance == pytest.approx(100 * (1 / 2 + 6 / 3) / 7)
    assert everything.p == mcnemar([v.right for v in said[WITH]], [v.right for v in said[WITHOUT]]) < 1
    assert far.accuracy == {WITH: Accuracy(1, 2), WITHOUT: Accuracy(0, 2)}


def test_a_single_column_has_no_p():
    result = groups([ITEM], {SENTENCE: judged(True)})
    assert all(group.p is None for group in result)
    shown = accuracy_table("set", result, CONTRASTIVE, ["signature"])
    assert [column.name for column in shown.columns] == ["", "items", "chance", SENTENCE]
    assert shown.rows[0][:3] == ("all", "1", "33.3") and shown.notes[-1] == "signature"
    assert "p" not in as_json(result, CONTRASTIVE)[0]


def test_the_table_shows_the_figures():
    count = 200
    said = {WITH: judged(*[True] * count), WITHOUT: judged(*[False] * count), SENTENCE: judged(*[True, False] * 100)}
    found = [ITEM] * count
    result = groups(found, said)
    shown = accuracy_table("set", result, CONTRASTIVE, notes(found))
    assert [column.name for column in shown.columns] == ["", "items", "chance", WITH, WITHOUT, SENTENCE, "p"]
    assert shown.rows[0] == (
        "all",
        "200",
        "33.3",
        "100.0 [98.1, 100.0]",
        "0.0 [0.0, 1.9]",
        "50.0 [43.1, 56.9]",
        "< 0.0001",
    )
    assert [row[0] for row in shown.rows] == ["all", "pronoun", "distance unknown"]
    (everything, *_) = as_json(result, CONTRASTIVE)
    assert everything["with_context"]["right"] == 200 and everything["sentence_model"]["accuracy"] == 50
    assert said[WITHOUT][0].as_dict() == {"preferred": False, "right": -1.0, "wrong": [-2.0]}


def test_what_a_reader_has_to_know_is_said():
    own = replace(ITEM, distance=0)
    assert notes([own]) == []
    (said,) = notes([ITEM, replace(ITEM, previous=("a",)), replace(ITEM, following=("a",)), own])
    assert said.startswith("Items without any context, whose distance is unknown: 1.")
    gold = replace(ITEM, previous=("a",), previous_target=("b",))
    assert notes([gold]) == ["The set has gold target context, which this model does not use."]
    twin = replace(own, right=ITEM.wrong[0], wrong=(ITEM.right,))
    (said,) = notes([own, twin, replace(own, source=("elle lit.",))])
    assert said.startswith("Items that source context cannot decide") and said.endswith("right: 2.")
    near = replace(ITEM, previous=("a",), distance=1)
    (said,) = notes([replace(ITEM, distance=2), replace(ITEM, distance=0), near])
    assert said == "Items that depend on a previous sentence which the set does not contain: 1."


# ---- documents as what is drawn, and contexts of other documents ----


def test_items_of_few_documents_are_less_sure_than_items_by_themselves():
    """All of a document right or wrong together: there are ten facts, not two hundred."""
    found = [replace(ITEM, document=str(n // 20)) for n in range(200)]
    said = {WITH: judged(*[n // 20 < 7 for n in range(200)]), WITHOUT: judged(*[n // 20 < 3 for n in range(200)])}
    by_item, by_document = (groups(found, said, resample)[0] for resample in ("items", "documents"))
    assert by_item.accuracy[WITH].percent == by_document.accuracy[WITH].percent == 70
    spreads = [group.accuracy[WITH].interval for group in (by_item, by_document)]
    widths = [spread.high - spread.low for spread in spreads]
    assert widths[1] > 3 * widths[0]
    assert by_item.p < 0.0001 and 0.05 < by_document.p < 0.25  # four documents of ten, all in one direction: 1/8
    alone = groups(found[:20], {WITH: said[WITH][:20], WITHOUT: said[WITHOUT][:20]}, "documents")
    assert "[" not in accuracy_table("set", alone, CONTRASTIVE).rows[0][3]
    assert as_json(alone, CONTRASTIVE)[0]["with_context"]["low"] is None


def test_shuffled_contexts_are_whole_contexts_of_other_documents():
    found = [
        replace(ITEM, document=str(n % 3), position=n, previous=(f"{n % 3}.",), previous_target=(f"{n % 3}!",))
        for n in range(30)
    ]
    shuffled = with_shuffled_contexts(found)
    for own, other in zip(found, shuffled, strict=True):
        assert (own.document, own.position, own.right) == (other.document, other.position, other.right)
        assert own.previous != other.previous and other.previous[0][0] == other.previous_target[0][0]
    assert {item.previous for item in shuffled} == {item.previous for item in found}
    assert shuffled == with_shuffled_contexts(found, seed=1) != with_shuffled_contexts(found, seed=2)
    with pytest.raises(DocnmtError, match="from other documents"):
        with_shuffled_contexts(found[::3])
