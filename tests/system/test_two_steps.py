"""`docnmt train`: the paper's two steps, and the ways around them."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file

from docnmt.config import ContextConfig, ModelConfig
from docnmt.data.batches import Examples
from docnmt.data.subwords import Subwords
from docnmt.model.context import is_document_parameter
from docnmt.model.transformer import DocumentTransformer
from docnmt.model_folder import load_card
from docnmt.recipes import load_recipe
from tests.system.conftest import Result, Tiny, command, first_documents, metrics, outcome, same_bits, weights


def initial_weights(tiny: Tiny, folder: Path, **context: object) -> dict[str, torch.Tensor]:
    """What a step that ends in this model folder began with, where it began with nothing."""
    card, seed = load_card(folder), load_recipe(tiny.recipe).seed
    sizes = [len(Subwords.load(folder / f"{side}.spm")) for side in ("source", "target")]
    torch.manual_seed(seed)
    return {name: p.detach() for name, p in DocumentTransformer(card.model, card.context, *sizes).named_parameters()}


def differing(one: dict[str, torch.Tensor], other: dict[str, torch.Tensor]) -> set[str]:
    return {name for name in one if not torch.equal(one[name], other[name])}


def ok(result: Result) -> Result:
    assert result.code == 0, result.err
    return result


# ---- step 1, then step 2 ----


def test_step_2_leaves_theta_s_as_it_is_to_the_bit(finished):
    sentence, document = weights(finished, "sentence"), weights(finished, "document")
    theta_s = {name for name in document if not is_document_parameter(name)}
    assert theta_s == set(sentence)
    assert same_bits(sentence, {name: document[name] for name in theta_s})


def test_step_2_moves_all_of_theta_d(tiny, finished):
    document = weights(finished, "document")
    initial = initial_weights(tiny, finished / "document" / "model")
    theta_d = {name for name in document if is_document_parameter(name)}
    assert theta_d
    assert theta_d <= differing(initial, document)


def test_step_1_moves_all_of_theta_s(tiny, finished):
    sentence = weights(finished, "sentence")
    assert differing(initial_weights(tiny, finished / "sentence" / "model"), sentence) == set(sentence)


def test_the_steps_one_by_one_are_the_same_as_both_at_once(tiny, finished, tmp_path):
    ok(tiny.train(tmp_path, step="sentence"))
    assert not (tmp_path / "document").exists()
    ok(tiny.train(tmp_path, step="document"))
    assert outcome(tmp_path) == outcome(finished)


def test_training_is_the_same_every_time_but_not_with_another_seed(tiny, finished, tmp_path):
    ok(tiny.train(tmp_path / "same", step="sentence"))
    assert outcome(tmp_path / "same", ("sentence",)) == outcome(finished, ("sentence",))
    ok(tiny.train(tmp_path / "other", "seed=4", step="sentence"))
    assert not same_bits(weights(tmp_path / "other", "sentence"), weights(finished, "sentence"))


def test_without_freezing_step_2_moves_theta_s_too(tiny, finished, tmp_path):
    shutil.copytree(finished / "sentence", tmp_path / "sentence")
    ok(tiny.train(tmp_path, "document.freeze=false", step="document"))
    document = weights(tmp_path, "document")
    assert set(weights(finished, "sentence")) <= differing(weights(finished, "sentence"), document)
    assert not same_bits(document, weights(finished, "document"))


def test_step_2_that_starts_as_the_sentence_model_begins_with_its_loss(tiny, finished, tmp_path):
    """start = "sentence": after one update with next to no learning rate, context or not, the loss is step 1's."""
    shutil.copytree(finished / "sentence", tmp_path / "sentence")
    settings = ("context.start=sentence", "document.updates=1", "document.learning_rate=1e-9")
    ok(tiny.train(tmp_path, *settings, step="document"))
    (line,) = metrics(tmp_path, "document", "validation")
    assert line["loss"] == pytest.approx(line["loss_without_context"], rel=1e-5)


# ---- other ways to begin step 2 ----


def test_one_step_training_trains_everything_on_the_documents(tiny, tmp_path):
    done = ok(tiny.train(tmp_path, "document.start_from=nothing"))
    assert "from scratch" in done.err
    assert not (tmp_path / "sentence").exists()
    document = weights(tmp_path, "document")
    assert differing(initial_weights(tiny, tmp_path / "document" / "model"), document) == set(document)
    notes = json.loads((tmp_path / "document" / "model" / "config.json").read_text())["notes"]
    assert notes["start_from"] == "nothing"


def test_step_2_from_a_model_folder_with_its_own_subwords_and_sizes(tiny, tmp_path):
    """The recipe says other sizes and would train other sub-words: the model that is brought along decides."""
    brought = tmp_path / "brought" / "sentence" / "model"
    sizes = ("model.width=24", "model.filter_width=20", "model.heads=3", "model.decoder_layers=2", "sentence.updates=3")
    own = ("subwords.source_model=", "subwords.target_model=", "subwords.vocabulary=340")
    ok(tiny.train(tmp_path / "brought", *sizes, *own, step="sentence"))
    moved = tmp_path / "moved"  # the model folder is all that is needed
    shutil.move(brought, moved)
    shutil.rmtree(tmp_path / "brought")

    output = tmp_path / "output"
    ok(tiny.train(output, f"document.start_from={moved}", "document.updates=3"))
    assert not (output / "sentence").exists()
    document, start = weights(output, "document"), load_file(moved / "weights.safetensors")
    assert same_bits(start, {name: document[name] for name in start})
    assert load_card(output / "document" / "model").model == load_card(moved).model
    for side in ("source", "target"):
        assert (output / "document" / "model" / f"{side}.spm").read_bytes() == (moved / f"{side}.spm").read_bytes()


def test_step_2_from_a_document_model_with_other_context_modules_is_a_clear_error(tiny, model, tmp_path):
    done = tiny.train(tmp_path, f"document.start_from={model}", "context.integration=encoder")
    assert done.code == 2
    assert str(model) in done.message


def test_step_2_without_a_sentence_model_is_a_clear_error(tiny, tmp_path):
    done = tiny.train(tmp_path, step="document")
    assert done.code == 2
    assert str(tmp_path / "sentence" / "model") in done.err
    assert "--step sentence" in done.err and "document.start_from" in done.err
    assert "Traceback" not in done.err


def test_step_2_of_a_recipe_without_context_is_a_clear_error(tiny, finished, tmp_path):
    shutil.copytree(finished / "sentence", tmp_path / "sentence")
    done = tiny.train(tmp_path, "context.kind=none", step="document")
    assert done.code == 2 and "context.kind" in done.err


def test_a_recipe_without_context_trains_the_sentence_model_alone(tiny, finished, tmp_path):
    ok(tiny.train(tmp_path, "context.kind=none"))
    assert not (tmp_path / "document").exists()
    assert same_bits(weights(tmp_path, "sentence"), weights(finished, "sentence"))


# ---- data ----


@pytest.fixture
def more_sentences(tiny, tmp_path) -> list[str]:
    """A sentence-level corpus: two plain files."""
    rows = [line.split("\t") for line in first_documents(tiny.folder / "corpus" / "test.tsv", 6)]
    for name, column in (("more.fr", 1), ("more.en", 2)):
        (tmp_path / name).write_text("".join(f"{row[column]}\n" for row in rows), encoding="utf-8")
    return [f'data.sentences={{source="{tmp_path / "more.fr"}", target="{tmp_path / "more.en"}"}}', str(len(rows))]


def test_a_sentence_level_corpus_is_used_in_step_1_only(tiny, finished, tmp_path, more_sentences):
    setting, count = more_sentences
    output = tmp_path / "output"
    done = ok(tiny.train(output, setting))
    said = [int(part.split()[-1]) for part in done.message.split(" sentence pairs") if "frozen;" in part[-40:]]
    documents = sum(1 for _ in (tiny.folder / "corpus" / "train.tsv").open())
    assert said == [documents + int(count), documents]
    assert not same_bits(weights(output, "sentence"), weights(finished, "sentence"))
    states = [json.loads(max((output / step / "checkpoints").iterdir()).joinpath("state.json").read_text())
              for step in ("sentence", "document")]  # fmt: skip
    assert [len(state["settings"]["data"]) for state in states] == [2, 1]


def test_without_documents_there_is_a_step_1_and_no_step_2(tiny, tmp_path, more_sentences):
    output = tmp_path / "output"
    ok(tiny.train(output, more_sentences[0], "data.documents=[]", "sentence.updates=2", step="sentence"))
    done = tiny.train(output, more_sentences[0], "data.documents=[]", step="document")
    assert done.code == 2 and "data.documents" in done.err


def test_without_any_training_data(tiny, tmp_path):
    done = tiny.train(tmp_path, "data.documents=[]")
    assert done.code == 2 and "data.documents" in done.err


def test_without_a_dev_set_the_last_weights_are_the_model(tiny, tmp_path):
    done = ok(tiny.train(tmp_path, "data.dev=[]"))
    assert "there is no validation" in done.err
    for step in ("sentence", "document"):
        assert not metrics(tmp_path, step, "validation")
        last = load_file(tmp_path / step / "checkpoints" / "update-00000014" / "weights.safetensors")
        model = weights(tmp_path, step)
        assert last.keys() <= model.keys()
        assert same_bits(last, {name: model[name] for name in last})


# ---- validation, the best weights, stopping ----


def test_validation_with_bleu_with_context_and_without(tiny, finished, tmp_path):
    settings = ("validation.decode=true", "validation.metric=bleu", "document.updates=4", "document.validate_every=2")
    shutil.copytree(finished / "sentence", tmp_path / "sentence")
    ok(tiny.train(tmp_path, *settings, step="document"))
    lines = metrics(tmp_path, "document", "validation")
    assert [line["update"] for line in lines] == [2, 4]
    for line in lines:
        assert line["loss"] > 0 and 0 <= line["bleu"] <= 100 and 0 <= line["bleu_without_context"] <= 100
        assert line["loss_gain"] == line["loss_without_context"] - line["loss"]
        assert line["bleu_gain"] == line["bleu"] - line["bleu_without_context"]
        assert "case:lc" in line["signature"] and "version:" in line["signature"]
    notes = json.loads((tmp_path / "document" / "model" / "config.json").read_text())["notes"]
    assert sorted(notes["best"]) == notes["best"]
    assert {-score for score, _ in notes["best"]} <= {line["bleu"] for line in lines}


def test_step_1_validates_without_speaking_of_context(finished):
    for line in metrics(finished, "sentence", "validation"):
        assert line["loss"] > 0 and "loss_without_context" not in line


def test_what_the_record_holds(finished):
    for step in ("sentence", "document"):
        assert [line["update"] for line in metrics(finished, step, "train")] == [3, 6, 9, 12]
        assert [line["update"] for line in metrics(finished, step, "validation")] == [5, 10, 14]
        for line in metrics(finished, step, "train"):
            assert line["loss"] > 0 and line["gradient_norm"] > 0
            assert line["learning_rate"] == 16**-0.5 * min(line["update"] ** -0.5, line["update"] * 6**-1.5)


@pytest.mark.parametrize("step", ["sentence", "document"])
def test_the_model_is_the_mean_of_the_best_validations(finished, step):
    losses = {line["update"]: line["loss"] for line in metrics(finished, step, "validation")}
    best = sorted(losses, key=lambda update: losses[update])[:2]
    kept = [load_file(finished / step / "best" / f"update-{update:08d}" / "weights.safetensors") for update in best]
    model = weights(finished, step)
    for name in kept[0]:
        assert torch.equal(model[name], torch.stack([one[name] for one in kept]).mean(0)), name
    notes = json.loads((finished / step / "model" / "config.json").read_text())["notes"]
    assert [update for _, update in notes["best"]] == best


def test_without_averaging_the_model_is_the_best_validation(tiny, tmp_path):
    """A learning rate that spoils what was learnt: the best is not the last."""
    ok(tiny.train(tmp_path, "sentence.average=1", "sentence.validate_every=2", "sentence.learning_rate=20",
                  step="sentence"))  # fmt: skip
    losses = {line["update"]: line["loss"] for line in metrics(tmp_path, "sentence", "validation")}
    best = min(losses, key=lambda update: losses[update])
    assert best != 14
    kept = load_file(tmp_path / "sentence" / "best" / f"update-{best:08d}" / "weights.safetensors")
    assert same_bits(kept, weights(tmp_path, "sentence"))
    assert len(list((tmp_path / "sentence" / "best").iterdir())) <= 2  # of the two checkpoints that are kept


def test_early_stopping(tiny, tmp_path):
    settings = ("sentence.updates=200", "sentence.validate_every=2", "sentence.learning_rate=20", "sentence.patience=2")
    done = ok(tiny.train(tmp_path, *settings, step="sentence"))
    lines = metrics(tmp_path, "sentence", "validation")
    losses = [line["loss"] for line in lines]
    assert lines[-1]["update"] < 200
    assert losses.index(min(losses)) == len(losses) - 3
    said = done.err.replace(str(tmp_path), "").lower()
    assert "stop" in said or "patience" in said, "it does not say that it stopped early"
    again = ok(tiny.train(tmp_path, *settings, step="sentence"))
    assert metrics(tmp_path, "sentence", "validation") == lines, again.err


def test_the_controls_take_the_same_sentences_in_each_update(tiny, finished, tmp_path, monkeypatch):
    """Else a control with no contexts, which fill batches, would see more of them in as many updates."""
    batch, seen = Examples.batch, {}

    def noting(examples: Examples, rows, device):
        taken.append((rows.tolist(), len(batch(examples, rows, device).context.tokens)))
        return batch(examples, rows, device)

    monkeypatch.setattr(Examples, "batch", noting)
    for kind in ("own", "shuffled", "none"):
        taken: list[tuple[list[int], int]] = []
        settings = ("document.updates=3", "document.validate_every=1000", f"document.context_from={kind}")
        shutil.copytree(finished / "sentence", tmp_path / kind / "sentence")
        ok(tiny.train(tmp_path / kind, *settings, step="document"))
        seen[kind] = taken[:3]
    rows, contexts = ({kind: [each[part] for each in taken] for kind, taken in seen.items()} for part in (0, 1))
    assert rows["own"] == rows["shuffled"] == rows["none"]
    assert contexts["own"] != contexts["shuffled"]
    assert contexts["none"] == list(map(len, rows["none"]))  # a mark for each, nothing else


# ---- doing it again, doing more ----


def test_a_second_time_there_is_nothing_to_do(tiny, finished, tmp_path):
    output = tmp_path / "output"
    shutil.copytree(finished, output)
    before = outcome(output)
    checkpoints = {path: path.stat().st_mtime_ns for path in output.glob("*/checkpoints/*/*")}
    ok(tiny.train(output))
    assert outcome(output) == before
    assert {path: path.stat().st_mtime_ns for path in output.glob("*/checkpoints/*/*")} == checkpoints


def test_more_updates_go_on_where_the_run_ended(tiny, finished, tmp_path):
    shutil.copytree(finished / "sentence", tmp_path / "sentence")
    done = ok(tiny.train(tmp_path, "sentence.updates=20", step="sentence"))
    assert "continuing from update 14" in done.err
    assert [line["update"] for line in metrics(tmp_path, "sentence", "validation")] == [5, 10, 14, 15, 20]


# ---- settings of an update ----


def test_clipping_bounds_the_gradient_but_records_what_it_was(tiny, tmp_path):
    """Adam does not mind the gradient's size, so it shows in the second update's mixture at the earliest."""
    settings = ("sentence.updates=4", "sentence.log_every=1")
    ok(tiny.train(tmp_path / "free", *settings, step="sentence"))
    ok(tiny.train(tmp_path / "clipped", *settings, "sentence.clip=0.3", step="sentence"))
    ok(tiny.train(tmp_path / "loose", *settings, "sentence.clip=1000", step="sentence"))
    norms = [line["gradient_norm"] for line in metrics(tmp_path / "clipped", "sentence", "train")]
    assert max(norms) > 0.3
    assert norms[0] == metrics(tmp_path / "free", "sentence", "train")[0]["gradient_norm"]
    assert not same_bits(weights(tmp_path / "free", "sentence"), weights(tmp_path / "clipped", "sentence"))
    assert same_bits(weights(tmp_path / "free", "sentence"), weights(tmp_path / "loose", "sentence"))


def test_accumulation_takes_several_batches_an_update(tiny, tmp_path):
    """An epoch of 6 batches of the recipe's size: with 3 an update it is over after 2 updates."""
    settings = ("sentence.log_every=1", "sentence.accumulation=3", "sentence.updates=6")
    ok(tiny.train(tmp_path, *settings, step="sentence"))
    few = [line["epoch"] for line in metrics(tmp_path, "sentence", "train")]
    assert few[-1] >= 2
    assert few == sorted(few)


def test_a_gradient_that_is_not_finite_is_a_clear_error(tiny, tmp_path):
    done = tiny.train(tmp_path, "sentence.learning_rate=1e30", "sentence.updates=50", step="sentence")
    assert done.code == 2
    assert "infinite or NaN at update" in done.err and "clip" in done.err


@pytest.mark.parametrize(
    "settings",
    [
        ("model.tie=none",),
        ("context.integration=encoder", "context.connection=residual"),
        ("context.integration=decoder", "context.start=sentence", "context.following=1"),
        ("hardware.bf16=true",),
    ],
    ids=" ".join,
)
def test_other_models_train_and_can_be_loaded(tiny, tmp_path, settings):
    few = ("sentence.updates=2", "document.updates=2")
    ok(tiny.train(tmp_path, *few, *settings))
    done = command("translate", tmp_path / "document" / "model", stdin=b"Le chat dort.\n")
    assert done.code == 0, done.err
    assert len(done.lines) == 1


def test_one_vocabulary_for_all_embeddings(tiny, tmp_path):
    few = ("sentence.updates=2", "document.updates=2", "model.tie=all", "subwords.vocabulary=420")
    own = ("subwords.source_model=", "subwords.target_model=", "subwords.shared=true")
    ok(tiny.train(tmp_path, *few, *own))
    folder = tmp_path / "document" / "model"
    assert (folder / "source.spm").read_bytes() == (folder / "target.spm").read_bytes()
    assert command("translate", folder, stdin=b"Le chat dort.\n").code == 0
    done = tiny.train(tmp_path / "apart", "model.tie=all")
    assert done.code == 2 and "subwords.shared" in done.err


def test_model_and_context_configs_have_the_papers_values():
    model, context = ModelConfig(), ContextConfig()
    assert (model.width, model.filter_width, model.heads) == (512, 2048, 8)
    assert (model.encoder_layers, model.decoder_layers, model.dropout) == (6, 6, 0.1)
    assert (context.previous, context.following, context.layers) == (2, 0, 1)
    assert (context.integration, context.connection) == ("both", "gate")
