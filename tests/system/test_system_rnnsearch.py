"""`model.kind = "rnnsearch"` from the command line, by itself and with `context.kind = "hierarchical"`."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
import torch
from safetensors.torch import save_file

from docnmt.corpora.subwords import Subwords
from docnmt.decoding.translator import load
from docnmt.document import Document
from docnmt.model.context import is_document_parameter
from docnmt.model_folder import load_card
from docnmt.training.loop import Trainer
from tests.system.conftest import Tiny, command, metrics, outcome, same_bits, weights

RECIPE = ("model.kind=rnnsearch", "context.kind=hierarchical", "context.previous=3", "sentence.updates=8")


class Killed(BaseException):
    """Not an Exception: nothing may catch it and go on."""


def train(tiny: Tiny, output: Path, *settings: str, step: str = "") -> Path:
    done = tiny.train(output, *RECIPE, "document.updates=8", *settings, step=step)
    assert done.code == 0, done.err
    return output


@pytest.fixture(scope="module")
def trained(tiny: Tiny) -> Path:
    return train(tiny, tiny.folder / "rnnsearch")


@pytest.fixture(scope="module")
def talkative(trained: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The model folder with random weights: after a few updates every translation would be the same."""
    folder = tmp_path_factory.mktemp("rnnsearch") / "model"
    shutil.copytree(trained / "document" / "model", folder)
    card, target = load_card(folder), Subwords.load(folder / "target.spm")
    torch.manual_seed(1)
    network = card.system.model(card.model, card.context, len(Subwords.load(folder / "source.spm")), len(target))
    found = {name: value.detach() + 0.5 * torch.randn(value.shape) for name, value in network.named_parameters()}
    end = found["target_embedding.weight"][target.eos]
    found["readout.bias"] += torch.cat([end, end]) / end.norm()  # so that sentences end
    save_file(found, folder / "weights.safetensors")
    return folder


def test_step_2_trains_what_it_adds_and_leaves_the_sentence_model(trained):
    sentence, document = weights(trained, "sentence"), weights(trained, "document")
    assert same_bits(sentence, {name: value for name, value in document.items() if not is_document_parameter(name)})
    assert {"context_words.weight_ih_l0", "context_sentences.weight_ih_l0"} < document.keys() - sentence.keys()
    (line, *_) = metrics(trained, "document", "validation")
    assert line["loss"] != line["loss_without_context"]


def test_start_sentence_begins_with_the_sentence_models_loss(tiny, trained, tmp_path):
    shutil.copytree(trained / "sentence", tmp_path / "sentence")
    settings = ("context.start=sentence", "document.updates=1", "document.learning_rate=1e-9")
    train(tiny, tmp_path, *settings, step="document")
    (line,) = metrics(tmp_path, "document", "validation")
    assert line["loss"] == pytest.approx(line["loss_without_context"], rel=1e-5)


def test_killed_in_either_step_and_started_again_it_ends_the_same(tiny, trained, tmp_path, monkeypatch):
    original = Trainer._update

    def dying(trainer, state):
        if state.update == 6:
            raise Killed
        return original(trainer, state)

    for step in ("sentence", "document"):
        with monkeypatch.context() as patch:
            patch.setattr(Trainer, "_update", dying)
            with pytest.raises(Killed):
                train(tiny, tmp_path, step=step)
        train(tiny, tmp_path, step=step)
    assert outcome(tmp_path) == outcome(trained)


@pytest.mark.parametrize(
    "settings",
    [("document.freeze=false",), ("document.start_from=nothing",), ("hardware.bf16=true",)],
    ids=" ".join,
)
def test_other_settings_train_and_translate(tiny, trained, tmp_path, settings):
    shutil.copytree(trained / "sentence" / "model", tmp_path / "sentence" / "model")
    train(tiny, tmp_path, *settings, "document.updates=2", step="document")
    moved = not same_bits(
        weights(tmp_path, "sentence"),
        {name: v for name, v in weights(tmp_path, "document").items() if not is_document_parameter(name)},
    )
    assert moved == settings[0].startswith("document.")
    done = command("translate", tmp_path / "document" / "model", stdin="Le chat dort.\nIl rêve.\n\nFin.\n".encode())
    assert done.code == 0, done.err
    assert len(done.lines) == 4


def test_the_base_alone_has_no_document_step(tiny, tmp_path):
    settings = ("model.kind=rnnsearch", "context.kind=none", "sentence.updates=2")
    done = tiny.train(tmp_path, *settings, step="sentence")
    assert done.code == 0, done.err
    done = command("translate", tmp_path / "sentence" / "model", stdin="Le chat dort.\nIl rêve.\n".encode())
    assert done.code == 0 and len(done.lines) == 2
    assert "there is no document step" in tiny.train(tmp_path, *settings, step="document").message


def test_a_context_of_the_transformer_is_refused(tiny, tmp_path):
    done = tiny.train(tmp_path, "model.kind=rnnsearch")
    assert done.code == 2
    assert "'attention' is not there for rnnsearch Use none, hierarchical, cache" in done.message


def test_as_many_lines_out_as_in_and_the_document_decides(talkative):
    lines = ["Le chat dort.", "Elle est là.", "Elle est là.", "", "Elle est là."]
    done = command("translate", talkative, stdin="\n".join([*lines, ""]).encode())
    assert done.code == 0, done.err
    assert len(done.lines) == 5 and done.lines[3] == ""
    assert len(set(done.lines)) > 2, "a sentence after others is not what it is alone"
    off = command("translate", talkative, "--context", "off", stdin="\n".join([*lines, ""]).encode())
    assert off.lines[1] == off.lines[2] == off.lines[4] and off.lines != done.lines


def test_a_document_does_not_see_the_one_before(talkative):
    translator = load(talkative)
    first, second = Document("1", ("Le chat dort.", "Elle est là.")), Document("2", ("Il rêve.", "Elle est ici."))
    together = [d.sentences for d in translator.translate_documents([first, second])]
    for found, document in zip(together, (first, second), strict=True):
        assert [sentence.text for sentence in found] == translator.translate(document)
    shuffled = translator.translate_documents([first, second], context_from=[second, first])
    assert [[s.text for s in d.sentences] for d in shuffled] != [[s.text for s in found] for found in together]


def test_score(tiny, talkative):
    corpus = tiny.folder / "corpus" / "small-dev.tsv"
    done = command("score", talkative, corpus)
    assert done.code == 0, done.err
    rows = [line.split("\t") for line in done.lines[1:]]
    assert len(rows) == len(corpus.read_text(encoding="utf-8").splitlines())
    same = [float(row[2]) == pytest.approx(float(row[3]), abs=2e-4) for row in rows]
    assert same == [row[1] == "1" for row in rows]  # a document's first sentence has no other context than none


def test_the_cache_trains_and_translates_in_order(tiny, trained, tmp_path):
    shutil.copytree(trained / "sentence" / "model", tmp_path / "sentence" / "model")
    train(tiny, tmp_path, "context.kind=cache", "context.topic_words=8", "document.updates=3", step="document")
    document = weights(tmp_path, "document")
    assert same_bits(
        weights(tmp_path, "sentence"), {name: v for name, v in document.items() if not is_document_parameter(name)}
    )
    assert (document["context_topics.words"] >= 0).any()
    folder = tmp_path / "document" / "model"
    done = command("translate", folder, stdin="Le chat dort.\nIl rêve.\n\nFin.\n".encode())
    assert done.code == 0, done.err
    assert len(done.lines) == 4
    done = command("score", folder, tiny.folder / "corpus" / "small-dev.tsv")
    assert done.code == 0, done.err
    rows = [line.split("\t") for line in done.lines[1:]]
    assert any(row[2] != row[3] for row in rows if row[1] != "1")
