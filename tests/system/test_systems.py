"""Every system from the command line: step 2 on a finished sentence model, resuming, translating, scoring, measuring.

A system is here by its line in tests/every_system.py.
"""

from __future__ import annotations

import json

import pytest
import torch

from docnmt.decoding.translator import load
from docnmt.document import Document, ParallelDocument
from docnmt.model.context import is_document_parameter
from docnmt.model_folder import load_card
from tests.every_system import CASES
from tests.system.conftest import command, first_documents, killed_at, metrics, outcome, same_bits, weights

every_system = pytest.mark.parametrize("name", CASES)
LINES = "Le chat dort.\nIl rêve.\n\nFin.\n".encode()


def theta_s(values: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    return {name: value for name, value in values.items() if not is_document_parameter(name)}


@every_system
def test_step_2_trains_what_it_adds_and_leaves_the_sentence_model(systems, name):
    case, output = CASES[name], systems.trained(name)
    sentence, document = weights(systems.base(case.base), "sentence"), weights(output, "document")
    assert sentence.keys() == theta_s(document).keys()
    if case.freeze:
        assert same_bits(sentence, theta_s(document))
    else:
        assert all(not torch.equal(value, document[name]) for name, value in sentence.items())
    card = load_card(output / "document" / "model")
    sizes = [len(sentence[f"{side}_embedding.weight"]) for side in ("source", "target")]
    torch.manual_seed(3)  # the recipe's
    fresh = dict(case.system.model(card.model, card.context, *sizes).named_parameters())
    theta_d = document.keys() - sentence.keys()
    assert bool(theta_d) == case.freeze and all(not torch.equal(document[name], fresh[name]) for name in theta_d)
    (line, *_) = metrics(output, "document", "validation")
    assert line["loss"] != line["loss_without_context"]


@every_system
def test_killed_and_started_again_it_ends_the_same(systems, tmp_path, name):
    with killed_at(4):
        systems.train(name, tmp_path)
    assert "continuing from update 3" in systems.train(name, tmp_path).err
    assert outcome(tmp_path, ("document",)) == outcome(systems.trained(name), ("document",))


@pytest.mark.parametrize("name", ["han", "hierarchical"])
def test_start_sentence_begins_with_the_sentence_models_loss(systems, tmp_path, name):
    settings = ("context.start=sentence", "document.updates=1", "document.learning_rate=1e-9")
    systems.train(name, tmp_path, *settings)
    (line,) = metrics(tmp_path, "document", "validation")
    assert line["loss"] == pytest.approx(line["loss_without_context"], rel=1e-5)


OTHER_WAYS = {
    "controlled": ("document.context_from=none", "hardware.bf16=true", "validation.decode=true"),
    "not frozen": ("document.freeze=false",),
    "from scratch": ("document.start_from=nothing",),
}
# Some are never frozen; and to start from scratch has little to do with the system.
WAYS = [
    (name, way)
    for name, case in CASES.items()
    for way in ("controlled", "not frozen" if case.freeze else "from scratch")
]


@pytest.mark.parametrize(("name", "way"), [*WAYS, ("hierarchical", "from scratch")])
def test_other_ways_to_train(tiny, systems, tmp_path, name, way):
    dev = tmp_path / "dev.tsv"  # a few sentences: a model as young as this hardly comes to their ends
    dev.write_text("\n".join(first_documents(tiny.folder / "corpus" / "dev.tsv", 1)[:3]) + "\n", encoding="utf-8")
    systems.train(name, tmp_path, "document.updates=2", f"data.dev={json.dumps(str(dev))}", *OTHER_WAYS[way])
    sentence, document = weights(systems.base(CASES[name].base), "sentence"), weights(tmp_path, "document")
    assert same_bits(sentence, theta_s(document)) == (CASES[name].freeze and way == "controlled")
    (line,) = metrics(tmp_path, "document", "validation")
    if way == "controlled":
        assert line["bleu"] is not None and line["loss"] == line["loss_without_context"]
    done = command("translate", tmp_path / "document" / "model", "--beam", 1, stdin=LINES)
    assert done.code == 0 and len(done.lines) == 4, done.err


@every_system
def test_as_many_lines_out_as_in(systems, name):
    done = command("translate", systems.trained(name) / "document" / "model", stdin=LINES)
    assert done.code == 0, done.err
    assert len(done.lines) == 4 and done.lines[2] == ""


@every_system
def test_the_document_decides_its_own_and_not_another_one(systems, name):
    """Told by the scores: after a few updates a model says much the same of everything."""
    translator = load(systems.trained(name) / "document" / "model")
    first, second = Document("1", ("Le chat dort.", "Elle est là.")), Document("2", ("Il rêve.", "Elle est là."))

    def scores(*documents: Document, **options: object) -> list[float]:
        found = translator.translate_documents(documents, beam=1, **options)
        return [sentence.scores[0] for document in found for sentence in document.sentences]

    together = scores(first, second)
    assert together == pytest.approx([*scores(first), *scores(second)], rel=2e-6)  # a float's own last bits
    for context in ("none", "off"):
        alone = scores(first, second, context=context)
        assert alone[1] == pytest.approx(alone[3], abs=1e-5)
    shuffled = scores(first, second, context_from=[second, first])
    assert shuffled == pytest.approx([together[i] for i in (0, 3, 2, 1)], abs=1e-5)
    # The same pair after another one; here, as it is scored, what was written before is not much the same.
    after = ("The cat is asleep.", "He dreams.")
    pairs = [
        ParallelDocument(d.id, d.sentences, (t, "She is here.")) for d, t in zip((first, second), after, strict=True)
    ]
    one, other = (document[1].total for document in translator.score(pairs))
    assert abs(one - other) > 1e-5


@every_system
def test_score(tiny, systems, name):
    corpus = tiny.folder / "corpus" / "small-dev.tsv"
    done = command("score", systems.trained(name) / "document" / "model", corpus)
    assert done.code == 0, done.err
    rows = [line.split("\t") for line in done.lines[1:]]
    assert len(rows) == len(corpus.read_text(encoding="utf-8").splitlines())
    gains = {
        first: [abs(float(row[2]) - float(row[3])) for row in rows if (row[1] == "1") == first]
        for first in (True, False)
    }
    assert max(gains[True]) < 2e-4  # a document's first sentence has no other context than none
    assert sum(gain > 2e-4 for gain in gains[False]) > 0.7 * len(gains[False])  # one may gain next to nothing
