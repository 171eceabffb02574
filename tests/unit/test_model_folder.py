"""A model folder is not trusted: what changed on disk, lies about its sizes or is no file is an error, at once."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file

from docnmt.base.errors import DocnmtError
from docnmt.model_folder import load_model, save_model, weights_of
from tests.builders import loaded_model, replace_weights


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = loaded_model()
    save_model(tmp_path / "model", weights_of(made.model), made.card, made.source, made.target, {})
    return tmp_path / "model"


def changed(folder: Path, **sections: dict) -> None:
    config = json.loads((folder / "config.json").read_text())
    for name, values in sections.items():
        config[name] = config[name] | values if isinstance(values, dict) else values
    (folder / "config.json").write_text(json.dumps(config))


def test_what_was_saved_loads(folder):
    expected, found = weights_of(loaded_model().model), weights_of(load_model(folder).model)
    assert expected.keys() == found.keys() and all(torch.equal(expected[name], found[name]) for name in expected)


@pytest.mark.parametrize("name", ["weights.safetensors", "source.spm", "target.spm"])
def test_a_flipped_bit_is_found_and_its_file_named(folder, name):
    content = bytearray((folder / name).read_bytes())
    content[-2] ^= 1
    (folder / name).write_bytes(content)
    with pytest.raises(DocnmtError, match=rf"{folder}: {name} has changed since(.|\n)*Copy the model folder"):
        load_model(folder)
    config = json.loads((folder / "config.json").read_text())
    assert config.pop("files").keys() == {"weights.safetensors", "source.spm", "target.spm"}


def test_a_folder_without_hashes_loads_as_before(folder):
    replace_weights(folder, load_file(folder / "weights.safetensors"))
    assert "files" not in json.loads((folder / "config.json").read_text())
    load_model(folder)


@pytest.mark.parametrize(
    "sizes",
    [
        {"width": 1 << 20},
        {"filter_width": 1 << 40},
        {"encoder_layers": 1 << 40},
        {"width": 2, "heads": 1, "filter_width": 1, "decoder_layers": 1 << 20},
    ],
    ids=lambda sizes: next(iter(sizes)),
)
def test_sizes_that_the_weights_do_not_have_are_found_before_memory_is_taken(folder, sizes):
    changed(folder, model=sizes)
    started = time.process_time()
    with pytest.raises(DocnmtError, match=r"larger model than weights.safetensors holds|do not fit"):
        load_model(folder)
    assert time.process_time() - started < 5


@pytest.mark.parametrize(
    ("sections", "said"),
    [
        (
            {"model": {"kind": "rnnsearch"}, "context": {"kind": "han"}},
            "'han' is not available for rnnsearch",
        ),
        ({"context": {"kind": "atention"}}, "Did you mean 'attention'"),
        ({"decoding": {"length_penalty": 1e300}}, "length_penalty"),
        ({"decoding": {"beam": 0}}, "decoding.beam"),
        ({"decoding": {"beam": 10**9}}, "decoding.beam: 1000000000 is too large"),
        ({"model": {"width": -4}}, "model.width"),
        ({"files": {"../../etc/passwd": "x"}}, "../../etc/passwd is not the name of a file in this folder"),
    ],
)
def test_a_config_that_makes_no_sense_is_an_error_that_names_its_file(folder, sections, said):
    changed(folder, **sections)
    with pytest.raises(DocnmtError, match=said) as caught:
        load_model(folder)
    assert str(folder) in str(caught.value)


@pytest.mark.parametrize("files", [[], {}, None, {"source.spm": "x"}])
def test_hashes_are_all_there_or_removed_on_purpose(folder, files):
    path = folder / "config.json"
    config = json.loads(path.read_text())
    path.write_text(json.dumps(config | {"files": files}))
    with pytest.raises(DocnmtError, match=r"lacks hashes of the model's files\n.*remove \"files\""):
        load_model(folder)
    del config["files"]
    path.write_text(json.dumps(config))
    load_model(folder)


def test_weights_of_another_type_are_refused(folder):
    weights = load_file(folder / "weights.safetensors")
    name = next(iter(weights))
    save_file(weights | {name: weights[name].to(torch.int64)}, folder / "weights.safetensors")
    path = folder / "config.json"
    path.write_text(json.dumps({key: value for key, value in json.loads(path.read_text()).items() if key != "files"}))
    with pytest.raises(DocnmtError, match=f"{name} has the wrong type, int64"):
        load_model(folder)


@pytest.mark.parametrize("content", ["[" * 200_000, '{"a":' * 100_000, "1", "[]", "\x00", '{"model": 3}'])
def test_json_that_is_no_card(folder, content):
    (folder / "config.json").write_text(content)
    with pytest.raises(DocnmtError, match=r"config\.json"):
        load_model(folder)


@pytest.mark.parametrize("name", ["config.json", "weights.safetensors", "source.spm"])
@pytest.mark.parametrize("kind", ["pipe", "device"])
@pytest.mark.parametrize("hashed", [True, False])
def test_what_is_no_regular_file_is_not_read(folder, name, kind, hashed):
    if not hashed:
        replace_weights(folder, load_file(folder / "weights.safetensors"))
    (folder / name).unlink()
    os.mkfifo(folder / name) if kind == "pipe" else (folder / name).symlink_to("/dev/zero")
    with pytest.raises(DocnmtError, match=f"{folder}(.|\n)*not a regular file"):
        load_model(folder)


def test_weights_of_a_diverged_model(folder):
    weights = load_file(folder / "weights.safetensors")
    weights["decoder.0.attention.output.weight"][0, 0] = float("nan")
    replace_weights(folder, weights)
    with pytest.raises(DocnmtError, match=r"decoder\.0\.attention\.output\.weight has infinite or NaN values"):
        load_model(folder)


def test_all_files_have_the_mode_of_the_umask(tmp_path):
    made, before = loaded_model(), os.umask(0o027)
    try:
        save_model(tmp_path / "model", weights_of(made.model), made.card, made.source, made.target, {})
    finally:
        os.umask(before)
    assert {oct(path.stat().st_mode & 0o777) for path in (tmp_path / "model").iterdir()} == {"0o640"}
