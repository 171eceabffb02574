"""The two caches from the command line: both steps, a run taken up again, translations, scores, other contexts."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
import torch

from docnmt.corpora.files import CorpusFiles
from docnmt.corpora.readers import read_corpus
from docnmt.decoding.translator import load
from docnmt.document import Document
from docnmt.model.context import is_document_parameter
from docnmt.model_folder import load_model
from docnmt.training.loop import Trainer
from tests.system.conftest import Tiny, command, first_documents, outcome, same_bits, weights

SETTINGS = {
    "cache": ("context.kind=cache", "context.previous=4", "context.cache_words=20", "context.topic_words=30"),
    "continuous-cache": ("context.kind=continuous-cache", "context.previous=4", "context.cache_words=20"),
}
every_kind = pytest.mark.parametrize("kind", SETTINGS)


@pytest.fixture(scope="module")
def trained(tiny: Tiny) -> dict[str, Path]:
    """Both steps of each; not to be written to."""
    folders = {kind: tiny.folder / f"trained-{kind}" for kind in SETTINGS}
    for kind, output in folders.items():
        done = tiny.train(output, *SETTINGS[kind], "document.learning_rate=5")
        assert done.code == 0, done.err
    return folders


@every_kind
def test_step_2_moves_theta_d_and_leaves_theta_s(finished, trained, kind):
    sentence, document = weights(trained[kind], "sentence"), weights(trained[kind], "document")
    assert same_bits(sentence, weights(finished, "sentence"))
    assert same_bits(sentence, {name: document[name] for name in document if not is_document_parameter(name)})
    torch.manual_seed(3)  # the recipe's
    card = load_model(trained[kind] / "document" / "model").card
    sizes = [len(sentence[f"{side}_embedding.weight"]) for side in ("source", "target")]
    fresh = dict(card.system.model(card.model, card.context, *sizes).named_parameters())
    theta_d = [name for name in document if is_document_parameter(name)]
    assert theta_d and all(not torch.equal(document[name], fresh[name]) for name in theta_d)


def test_a_model_folder_knows_its_topics(trained):
    topics = load_model(trained["cache"] / "document" / "model").model.context_topics
    assert topics.evidence.any() and (topics.words >= 0).any() and topics.words.shape[1] == 30


@every_kind
def test_a_run_that_was_killed_ends_as_if_it_had_not_been(tiny, trained, tmp_path, monkeypatch, kind):
    original = Trainer._update

    class Killed(BaseException):
        pass

    def dying(trainer, state):
        if state.update == 9:
            raise Killed
        return original(trainer, state)

    output = tmp_path / "output"
    shutil.copytree(trained[kind] / "sentence", output / "sentence")
    settings = (*SETTINGS[kind], "document.learning_rate=5")
    with monkeypatch.context() as patch:
        patch.setattr(Trainer, "_update", dying)
        with pytest.raises(Killed):
            tiny.train(output, *settings, step="document")
    done = tiny.train(output, *settings, step="document")
    assert done.code == 0 and "going on from update 8" in done.err
    assert outcome(output) == outcome(trained[kind])


@every_kind
def test_translate_gives_a_sentence_for_each(tiny, trained, kind):
    text = "".join(line.split("\t")[1] + "\n" for line in first_documents(tiny.folder / "corpus" / "test.tsv", 1))
    given = text + "\n" + text  # the empty line ends a document
    done = command("translate", trained[kind] / "document" / "model", "--beam", 2, stdin=given.encode())
    assert done.code == 0, done.err
    assert len(done.lines) == len(given.splitlines())


@every_kind
def test_score_and_another_context(tiny, trained, kind):
    pairs = list(read_corpus(CorpusFiles(path=str(tiny.folder / "corpus" / "small-dev.tsv"))))[:2]
    translator = load(trained[kind] / "document" / "model", "cpu")
    own, none = (list(translator.score(pairs, context=c)) for c in (None, "none"))
    assert [len(document) for document in own] == [len(document) for document in pairs]
    totals = [[score.total for document in scores for score in document] for scores in (own, none)]
    assert totals[0] != totals[1]
    first, second = (Document(pair.id, pair.source) for pair in pairs)
    others = [Document("other", (*second.sentences, *second.sentences)[: len(first)])]
    right, wrong = (
        [s.scores for d in translator.translate_documents([first], context_from=c) for s in d.sentences]
        for c in (None, others)
    )
    assert len(right) == len(wrong) == len(first)
    assert right[1:] != wrong[1:]


@every_kind
@pytest.mark.parametrize(
    "settings",
    [("document.freeze=false", "hardware.bf16=true"), ("document.context_from=none", "validation.decode=true")],
    ids=" ".join,
)  # fmt: skip
def test_other_ways_to_train(tiny, trained, tmp_path, kind, settings):
    shutil.copytree(trained[kind] / "sentence", tmp_path / "sentence")
    done = tiny.train(tmp_path, *SETTINGS[kind], "document.updates=2", *settings, step="document")
    assert done.code == 0, done.err
    notes = json.loads((tmp_path / "document" / "model" / "config.json").read_text())["notes"]
    assert notes["update"] == 2
