"""`docnmt import`: both layouts give the same model, and what cannot be imported is told."""

from __future__ import annotations

import json
import pickle
import shutil
import sys
import zipfile
from types import SimpleNamespace

import pytest
import torch
from safetensors.torch import load_file

from docnmt.base.errors import DocnmtError
from docnmt.cli import main
from docnmt.decoding.translator import load
from docnmt.interop.convert import import_model
from docnmt.model_folder import load_model, weights_of
from tests.builders import lines
from tests.marian_folders import joint_vocabulary, write_huggingface, write_marian

pytest.importorskip("transformers", reason="transformers is not installed: it writes the folders that are imported")

TIES = ("all", "target", "none")
LANGUAGES = (">>en<<", ">>deu<<")


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    """For each kind of tying the same model in both layouts."""
    root = tmp_path_factory.mktemp("marian")
    for tie in TIES:
        model = write_huggingface(root / f"hf-{tie}", tie)
        write_marian(root / f"marian-{tie}", model, tie, ".vocab" if tie == "none" else ".vocab.yml")
    model = write_huggingface(root / "hf-many", more=LANGUAGES)
    write_marian(root / "marian-many", model, more=LANGUAGES)
    return root


@pytest.fixture
def copied(folders, tmp_path):
    """A function that gives a copy of one of the folders, to be spoilt."""
    return lambda name: shutil.copytree(folders / name, tmp_path / name)


def refused(source, out, kind="marian", languages=("fr", "en")) -> str:
    with pytest.raises(DocnmtError) as error:
        import_model(str(source), out, kind, languages)
    assert not out.exists() and "\n  " in str(error.value)
    return str(error.value)


@pytest.mark.parametrize("tie", TIES)
def test_both_layouts_give_the_same_model(folders, tmp_path, tie):
    import_model(str(folders / f"hf-{tie}"), tmp_path / "a")
    import_model(str(folders / f"marian-{tie}"), tmp_path / "b", languages=("fr", "en"))
    one, other = load_model(tmp_path / "a"), load_model(tmp_path / "b")
    ours, theirs = weights_of(one.model), weights_of(other.model)
    assert list(ours) == list(theirs) and all(torch.equal(ours[name], theirs[name]) for name in ours)
    assert one.card.model == other.card.model and one.card.model.tie == tie
    assert one.source.content == other.source.content and one.target.content == other.target.content
    assert (one.card.decoding.beam, other.card.decoding.beam) == (6, 3)
    assert other.card.decoding.length_penalty == 0.8
    assert (one.card.source_language, one.card.target_language) == ("fr", "en")


def test_the_same_in_a_zip_with_or_without_a_folder_in_it(folders, tmp_path):
    source = folders / "marian-all"
    for name, inside in (("opus-fr-en.zip", ""), ("other-fr-en.zip", "folder/")):
        with zipfile.ZipFile(tmp_path / name, "w") as archive:
            for path in source.iterdir():
                archive.write(path, inside + path.name)
        card = import_model(str(tmp_path / name), tmp_path / name[:5])
        assert (card.source_language, card.target_language) == ("fr", "en")  # by the name
    import_model(str(source), tmp_path / "plain", languages=("fr", "en"))
    plain, *others = (load_file(tmp_path / name / "weights.safetensors") for name in ("plain", "opus-", "other"))
    assert all(torch.equal(plain[name], other[name]) for other in others for name in plain)


def test_the_command_and_what_comes_of_it(folders, tmp_path, capsys):
    out = tmp_path / "model"
    assert main(["import", str(folders / "marian-all"), "-o", str(out), "--languages", "fr-en"]) == 0
    assert "fr-en, 2+1 layers, 32 wide" in capsys.readouterr().out
    translator = load(out)
    sentences = [*lines(3), "", "   ", "un chat ☃ inconnu", "l’été… « à » 1"]
    translated = translator.translate(sentences)
    assert len(translated) == len(sentences) and translated[3] == translated[4] == ""
    assert translated == [translator.translate([sentence])[0] for sentence in sentences]
    assert (
        main(["import", str(folders / "marian-all"), "-o", str(out)]) == 2
        and "already exists" in capsys.readouterr().err
    )


def test_of_several_languages_one_is_chosen(folders, tmp_path):
    for name in ("hf-many", "marian-many"):
        message = refused(folders / name, tmp_path / "no", languages=("fr", "fr"))
        assert "deu, en" in message and "--languages" in message
    assert import_model(str(folders / "hf-many"), tmp_path / "told").target_language == "en"  # the folder tells it
    import_model(str(folders / "marian-many"), tmp_path / "en", languages=("fr", "en"))
    import_model(str(folders / "marian-many"), tmp_path / "deu", languages=("fr", "deu"))
    english, german = load(tmp_path / "en"), load(tmp_path / "deu")
    first = {
        name: t.source.pieces(t.source.whole(t.source.encode(["le chat"])[0]))[0]
        for name, t in (("en", english), ("deu", german))
    }
    assert first == {"en": ">>en<<", "deu": ">>deu<<"}
    # A sentence may name its own.
    assert english.translate([">>deu<< le chat"]) == german.translate(["le chat"]) != english.translate(["le chat"])


def test_float16_and_a_file_of_torch(folders, copied, tmp_path):
    folder = copied("hf-all")
    weights = load_file(folder / "model.safetensors")
    half = {name: value.half() for name, value in weights.items()}
    half["lm_head.weight"] = half["model.shared.weight"].clone()  # as the converter writes it, twice
    half["model.encoder.embed_positions.weight"] = torch.zeros(64, 32)
    (folder / "model.safetensors").unlink()
    torch.save(half, folder / "pytorch_model.bin")
    import_model(str(folder), tmp_path / "half")
    import_model(str(folders / "hf-all"), tmp_path / "whole")
    one, other = (load_file(tmp_path / name / "weights.safetensors") for name in ("half", "whole"))
    assert all(value.dtype == torch.float32 for value in one.values())
    assert all(torch.equal(one[name], other[name].half().float()) for name in other)


# ---- what is refused ----


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"type": "s2s"}, "type: s2s"),
        ({"transformer-decoder-autoreg": "rnn"}, "transformer-decoder-autoreg: rnn"),
        (
            {"transformer-preprocess": "n", "transformer-postprocess": "da"},
            "transformer-preprocess: n; transformer-post",
        ),
        ({"transformer-ffn-activation": "prelu"}, "prelu"),
        ({"transformer-decoder-dim-ffn": "64"}, "feed-forward networks 48 and 64 wide"),
        ({"transformer-tied-layers": "\n  - 1\n  - 1"}, "transformer-tied-layers"),
        ({"right-left": "true"}, "right-left"),
        ({"dim-vocabs": "\n  - 1\n  - 2\n  - 3"}, "3 vocabularies"),
        ({"tied-embeddings-all": "false", "tied-embeddings-src": "true"}, "tied-embeddings-src"),
        ({"enc-depth": "1"}, "it has a parameter encoder_l2_"),
        ({"enc-depth": "3"}, "encoder_l3_self_Wq is missing"),
        ({"transformer-dim-ffn": "64"}, "has the shape (48, 32), but the settings say (64, 32)"),
        ({"enc-depth": "two"}, "'two', not a number"),
    ],
)
def test_settings_that_cannot_be_represented(folders, tmp_path, changes, said):
    from transformers import MarianMTModel

    model = MarianMTModel.from_pretrained(folders / "hf-all")
    write_marian(tmp_path / "m", model, changes=changes)
    assert said in refused(tmp_path / "m", tmp_path / "out")


@pytest.mark.parametrize("name", ["source.spm", "target.spm", "joint.vocab.yml", "model.npz"])
def test_a_marian_folder_that_lacks_a_file(copied, tmp_path, name):
    folder = copied("marian-all")
    (folder / name).unlink()
    message = refused(folder, tmp_path / "out")
    assert name in message if name != "model.npz" else "not a Marian model" in message


@pytest.mark.parametrize("name", ["source.spm", "target.spm", "vocab.json", "model.safetensors"])
def test_a_huggingface_folder_that_lacks_a_file(copied, tmp_path, name):
    folder = copied("hf-all")
    (folder / name).unlink()
    assert name in refused(folder, tmp_path / "out")


@pytest.mark.parametrize("size", [0, 100, 20_000])
@pytest.mark.parametrize(("folder", "name"), [("marian-all", "model.npz"), ("hf-all", "model.safetensors")])
def test_truncated_weights(copied, tmp_path, folder, name, size):
    path = copied(folder) / name
    path.write_bytes(path.read_bytes()[:size])
    assert "damaged" in refused(path.parent, tmp_path / "out")


def test_corrupted_weights(copied, tmp_path):
    path = copied("marian-all") / "model.npz"
    data = bytearray(path.read_bytes())
    data[len(data) // 2 : len(data) // 2 + 50] = bytes(50)
    path.write_bytes(data)
    assert "damaged" in refused(path.parent, tmp_path / "out")


def test_a_file_of_torch_that_would_run_something(copied, tmp_path):
    class Runs:
        def __reduce__(self):
            return (open, (str(tmp_path / "it-ran"), "w"))

    folder = copied("hf-all")
    (folder / "model.safetensors").unlink()
    (folder / "pytorch_model.bin").write_bytes(pickle.dumps({"model.shared.weight": Runs()}, 2))
    assert "damaged, or contains more than weights" in refused(folder, tmp_path / "out")
    assert not (tmp_path / "it-ran").exists()


def test_vocabularies_that_do_not_fit(copied, tmp_path):
    folder = copied("marian-all")
    words = len(joint_vocabulary())
    with open(folder / "joint.vocab.yml", "a", encoding="utf-8") as file:
        file.write(f"surplus: {words}\n")
    assert f"has {words} source words, but the vocabulary has {words + 1}" in refused(folder, tmp_path / "out")
    without_end = (folder / "joint.vocab.yml").read_text(encoding="utf-8").replace("</s>:", "end:")
    (folder / "joint.vocab.yml").write_text(without_end, encoding="utf-8")
    assert "has no piece </s>" in refused(folder, tmp_path / "out")


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"model_type": "bart"}, "model_type: bart"),
        ({"decoder_ffn_dim": 64}, "two feed-forward widths"),
        ({"activation_function": "tanh"}, "activation_function: tanh"),
        ({"normalize_before": True}, "normalize_before"),
        ({"scale_embedding": False}, "scale_embedding"),
    ],
)
def test_configurations_of_transformers_that_cannot_be_represented(copied, tmp_path, changes, said):
    folder = copied("hf-all")
    config = json.loads((folder / "config.json").read_text()) | changes
    (folder / "config.json").write_text(json.dumps(config))
    assert said in refused(folder, tmp_path / "out")


def test_a_configuration_that_lacks_something(copied, tmp_path):
    folder = copied("hf-all")
    config = json.loads((folder / "config.json").read_text())
    del config["decoder_ffn_dim"]
    (folder / "config.json").write_text(json.dumps(config))
    assert "the setting decoder_ffn_dim is missing" in refused(folder, tmp_path / "out")


def test_a_model_that_transformers_trained_on_is_theirs(copied, tmp_path):
    from safetensors.torch import save_file

    folder = copied("hf-all")
    weights = load_file(folder / "model.safetensors")
    weights["model.shared.weight"][-1] = 0.1
    save_file(weights, folder / "model.safetensors")
    assert "--as huggingface" in refused(folder, tmp_path / "out")
    assert import_model(str(folder), tmp_path / "out", "huggingface").model.start == "mark"


def test_marians_own_layout_is_not_transformers(folders, tmp_path):
    assert "Leave out --as huggingface" in refused(folders / "marian-all", tmp_path / "out", "huggingface")


def test_languages_that_nothing_tells(folders, tmp_path):
    assert "--languages" in refused(folders / "marian-all", tmp_path / "out", languages=("", ""))


def test_what_is_nothing_of_all_this(tmp_path):
    assert "no such folder" in refused(tmp_path / "nothing", tmp_path / "out")
    (tmp_path / "empty").mkdir()
    assert "not a Marian model" in refused(tmp_path / "empty", tmp_path / "out")
    (tmp_path / "x.zip").write_bytes(b"PK no zip")
    assert "cannot be unpacked" in refused(tmp_path / "x.zip", tmp_path / "out")


# ---- names on the hub ----

NAME = "Helsinki-NLP/opus-mt-fr-en"


def test_a_name_on_the_hub(folders, tmp_path, monkeypatch):
    asked = []

    def snapshot_download(name, allow_patterns):
        asked.append((name, allow_patterns))
        return str(folders / "hf-all")

    monkeypatch.setitem(sys.modules, "huggingface_hub", SimpleNamespace(snapshot_download=snapshot_download))
    assert import_model(NAME, tmp_path / "out").model.width == 32
    assert [name for name, _ in asked] == [NAME] and "pytorch_model.bin" not in asked[0][1]


def test_without_the_hubs_library(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "huggingface_hub", None)
    message = refused(NAME, tmp_path / "out")
    assert "-m pip install huggingface_hub" in message and f"https://huggingface.co/{NAME}" in message


def test_a_hub_that_cannot_be_reached(tmp_path, monkeypatch):
    def snapshot_download(name, allow_patterns):
        raise ConnectionError("no route\nand more")

    monkeypatch.setitem(sys.modules, "huggingface_hub", SimpleNamespace(snapshot_download=snapshot_download))
    message = refused(NAME, tmp_path / "out")
    assert "cannot be downloaded (no route)" in message and "model.safetensors" in message
