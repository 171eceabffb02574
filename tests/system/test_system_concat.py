"""`context.kind = "concat"` from the command line: both steps, resuming, translating, scoring, measuring."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from docnmt.decoding.translator import load
from docnmt.document import Document
from docnmt.training.loop import Trainer
from tests.system.conftest import Tiny, command, metrics, outcome, weights

CONCAT = ("context.kind=concat", "context.previous=1", "document.updates=6", "document.checkpoint_every=2")
FREE = "document.freeze=false"
KINDS = {"2-to-1": (), "2-to-2": ("context.translate_previous=true",)}


class Killed(BaseException):
    """Not an Exception: nothing may catch it and go on."""


def train(tiny: Tiny, finished: Path, output: Path, *settings: str) -> Path:
    """Step 2 on the sentence model that is there already."""
    if not (output / "sentence").exists():
        shutil.copytree(finished / "sentence", output / "sentence")
    done = tiny.train(output, *CONCAT, FREE, *settings, step="document")
    assert done.code == 0, done.err
    return output / "document" / "model"


@pytest.fixture(scope="module", params=list(KINDS))
def trained(request, tiny: Tiny, finished: Path) -> Path:
    output = tiny.folder / request.param
    train(tiny, finished, output, *KINDS[request.param])
    return output


def test_step_2_goes_on_with_all_of_the_sentence_model(finished, trained):
    sentence, document = weights(finished, "sentence"), weights(trained, "document")
    assert sentence.keys() == document.keys()
    assert all(not sentence[name].equal(value) for name, value in document.items())
    (line, *_) = metrics(trained, "document", "validation")
    assert line["loss"] != line["loss_without_context"]


def test_there_is_nothing_to_freeze_and_that_is_said_before_the_first_step(tiny, tmp_path):
    done = tiny.train(tmp_path, *CONCAT)
    assert done.code == 2
    assert '"concat" adds no parameters' in done.message and "Set document.freeze = false" in done.message
    assert not (tmp_path / "sentence").exists()


def test_from_scratch_on_the_documents_alone(tiny, tmp_path):
    done = tiny.train(tmp_path, *CONCAT, "document.start_from=nothing", step="document")
    assert done.code == 0, done.err


def test_killed_and_started_again_it_ends_the_same(tiny, finished, trained, tmp_path, monkeypatch):
    original = Trainer._update

    def dying(trainer, state):
        if state.update == 4:
            raise Killed
        return original(trainer, state)

    with monkeypatch.context() as patch:
        patch.setattr(Trainer, "_update", dying)
        with pytest.raises(Killed):
            train(tiny, finished, tmp_path, *KINDS[trained.name])
    train(tiny, finished, tmp_path, *KINDS[trained.name])
    assert outcome(tmp_path, ("document",)) == outcome(trained, ("document",))


@pytest.mark.parametrize("control", ["shuffled", "none"])
def test_controls_and_validation_by_translating(tiny, finished, tmp_path, control):
    settings = (f"document.context_from={control}", "validation.decode=true", "document.updates=2")
    train(tiny, finished, tmp_path, *KINDS["2-to-2"], *settings)
    (line,) = metrics(tmp_path, "document", "validation")
    assert (line["loss"] == line["loss_without_context"]) is (control == "none")
    assert line["bleu"] is not None


def test_as_many_lines_out_as_in(trained):
    folder = trained / "document" / "model"
    done = command("translate", folder, stdin="Le chat dort.\nIl rêve.\n\nFin.\n".encode())
    assert done.code == 0, done.err
    assert len(done.lines) == 4 and done.lines[2] == ""
    done = command("translate", folder, "--context", "following=1", stdin=b"Fin.\n")
    assert done.code == 2 and "none after it" in done.message


def test_the_sentence_before_decides_and_not_another_document(trained):
    """Told by the scores: after a few updates a model says much the same of everything."""
    translator = load(trained / "document" / "model")
    first, second = Document("1", ("Le chat dort.", "Elle est là.")), Document("2", ("Il rêve.", "Elle est là."))

    def scores(*documents: Document, **options: object) -> list[float]:
        found = translator.translate_documents(documents, **options)
        return [sentence.scores[0] for document in found for sentence in document.sentences]

    together = scores(first, second)
    assert together == pytest.approx([*scores(first), *scores(second)], abs=1e-5)
    assert abs(together[1] - together[3]) > 1e-5  # the same sentence after another one
    none = scores(first, second, context="none")
    assert none[1] == pytest.approx(none[3], abs=1e-6)
    shuffled = scores(first, second, context_from=[second, first])
    assert shuffled == pytest.approx([together[i] for i in (0, 3, 2, 1)], abs=1e-5)


def test_score(tiny, trained):
    done = command("score", trained / "document" / "model", tiny.folder / "corpus" / "small-dev.tsv")
    assert done.code == 0, done.err
    pairs = (tiny.folder / "corpus" / "small-dev.tsv").read_text(encoding="utf-8").splitlines()
    rows = [line.split("\t") for line in done.lines[1:]]
    assert len(rows) == len(pairs)
    with_context, without = ([float(row[column]) for row in rows] for column in (2, 3))
    first = [row[1] == "1" for row in rows]
    same = [a == pytest.approx(b, abs=2e-4) for a, b in zip(with_context, without, strict=True)]
    assert same == first  # a document's first sentence has no other context than none


def test_contrast_says_what_became_of_gold_target_context(tiny, trained, tmp_path):
    text = (tiny.folder / "corpus" / "contrastive.jsonl").read_text(encoding="utf-8").splitlines()[:4]
    bare = json.dumps(json.loads(text[0]) | {"previous_target": []})
    (tmp_path / "set.jsonl").write_text("\n".join([*text, bare]) + "\n", encoding="utf-8")
    done = command("contrast", trained / "document" / "model", tmp_path / "set.jsonl")
    assert done.code == 0, done.err
    if trained.name == "2-to-2":
        assert "sees the gold target context" in done.out and "translated the sentences before: 1" in done.out
    else:
        assert "Gold target context is given in the set and not used" in done.out


def test_context_gain(tiny, trained, tmp_path):
    page, figures = tmp_path / "page.html", tmp_path / "figures.json"
    corpus = tiny.folder / "corpus" / "small-dev.tsv"
    done = command("context-gain", trained / "document" / "model", corpus, "--html", page, "--json", figures)
    assert done.code == 0, done.err
    found = json.loads(figures.read_text(encoding="utf-8"))
    assert set(found["gain_over"]) == {"none", "shuffled"} | ({"repeated"} if trained.name == "2-to-1" else set())
    assert set(found["bleu"]["scores"]) == {"true", "none", "shuffled", "repeated"}
    assert found["by_position"]["none"]["1"]["mean"] == 0
    assert page.stat().st_size > 10_000
