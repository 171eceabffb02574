"""Errors for people: the remedy that they name has to work."""

from __future__ import annotations

import sys
from importlib import metadata
from pathlib import Path

import pytest

from docnmt.base import errors
from docnmt.base.errors import install_again, missing_extra, nearest


def test_what_is_missing_is_named_package_by_package(monkeypatch):
    listed = ["torch>=2.6", 'starlette>=0.40; extra == "serve"', 'uvicorn>=0.30; extra == "serve"', 'x; extra == "dev"']
    monkeypatch.setattr(metadata, "requires", lambda _: listed)
    told = f'  Install it: {sys.executable} -m pip install "starlette>=0.40" "uvicorn>=0.30"'
    assert str(missing_extra("starlette is needed", "serve")) == f"starlette is needed\n{told}"


def test_a_clone_that_is_not_installed_is_installed(monkeypatch):
    def unknown(name: str) -> list[str]:
        raise metadata.PackageNotFoundError(name)

    monkeypatch.setattr(metadata, "requires", unknown)
    command = str(missing_extra("starlette is needed", "serve")).rpartition(" --editable ")[2]
    folder = command.strip('"').removesuffix("[serve]")
    assert (Path(folder) / "pyproject.toml").exists()


def test_docnmt_is_installed_again_as_it_was_installed(monkeypatch, tmp_path):
    command, _, folder = install_again().rpartition(" --editable ")
    assert command.startswith(sys.executable) and (Path(folder.strip('"')) / "setup.py").exists()
    monkeypatch.setattr(errors, "_HERE", tmp_path)  # as in site-packages: there is nothing to build it from
    assert install_again().endswith("--no-deps FOLDER, where FOLDER has docnmt's source")


@pytest.mark.parametrize(("given", "said"), [("trian", "Did you mean 'train'?"), ("qqq", "Known: train, test.")])
def test_what_was_meant(given, said):
    assert nearest(given, ["train", "test"], "Known:") == said
