"""Whole documents in, whole documents out; scoring; and the model folder."""

from __future__ import annotations

import json
import shutil
import warnings
from copy import deepcopy
from dataclasses import replace

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from docnmt.base.errors import DocnmtError
from docnmt.config import ContextConfig, DecodingConfig
from docnmt.data.context import ContextRule
from docnmt.data.packing import make_batch, pack
from docnmt.decoding import translator as translator_module
from docnmt.decoding.beam import beam_search
from docnmt.decoding.translator import Options, Translator, load
from docnmt.decoding.units import split_long
from docnmt.document import ContextSpec, Document, ParallelDocument
from docnmt.model_folder import LoadedModel, ModelCard, load_card, load_model, save_model, weights_of
from tests.builders import lines, loaded_model, make_model, parallel_documents, sentence_model_of, subwords

SIZES = (3, 1, 0, 4, 2)


@pytest.fixture
def translator():
    return Translator(loaded_model())


def documents(sizes=SIZES, seed: int = 7) -> list[Document]:
    return [Document(d.id, d.source) for d in parallel_documents(sizes, seed)]


def texts(translated) -> list[list[str]]:
    return [[sentence.text for sentence in document.sentences] for document in translated]


# ---- translating ----


def test_as_many_sentences_out_as_in(translator):
    found = list(translator.translate_documents(documents()))
    assert [d.id for d in found] == [d.id for d in documents()]
    assert [len(d.sentences) for d in found] == list(SIZES)
    everything = [text for document in texts(found) for text in document]
    assert len(set(everything)) > 5, "too much alike to prove anything"


def test_a_list_of_sentences_is_a_document(translator):
    (document,) = documents([4])
    assert translator.translate(list(document.sentences)) == translator.translate(document)
    assert translator.translate([]) == []


def test_an_empty_line_gives_an_empty_line(translator):
    first, second = lines(2, seed=7)
    found = translator.translate(["", first, "   ", second, ""])
    assert [bool(text) for text in found] == [False, True, False, True, False]
    # Nor does it stand for a context: beside it a sentence is as it is alone.
    assert found[1] == translator.translate([first])[0]
    assert translator.translate(["", ""]) == ["", ""]


def test_a_model_whose_numbers_overflow_is_told():
    loaded = deepcopy(loaded_model())
    with torch.no_grad():
        for parameter in loaded.model.parameters():
            parameter.fill_(3e38)
    with pytest.raises(DocnmtError, match=r"scores are infinite or NaN(.|\n)*lower learning rate"):
        texts(Translator(loaded).translate_documents(documents()))


@pytest.mark.parametrize(("window", "batch_tokens"), [(1, 100_000), (3, 90), (5, 1), (100, 90), (100, 100_000)])
def test_windows_and_batches_change_nothing(translator, monkeypatch, window, batch_tokens):
    expected = [translator.translate(document) for document in documents()]
    monkeypatch.setattr(Translator, "WINDOW", window)
    assert texts(translator.translate_documents(documents(), batch_tokens=batch_tokens)) == expected


def test_a_window_is_translated_before_the_next_is_read(translator, monkeypatch):
    monkeypatch.setattr(Translator, "WINDOW", 2)
    read = []

    def stream():
        for document in documents([2, 2, 2]):
            read.append(document.id)
            yield document

    found = translator.translate_documents(stream())
    assert read == []
    next(found)
    assert len(read) == 1
    assert len(list(found)) == 2


def test_n_best_is_best_first(translator):
    (document,) = documents([4])
    (found,) = translator.translate_documents([document], nbest=4)
    (best,) = translator.translate_documents([document])
    # Fewer than asked for where no more ended before the limit.
    assert max(len(sentence.texts) for sentence in found.sentences) == 4
    for sentence, single in zip(found.sentences, best.sentences, strict=True):
        assert 1 <= len(sentence.texts) == len(sentence.scores) <= 4
        assert list(sentence.scores) == sorted(sentence.scores, reverse=True)
        assert sentence.texts[0] == single.text and sentence.scores[0] == pytest.approx(single.scores[0])
    (empty,) = next(translator.translate_documents([Document("d", ("",))], nbest=4)).sentences
    assert empty.text == ""


@pytest.mark.parametrize("wrong", [{"beam": 0}, {"nbest": 0}, {"beam": 2, "nbest": 5}])
def test_options_that_cannot_be(translator, wrong):
    with pytest.raises(DocnmtError):
        Options(**wrong)
    with pytest.raises(DocnmtError):
        list(translator.translate_documents(documents([1]), **wrong))


# ---- contexts ----


def by_hand(translator, document: Document, others: Document, spec: ContextSpec | None):
    """Each sentence alone, its context joined by the rule."""
    ids, around = (translator.source.encode(d.sentences) for d in (document, others))
    rule = None if spec is None else translator.card.rule(translator.source, spec)
    found = []
    for i, sentence in enumerate(ids):
        context = None if rule is None else pack([rule.context(rule.around(around, i))])
        source = pack([[*sentence, translator.source.eos]])
        ((best,),) = beam_search(
            translator.model, source, context, bos=translator.target.bos, eos=translator.target.eos
        )
        found += translator.target.decode([best.tokens])
    return found


@pytest.mark.parametrize(
    ("option", "spec"),
    [
        (None, ContextSpec(2, 0)),
        ("off", None),
        ("none", ContextSpec(0, 0)),
        ("previous=1,following=1", ContextSpec(1, 1)),
        (ContextSpec(3, 0), ContextSpec(3, 0)),
    ],
    ids=str,
)
def test_each_sentence_sees_the_context_asked_for(translator, option, spec):
    (document,) = documents([6])
    assert translator.translate(document, context=option) == by_hand(translator, document, document, spec)


def test_contexts_matter_here(translator):
    (document,) = documents([6])
    found = {tuple(translator.translate(document, context=c)) for c in (None, "off", "none", "previous=1")}
    assert len(found) >= 3


def test_context_off_is_the_sentence_model(translator):
    card = replace(translator.card, context=ContextConfig(kind="none"))
    model = sentence_model_of(translator.model)
    sentence = Translator(LoadedModel(model, card, translator.source, translator.target))
    expected = texts(sentence.translate_documents(documents()))
    assert texts(translator.translate_documents(documents(), context="off")) == expected
    # A sentence model has no use for a context: an empty one changes nothing, any other is refused.
    assert texts(sentence.translate_documents(documents(), context="none")) == expected
    with pytest.raises(DocnmtError, match=r"uses no context.*\n  Do not give a context"):
        list(sentence.translate_documents(documents(), context="previous=3"))


def test_context_from_changes_the_contexts_only(translator):
    own, others = documents([5, 3]), documents([5, 3], seed=8)
    found = texts(translator.translate_documents(own, context_from=others))
    assert found == [by_hand(translator, d, o, ContextSpec(2, 0)) for d, o in zip(own, others, strict=True)]
    plain = texts(translator.translate_documents(own))
    assert found != plain
    assert [d[0] for d in found] == [d[0] for d in plain]  # a first sentence has none
    assert texts(translator.translate_documents(own, context_from=own)) == plain
    off = texts(translator.translate_documents(own, context="off"))
    assert texts(translator.translate_documents(own, context_from=others, context="off")) == off


def test_too_few_documents_to_take_contexts_from(translator):
    with pytest.raises(DocnmtError):
        list(translator.translate_documents(documents([2, 2]), context_from=documents([2])))


def test_contexts_from_a_shorter_document(translator):
    # Documents shuffled to show what a wrong context does are rarely of the same length: no crash of another kind.
    try:
        (found,) = translator.translate_documents(documents([6]), context_from=documents([1]))
    except DocnmtError:
        return
    assert len(found.sentences) == 6


# ---- long sentences ----


@given(
    text=st.lists(st.sampled_from(["le chat", "voit,", "aime.", "abcdefgh", "?", "rien"]), max_size=30).map(" ".join),
    limit=st.integers(1, 12),
)
@settings(max_examples=80, deadline=None)
def test_split_long_loses_nothing(text, limit):
    (ids,) = subwords().encode([text])
    parts = split_long(ids, limit, subwords())
    assert [token for part in parts for token in part] == ids
    assert all(1 <= len(part) <= limit for part in parts)
    assert (len(parts) <= 1) == (len(ids) <= limit)


def test_split_long_cuts_after_punctuation_or_before_a_word():
    (ids,) = subwords().encode(["le chat voit la mer, le chat voit la gare. ma soeur aime le pain"])
    parts = subwords().decode(split_long(ids, 12, subwords()))
    assert parts[0].endswith((",", "."))
    (ids,) = subwords().encode(["rien " * 20])
    assert set(" ".join(subwords().decode(split_long(ids, 7, subwords()))).split()) == {"rien"}


def test_a_sentence_too_long_is_translated_in_parts_with_a_warning(translator, monkeypatch):
    decoded = {}  # each unit's words and its best translation

    def recording(model, source, context, **options):
        found = beam_search(model, source, context, **options)
        units = source.tokens.split(source.segments.lengths.tolist())
        decoded.update({tuple(unit.tolist()): best[0].tokens for unit, best in zip(units, found, strict=True)})
        return found

    monkeypatch.setattr(translator_module, "beam_search", recording)
    long = " ".join(lines(12, seed=3))
    (ids,) = translator.source.encode([long])
    limit = translator.card.model.max_length
    with pytest.warns(UserWarning, match="document talk, sentence 2.*parts"):
        (found,) = translator.translate_documents([Document("talk", ("le chat aime rien.", long, "ma soeur"))], nbest=2)
    assert len(found.sentences) == 3
    parts = split_long(ids, limit, translator.source)
    assert len(parts) > 3 and [token for part in parts for token in part] == ids
    # Batches are sorted by length; the parts' translations are put back in order.
    in_order = [decoded[*part, translator.source.eos] for part in parts]
    assert found.sentences[1].text == " ".join(translator.target.decode(in_order))
    assert list(found.sentences[1].scores) == sorted(found.sentences[1].scores, reverse=True)


def test_no_warning_where_nothing_is_too_long(translator):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        translator.translate(["le chat aime rien."])


# ---- scoring ----


def score_by_hand(translator, document: ParallelDocument, spec: ContextSpec | None):
    ids = translator.source.encode(document.source)
    rule = None if spec is None else translator.card.rule(translator.source, spec)
    totals = []
    for i, target in enumerate(translator.target.encode(document.target)):
        source = [[*ids[i], translator.source.eos]]
        contexts = None if rule is None else [rule.context(rule.around(ids, i))]
        batch = make_batch(source, contexts, [target], translator.target.bos, translator.target.eos)
        with torch.no_grad():
            totals.append(-translator.model.loss(batch)[0].item())
    return totals


@pytest.mark.parametrize(
    ("option", "spec"), [(None, ContextSpec(2, 0)), ("off", None), ("previous=1", ContextSpec(1, 0))]
)
def test_scores_are_the_models_log_probabilities(translator, option, spec):
    for document, scores in zip(
        parallel_documents(SIZES, 7), translator.score(parallel_documents(SIZES, 7), context=option), strict=True
    ):
        assert [s.total for s in scores] == pytest.approx(score_by_hand(translator, document, spec), abs=1e-3)
        for sentence, text in zip(scores, document.target, strict=True):
            assert len(sentence.pieces) == len(sentence.log_probabilities)
            assert sentence.pieces[-1] == "</s>"
            assert "".join(sentence.pieces[:-1]).replace("▁", " ").strip() == text


def test_scoring_does_not_depend_on_the_batch(translator, monkeypatch):
    given_documents = parallel_documents([40, 30, 2], 7)  # more than one batch of 64
    together = [s.total for scores in translator.score(given_documents) for s in scores]
    alone = [s.total for d in given_documents for scores in translator.score([d]) for s in scores]
    assert together == pytest.approx(alone, abs=1e-3)
    monkeypatch.setattr(Translator, "WINDOW", 1)
    assert [s.total for scores in translator.score(given_documents) for s in scores] == pytest.approx(
        together, abs=1e-3
    )


def test_scoring_with_other_contexts(translator):
    (pair,) = parallel_documents([5], 7)
    (other,) = documents([5], seed=8)
    plain, wrong = ([s.total for s in next(translator.score([pair], context_from=c))] for c in (None, [other]))
    assert plain[0] == pytest.approx(wrong[0], abs=1e-4)
    assert plain[1:] != pytest.approx(wrong[1:], abs=1e-3)


# ---- what was said before ----


def test_what_was_said_before_stands_before_the_first_document_alone(translator):
    (before, *rest) = documents((3, 2, 2))
    plain = texts(translator.translate_documents(rest))
    joined = Document("joined", (*before.sentences, *rest[0].sentences))
    found = texts(translator.translate_documents(rest, previous=before.sentences))
    assert found == [translator.translate(joined)[3:], plain[1]]
    scores = [
        next(translator.translate_documents(rest, previous=p)).sentences[0].scores for p in ((), joined.sentences)
    ]
    assert scores[0] != scores[1], "it was not seen"
    assert translator.translate([], previous=before.sentences) == []
    assert list(translator.translate_documents([], previous=before.sentences)) == []


def test_what_was_said_before_may_have_gaps_and_is_no_string(translator):
    (document,) = documents((4,))
    with_gap = Document("gap", (*document.sentences[:2], "", document.sentences[3]))
    assert translator.translate([with_gap.sentences[3]], previous=with_gap.sentences[:3]) == [
        translator.translate(with_gap)[3]
    ]
    with pytest.raises(DocnmtError, match=r"previous=\[text\]"):
        translator.translate(document, previous="Bonjour.")


# ---- systems that see translations ----


def readable(translation) -> list[int]:
    """As ids of the source, which has fewer."""
    return [token % 300 for token in translation]


class Remembering(ContextRule):
    """Puts the translation of the sentence before, its own in decoding, before the source."""

    remembers = True

    def context(self, around):
        return None

    def source(self, sentence, around):
        return [*(token for ids in around.translations for token in readable(ids)), *sentence]


@pytest.fixture
def remembering(monkeypatch, translator):
    rule = Remembering(ContextSpec(1, 0), 256, translator.source.bos, translator.source.eos)
    monkeypatch.setattr(Translator, "rule", lambda self, context=None: rule)
    return translator


def read_by(translator, monkeypatch) -> dict[str, str]:
    """What the model read and wrote, as text, collected from now on."""
    seen = {}

    def recording(model, source, context, **options):
        found = beam_search(model, source, context, **options)
        for row, best in zip(source.tokens.split(source.segments.lengths.tolist()), found, strict=True):
            seen[tuple(row.tolist())] = best[0].tokens
        return found

    monkeypatch.setattr(translator_module, "beam_search", recording)
    return seen


def test_a_document_is_decoded_in_order_where_its_translations_are_remembered(remembering, monkeypatch):
    seen = read_by(remembering, monkeypatch)
    given_documents = documents([4, 1, 3])
    found = texts(remembering.translate_documents(given_documents))
    for document, translated in zip(given_documents, found, strict=True):
        before: tuple[int, ...] = ()
        for ids, text in zip(remembering.source.encode(document.sentences), translated, strict=True):
            before = seen[*readable(before), *ids, remembering.source.eos]
            assert remembering.target.decode([before]) == [text]


def test_contexts_of_documents_with_the_same_name_are_not_mixed_up(remembering):
    own = [Document("d", d.sentences) for d in documents([3, 3])]
    others = [Document("d", d.sentences) for d in documents([3, 3], seed=8)]
    together = texts(remembering.translate_documents(own, context_from=others))
    alone = [next(remembering.translate_documents([d], context_from=[o])) for d, o in zip(own, others, strict=True)]
    assert together == texts(alone) != texts(remembering.translate_documents(own))


def test_scoring_shows_the_translations_of_the_documents_that_contexts_come_from(remembering):
    (pair,), (other,) = parallel_documents([4], 7), parallel_documents([4], 8)
    (found,) = remembering.score([pair], context_from=[other])
    sources, targets = remembering.source.encode(pair.source), remembering.target.encode(pair.target)
    before = [[], *remembering.target.encode(other.target)]
    for i, score in enumerate(found):
        source = [*readable(before[i]), *sources[i], remembering.source.eos]
        batch = make_batch([source], None, [targets[i]], remembering.target.bos, remembering.target.eos)
        with torch.no_grad():
            assert score.total == pytest.approx(-remembering.model.loss(batch)[0].item(), abs=1e-3)
    with pytest.raises(DocnmtError, match=r"document document-8-0: .*\n  Give a ParallelDocument"):
        next(remembering.score([pair], context_from=[Document(other.id, other.source)]))


# ---- the model folder ----


def saved(folder, model, context, source, target) -> ModelCard:
    card = ModelCard(model.model_config, context, DecodingConfig(beam=3), "fr", "en")
    save_model(folder, weights_of(model), card, source, target, {"note": 1})
    return card


@pytest.mark.parametrize("tie", ["none", "target", "all"])
def test_a_model_comes_back_to_the_bit(tmp_path, tie):
    context = ContextConfig(previous=3, integration="decoder")
    source = subwords("source")
    target = source if tie == "all" else subwords("target")
    model = make_model(5, context=context, tie=tie, source_words=len(source), target_words=len(target))
    card = saved(tmp_path / "model", model, context, source, target)
    loaded = load_model(tmp_path / "model")
    assert loaded.card == card == load_card(tmp_path / "model")
    assert (loaded.source.model, loaded.target.model) == (source.model, target.model)
    assert not loaded.model.training
    theirs = dict(loaded.model.named_parameters())
    assert list(theirs) == [name for name, _ in model.named_parameters()]
    assert all(torch.equal(parameter, theirs[name]) for name, parameter in model.named_parameters())
    # Tied in the file, tied in memory: training on must move one tensor, not two.
    assert (loaded.model.softmax.weight is loaded.model.target_embedding.weight) == (tie != "none")
    assert (loaded.model.source_embedding.weight is loaded.model.target_embedding.weight) == (tie == "all")


def test_a_loaded_model_translates_as_before(tmp_path, translator):
    folder = tmp_path / "model"
    card = replace(translator.card, decoding=DecodingConfig(beam=2, length_penalty=0.3))
    save_model(folder, weights_of(translator.model), card, translator.source, translator.target, {})
    again = load(folder)
    assert (again.options.beam, again.options.length_penalty) == (2, 0.3)  # a model folder knows its own settings
    (document,) = documents([4])
    assert again.translate(document) == translator.translate(
        document, options=replace(translator.options, beam=2, length_penalty=0.3)
    )


@pytest.fixture(scope="module")
def whole_folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("models") / "model"
    source, target = subwords("source"), subwords("target")
    model = make_model(5, source_words=len(source), target_words=len(target))
    saved(folder, model, ContextConfig(), source, target)
    load_model(folder)  # or else the tests of damage below would prove nothing
    return folder


NAMES = ("config.json", "weights.safetensors", "source.spm", "target.spm")


def test_a_folder_holds_four_files_and_no_code(whole_folder):
    assert sorted(path.name for path in whole_folder.iterdir()) == sorted(NAMES)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("damage", ["missing", "empty", "half", "rubbish"])
def test_a_damaged_folder_is_an_error_for_people(whole_folder, tmp_path, name, damage):
    folder = tmp_path / "model"
    shutil.copytree(whole_folder, folder)
    path = folder / name
    content = path.read_bytes()
    path.unlink()
    if damage != "missing":
        path.write_bytes(
            {"empty": b"", "half": content[: len(content) // 2], "rubbish": b"\x93\x00 rubbish" * 50}[damage]
        )
    with pytest.raises(DocnmtError) as caught:
        load_model(folder)
    assert str(folder) in str(caught.value)


def test_no_folder(tmp_path):
    with pytest.raises(DocnmtError, match="not a model folder"):
        load_model(tmp_path / "nothing")


@pytest.mark.parametrize("change", ["{}", "[]", "no model", "width", "layers", "unknown"])
def test_a_config_that_does_not_fit(whole_folder, tmp_path, change):
    folder = tmp_path / "model"
    shutil.copytree(whole_folder, folder)
    path = folder / "config.json"
    table = json.loads(path.read_text())
    if change in ("{}", "[]"):
        table = json.loads(change)
    elif change == "no model":
        del table["model"]
    elif change == "unknown":
        table["model"]["depth"] = 3
    else:
        table["model"][{"width": "width", "layers": "encoder_layers"}[change]] *= 2
    path.write_text(json.dumps(table))
    with pytest.raises(DocnmtError):
        load_model(folder)
