"""What makes two trainings the same one, where they lie, and how far they are."""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict, dataclass, field, fields, replace
from pathlib import Path
from typing import Any

import pytest

import docnmt.training.identity
from docnmt.base.errors import DocnmtError
from docnmt.base.lines import CorpusFiles
from docnmt.base.progress import Progress
from docnmt.config import ContextConfig, DataConfig, DecodingConfig, DocumentStepConfig, Recipe, ValidationConfig
from docnmt.experiments.runs import Run, RunStatus, RunStore, all_needed
from docnmt.training.checkpoint import State
from docnmt.training.identity import data_keys, settings_of

DEFAULT = Recipe()
KEYS = {"documents": "key-d", "sentences": "key-s", "dev": "key-v"}


class Store:
    def __init__(self, key: str):
        self.card = {"key": key}

    def __len__(self) -> int:
        return len(self.card["key"])  # a store without a key has nothing in it


def stores(**keys: str) -> Any:
    return {name: Store(key) for name, key in (KEYS | keys).items()}


def store_of(recipe: Recipe, **keys: str) -> RunStore:
    return RunStore(recipe, data_keys(stores(**keys)), Progress(quiet=True))


def sentence_run(recipe: Recipe = DEFAULT) -> Run:
    return Run("sentence", recipe, "sentence")


def document_run(recipe: Recipe = DEFAULT) -> Run:
    return Run("document", recipe, "document", sentence_run(recipe))


# ---- what determines a run ----

OTHER_CHOICE = {
    "tie": "all",
    "kind": "none",
    "integration": "encoder",
    "connection": "residual",
    "metric": "bleu",
    "corpora": "documents",
    "context_from": "none",
    "start_from": "elsewhere",
    "device": "cuda",
    "heads": 4,
    "activation": "swish",
    "positions": "marian",
    "search": "marian",
    "representation": "encoder",
    "mark": "prefix",
    "base_dropout": 0.2,
    "embedding_dropout": 0.2,
}
STARTS = {"model": "zero", "context": "sentence"}


def other(name: str, value: Any) -> Any:
    """Another value that the setting can have."""
    if name in OTHER_CHOICE:
        return OTHER_CHOICE[name]
    if isinstance(value, bool):
        return not value
    if isinstance(value, int):
        return value + 8
    return value + 0.05 if isinstance(value, float) else ("x",) if isinstance(value, tuple) else f"{value}x"


def every_change(*sections: str) -> list[tuple[str, Recipe]]:
    """The default recipe with one setting changed, for each setting of the sections."""
    changes = []
    for section in sections:
        part = getattr(Recipe(), section)
        for each in fields(part):
            if (section, each.name) == ("model", "kind"):  # does not go with every context: see below
                continue
            value = STARTS[section] if each.name == "start" else other(each.name, getattr(part, each.name))
            changed = replace(part, **{each.name: value})
            changes.append((f"{section}.{each.name}", replace(Recipe(), **{section: changed})))
    return changes


ALL_CHANGES = every_change(
    "model", "context", "sentence", "document", "validation", "decoding", "evaluation", "hardware"
)
# How long step 1 goes on is no part of its own hash, as it may be given more, but of what builds on it.
FREE = {"sentence.updates", "sentence.patience"}
# What is written down on the way; where documents start from, which is told by the run and not by the recipe; and
# what is translated on the way, where the dev loss decides.
IDLE = {f"{step}.{every}_every" for step in ("sentence", "document") for every in ("log", "checkpoint")}
IDLE |= {"document.start_from", "validation.decode", "validation.beam"}


@pytest.mark.parametrize(("name", "recipe"), ALL_CHANGES, ids=[name for name, _ in ALL_CHANGES])
def test_a_run_changes_with_every_setting_that_determines_it_and_with_no_other(name, recipe):
    section = name.partition(".")[0]
    matters = name not in IDLE and (section in ("model", "validation") or name == "hardware.bf16")
    changed = sentence_run(recipe).identity(KEYS) != sentence_run().identity(KEYS)
    assert changed == (matters or (section == "sentence" and name not in FREE | IDLE))
    changed = document_run(recipe).identity(KEYS) != document_run().identity(KEYS)
    assert changed == (matters or (section in ("sentence", "context", "document") and name not in IDLE))


def test_where_translations_decide_how_they_are_made_matters():
    by_bleu = Recipe(validation=ValidationConfig(metric="bleu"))
    wider = replace(by_bleu, validation=ValidationConfig(metric="bleu", beam=7))
    same = replace(by_bleu, validation=ValidationConfig(metric="bleu", beam=by_bleu.decoding.beam))
    as_decoded = replace(by_bleu, decoding=DecodingConfig(beam=5))
    longer = replace(by_bleu, decoding=DecodingConfig(length_penalty=1.0))
    for run in (sentence_run, document_run):
        found = [run(each).identity(KEYS) for each in (by_bleu, same, wider, as_decoded, longer)]
        assert len({json.dumps(each, sort_keys=True) for each in found}) == 4 and found[0] == found[1]


def test_another_base_is_another_run():
    plain = Recipe(context=ContextConfig(kind="none"))
    changed = replace(plain, model=replace(plain.model, kind="rnnsearch"))
    for run in (sentence_run, document_run):
        assert run(changed).identity(KEYS) != run(plain).identity(KEYS)


def test_a_run_changes_with_the_seed_and_the_content_of_its_data():
    for run in (sentence_run, document_run):
        assert run(Recipe(seed=2)).identity(KEYS) != run().identity(KEYS)
        for role in KEYS:
            assert run().identity(KEYS | {role: "other"}) != run().identity(KEYS)


def test_names_and_places_of_files_do_not_matter():
    """The content of the data does, through the keys of the prepared stores; the test set does not at all."""
    files = (CorpusFiles("elsewhere.tsv"),)
    moved = Recipe(output="elsewhere", data=DataConfig(documents=files, sentences=files, dev=files, test=files))
    assert document_run(moved).identity(KEYS) == document_run().identity(KEYS)


def test_what_a_document_step_starts_from_is_part_of_it():
    recipe = Recipe()
    on_documents = replace(recipe, sentence=replace(recipe.sentence, corpora="documents"))
    runs = [
        Run("a", recipe, "document", sentence_run(recipe)),
        Run("a", recipe, "document", sentence_run(on_documents)),
        Run("a", recipe, "document"),
    ]
    assert len({json.dumps(run.identity(KEYS), sort_keys=True) for run in runs}) == 3


@dataclass(frozen=True)
class LaterStep(DocumentStepConfig):
    """A step with a setting that a later version may have."""

    new_setting: str = "as before"


@dataclass(frozen=True)
class LaterRecipe(Recipe):
    document: LaterStep = field(default_factory=LaterStep)


def test_a_setting_that_a_later_version_adds_changes_no_hash_until_it_is_used(monkeypatch):
    before = document_run().identity(KEYS)
    monkeypatch.setattr(docnmt.training.identity, "Recipe", LaterRecipe)
    assert document_run(LaterRecipe()).identity(KEYS) == before
    used = LaterRecipe(document=LaterStep(new_setting="other"))
    assert document_run(used).identity(KEYS) != before


def test_settings_are_plain_values():
    """Else the hash would hang on how Python shows an object."""
    identity = document_run().identity(KEYS)
    assert json.loads(json.dumps(identity)) == identity


# ---- where runs lie ----


def test_the_recipes_own_sentence_model_is_the_one_that_training_makes():
    store = store_of(Recipe(output="out"))
    assert store.model(sentence_run(Recipe(output="out"))) == Path("out/sentence/model")
    longer = Recipe(output="out", sentence=replace(Recipe().sentence, updates=7))
    assert store.folder(sentence_run(longer)) == Path("out")


def test_the_recipes_own_document_model_is_the_one_that_training_makes():
    store = store_of(Recipe(output="out"))
    assert store.model(document_run(Recipe(output="out"))) == Path("out/document/model")
    longer = Recipe(output="out", document=replace(Recipe().document, updates=7))
    assert store.folder(document_run(longer)).parent == Path("out/runs")


def test_every_other_run_has_a_folder_of_its_own():
    recipe = Recipe(output="out")
    store = store_of(recipe)
    other_seed = replace(recipe, seed=2)
    shuffled = replace(recipe, document=replace(recipe.document, context_from="shuffled"))
    runs = [document_run(shuffled), document_run(other_seed), sentence_run(other_seed)]
    folders = [store.folder(run) for run in runs]
    assert len(set(folders)) == 3
    for run, folder in zip(runs, folders, strict=True):
        assert folder.parent == Path("out/runs") and folder.name.startswith(f"{run.name}-")
        assert store.model(run) == folder / run.step / "model"


def test_the_same_training_is_found_whatever_it_is_called(tmp_path):
    recipe = Recipe(output=str(tmp_path))
    store, run = store_of(recipe), document_run(replace(recipe, seed=2))
    folder = store.folder(replace(run, name="layers-1"))
    assert folder.name.startswith("layers-1-") and store.folder(run).name.startswith("document-")
    folder.mkdir(parents=True)
    assert store.folder(run) == folder


def test_other_data_is_another_folder():
    recipe = Recipe(output="out")
    run = document_run(replace(recipe, seed=2))
    assert store_of(recipe).folder(run) != store_of(recipe, documents="other").folder(run)
    assert store_of(recipe).folder(run) == store_of(recipe).folder(document_run(Recipe(output="out", seed=2)))


def test_as_many_processes_count_as_their_batches_together():
    """Four processes do what one does with four times the accumulation, and nothing else."""
    recipe = Recipe(output="out")
    fourfold = replace(
        recipe,
        sentence=replace(recipe.sentence, accumulation=4),
        document=replace(recipe.document, accumulation=4),
    )
    for run in (sentence_run, document_run):
        assert run(recipe).identity(KEYS, 4) == run(fourfold).identity(KEYS) != run(recipe).identity(KEYS)


# ---- how far they are ----


def checkpoint(folder: Path, update: int, settings: dict[str, Any] | None = None, **state: Any) -> None:
    """Of a step that was trained as the default recipe says, but for these settings."""
    at = folder / "checkpoints" / f"update-{update:08d}"
    at.mkdir(parents=True)
    state["settings"] = settings_of(Recipe(), folder.name, KEYS, update=update) | (settings or {})
    (at / "state.json").write_text(json.dumps({**asdict(State(update=update, **state)), "files": {}}))


def model(folder: Path, weights: bytes = b"weights") -> str:
    """A model folder that is looked at from outside only; returns the hash of its weights."""
    (folder / "model").mkdir(parents=True)
    (folder / "model" / "config.json").write_text("{}")
    (folder / "model" / "weights.safetensors").write_bytes(weights)
    return hashlib.sha256(weights).hexdigest()


@pytest.fixture
def recipe(tmp_path) -> Recipe:
    base = Recipe(output=str(tmp_path))
    return replace(base, sentence=replace(base.sentence, updates=10), document=replace(base.document, updates=10))


def test_a_run_that_has_not_begun(recipe):
    assert store_of(recipe).status(sentence_run(recipe)) == RunStatus(0, False)


def test_a_run_under_way_is_as_far_as_its_last_checkpoint(recipe, tmp_path):
    checkpoint(tmp_path / "sentence", 4)
    checkpoint(tmp_path / "sentence", 6)
    assert store_of(recipe).status(sentence_run(recipe)) == RunStatus(6, False)


def test_a_run_is_finished_when_its_model_is_there(recipe, tmp_path):
    """Killed between the last checkpoint and the model, it is not."""
    checkpoint(tmp_path / "sentence", 10)
    assert store_of(recipe).status(sentence_run(recipe)) == RunStatus(10, False)
    model(tmp_path / "sentence")
    assert store_of(recipe).status(sentence_run(recipe)) == RunStatus(10, True)


def test_a_run_that_is_given_more_updates_is_not_finished_any_more(recipe, tmp_path):
    checkpoint(tmp_path / "sentence", 10)
    model(tmp_path / "sentence")
    longer = replace(recipe, sentence=replace(recipe.sentence, updates=12))
    assert store_of(longer).status(sentence_run(longer)) == RunStatus(10, False)


def test_a_sentence_model_with_more_updates_than_the_recipe_says_is_not_passed_off_as_the_recipes(recipe, tmp_path):
    checkpoint(tmp_path / "sentence", 12)
    model(tmp_path / "sentence")
    with pytest.raises(DocnmtError, match=r"12 updates, but the recipe says 10\n.*sentence\.updates to 12"):
        store_of(recipe).status(sentence_run(recipe))


@pytest.mark.parametrize(
    ("settings", "changed"),
    [
        ({"step.warmup": 7}, "step.warmup"),
        ({"model.width": 7}, "model.width"),
        ({"seed": 7}, "seed"),
        ({"dev": "other"}, "dev"),
        ({"data": ["key-s", "other"]}, "data"),
        ({"data": ["key-d"]}, "data"),  # sentence pairs have come in since
        ({"step.average": 3}, "step.average"),
        ({"step.corpora": "documents"}, "step.corpora"),
        ({"validation.metric": "bleu"}, "validation.metric"),
        ({"step.accumulation": 4}, "step.accumulation"),  # trained in four processes, which the rest is not
    ],
)
def test_the_folder_of_the_recipes_own_sentence_model_has_no_hash_and_is_looked_into(
    recipe, tmp_path, settings, changed
):
    same = {"step.log_every": 7, "validation.decode": False}  # which change nothing
    checkpoint(tmp_path / "sentence", 4, settings=same)
    assert store_of(recipe).status(sentence_run(recipe)) == RunStatus(4, False)
    checkpoint(tmp_path / "sentence", 6, settings=same | settings)
    with pytest.raises(DocnmtError, match=f"other settings than the recipe's: {changed}\n"):
        store_of(recipe).status(sentence_run(recipe))


def test_a_recipe_without_sentence_pairs_has_its_documents_alone(recipe, tmp_path):
    checkpoint(tmp_path / "sentence", 4, settings={"data": ["key-d"]})
    assert store_of(recipe, sentences="").status(sentence_run(recipe)) == RunStatus(4, False)


def test_a_run_that_patience_ended_is_finished(recipe, tmp_path):
    patient = replace(recipe, sentence=replace(recipe.sentence, patience=3))
    checkpoint(tmp_path / "sentence", 6, without_gain=3)
    model(tmp_path / "sentence")
    assert store_of(patient).status(sentence_run(patient)) == RunStatus(6, True)
    assert store_of(recipe).status(sentence_run(recipe)) == RunStatus(6, False)


def test_a_run_whose_checkpoint_is_damaged_is_left_to_training(recipe, tmp_path):
    checkpoint(tmp_path / "sentence", 10)
    model(tmp_path / "sentence")
    for file in tmp_path.rglob("state.json"):
        file.write_text('{"upda')
    assert store_of(recipe).status(sentence_run(recipe)) == RunStatus(0, False)


def test_of_two_checkpoints_the_newer_one_counts_whatever_became_of_the_older(recipe, tmp_path):
    for update in (6, 10):
        checkpoint(tmp_path / "sentence", update)
    model(tmp_path / "sentence")
    older, newer = sorted(tmp_path.rglob("state.json"))
    older.write_text('{"upda')
    assert store_of(recipe).status(sentence_run(recipe)) == RunStatus(10, True)
    newer.write_text('{"upda')
    older.unlink()
    assert store_of(recipe).status(sentence_run(recipe)) == RunStatus(0, False)


def finished_sentence_step(tmp_path: Path) -> str:
    checkpoint(tmp_path / "sentence", 10)
    return model(tmp_path / "sentence")


def test_a_document_model_that_training_made_is_taken_over(recipe, tmp_path):
    digest = finished_sentence_step(tmp_path)
    checkpoint(tmp_path / "document", 10, settings={"start_from_sha256": digest})
    model(tmp_path / "document")
    store = store_of(recipe)
    assert store.folder(document_run(recipe)) == tmp_path
    assert store.status(document_run(recipe)) == RunStatus(10, True)


def test_one_that_is_under_way_is_gone_on_with(recipe, tmp_path):
    digest = finished_sentence_step(tmp_path)
    checkpoint(tmp_path / "document", 4, settings={"start_from_sha256": digest})
    assert store_of(recipe).status(document_run(recipe)) == RunStatus(4, False)


@pytest.mark.parametrize(
    "settings",
    [
        {"seed": 2},
        {"dev": "other"},
        {"context.previous": 3},
        {"step.freeze": False},
        {"step.accumulation": 2},
        {"start_from_sha256": "of another sentence model"},
    ],
    ids=str,
)
def test_a_document_model_that_is_another_run_is_left_alone(recipe, tmp_path, settings):
    digest = finished_sentence_step(tmp_path)
    checkpoint(tmp_path / "document", 10, settings={"start_from_sha256": digest} | settings)
    model(tmp_path / "document")
    store = store_of(recipe)
    assert store.folder(document_run(recipe)).parent == tmp_path / "runs"
    assert store.status(document_run(recipe)) == RunStatus(0, False)


def test_a_document_model_that_is_trained_for_longer_is_another_run(recipe, tmp_path):
    digest = finished_sentence_step(tmp_path)
    checkpoint(tmp_path / "document", 12, settings={"start_from_sha256": digest})
    assert store_of(recipe).folder(document_run(recipe)).parent == tmp_path / "runs"


def test_a_model_whose_checkpoints_are_gone_is_never_written_over(recipe, tmp_path):
    finished_sentence_step(tmp_path)
    model(tmp_path / "document")
    assert store_of(recipe).folder(document_run(recipe)).parent == tmp_path / "runs"


def test_what_builds_on_a_sentence_model_that_is_not_finished_is_not_either(recipe, tmp_path):
    digest = finished_sentence_step(tmp_path)
    checkpoint(tmp_path / "document", 10, settings={"start_from_sha256": digest})
    model(tmp_path / "document")
    longer = replace(recipe, sentence=replace(recipe.sentence, updates=12))
    assert not store_of(longer).status(document_run(longer)).finished


def test_a_document_step_is_finished_only_on_the_sentence_model_it_was_built_on(recipe, tmp_path):
    store, run = store_of(recipe), Run("first", replace(recipe, seed=2), "document", sentence_run(recipe))
    digest = finished_sentence_step(tmp_path)
    folder = store.folder(run) / "document"
    checkpoint(folder, 10, settings={"start_from_sha256": digest})
    model(folder)
    assert store.status(run) == RunStatus(10, True)
    (tmp_path / "sentence" / "model" / "weights.safetensors").write_bytes(b"trained for longer")
    assert store.status(run) == RunStatus(10, False)
    (tmp_path / "sentence" / "model" / "weights.safetensors").unlink()
    assert store.status(run) == RunStatus(10, False)


def test_other_seeds_wait_for_the_recipes_own_sub_words(recipe):
    with pytest.raises(DocnmtError, match="own sentence model must be trained first"):
        store_of(recipe).train(sentence_run(replace(recipe, seed=2)))


# ---- the order ----


def test_every_run_once_and_after_what_it_starts_from():
    recipe = Recipe()
    variants = [replace(recipe, context=replace(recipe.context, previous=n)) for n in (1, 2, 3)]
    documents = [Run(f"p{n}", variant, "document", sentence_run(recipe)) for n, variant in enumerate(variants)]
    scratch = Run("scratch", recipe, "document")
    found = all_needed([documents[0], scratch, documents[1], sentence_run(recipe), documents[0], documents[2]])
    assert found == [sentence_run(recipe), documents[0], scratch, documents[1], documents[2]]


def test_two_names_for_one_training_are_one_run():
    run = document_run()
    longer = replace(sentence_run(), recipe=replace(DEFAULT, sentence=replace(DEFAULT.sentence, updates=7)))
    assert all_needed([run, replace(run, name="layers-1")]) == [sentence_run(), run]
    assert all_needed([run, longer]) == [sentence_run(), longer, run]  # not the same: one is trained for longer
