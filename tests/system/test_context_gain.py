"""`docnmt context-gain` from outside."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from docnmt.evaluation.test_sets import NONE, REPEATED, SHUFFLED, TRUE
from tests.system.conftest import Tiny, command, first_documents

CONTEXTS = (TRUE, NONE, SHUFFLED, REPEATED)


@pytest.fixture(scope="session")
def corpus(tiny: Tiny) -> Path:
    """Three documents as TSV."""
    path = tiny.folder / "gain.tsv"
    path.write_text("\n".join(first_documents(tiny.folder / "corpus" / "test.tsv", 3)) + "\n", encoding="utf-8")
    return path


def fails(done, *said: str) -> None:
    assert done.code == 2 and "Traceback" not in done.err and not done.out
    for part in said:
        assert part in done.message, done.err


def test_tables_json_markdown_page_and_tokens(model, corpus, tmp_path):
    folder = tmp_path / "new"
    files = {name: folder / f"gain.{name}" for name in ("json", "markdown", "html", "tokens")}
    done = command("context-gain", model, corpus, *(part for name in files for part in (f"--{name}", files[name])))
    assert done.code == 0, done.err
    assert sorted(path.name for path in folder.iterdir()) == sorted(path.name for path in files.values())
    found = json.loads(files["json"].read_text(encoding="utf-8"))
    rows = [json.loads(line) for line in files["tokens"].read_text(encoding="utf-8").splitlines()]
    lines = corpus.read_text(encoding="utf-8").splitlines()
    assert [row["document"] for row in rows] == [line.split("\t")[0] for line in lines]
    assert found["tokens"] == sum(len(row["pieces"]) for row in rows)
    means = {name: sum(sum(row[name]) for row in rows) / found["tokens"] for name in CONTEXTS}
    assert found["log_probability"] == pytest.approx(means)
    for name in CONTEXTS[1:]:
        assert found["gain_over"][name]["mean"] == pytest.approx(means[TRUE] - means[name]) != 0
    assert set(found["bleu"]["scores"]) == set(CONTEXTS)
    for text in (done.out, files["markdown"].read_text(encoding="utf-8"), files["html"].read_text(encoding="utf-8")):
        assert f"{found['gain_over'][NONE]['mean']:+.4f}" in text
        assert "BLEU: nrefs:1" in text
    assert done.out.splitlines()[0].startswith("Gain from the true context")


def test_domains(model, corpus, tmp_path):
    ids = list(dict.fromkeys(line.split("\t")[0] for line in corpus.read_text(encoding="utf-8").splitlines()))
    groups = (f"one={ids[0]}", f"two={ids[1]}")
    arguments = ("context-gain", model, corpus, "--no-translate", "--json", tmp_path / "gain.json", "--domains")
    done = command(*arguments, *groups)
    assert done.code == 0 and "by domain" in done.out, done.err
    found = json.loads((tmp_path / "gain.json").read_text(encoding="utf-8"))
    assert list(found["by_domain"][NONE]) == ["one", "two", "other"]
    documents = {row["document"]: row["gain_over_none"] for row in found["by_document"]}
    assert [part["mean"] for part in found["by_domain"][NONE].values()] == pytest.approx([documents[i] for i in ids])
    fails(command(*arguments, "one=nobody"), "no document id begins with a prefix of the domain 'one'")


def test_scores_are_those_of_score(model, corpus, tmp_path):
    assert command("context-gain", model, corpus, "--no-translate", "--json", tmp_path / "gain.json").code == 0
    assert command("score", model, corpus, "--json", tmp_path / "score.json").code == 0
    gain, score = (json.loads((tmp_path / name).read_text(encoding="utf-8")) for name in ("gain.json", "score.json"))
    assert gain["tokens"] == score["pieces"]
    assert gain["gain_over"][NONE]["mean"] == pytest.approx(score["gain_per_piece"], abs=1e-5)
    assert gain["bleu"] is None


def test_the_same_again(model, corpus, tmp_path):
    for name in ("one", "two"):
        assert command("context-gain", model, corpus, "--no-translate", "--html", tmp_path / name).code == 0
    assert (tmp_path / "one").read_bytes() == (tmp_path / "two").read_bytes()


def test_a_page_of_few_sentences(model, corpus, tmp_path):
    page = tmp_path / "page.html"
    done = command("context-gain", model, corpus, "--no-translate", "--html", page, "--sentences", 5)
    assert done.code == 0, done.err
    total = len(corpus.read_text(encoding="utf-8").splitlines())
    assert f"6 of {total} sentences" in page.read_text(encoding="utf-8")


def test_a_sentence_model_is_refused(models, corpus):
    fails(command("context-gain", models["sentence"], corpus), "a sentence model", "Give a document-level model")


def test_a_corpus_without_documents_is_refused(model, tmp_path):
    for side in ("fr", "en"):
        (tmp_path / side).write_text("Un.\nDeux.\n", encoding="utf-8")
    files = tmp_path / "fr", tmp_path / "en"
    done = command("context-gain", model, *files, "--format", "sentences")
    fails(done, "no sentence of the corpus has a neighbour")
    fails(command("context-gain", model, *files, "--format", "text"), "other documents", "Give two or more documents")
    fails(command("context-gain", model, *files, "--sentences", 0), "--sentences 0")
