"""A gap keeps its place in a document: it is no pair, nothing is seen in it, and nothing moves up to fill it."""

import json

import numpy as np
import pytest

from docnmt.base.errors import BadInput
from docnmt.base.lines import CorpusFiles
from docnmt.corpus.inspect import inspect
from docnmt.corpus.read import read_corpus, read_source
from docnmt.corpus.rows import LeaveGaps, write_jsonl, write_text, write_tsv
from docnmt.data.batches import Examples, epoch_batches, in_order
from docnmt.data.context import ContextRule, HistoryRule, MemoryRule
from docnmt.data.store import TokenStore, sentences_of
from docnmt.decoding.translator import Translator
from docnmt.document import GAP, ContextSpec, Document, ParallelDocument, context_sentences, visible_positions
from docnmt.evaluation.context_gain import context_gain
from docnmt.evaluation.outputs import read_outputs, read_references
from docnmt.evaluation.test_sets import repeated, with_contexts
from docnmt.systems.concat import ToTwo
from tests.builders import loaded_model, make_store, parallel_documents, subwords

HOLES = {1, 2, 6}


def holed(document: ParallelDocument, holes=HOLES) -> ParallelDocument:
    sides = document.source, document.target
    source, target = (tuple(GAP if i in holes else text for i, text in enumerate(side)) for side in sides)
    return ParallelDocument(document.id, source, target)


WHOLE = parallel_documents([9, 4])
DOCUMENTS = [holed(WHOLE[0]), WHOLE[1]]


# ---- documents and their contexts ----


def test_a_window_counts_a_gap_and_sees_nothing_in_it():
    document = Document("d", ("a", GAP, GAP, "d", "e", "f"))
    assert document.filled == (0, 3, 4, 5)
    assert context_sentences(document.sentences, 3, ContextSpec(2, 1)) == ("e",)  # "a" is three places away
    assert context_sentences(document.sentences, 4, ContextSpec(4, 0)) == ("a", "d")
    assert visible_positions([[7], [], [8]], 2, ContextSpec(2, 0)) == (0,)


@pytest.mark.parametrize("kind", [ContextRule, HistoryRule, MemoryRule, ToTwo])
def test_rules_see_what_is_left_of_the_window(kind):
    rule = kind(ContextSpec(2, 0), 256, 1, 2)
    sentences, translations = [[5], [], [6, 7], [8]], [[15], [], [16], [18]]
    around = rule.around(sentences, 3, translations)
    assert list(around.before) == [[6, 7]]
    assert list(around.translations) == ([[16]] if rule.sees_translations else [])
    assert list(rule.around(sentences, 2, translations).before) == [[5]]  # two places before, and the window has two
    none = kind(ContextSpec(1, 0), 256, 1, 2).around(sentences, 2, translations)
    assert rule.context(none) == rule.context(rule.around([[6, 7]], 0, [[16]]))  # as at the beginning of a document


# ---- files ----


@pytest.mark.parametrize(("name", "write"), [("c.tsv", write_tsv), ("c.jsonl", write_jsonl), ("c.tsv.gz", write_tsv)])
def test_files_keep_gaps(tmp_path, name, write):
    path = str(tmp_path / name)
    write(path, DOCUMENTS)
    assert list(read_corpus(CorpusFiles(path))) == DOCUMENTS
    source = list(read_source(path))
    assert [(d.id, d.sentences) for d in source] == [(d.id, d.source) for d in DOCUMENTS]


def test_how_gaps_look(tmp_path):
    document = ParallelDocument("d", ("un", GAP, "trois"), ("one", GAP, "three"))
    write_tsv(str(tmp_path / "c.tsv"), [document])
    assert (tmp_path / "c.tsv").read_text() == "d\tun\tone\nd\t\t\nd\ttrois\tthree\n"
    write_jsonl(str(tmp_path / "c.jsonl"), [document])
    record = json.loads((tmp_path / "c.jsonl").read_text())
    assert record == {"id": "d", "source": ["un", None, "trois"], "target": ["one", None, "three"]}


@pytest.mark.parametrize(
    "text",
    ["d\tun\tone\nd\t \t\nd\ttrois\tthree\n", "d ||| un ||| one\nd ||| ||| \nd ||| trois ||| three\n"]
    + [
        f'{{"id": "d", "source": ["un", {hole}, "trois"], "target": ["one", {hole}, "three"]}}\n'
        for hole in ("null", '""', '" "')
    ],
)
def test_formats_that_have_gaps(tmp_path, text):
    (tmp_path / "c").write_text(text)
    (document,) = read_corpus(CorpusFiles(str(tmp_path / "c")))
    assert (document.source, document.target) == (("un", GAP, "trois"), ("one", GAP, "three"))


@pytest.mark.parametrize(
    "text",
    [
        "d\tun\tone\nd\t\ttwo\n",
        "d\tun\tone\nd\tdeux\t\n",
        '{"id": "d", "source": ["un", null], "target": ["one", "two"]}\n',
        '{"id": "d", "source": ["un", "deux"], "target": ["one", ""]}\n',
    ],
)
def test_one_empty_side_stays_an_error(tmp_path, text):
    (tmp_path / "c").write_text(text)
    with pytest.raises(BadInput) as caught:
        list(read_corpus(CorpusFiles(str(tmp_path / "c"))))
    assert caught.value.kind == "empty side"


def test_what_cannot_be_written_with_a_gap(tmp_path):
    with pytest.raises(BadInput, match=r"a gap, which plain text cannot express.*\n  Write TSV or JSON lines"):
        write_text(str(tmp_path / "s"), str(tmp_path / "t"), DOCUMENTS)
    for source, target in (("", "one"), ("un", ""), (" ", "one"), (" ", " ")):
        with pytest.raises(BadInput, match="an empty sentence"):
            write_tsv(str(tmp_path / "c.tsv"), [ParallelDocument("d", (source,), (target,))])


def test_bad_places_can_be_left_as_gaps(tmp_path):
    lines = ["d\tun\tone", "d\tdeux\t", "d\ttr\x01ois\tthree", "d\tquatre\tfour\tmore", "d\tcinq\tfive"]
    (tmp_path / "c.tsv").write_text("\n".join(lines) + "\n")
    bad = LeaveGaps()
    (document,) = read_corpus(CorpusFiles(str(tmp_path / "c.tsv")), on_bad=bad)
    assert document.source == ("un", GAP, GAP, GAP, "cinq")
    assert bad.counts.total() == 3
    (tmp_path / "s").write_text("un\nde\x01ux\ntrois\n")
    (tmp_path / "t").write_text("one\ntwo\nthree\n")
    sides = CorpusFiles(source=str(tmp_path / "s"), target=str(tmp_path / "t"))
    (document,) = read_corpus(sides, on_bad=LeaveGaps())
    assert document.target == ("one", GAP, "three")


def test_inspection_counts_pairs_and_gaps_apart():
    found = inspect(DOCUMENTS, ContextSpec(1, 0))
    assert (found.sentences, found.gaps) == (6 + 4, 3)
    assert found.source_lengths.minimum > 0
    # Four of the ten have no neighbour before them: two first ones, and those after gaps.
    assert found.with_context == pytest.approx(6 / 10)
    for example in found.examples:
        assert example.source and all(example.context)


# ---- the token store and batches ----


def test_a_store_without_gaps_is_what_it_was(tmp_path):
    store = make_store(tmp_path / "plain", WHOLE)
    assert "gaps" not in store.card
    assert not store.gaps().any() and store.pairs == len(store) == 13


def test_a_store_keeps_gaps_in_their_places(tmp_path):
    store = TokenStore(make_store(tmp_path / "holed", DOCUMENTS).folder)
    assert np.flatnonzero(store.gaps()).tolist() == sorted(HOLES)
    assert (store.card["gaps"], store.pairs, len(store)) == (3, 10, 13)
    assert GAP not in list(sentences_of(DOCUMENTS, "source"))
    whole = make_store(tmp_path / "plain", WHOLE)
    for i in range(13):
        expected = [] if i in HOLES else whole.sentence("source", i).tolist()
        assert store.sentence("source", i).tolist() == expected


RULES = [ContextRule(ContextSpec(2, 1), 256, 1, 2), HistoryRule(ContextSpec(2, 0), 256, 1, 2)]
RULES += [MemoryRule(ContextSpec(3, 0), 256, 1, 2), ToTwo(ContextSpec(2, 0), 256, 1, 2)]


@pytest.mark.parametrize("rule", [None, *RULES], ids=lambda rule: type(rule).__name__)
def test_no_batch_has_a_gap_and_lengths_are_those_of_what_is_made(tmp_path, rule):
    store = make_store(tmp_path / "holed", DOCUMENTS)
    examples = Examples([store], subwords("source"), subwords("target"), rule)
    pairs = [i for i in range(13) if i not in HOLES]
    for batches in (epoch_batches(examples, 100, 1, 0), list(in_order(examples, 100))):
        assert sorted(np.concatenate(batches).tolist()) == pairs
    made = examples.batch(pairs)
    assert made.source.segments.lengths.tolist() == examples.source_lengths[pairs].tolist()
    assert made.target_in.segments.lengths.tolist() == examples.target_lengths[pairs].tolist()
    plain = Examples([store], subwords("source"), subwords("target"), None).batch(pairs)
    assert examples.own_lengths.sum() == len(plain.target_out)  # what the loss of a corpus is divided by
    if rule is None:
        return
    ids = [subwords("source").encode(document.source) for document in DOCUMENTS]
    translations = [subwords("target").encode(document.target) for document in DOCUMENTS]
    places = [(d, i) for d, document in enumerate(DOCUMENTS) for i in document.filled]
    for number, (d, i) in zip(pairs, places, strict=True):
        around = rule.around(ids[d], i, translations[d])
        assert list(examples._around(number).before) == list(around.before)
        assert len(rule.context(around) or ()) == examples.context_lengths[number]


# ---- translating, scoring, judging ----


def test_a_gap_comes_back_as_a_gap():
    translator = Translator(loaded_model())
    (result,) = translator.translate_documents([Document("d", DOCUMENTS[0].source)])
    assert [bool(s.text) for s in result.sentences] == [i not in HOLES for i in range(9)]


def test_a_gap_hides_what_stood_there_and_keeps_far_ones_away():
    translator = Translator(loaded_model())
    spec = ContextSpec(1, 0)
    one, other = (Document("d", (first, GAP, WHOLE[0].source[2])) for first in (WHOLE[0].source[0], WHOLE[0].source[5]))
    alone = Document("d", (WHOLE[0].source[2],))
    found = [result.sentences[-1] for result in translator.translate_documents([one, other, alone], context=spec)]
    assert found[0].text == found[1].text == found[2].text
    assert found[0].scores[0] == pytest.approx(found[1].scores[0]) == pytest.approx(found[2].scores[0])


def test_a_gap_has_no_score():
    translator = Translator(loaded_model())
    first, second = translator.score(DOCUMENTS)
    assert [len(score.pieces) > 0 for score in first] == [i not in HOLES for i in range(9)]
    assert len(second) == 4 and all(score.pieces for score in second)
    assert first[1].total == 0
    # What stands before the gaps is scored as in the whole document.
    assert first[0].total == pytest.approx(next(translator.score(WHOLE))[0].total, abs=1e-4)


def test_controls_and_context_gain_leave_gaps_out():
    spec = ContextSpec(2, 0)
    assert len(repeated(DOCUMENTS, spec)) == 10
    for kind in with_contexts(DOCUMENTS, spec, 1).values():
        assert sum(len(kind.positions(document)) for document in kind.documents) == 10
    gain = context_gain(Translator(loaded_model()), DOCUMENTS)
    assert gain.position.tolist() == [*DOCUMENTS[0].filled, *range(4)]
    assert gain.document.tolist() == [0] * 6 + [1] * 4
    assert all(gain.pieces)


@pytest.mark.parametrize("write", [write_tsv, write_jsonl])
def test_references_and_translations_are_judged_without_their_gaps(tmp_path, write):
    reference, system = str(tmp_path / "reference"), str(tmp_path / "system")
    empty = ParallelDocument("only gaps", (GAP, GAP), (GAP, GAP))
    write(reference, [DOCUMENTS[0], empty, DOCUMENTS[1]])
    write(system, [DOCUMENTS[0], empty, DOCUMENTS[1]])
    references = read_references([reference])
    assert references.ids == tuple(document.id for document in DOCUMENTS)
    assert references.lengths() == [6, 4]
    assert references.texts == (tuple(sentences_of(DOCUMENTS, "target")),)
    assert references.sources == tuple(sentences_of(DOCUMENTS, "source"))
    assert [references.position(i) for i in range(6)] == [i + 1 for i in DOCUMENTS[0].filled]
    (output,) = read_outputs([system], references)
    assert output.sentences == references.texts[0]
