"""`model.kind = "rnnsearch"` from the command line, by itself and with a context; what its systems have in common with
others is in test_systems.py."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
import torch

from docnmt.data.subwords import Subwords
from docnmt.decoding.translator import load
from docnmt.document import Document
from docnmt.model_folder import load_card
from tests.builders import replace_weights
from tests.system.conftest import Systems, command, killed_at, outcome, weights


@pytest.fixture(scope="module")
def talkative(systems: Systems, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The model folder with random weights: after a few updates every translation would be the same."""
    folder = tmp_path_factory.mktemp("rnnsearch") / "model"
    shutil.copytree(systems.trained("hierarchical") / "document" / "model", folder)
    card, target = load_card(folder), Subwords.load(folder / "target.spm")
    torch.manual_seed(1)
    network = card.system.model(card.model, card.context, len(Subwords.load(folder / "source.spm")), len(target))
    found = {name: value.detach() + 0.5 * torch.randn(value.shape) for name, value in network.named_parameters()}
    end = found["target_embedding.weight"][target.eos]
    found["readout.bias"] += torch.cat([end, end]) / end.norm()  # so that sentences end
    replace_weights(folder, found)
    return folder


def test_step_2_adds_the_units_that_summarise(systems):
    added = weights(systems.trained("hierarchical"), "document").keys()
    assert {"context_words.weight_ih_l0", "context_sentences.weight_ih_l0"} < added


def test_killed_in_step_1_and_started_again_it_ends_the_same(tiny, systems, tmp_path):
    settings = ("model.kind=rnnsearch", "context.kind=none", "sentence.updates=8")
    with killed_at(6):
        tiny.train(tmp_path, *settings, step="sentence")
    done = tiny.train(tmp_path, *settings, step="sentence")
    assert done.code == 0 and "continuing from update 5" in done.err
    assert outcome(tmp_path, ("sentence",)) == outcome(systems.base("rnnsearch"), ("sentence",))


def test_the_base_alone_has_no_document_step(tiny, tmp_path):
    settings = ("model.kind=rnnsearch", "context.kind=none", "sentence.updates=2")
    done = tiny.train(tmp_path, *settings, step="sentence")
    assert done.code == 0, done.err
    done = command("translate", tmp_path / "sentence" / "model", stdin="Le chat dort.\nIl rêve.\n".encode())
    assert done.code == 0 and len(done.lines) == 2
    assert "it has no document step" in tiny.train(tmp_path, *settings, step="document").message


def test_a_context_of_the_transformer_is_refused(tiny, tmp_path):
    done = tiny.train(tmp_path, "model.kind=rnnsearch")
    assert done.code == 2
    assert "'attention' is not available for rnnsearch Use none, hierarchical, cache" in done.message


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
