"""Where results are to be written is looked at before the work, not after hours of it."""

from __future__ import annotations

import os

import pytest

from tests.system.conftest import command

RECIPE = '[data]\nsource_language = "fr"\ntarget_language = "en"\n'
VERBS = {
    "evaluate": ("no.txt", "--reference", "none.txt"),
    "compare": ("no.txt", "nor.txt", "--reference", "none.txt"),
    "context-gain": ("no-model", "none.tsv"),
    "contrast": ("no-model", "none.jsonl"),
    "tables": ("recipe.toml",),
}
WITH_JSON = {**VERBS, "score": ("no-model", "none.tsv")}


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    """Nothing of what the verbs ask for is here: what they say of the output, they say before they look for it."""
    (tmp_path / "recipe.toml").write_text(RECIPE, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize("verb", WITH_JSON)
def test_a_folder_is_no_file_to_write_to(verb, folder):
    done = command(verb, *WITH_JSON[verb], "--json", folder)
    assert done.code == 2 and f"{folder}: this is a folder, not a file" in done.err


@pytest.mark.parametrize("verb", VERBS)
def test_folders_are_made_first(verb, folder):
    done = command(verb, *VERBS[verb], "--markdown", folder / "new" / "deep" / "x.md")
    assert done.code == 2 and "Traceback" not in done.err  # there is nothing to work on
    assert (folder / "new" / "deep").is_dir()


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
@pytest.mark.parametrize("verb", VERBS)
def test_a_folder_that_cannot_be_written_to(verb, folder):
    (folder / "locked").mkdir(mode=0o500)
    done = command(verb, *VERBS[verb], "--json", folder / "locked" / "x.json")
    assert done.code == 2 and "cannot be written to" in done.err


def test_a_dry_run_writes_nothing(folder):
    small = [f"model.{name}=8" for name in ("width", "filter_width")]
    named = (*small, "model.heads=1", "subwords.vocabulary=50", "data.documents=gone.tsv")
    options = [part for setting in named for part in ("--set", setting)]
    for written, code in (((), 0), (("--json", folder / "new" / "x"), 2)):  # there is no table that could be written
        done = command("tables", "recipe.toml", "--only", "gating", "--dry-run", *written, *options)
        assert done.code == code, done.err
    assert "--dry-run makes no tables" in done.err
    assert [path.name for path in folder.iterdir()] == ["recipe.toml"]


def test_a_negative_seed(folder):
    for done in (
        command("context-gain", *VERBS["context-gain"], "--seed", -1),
        command("tables", "recipe.toml", "--set", "seed=-1"),
    ):
        assert done.code == 2 and "seed" in done.err and "0 or more" in done.err
