"""`context.kind = "han"` from the command line: both steps, resuming, translating, scoring."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from docnmt.decoding.translator import load
from docnmt.document import Document
from docnmt.model.context import is_document_parameter
from docnmt.training.loop import Trainer
from tests.system.conftest import Tiny, command, metrics, outcome, same_bits, weights

HAN = ("context.kind=han", "document.updates=6", "document.checkpoint_every=2")


class Killed(BaseException):
    """Not an Exception: nothing may catch it and go on."""


def train(tiny: Tiny, finished: Path, output: Path, *settings: str) -> Path:
    """Step 2 on the sentence model that is there already."""
    if not (output / "sentence").exists():
        shutil.copytree(finished / "sentence", output / "sentence")
    done = tiny.train(output, *HAN, *settings, step="document")
    assert done.code == 0, done.err
    return output / "document" / "model"


@pytest.fixture(scope="module")
def trained(tiny: Tiny, finished: Path) -> Path:
    output = tiny.folder / "han"
    train(tiny, finished, output)
    return output


def test_step_2_trains_the_networks_and_leaves_the_sentence_model(finished, trained):
    sentence, document = weights(finished, "sentence"), weights(trained, "document")
    assert same_bits(sentence, {name: value for name, value in document.items() if not is_document_parameter(name)})
    assert {name.split(".")[0] for name in document.keys() - sentence.keys()} == {
        "context_in_encoder",
        "context_in_decoder",
    }
    (line, *_) = metrics(trained, "document", "validation")
    assert line["loss"] != line["loss_without_context"]


def test_start_sentence_begins_with_the_sentence_models_loss(tiny, finished, tmp_path):
    train(tiny, finished, tmp_path, "context.start=sentence", "document.updates=1", "document.learning_rate=1e-9")
    (line,) = metrics(tmp_path, "document", "validation")
    assert line["loss"] == pytest.approx(line["loss_without_context"], rel=1e-5)


def test_killed_and_started_again_it_ends_the_same(tiny, finished, trained, tmp_path, monkeypatch):
    original = Trainer._update

    def dying(trainer, state):
        if state.update == 4:
            raise Killed
        return original(trainer, state)

    with monkeypatch.context() as patch:
        patch.setattr(Trainer, "_update", dying)
        with pytest.raises(Killed):
            train(tiny, finished, tmp_path)
    train(tiny, finished, tmp_path)
    assert outcome(tmp_path, ("document",)) == outcome(trained, ("document",))


@pytest.mark.parametrize(
    "settings",
    [
        ("context.integration=encoder",),
        ("context.integration=decoder", "hardware.bf16=true"),
        ("document.freeze=false",),
    ],
    ids=" ".join,
)
def test_other_settings_train_and_translate(tiny, finished, tmp_path, settings):
    folder = train(tiny, finished, tmp_path, *settings, "document.updates=2")
    done = command("translate", folder, stdin="Le chat dort.\nIl rêve.\n\nFin.\n".encode())
    assert done.code == 0, done.err
    assert len(done.lines) == 4


def test_as_many_lines_out_as_in(trained):
    done = command("translate", trained / "document" / "model", stdin="Le chat dort.\nIl rêve.\n\nFin.\n".encode())
    assert done.code == 0, done.err
    assert len(done.lines) == 4 and done.lines[2] == ""


def test_the_document_decides_its_own_and_not_the_one_before(trained):
    """Told by the scores: after a few updates a model says much the same of everything."""
    translator = load(trained / "document" / "model")
    first, second = Document("1", ("Le chat dort.", "Elle est là.")), Document("2", ("Il rêve.", "Elle est là."))

    def scores(*documents: Document, **options: object) -> list[float]:
        found = translator.translate_documents(documents, **options)
        return [sentence.scores[0] for document in found for sentence in document.sentences]

    together = scores(first, second)
    assert together == pytest.approx([*scores(first), *scores(second)], abs=1e-5)
    assert abs(together[1] - together[3]) > 1e-4  # the same sentence after another one
    off = scores(first, second, context="off")
    assert off[1] == pytest.approx(off[3], abs=1e-6)
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
