"""Test sets with all their references, columns of tables, and scores of systems on them."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import sacrebleu

from docnmt.base.errors import DocnmtError
from docnmt.base.lines import CorpusFiles
from docnmt.base.progress import Progress
from docnmt.config import DataConfig, DecodingConfig, EvaluationConfig, Recipe
from docnmt.document import ParallelDocument
from docnmt.evaluation.metrics import make_metric
from docnmt.evaluation.test_sets import TestSet, joined, read_test_set
from docnmt.experiments import scores as translations
from docnmt.experiments.runs import Run
from docnmt.experiments.scores import Score, Scoreboard, Subset, Translations, parts_of
from tests.builders import in_target_language, lines

VERSIONS = ("ahb", "ahc", "ahd", "ahe")


def sgml(kind: str, documents: dict[str, list[str]], sysid: str = "") -> str:
    parts = []
    for name, sentences in documents.items():
        segments = "\n".join(f'<seg id="{n}"> {text} </seg>' for n, text in enumerate(sentences, 1))
        parts.append(f'<DOC docid="{name}"{f" sysid={sysid!r}" if sysid else ""}>\n<p>\n{segments}\n</p>\n</DOC>\n')
    return f'<{kind} setid="own" srclang="Chinese" trglang="English">\n{"".join(parts)}</{kind}>\n'


SOURCES = {
    "doc-a": ["ni hao .", "wo hen hao ."],
    "doc-b": ["zai jian ."],
    "doc-c": ["xie xie ni .", "mei shi .", "hao ."],
}


def reference(version: str, document: str, sentence: int) -> str:
    return f"this is version {version} of {document} number {sentence}"


def write_nist(folder: Path, order: tuple[str, ...] = ("doc-a", "doc-b", "doc-c"), **versions_of: Any) -> CorpusFiles:
    """A source set and four references of it, in one refset that lists its documents in the given order."""
    source, target = folder / "own-src.sgm", folder / "own-ref.sgm"
    source.write_text(sgml("srcset", SOURCES), encoding="utf-8")
    versions = versions_of.get("versions", VERSIONS)
    texts = [
        sgml("refset", {d: [reference(v, d, n) for n in range(len(SOURCES[d]))] for d in order}, v) for v in versions
    ]
    body = "".join(text.split("\n", 1)[1].rsplit("</refset>", 1)[0] for text in texts)
    target.write_text(f'<refset setid="own" srclang="Chinese" trglang="English">\n{body}</refset>\n', encoding="utf-8")
    return CorpusFiles(source=str(source), target=str(target), name="MT02")


RECIPE = Recipe(data=DataConfig(source_language="zh", target_language="en"))


# ---- reading ----


def test_all_references_of_a_nist_set_are_read(tmp_path):
    test = read_test_set(write_nist(tmp_path), RECIPE)
    assert test.title == "MT02"
    assert [document.id for document in test.documents] == list(SOURCES)
    assert [list(document.source) for document in test.documents] == list(SOURCES.values())
    expected = [[reference(v, d, n) for d in SOURCES for n in range(len(SOURCES[d]))] for v in VERSIONS]
    assert [list(side) for side in test.references] == expected
    assert test.document_of.tolist() == [0, 0, 1, 2, 2, 2]


def test_references_in_a_file_for_each_set_of_theirs(tmp_path):
    """Some sets come with a refset a translator, one after another."""
    files = write_nist(tmp_path)
    texts = [
        sgml("refset", {d: [reference(v, d, n) for n in range(len(SOURCES[d]))] for d in SOURCES}, v) for v in VERSIONS
    ]
    Path(files.target).write_text("".join(texts), encoding="utf-8")
    assert len(read_test_set(files, RECIPE).references) == 4


@pytest.mark.parametrize(
    "order", [("doc-c", "doc-b", "doc-a"), ("doc-b", "doc-c", "doc-a"), ("doc-a", "doc-c", "doc-b")]
)
def test_references_stay_beside_their_sentences_whatever_the_order_of_the_documents(tmp_path, order):
    test = read_test_set(write_nist(tmp_path, order), RECIPE)
    sentences = [(d.id, n) for d in test.documents for n in range(len(d))]
    assert len(test.references) == 4
    for version, side in zip(VERSIONS, test.references, strict=True):
        assert list(side) == [reference(version, *sentence) for sentence in sentences]
    assert [s for d in test.documents for s in d.target] == list(test.references[0])


def test_a_part_of_a_set_keeps_its_references(tmp_path):
    files = replace(write_nist(tmp_path), only="doc-c,doc-b")
    test = read_test_set(files, RECIPE)
    assert [document.id for document in test.documents] == ["doc-b", "doc-c"]
    assert test.references[3][1] == reference("ahe", "doc-c", 0)


def test_a_set_that_loses_sentences_is_refused(tmp_path):
    files = write_nist(tmp_path)
    source = Path(files.source)
    source.write_text(source.read_text().replace("mei shi .", "mei\x07shi ."), encoding="utf-8")
    recipe = replace(RECIPE, data=replace(RECIPE.data, skip_bad=True))
    refused = pytest.raises(DocnmtError, match="doc-c has 3 references, but 2 sentence pairs\n")
    with refused, pytest.warns(UserWarning, match="skipped 1 bad place"):
        read_test_set(files, recipe)


def test_files_with_one_reference(tmp_path):
    path = tmp_path / "own.tsv"
    path.write_text("a\tun\tone\na\tdeux\ttwo\nb\ttrois\tthree\n", encoding="utf-8")
    test = read_test_set(CorpusFiles(str(path)), RECIPE)
    assert (test.title, test.references) == ("own", [["one", "two", "three"]])
    swapped = read_test_set(CorpusFiles(str(path), swap=True), RECIPE)
    assert swapped.references == [["un", "deux", "trois"]]


def test_a_test_set_is_told_by_what_is_translated_and_by_its_references():
    one = TestSet("one", [ParallelDocument("a", ("x", "y"), ("p", "q"))], [["p", "q"]])
    renamed = replace(one, title="other")
    more = replace(one, references=[["p", "q"], ["r", "s"]])
    cut = TestSet("one", [ParallelDocument("a", ("x",), ("p",)), ParallelDocument("b", ("y",), ("q",))], [["p", "q"]])
    assert one.key == renamed.key == more.key != cut.key
    assert one.reference_key == renamed.reference_key != more.reference_key


def test_sets_with_fewer_references_repeat_their_first_where_they_are_joined():
    one = TestSet("one", [ParallelDocument("a", ("x",), ("p",))], [["p"], ["p2"]])
    two = TestSet("two", [ParallelDocument("b", ("y", "z"), ("q", "r"))], [["q", "r"]])
    both = joined("both", [one, two])
    assert (both.title, both.references) == ("both", [["p", "q", "r"], ["p2", "q", "r"]])
    assert [document.id for document in both.documents] == ["a", "b"]


# ---- columns ----


def write_tsv(path: Path, documents: dict[str, int]) -> CorpusFiles:
    text = iter(lines(sum(documents.values()), seed=len(path.name)))
    rows = []
    for name, size in documents.items():
        for _ in range(size):
            source = next(text)
            rows.append("\t".join((name, source, *in_target_language([source]))))
    path.write_text("\n".join(rows) + "\n", encoding="utf-8")
    return CorpusFiles(str(path))


@pytest.fixture
def recipe(tmp_path) -> Recipe:
    """A recipe with a dev and a test set."""
    dev = write_tsv(tmp_path / "dev.tsv", {"d1": 2, "d2": 3})
    test = write_tsv(tmp_path / "test.tsv", {"game-1": 2, "game-2": 4, "manual-1": 3})
    return Recipe(data=DataConfig(dev=(dev,), test=(test,)))


def with_data(recipe: Recipe, **roles: Any) -> Recipe:
    return replace(recipe, data=replace(recipe.data, **roles))


def test_one_test_set_is_one_column(recipe):
    parts = parts_of(recipe)
    assert parts.dev.title == "Dev"
    assert [part.title for part in parts.tests] == ["Test"] and parts.whole is parts.tests[0]
    assert len(parts.whole.test.documents) == 3 and parts.whole.documents is None


def test_several_test_sets_have_a_column_each_and_one_for_all_of_them(recipe, tmp_path):
    other = replace(write_tsv(tmp_path / "other.tsv", {"o1": 1, "o2": 1}), name="MT03")
    parts = parts_of(
        with_data(recipe, test=(*recipe.data.test, other), dev=(replace(recipe.data.dev[0], name="MT06"),))
    )
    assert parts.dev.title == "MT06"
    assert [part.title for part in parts.tests] == ["test", "MT03", "All"] and parts.whole.title == "All"
    ids = [document.id for document in parts.whole.test.documents]
    assert ids == ["game-1", "game-2", "manual-1", "o1", "o2"]
    assert [part.documents for part in parts.tests] == [frozenset({0, 1, 2}), frozenset({3, 4}), None]
    # One translation of all of them serves every column.
    assert {id(part.test) for part in parts.tests} == {id(parts.whole.test)}


def test_domains_are_columns_of_their_own(recipe):
    domains = EvaluationConfig(domains=("games = game-", "rest=manual, nothing"))
    parts = parts_of(replace(recipe, evaluation=domains))
    assert [(part.title, part.documents) for part in parts.tests] == [
        ("Test", None),
        ("games", frozenset({0, 1})),
        ("rest", frozenset({2})),
    ]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda r, _: with_data(r, dev=()), "has no dev documents\n.*data.dev"),
        (lambda r, _: with_data(r, test=()), "has no test documents\n.*data.test"),
        (lambda r, _: with_data(r, test=r.data.test * 2), "'test'\n.*name of its own"),
        (lambda r, _: with_data(r, test=(r.data.test[0], replace(r.data.test[0], name="All"))), "'All'\n"),
        (lambda r, _: replace(r, evaluation=EvaluationConfig(domains=("Test=game",))), "'Test'\n"),
        (lambda r, _: replace(r, evaluation=EvaluationConfig(domains=("p=game",))), "'p'\n"),
        (
            lambda r, _: replace(r, evaluation=EvaluationConfig(domains=("game",))),
            "invalid domain 'game'\n.*NAME=prefix",
        ),
        (
            lambda r, _: replace(r, evaluation=EvaluationConfig(domains=("x=y",))),
            "no document id begins with a prefix of the domain 'x'\n",
        ),
        (
            lambda r, at: with_data(r, test=(write_tsv(at / "alone.tsv", {"d": 3}),)),
            "Test: only one document, ",
        ),
        (lambda r, at: with_data(r, dev=(write_tsv(at / "alone.tsv", {"d": 3}),)), "Dev: only one document, "),
    ],
)
def test_what_would_stop_the_tables_after_training_is_found_before(recipe, tmp_path, change, message):
    with pytest.raises(DocnmtError, match=message):
        parts_of(change(recipe, tmp_path))


# ---- scores ----


def test_a_score_is_a_mean_with_its_deviation():
    assert str(Score((30.123,))) == "30.12"
    assert str(Score((30.0, 32.0))) == "31.00 ± 1.41"


class Told:
    """Translations that are known beforehand: by the model's name."""

    def __init__(self, texts: dict[str, list[str]]):
        self.texts, self.asked = texts, []

    def of(self, model, test, contexts):
        self.asked.append((model.name, test.title, contexts))
        return self.texts[model.name]


def board(texts: dict[str, list[str]], metric: str = "multi-bleu") -> Scoreboard:
    workshop = SimpleNamespace(model=lambda run: Path(run.name))
    return Scoreboard(workshop, Told(texts), make_metric(metric, language="en"))  # type: ignore[arg-type]


def run(name: str, contexts: str = "own", step: str = "document") -> Run:
    base = Recipe()
    return Run(name, replace(base, document=replace(base.document, context_from=contexts)), step)


def texts_of(test: TestSet, version: int, worse: int = 0) -> list[str]:
    return [" ".join(text.split()[:-1]) if n % 4 < worse else text for n, text in enumerate(test.references[version])]


def long_test(versions: int = 2) -> TestSet:
    documents, references = [], []
    for number in range(6):
        source = tuple(lines(4, seed=number))
        documents.append(ParallelDocument(f"d{number}", source, in_target_language(source)))
    for version in range(versions):
        references.append([f"{text} {version}" for document in documents for text in document.target])
    return TestSet("long", documents, references)


def bleu(texts: list[str], references: list[list[str]]) -> float:
    metric = sacrebleu.BLEU(lowercase=True, smooth_method="none", force=True)
    return metric.corpus_score(texts, references).score


def test_the_score_is_the_corpus_score_with_all_references():
    test = long_test()
    texts = [*texts_of(test, 0, worse=1)[:12], *texts_of(test, 1, worse=2)[12:]]
    found = board({"a": texts}).score([run("a")], Subset("Test", test))
    assert found.values == (pytest.approx(bleu(texts, test.references)),)
    single = replace(test, references=test.references[:1])
    with_one = board({"a": texts}).score([run("a")], Subset("Test", single))
    assert with_one.values == (pytest.approx(bleu(texts, single.references)),)
    assert with_one.values < found.values


def test_one_board_keeps_sets_apart_that_have_the_same_sentences_and_other_references():
    test = long_test()
    single = replace(test, references=test.references[1:])
    scores = board({"a": texts_of(test, 0)})
    assert scores.score([run("a")], Subset("Test", test)).values == (pytest.approx(100),)
    assert scores.score([run("a")], Subset("Test", single)).values[0] < 90


def test_a_part_has_the_score_of_its_documents():
    test = long_test()
    texts = [*texts_of(test, 0)[:8], *texts_of(test, 0, worse=3)[8:]]
    scores = board({"a": texts})
    good, bad = (
        scores.score([run("a")], Subset("x", test, documents)).values[0] for documents in ({0, 1}, {2, 3, 4, 5})
    )
    assert good == pytest.approx(100)
    assert bad == pytest.approx(bleu(texts[8:], [side[8:] for side in test.references]))
    assert scores.translations.asked == [("a", "long", "own")]  # translated once, whatever part is asked for


def test_every_seed_has_a_score():
    test = long_test()
    texts = {name: texts_of(test, 0, worse) for worse, name in enumerate("abc")}
    found = board(texts).score([run(name) for name in "abc"], Subset("Test", test))
    assert found.values == tuple(pytest.approx(bleu(texts[name], test.references)) for name in "abc")


def test_controls_are_decoded_as_they_were_trained():
    scores = board({"a": texts_of(long_test(), 0)})
    for contexts in ("own", "shuffled", "none"):
        scores.score([run("a", contexts)], Subset("Test", long_test()))
    scores.score(
        [run("a", "none", step="sentence")], Subset("Test", replace(long_test(), title="other", references=[[""] * 24]))
    )
    assert [contexts for _, _, contexts in scores.translations.asked] == ["own", "shuffled", "none", "own"]


def test_the_difference_of_seeds_is_that_of_all_of_them_together():
    test = long_test()
    texts = {"a": texts_of(test, 0, 2), "b": texts_of(test, 0, 3), "c": texts_of(test, 0, 1), "d": texts_of(test, 0)}
    found = board(texts).difference([run("a"), run("b")], [run("c"), run("d")], Subset("Test", test))
    twice = [side * 2 for side in test.references]
    assert found.baseline == pytest.approx(bleu(texts["a"] + texts["b"], twice))
    assert found.system == pytest.approx(bleu(texts["c"] + texts["d"], twice))
    assert found.unit == "documents"
    # Six documents are swapped or left, with both seeds: no difference can be rarer than 2 of 64.
    assert found.p_randomisation == pytest.approx(2 / 64, abs=0.01)


def test_a_system_does_not_differ_from_itself():
    test = long_test()
    found = board({"a": texts_of(test, 0, 1)}).difference([run("a")], [run("a")], Subset("Test", test))
    assert found.difference == 0 and found.p_randomisation == 1
    assert (found.interval.low, found.interval.high) == (0, 0)


def test_a_measure_of_documents_is_scored_by_document():
    test = long_test()
    scores = board({"a": texts_of(test, 0, 1)}, "document-bleu")
    rows, documents = scores.rows(run("a"), Subset("Test", test, frozenset({1, 4})))
    assert documents.tolist() == [1, 4] and len(rows) == 2


# ---- translations, kept ----


class Fake:
    """In the place of a loaded model: repeats each sentence with where its context came from."""

    calls = 0

    def translate_documents(self, documents, *, context_from=None, context=None, **options):
        Fake.calls += 1
        kind = "none" if context is not None else "own" if context_from is None else "shuffled"
        for document in documents:
            yield SimpleNamespace(sentences=[SimpleNamespace(text=f"{kind} {text}") for text in document.sentences])


@pytest.fixture
def model(tmp_path, monkeypatch) -> Path:
    folder = tmp_path / "run" / "document" / "model"
    folder.mkdir(parents=True)
    (folder / "config.json").write_text("{}")
    (folder / "weights.safetensors").write_bytes(b"weights")
    monkeypatch.setattr(translations, "load", lambda *_: Fake())
    Fake.calls = 0
    return folder


def fresh(recipe: Recipe = RECIPE) -> Translations:
    return Translations(recipe, Progress(quiet=True))


def test_what_was_translated_once_is_not_translated_again(model):
    test = long_test()
    first = fresh().of(model, test, "own")
    assert first == [f"own {text}" for document in test.documents for text in document.source]
    assert fresh().of(model, test, "own") == first
    assert Fake.calls == 1


def test_every_kind_of_context_has_translations_of_its_own(model):
    test, kept = long_test(), fresh()
    found = {kind: kept.of(model, test, kind)[0].split()[0] for kind in ("own", "shuffled", "none")}
    assert found == {"own": "own", "shuffled": "shuffled", "none": "none"}
    assert fresh().of(model, test, "none")[0].startswith("none") and Fake.calls == 3


def test_translations_go_with_the_model_the_sentences_and_how_they_are_decoded(model):
    test = long_test()
    fresh().of(model, test, "own")
    fresh(replace(RECIPE, decoding=DecodingConfig(batch_tokens=7))).of(model, test, "own")
    fresh().of(model, replace(test, references=test.references[:1]), "own")
    assert Fake.calls == 1  # neither of these changes what comes out
    fresh(replace(RECIPE, decoding=DecodingConfig(beam=7))).of(model, test, "own")
    fresh().of(model, test, "own")
    assert Fake.calls == 3
    (model / "weights.safetensors").write_bytes(b"other")
    fresh().of(model, test, "own")
    assert Fake.calls == 4
    shorter = TestSet(test.title, test.documents[1:], [side[4:] for side in test.references])
    assert len(fresh().of(model, shorter, "own")) == 20 and Fake.calls == 5


def test_a_damaged_file_of_translations_is_made_again(model):
    test = long_test()
    first = fresh().of(model, test, "own")
    (file,) = (model.parent / "translations").iterdir()
    file.write_text(file.read_text(encoding="utf-8")[:-30], encoding="utf-8")
    assert fresh().of(model, test, "own") == first and Fake.calls == 2
    assert json.loads(file.read_text(encoding="utf-8"))["translations"] == first


def test_a_set_may_be_called_anything(model):
    test = replace(long_test(), title="news/2010: part 1")
    assert len(fresh().of(model, test, "own")) == 24
    (file,) = (model.parent / "translations").iterdir()
    assert file.name == "news-2010-part-1.own.json"


def test_document_of_counts_sentences():
    assert np.bincount(long_test().document_of).tolist() == [4] * 6
