"""Gains of context: the figures against an independent computation, and what must be zero."""

from __future__ import annotations

import base64
import json
import math
import re
from dataclasses import replace

import numpy as np
import pytest
import torch

from docnmt.base.errors import DocnmtError
from docnmt.config import ContextConfig, DecodingConfig
from docnmt.data.packing import make_batch
from docnmt.decoding.translator import Translator
from docnmt.document import NO_CONTEXT, ContextSpec, Document, ParallelDocument
from docnmt.evaluation.context_gain import (
    END,
    ENDS,
    PUNCTUATION,
    WORDS,
    ContextGain,
    classes_of,
    context_gain,
    target_words,
    translation_quality,
    write_tokens,
)
from docnmt.evaluation.context_report import Figures, chosen_sentences, context_gain_page, least_count
from docnmt.evaluation.context_trace import gate_by_layer, traced
from docnmt.evaluation.test_sets import NONE, REPEATED, SHUFFLED, TRUE, repeated, shuffled
from docnmt.model.transformer import DocumentTransformer
from docnmt.model_folder import LoadedModel, ModelCard
from tests.builders import INTEGRATIONS, loaded_model, make_model, parallel_documents, sentence_model_of, subwords

SIZES = (4, 1, 3, 6, 2)
CONTEXTS = (TRUE, NONE, SHUFFLED, REPEATED)


@pytest.fixture(scope="module")
def documents() -> list[ParallelDocument]:
    return parallel_documents(SIZES, seed=11)


@pytest.fixture(scope="module")
def translator() -> Translator:
    return Translator(loaded_model())


@pytest.fixture(scope="module")
def gain(translator, documents) -> ContextGain:
    return context_gain(translator, documents)


def in_small_batches(translator: Translator) -> tuple[Translator, list[ParallelDocument]]:
    """... and documents of which, in such batches, some would differ by rounding alone if they were scored apart."""
    translator.options = replace(translator.options, batch_tokens=300)
    return translator, parallel_documents((4, 1, 3, 6, 2, 5, 5, 3, 8), seed=11)


def translator_with(model: DocumentTransformer, context: ContextConfig) -> Translator:
    card = ModelCard(model.model_config, context, DecodingConfig(beam=2), "fr", "en")
    return Translator(LoadedModel(model.eval(), card, subwords("source"), subwords("target")))


def random_translator(context: ContextConfig) -> Translator:
    model = make_model(2, context=context, source_words=len(subwords("source")), target_words=len(subwords("target")))
    return translator_with(model, context)


def fresh_translator() -> Translator:
    """Step 2 before its first update, from a trained sentence model: context changes nothing yet."""
    trained, context = loaded_model().model, ContextConfig(start="sentence")
    torch.manual_seed(8)
    sizes = len(trained.source_embedding.weight), len(trained.softmax.weight)
    model = DocumentTransformer(trained.model_config, context, *sizes)
    model.load_weights({name: p.detach() for name, p in trained.sentence_parameters()})
    return translator_with(model, context)


def independent(translator: Translator, documents: list[ParallelDocument]) -> dict[str, list[tuple[float, ...]]]:
    """Each sentence's log-probabilities under each context, by `Translator.score`."""
    sources = [Document(document.id, document.source) for document in documents]
    alone = [ParallelDocument(d.id, (s,), (t,)) for d in documents for s, t in zip(d.source, d.target, strict=True)]
    again = repeated(sources, translator.card.context.spec)
    found = {
        TRUE: translator.score(documents),
        NONE: translator.score(documents, context=NO_CONTEXT),
        SHUFFLED: translator.score(documents, context_from=shuffled(sources, 1)),
        REPEATED: translator.score(alone, context_from=again, context=ContextSpec(0, 9)),
    }
    return {name: [s.log_probabilities for document in scores for s in document] for name, scores in found.items()}


# ---- scores ----


def test_gains_are_those_of_scores_under_each_context(translator, documents, gain):
    expected = independent(translator, documents)
    assert list(gain.log_probabilities) == list(CONTEXTS)
    for name, sentences in expected.items():
        for ours, theirs in zip(gain.log_probabilities[name], sentences, strict=True):
            assert ours == pytest.approx(theirs, abs=1e-5)
    tokens = sum(map(len, expected[TRUE]))
    for name in CONTEXTS[1:]:
        mean = (sum(map(sum, expected[TRUE])) - sum(map(sum, expected[name]))) / tokens
        found = gain.gain(name)
        assert found.mean == pytest.approx(mean, abs=1e-6) and abs(mean) > 1e-4
        assert found.interval.low <= found.mean <= found.interval.high
        assert (found.sentences, found.tokens) == (sum(SIZES), tokens)


def test_where_each_sentence_stands(documents, gain):
    assert gain.documents == tuple(document.id for document in documents)
    assert [(int(d), int(p)) for d, p in zip(gain.document, gain.position, strict=True)] == [
        (d, p) for d, size in enumerate(SIZES) for p in range(size)
    ]
    for number, pieces in enumerate(gain.pieces):
        target = documents[gain.document[number]].target[gain.position[number]]
        assert pieces[-1] == "</s>"
        assert "".join(pieces[:-1]).replace("▁", " ").strip() == target
        assert all(len(values[number]) == len(pieces) for values in gain.log_probabilities.values())


@pytest.mark.parametrize("over", CONTEXTS[1:])
def test_parts_add_up_to_the_whole(gain, over):
    whole = sum(v.sum() for v in gain.log_probabilities[TRUE]) - sum(v.sum() for v in gain.log_probabilities[over])
    tokens = gain.tokens.sum()
    assert gain.totals(over).sum() == pytest.approx(whole)
    assert gain.gain(over).total == pytest.approx(whole)
    assert gain.gain(over).mean * tokens == pytest.approx(whole)
    assert sum(word.total for word in gain.by_word(over)) == pytest.approx(whole)
    assert sum(n * mean for _, n, mean in gain.by_document(over)) == pytest.approx(whole)
    places = gain.by_position(over).values()
    assert sum(found.total for found in places) == pytest.approx(whole)
    assert sum(found.tokens for found in places) == tokens
    assert sum(found.sentences for found in places) == sum(SIZES)


@pytest.mark.parametrize("over", CONTEXTS[1:])
def test_a_domain_is_the_sum_of_its_documents(gain, over):
    parts = {"even": [0, 2], "odd": [1, *range(3, len(SIZES), 2)], "empty": []}
    found = gain.by_domain(parts, over)
    assert list(found) == ["even", "odd"]
    for name, part in found.items():
        rows = [row for number, row in enumerate(gain.by_document(over)) if number in parts[name]]
        assert part.total == pytest.approx(sum(tokens * mean for _, tokens, mean in rows))
        assert part.tokens == sum(tokens for _, tokens, _ in rows)
        assert part.sentences == sum(SIZES[number] for number in parts[name])


def test_domains_have_a_table_where_they_are_asked_for(gain):
    figures = Figures(gain, None, {}, domains={"one": [0], "rest": list(range(1, len(SIZES)))})
    titles = [table.title for table in figures.tables()]
    assert sum("by domain" in title for title in titles) == 1
    table = figures.by_domain()
    found = figures.as_dict()["by_domain"]
    assert [row[0] for row in table.rows] == ["one", "rest"] == list(found[NONE])
    assert table.rows[1][2] == f"{found[NONE]['rest']['mean']:+.4f}"
    assert table.rows[1][4] == f"{found[SHUFFLED]['rest']['mean']:+.4f}"
    assert not any("by domain" in table.title for table in Figures(gain, None, {}).tables())


def test_without_a_context_there_is_no_gain():
    gain = context_gain(*in_small_batches(random_translator(ContextConfig())))
    first = gain.position == 0
    for over in CONTEXTS[1:]:
        assert not gain.totals(over)[first].any(), "not exactly zero"
        assert gain.totals(over)[~first].all()
        found = gain.by_position(over)["1"]
        assert (found.mean, found.interval.low, found.interval.high) == (0, 0, 0)
    assert list(gain.by_position()) == ["1", "2", "3", "4-5", "6-10"]


def test_a_context_after_the_sentence_counts_as_well(documents):
    following = random_translator(ContextConfig(previous=0, following=2))
    gain = context_gain(following, documents)
    last = np.array([position + 1 == SIZES[d] for d, position in zip(gain.document, gain.position, strict=True)])
    assert not gain.totals()[last].any() and gain.totals()[~last].all()
    expected = independent(following, documents)
    for name in CONTEXTS:
        for ours, theirs in zip(gain.log_probabilities[name], expected[name], strict=True):
            assert ours == pytest.approx(theirs, abs=1e-5)


def test_a_model_that_ignores_its_context_gains_exactly_nothing():
    translator, documents = in_small_batches(fresh_translator())
    gain, quality = context_gain(translator, documents), translation_quality(translator, documents)
    for over in CONTEXTS[1:]:
        assert all(not gains.any() for gains in gain.gains(over)), "not exactly zero"
    assert len(set(quality.translations.values())) == 1 and len(set(quality.translations[TRUE])) > 5
    assert all(found.difference == 0 and found.p_randomisation == 1 for found in quality.differences.values())
    assert Figures(gain, quality, {}).verdict().startswith("There is no sign that the context is used")


@pytest.mark.parametrize(
    ("repeated", "told"), [(0.5, "The model uses its context"), (0.0, "no more than the sentence")]
)
def test_a_model_that_reads_its_context_gains_over_the_sentence_repeated_too(gain, repeated, told):
    lost = {TRUE: 0.0, NONE: 1.0, SHUFFLED: 1.0, REPEATED: repeated}
    changed = {name: [-np.full(len(row), lost[name]) for row in gain.log_probabilities[TRUE]] for name in CONTEXTS}
    assert told in Figures(replace(gain, log_probabilities=changed), None, {}).verdict()


@pytest.mark.parametrize(
    ("lost", "told"), [(1e-5, "no sign that the context is used"), (1e-3, "worse with its context")]
)
def test_what_is_shown_as_nothing_is_called_nothing(gain, lost, told):
    values = {name: -lost if name == TRUE else 0.0 for name in CONTEXTS}
    changed = {name: [np.full(len(row), values[name]) for row in gain.log_probabilities[TRUE]] for name in CONTEXTS}
    assert told in Figures(replace(gain, log_probabilities=changed), None, {}).verdict()


def test_the_seed_shuffles(translator, documents, gain):
    again, other = context_gain(translator, documents, seed=1), context_gain(translator, documents, seed=2)
    assert (again.totals(SHUFFLED) == gain.totals(SHUFFLED)).all()
    assert (other.totals(SHUFFLED) != gain.totals(SHUFFLED)).any()
    assert (other.totals(NONE) == gain.totals(NONE)).all()


def test_bad_input(translator, documents):
    for measure in (context_gain, translation_quality):
        with pytest.raises(DocnmtError, match="no sentence of the corpus has a neighbour"):
            measure(translator, parallel_documents((1, 1, 1)))
        with pytest.raises(DocnmtError, match="other documents"):
            measure(translator, documents[:1])
        loaded = loaded_model()
        sentence = translator_with(sentence_model_of(loaded.model), ContextConfig(kind="none"))
        with pytest.raises(DocnmtError, match="a sentence model"):
            measure(sentence, documents)


# ---- words ----


def test_pieces_of_a_word_and_both_cases_count_together():
    gain = ContextGain(
        documents=("a", "b"),
        document=np.array([0, 1]),
        position=np.array([1, 1]),
        pieces=(("▁H", "e", "▁left", ".", "</s>"), ("▁he", "▁", "<0xC3>", "<0xA9>", "</s>")),
        log_probabilities={
            TRUE: (np.array([-1.0, -1, -1, -1, -1]), np.array([-1.0, -1, -1, -1, -1])),
            NONE: (np.array([-2.0, -3, -0.5, -1, -1]), np.array([-2.0, -1, -2, -3, -1])),
        },
    )
    found = [(word.word, word.count, word.total, word.mean) for word in gain.by_word()]
    assert found == [
        ("he", 2, 4.0, 2.0),
        ("é", 1, 3.0, 3.0),
        (".", 1, 0.0, 0.0),
        (END, 2, 0.0, 0.0),
        ("left", 1, -0.5, -0.5),
    ]


def test_rare_words_are_shown_only_where_all_are_rare():
    assert [least_count(words) for words in (50, 2_500, 100_000)] == [1, 2, 5]


def test_tables_and_json_say_the_same(translator, documents, gain):
    figures = Figures(gain, translation_quality(translator, documents), gate_by_layer(translator, documents))
    found = json.loads(json.dumps(figures.as_dict(), allow_nan=False))
    whole, bleu, places, kinds, up, down, gates = figures.tables()
    assert [row[0] for row in whole.rows] == ["true", "none", "shuffled", "repeated"]
    none = found["gain_over"][NONE]
    assert whole.rows[1][2] == f"{none['mean']:+.4f}"
    assert whole.rows[1][4] == f"{none['mean'] / math.log(2):+.4f}"
    assert whole.rows[0][1] == f"{found['log_probability'][TRUE]:.4f}"
    assert bleu.rows[0][1] == f"{found['bleu']['scores'][TRUE]['score']:.2f}"
    assert found["bleu"]["signature"] in bleu.notes[0]
    assert [row[0] for row in places.rows] == list(found["by_position"][NONE])
    assert [row[0] for row in kinds.rows] == list(found["by_word_class"]["none"])
    said = [word for word in found["by_word"] if word["word"][0].isalnum()]  # no punctuation, no end marks
    assert len(said) < len(found["by_word"])
    assert [row[0] for row in up.rows] == [w["word"] for w in said if w["total"] > 0][:20]
    assert [row[0] for row in down.rows] == [w["word"] for w in said[::-1] if w["total"] < 0][:10]
    assert [row[0] for row in gates.rows] == list(found["gate"])
    # only one document has a sixth sentence: there is nothing to resample
    assert places.rows[-1][3] == "" and found["by_position"][NONE]["6-10"]["interval"] is None


@pytest.mark.parametrize(
    ("true", "none", "foreign", "said"),
    [
        (-1.0, -2.0, -2.0, "uses its context"),
        (-1.0, -2.0, -1.0, "no more than one of another document"),
        (-1.0, -1.0, -2.0, "no better than no context"),
        (-2.0, -1.0, -2.0, "worse with its context"),
        (-1.0, -1.0, -1.0, "no sign that"),
    ],
)
def test_the_verdict(true, none, foreign, said):
    values = {TRUE: true, NONE: none, SHUFFLED: foreign, REPEATED: none}
    noise = np.random.default_rng(1).normal(0, 0.1, 40)
    gain = ContextGain(
        tuple(map(str, range(40))),
        np.arange(40),
        np.ones(40, int),
        (("▁a", "</s>"),) * 40,
        {name: tuple(np.array([v, v + (name == TRUE) * x]) for x in noise) for name, v in values.items()},
    )
    assert said in Figures(gain, None, {}).verdict()


def test_tokens_file(gain, tmp_path):
    write_tokens(tmp_path / "tokens.jsonl", gain)
    rows = [json.loads(line) for line in (tmp_path / "tokens.jsonl").read_text(encoding="utf-8").splitlines()]
    assert len(rows) == sum(SIZES)
    for number, row in enumerate(rows):
        assert row["document"] == gain.documents[gain.document[number]]
        assert row["sentence"] == gain.position[number] + 1
        assert tuple(row["pieces"]) == gain.pieces[number]
        assert all(row[name] == gain.log_probabilities[name][number].tolist() for name in CONTEXTS)


# ---- the page ----


def data_of(text: str) -> dict:
    (found,) = re.findall(r'<script type="application/json" id="data">(.*?)</script>', text, re.S)
    return json.loads(found)


def unpacked(text: str, *shape: int) -> np.ndarray:
    return np.frombuffer(base64.b64decode(text), np.uint8).reshape(shape) / 255


@pytest.mark.parametrize("integration", INTEGRATIONS)
@pytest.mark.parametrize("connection", ["gate", "residual"])
def test_the_page_holds_what_the_layers_did(documents, integration, connection):
    translator = random_translator(ContextConfig(integration=integration, connection=connection))
    gain = context_gain(translator, documents)
    page = context_gain_page("names", translator, documents, Figures(gain, None, gate_by_layer(translator, documents)))
    data = data_of(page)
    assert data["gated"] is (connection == "gate")
    assert ("residual: it has no gate" in page) is (connection == "residual")
    assert data["layers"] == {side: 2 * (integration in (side, "both")) for side in ("encoder", "decoder")}
    assert len(data["sentences"]) == sum(SIZES)
    for shown in data["sentences"]:
        number = shown["number"]
        document, position = documents[gain.document[number]], int(gain.position[number])
        assert (shown["document"], shown["place"]) == (document.id, [position + 1, len(document)])
        assert "".join(shown["source"]).strip() == document.source[position]
        assert "".join(shown["target"][:-1]).strip() == document.target[position]
        assert [(c["at"], "".join(c["words"]).strip()) for c in shown["context"]] == [
            (i - position, document.source[i]) for i in range(max(0, position - 2), position)
        ]
        columns = sum(len(c["words"]) for c in shown["context"]) + 1
        for side, rows in (("encoder", shown["source"]), ("decoder", shown["target"])):
            layers = data["layers"][side]
            weights = unpacked(shown["attention"][side], layers, len(rows), columns)
            assert weights.sum(-1) == pytest.approx(1, abs=columns / 255)
            unpacked(shown["share"][side], layers if connection == "gate" else 0, len(rows))
        words = target_words(gain.pieces[number])
        for name in CONTEXTS:
            values = gain.log_probabilities[name][number]
            assert shown["log"][name] == pytest.approx([values[w.begin : w.end].sum() for w in words], abs=1e-3)


def test_weights_on_the_page_are_those_of_the_words(translator, documents, gain):
    """One sentence by hand: the pieces of a target word averaged, those of a context word summed."""
    page = context_gain_page("names", translator, documents, Figures(gain, None, {}))
    shown = next(s for s in data_of(page)["sentences"] if s["number"] == 6)  # the second of the third document
    source, target, rule = translator.source, translator.target, translator.card.rule(translator.source)
    ids = source.encode(documents[2].source)
    wanted = target.encode([documents[2].target[1]])
    batch = make_batch([[*ids[1], source.eos]], [rule.context(rule.around(ids, 1))], wanted, target.bos, target.eos)
    with traced(translator.model) as trace, torch.no_grad():
        translator.model(batch)
    pieces = source.pieces(ids[0])
    starts = [i for i, piece in enumerate(pieces) if piece.startswith("▁") or piece in (".", ",")]
    assert len(starts) == len(shown["context"][0]["words"])
    weights = trace["decoder 2"].weights[0].mean(0)  # [target pieces, context pieces]
    row = target_words(gain.pieces[6])[1]
    expected = [
        float(weights[row.begin : row.end, a:b].sum(1).mean())
        for a, b in zip([*starts, len(pieces)], [*starts[1:], len(pieces), len(pieces) + 1], strict=True)
    ]
    found = unpacked(shown["attention"]["decoder"], 2, len(shown["target"]), len(expected))[1, 1]
    assert found == pytest.approx(expected, abs=1 / 255)
    share = float((1 - trace["decoder 2"].gate).mean(-1)[row.begin : row.end].mean())
    assert unpacked(shown["share"]["decoder"], 2, len(shown["target"]))[1, 1] == pytest.approx(share, abs=1 / 255)


def test_a_context_that_was_cut_is_shown_as_cut(documents):
    translator = random_translator(ContextConfig(max_tokens=6, following=1))
    gain = context_gain(translator, documents)
    data = data_of(context_gain_page("names", translator, documents, Figures(gain, None, {})))
    assert any(c["cut"] for s in data["sentences"] for c in s["context"])
    for shown in data["sentences"]:
        if shown["context"]:
            columns = sum(len(c["words"]) for c in shown["context"]) + 1
            unpacked(shown["attention"]["decoder"], 2, len(shown["target"]), columns)


def test_the_page_shows_the_ends_of_the_order(gain):
    figures = Figures(gain, None, {})
    order = sorted(range(sum(SIZES)), key=lambda i: -gain.totals()[i])
    assert [gain.totals()[i] for i in chosen_sentences(figures, 5)] == [
        gain.totals()[i] for i in (*order[:5], order[-1])
    ]
    assert sorted(chosen_sentences(figures, 100)) == list(range(sum(SIZES)))


def test_text_cannot_break_the_page(translator):
    bad = "</script> & <b>alert(1)"
    documents = [ParallelDocument(f"<i>{n}", (bad, "le chat"), (bad, bad)) for n in range(2)]
    gain, quality = context_gain(translator, documents), translation_quality(translator, documents)
    text = context_gain_page("<title>", translator, documents, Figures(gain, quality, {}))
    assert "<b>alert" not in text and "<i>" not in text and "<title>&" not in text and text.count("</script>") == 2
    shown = data_of(text)["sentences"][0]
    assert "".join(shown["target"][:-1]).strip() == bad
    assert len(shown["translations"]) == 2


# ---- classes of words ----

SENTENCES = (
    (("▁She", "▁lost", "▁her", "▁h", "at", ".", "</s>"), (0.0, 0.1, 2.0, 0.2, 0.2, -0.5, 0.3)),
    (("▁Her", "'s", ",", "▁he", "▁says", ".", "</s>"), (1.0, 0.5, -0.1, 0.0, 0.0, 0.0, 0.1)),
    (("▁No", "!", "</s>"), (0.4, 0.0, 0.0)),
)
CLASSES = {"his/her": ["his", "her"], "its": ["its"]}


@pytest.fixture
def small() -> ContextGain:
    values = tuple(np.array(gains) for _, gains in SENTENCES)
    nothing = tuple(np.zeros(len(gains)) for gains in values)
    return ContextGain(
        ("a", "b"),
        np.array([0, 0, 1]),
        np.array([0, 1, 0]),
        tuple(pieces for pieces, _ in SENTENCES),
        {TRUE: values, NONE: nothing, SHUFFLED: nothing},
    )


def test_nats_a_word_of_each_class(small):
    found = small.by_word_class(CLASSES)
    assert list(found) == ["his/her", WORDS, PUNCTUATION, ENDS]  # no "its" anywhere
    assert (found["his/her"].tokens, found["his/her"].mean) == (2, pytest.approx((2.0 + 1.5) / 2))
    assert found["his/her"].sentences == 2
    assert (found[WORDS].tokens, found[WORDS].total) == (8, pytest.approx(4.4))
    assert (found[PUNCTUATION].tokens, found[PUNCTUATION].total) == (4, pytest.approx(-0.6))
    assert (found[ENDS].tokens, found[ENDS].total) == (3, pytest.approx(0.4))


def test_words_marks_and_ends_are_all_there_is(small):
    found = small.by_word_class({})
    assert sum(one.total for one in found.values()) == pytest.approx(small.totals().sum())


def test_a_class_of_one_document_has_no_interval_and_all_words_have_one(small):
    found = small.by_word_class(CLASSES)
    assert np.isnan(found["his/her"].interval.low)
    assert found[WORDS].interval.low <= found[WORDS].mean <= found[WORDS].interval.high
    assert Figures(small, None, {}, classes=CLASSES).as_dict()["by_word_class"][NONE]["his/her"]["low"] is None


def test_the_table_has_the_classes_first(small):
    table = Figures(small, None, {}, classes=CLASSES).by_word_class()
    assert [row[0] for row in table.rows] == ["his/her", WORDS, PUNCTUATION, ENDS]
    assert table.rows[0][1:3] == ("2", "+1.7500") and END not in str(table.rows)


def test_languages_with_probes_have_classes():
    assert classes_of(("fr", "en"))["his/her/its"] == ["his", "her", "its"]
    assert "gender" not in classes_of(("fr", "en")) and classes_of(("nl", "de")) == {}
