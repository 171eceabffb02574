"""A model folder with its matrices in int8: what is in it, how it comes back, what is refused."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file

from docnmt.base.errors import DocnmtError
from docnmt.cli.model_tools import quantized_table
from docnmt.config import ContextConfig, DecodingConfig
from docnmt.decoding.translator import Translator
from docnmt.engine.native import SCALE, dequantize, quantize
from docnmt.model_folder import (
    LoadedModel,
    ModelCard,
    is_int8,
    load_card,
    load_model,
    model_key,
    quantize_folder,
    read_notes,
    save_model,
    weights_of,
)
from tests.builders import loaded_model, make_model, model_config, parallel_documents, replace_weights, shake, subwords
from tests.every_system import CASES, document_batch, rule_of, scores, some_document


def save(loaded: LoadedModel, folder: Path) -> Path:
    save_model(folder, weights_of(loaded.model), loaded.card, loaded.source, loaded.target, {"note": 1})
    return folder


@pytest.fixture(scope="module")
def ready(tmp_path_factory) -> tuple[Path, Path]:
    """A model folder and what was made of it; not to be written to."""
    folder = save(loaded_model(), tmp_path_factory.mktemp("models") / "model")
    quantize_folder(folder, folder.with_name("int8"))
    return folder, folder.with_name("int8")


@pytest.fixture
def model(ready, tmp_path) -> Path:
    return Path(shutil.copytree(ready[0], tmp_path / "model"))


@pytest.fixture
def int8(ready, tmp_path) -> Path:
    return Path(shutil.copytree(ready[1], tmp_path / "int8"))


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def same(one: dict[str, torch.Tensor], other: dict[str, torch.Tensor]) -> bool:
    return one.keys() == other.keys() and all(torch.equal(one[name], other[name]) for name in one)


# ---- what comes back ----


@pytest.mark.parametrize("tie", ["none", "target", "all"])
def test_the_model_comes_back_as_its_numbers_times_their_scales(tmp_path, tie):
    source = subwords("source")
    target = source if tie == "all" else subwords("target")
    model = make_model(5, tie=tie, source_words=len(source), target_words=len(target))
    card = ModelCard(model.model_config, ContextConfig(), DecodingConfig(), "fr", "en")
    save(LoadedModel(model, card, source, target), tmp_path / "model")
    quantize_folder(tmp_path / "model", tmp_path / "int8")
    loaded = load_model(tmp_path / "int8")
    assert loaded.int8 and not load_model(tmp_path / "model").int8
    assert loaded.card == card and not loaded.model.training
    wanted = {n: dequantize(*quantize(w)) if w.ndim == 2 else w for n, w in weights_of(model).items()}
    assert same(weights_of(loaded.model), wanted)
    assert {parameter.dtype for parameter in loaded.model.parameters()} == {torch.float32}
    assert (loaded.model.softmax.weight is loaded.model.target_embedding.weight) == (tie != "none")
    assert (loaded.model.source_embedding.weight is loaded.model.target_embedding.weight) == (tie == "all")


@pytest.mark.parametrize("name", CASES)
def test_every_system(name, tmp_path):
    case, source, target = CASES[name], subwords("source"), subwords("target")
    torch.manual_seed(3)
    model = case.system.model(model_config(kind=case.base), case.config, len(source), len(target))
    case.learned(model)
    card = ModelCard(model.model_config, case.config, DecodingConfig(), "fr", "en")
    save(LoadedModel(shake(model).eval(), card, source, target), tmp_path / "model")
    quantize_folder(tmp_path / "model", tmp_path / "int8")
    held, before = load_file(tmp_path / "int8" / "weights.safetensors"), weights_of(model)
    kept = {name for name in before if held[name].dtype != torch.int8}
    # Vectors, and what was counted and not trained.
    assert {n for n in kept if held[n].ndim == 2} == {
        n for n in before if n.endswith(("topics.evidence", "topics.words"))
    }
    again = load_model(tmp_path / "int8")
    for name, value in weights_of(again.model).items():
        assert torch.equal(value, before[name]) if name in kept else not torch.equal(value, before[name])
        assert (value.float() - before[name].float()).abs().max() <= before[name].float().abs().max() / 253
    batch = document_batch(rule_of(case), some_document())
    for one, other in zip(scores(model, batch), scores(again.model, batch), strict=True):
        assert not torch.equal(one, other) and torch.allclose(one, other, atol=0.5)


def test_quantized_again_it_is_the_same_to_the_bit(int8, tmp_path):
    save(load_model(int8), tmp_path / "float32")  # an ordinary folder, of the weights that came back
    quantize_folder(tmp_path / "float32", tmp_path / "again")
    one, other = (load_file(folder / "weights.safetensors") for folder in (int8, tmp_path / "again"))
    assert any(name.endswith(SCALE) for name in one)
    assert same(one, other)


def test_it_scores_nearly_the_same(ready):
    (document,) = parallel_documents([12], seed=7)
    given = [document]
    before, after = (
        [score.total for found in Translator(load_model(folder)).score(given) for score in found] for folder in ready
    )
    assert before == pytest.approx(after, abs=0.3) and before != after


# ---- what is in the folder ----


def test_what_is_in_the_folder(ready):
    folder, int8 = ready
    before, after = contents(folder), contents(int8)
    assert after.keys() == before.keys()
    assert all(after[name] == before[name] for name in ("source.spm", "target.spm"))
    config = json.loads(after["config.json"])
    assert config["weights"] == "int8" and is_int8(int8) and not is_int8(folder)
    assert load_card(int8) == load_card(folder)
    assert read_notes(int8) == {"note": 1, "quantized_from": model_key(folder)}
    assert model_key(int8) != model_key(folder)


def test_other_files_go_along_and_folders_do_not(model, tmp_path):
    save_file({"words": torch.arange(3)}, model / "shortlist.safetensors")
    (model / "README.md").write_text("of mine", encoding="utf-8")
    (model / ".weights.safetensors.7.part").write_bytes(b"left by somebody who was killed")
    (model / "old").mkdir()
    quantize_folder(model, tmp_path / "int8")
    made = contents(tmp_path / "int8")
    assert made.keys() == {
        *("config.json", "weights.safetensors", "source.spm", "target.spm", "shortlist.safetensors", "README.md")
    }
    assert made["shortlist.safetensors"] == (model / "shortlist.safetensors").read_bytes()
    assert load_model(tmp_path / "int8").int8


def test_what_is_told_of_it_is_so(model, tmp_path):
    done = quantize_folder(model, tmp_path / "int8")
    assert done.bytes_before == sum(map(len, contents(model).values()))
    assert done.bytes_after == sum(map(len, contents(tmp_path / "int8").values()))
    weights = load_file(model / "weights.safetensors")
    matrices = {name: tensor for name, tensor in weights.items() if tensor.ndim == 2}
    assert sum(kind.matrices for kind in done.kinds) == len(matrices)
    assert sum(kind.bytes_before for kind in done.kinds) == 4 * sum(m.numel() for m in matrices.values())
    assert sum(kind.bytes_after for kind in done.kinds) == sum(m.numel() + 4 * len(m) for m in matrices.values())
    (kind,) = (kind for kind in done.kinds if kind.name == "decoder source attention")
    mine = torch.cat([matrix.flatten() for name, matrix in matrices.items() if "source_attention" in name])
    back = [dequantize(*quantize(matrix)).flatten() for name, matrix in matrices.items() if "source_attention" in name]
    assert kind.error == pytest.approx(((torch.cat(back) - mine).norm() / mine.norm()).item(), rel=1e-4)
    assert 0 < kind.error < kind.worst_row < 0.05
    shown = quantized_table(done).markdown()
    assert all(kind.name in shown for kind in done.kinds)


def test_rows_of_zeros_are_no_error(model, tmp_path):
    """Modules that start as nothing and were not trained."""
    weights = load_file(model / "weights.safetensors")
    name = "encoder.0.feed_forward.inner.weight"
    replace_weights(model, weights | {name: torch.zeros_like(weights[name])})
    done = quantize_folder(model, tmp_path / "int8")
    assert all(0 <= kind.error < 0.05 and 0 <= kind.worst_row < 0.05 for kind in done.kinds)
    assert not load_model(tmp_path / "int8").model.get_parameter(name).any()


# ---- what is refused ----


def test_an_int8_model(int8, tmp_path):
    with pytest.raises(DocnmtError, match="this model is already int8\n  Give the model"):
        quantize_folder(int8, tmp_path / "again")
    assert not (tmp_path / "again").exists()


def test_no_model(tmp_path):
    with pytest.raises(DocnmtError, match="not a model folder"):
        quantize_folder(tmp_path, tmp_path / "int8")


@pytest.mark.parametrize("there", ["file", "somebody's folder", "float32 model", "itself"])
def test_nothing_that_is_there_is_overwritten(model, ready, tmp_path, there):
    out = tmp_path / "out"
    if there == "file":
        out.write_text("mine", encoding="utf-8")
    elif there == "somebody's folder":
        out.mkdir()
        (out / "thesis.txt").write_text("mine", encoding="utf-8")
    elif there == "float32 model":
        shutil.copytree(ready[0], out)
    else:
        out = model
    before = contents(out) if out.is_dir() else out.read_bytes()
    with pytest.raises(DocnmtError, match="already exists and is not an int8 model\n"):
        quantize_folder(model, out)
    assert before == (contents(out) if out.is_dir() else out.read_bytes())


def test_an_earlier_one_is_replaced(model, int8):
    weights = load_file(model / "weights.safetensors")
    replace_weights(model, {name: 2 * tensor for name, tensor in weights.items()})
    quantize_folder(model, int8)
    assert read_notes(int8)["quantized_from"] == model_key(model)
    bias = load_file(int8 / "weights.safetensors")["encoder.0.attention.output.bias"]
    assert torch.equal(bias, 2 * weights["encoder.0.attention.output.bias"])
    assert not [path for path in int8.parent.iterdir() if path.name.startswith(".")]


def test_an_empty_folder_is_used(model, tmp_path):
    (tmp_path / "out").mkdir()
    quantize_folder(model, tmp_path / "out")
    assert is_int8(tmp_path / "out")


def test_what_was_added_to_an_earlier_one_is_not_lost(model, int8):
    (int8 / "shortlist.safetensors").write_bytes(b"made for it")
    before = contents(int8)
    with pytest.raises(DocnmtError, match=r"contains shortlist\.safetensors, which is not in "):
        quantize_folder(model, int8)
    assert contents(int8) == before


def test_weights_that_are_no_numbers(model, tmp_path):
    weights = load_file(model / "weights.safetensors")
    weights["decoder.0.attention.output.weight"][1, 2] = torch.nan
    replace_weights(model, weights)
    with pytest.raises(DocnmtError, match=r"decoder\.0\.attention\.output\.weight has infinite or NaN values"):
        quantize_folder(model, tmp_path / "int8")
    assert not (tmp_path / "int8").exists()


def test_a_disk_that_is_full(model, tmp_path, monkeypatch):
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("docnmt.model_folder.save_weights", full)
    with pytest.raises(DocnmtError, match="int8: cannot be written: the disk is full"):
        quantize_folder(model, tmp_path / "int8")
    assert [path.name for path in tmp_path.iterdir()] == ["model"]


# ---- damage ----


@pytest.mark.parametrize("name", ["config.json", "weights.safetensors", "source.spm", "target.spm"])
@pytest.mark.parametrize("damage", ["missing", "half", "rubbish"])
def test_a_damaged_folder_is_an_error_for_people(int8, name, damage):
    path = int8 / name
    content = path.read_bytes()
    path.unlink()
    if damage != "missing":
        path.write_bytes(content[: len(content) // 2] if damage == "half" else b"\x93\x00 rubbish" * 50)
    with pytest.raises(DocnmtError) as caught:
        load_model(int8)
    assert str(int8) in str(caught.value)


@pytest.mark.parametrize("damage", ["scale gone", "scale short", "matrix gone", "matrix short", "scale alone"])
def test_weights_that_do_not_fit_together(int8, damage):
    held = load_file(int8 / "weights.safetensors")
    name = "encoder.0.attention.output.weight"
    part = name + SCALE if damage.startswith("scale") else name
    if damage == "scale alone":
        held["encoder.0.attention.output.bias" + SCALE] = held[part].clone()
    elif damage.endswith("gone"):
        del held[part]
    else:
        held[part] = held[part][:-1].clone()
    replace_weights(int8, held)
    with pytest.raises(DocnmtError, match=str(int8)) as caught:
        load_model(int8)
    assert "encoder.0.attention.output" in str(caught.value)


@pytest.mark.parametrize("which", ["weights.safetensors", "config.json"])
@pytest.mark.parametrize("into", [0, 1])
def test_config_and_weights_of_two_folders(model, int8, which, into):
    """One half of a copy: float32 weights with the other's config, and the other way round."""
    folders = model, int8
    shutil.copyfile(folders[1 - into] / which, folders[into] / which)
    with pytest.raises(DocnmtError, match=r"belong to different models|has changed since it was written"):
        load_model(folders[into])


def test_weights_of_a_kind_still_to_come(int8):
    path = int8 / "config.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"weights": "int4"}))
    with pytest.raises(DocnmtError, match=r"docnmt .* does not know the weights' type int4\n  Install a newer version"):
        load_model(int8)
