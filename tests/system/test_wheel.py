"""What is put on an index: an archive and a wheel that say what they are, and a wheel that works alone."""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import subprocess
import sys
import sysconfig
import tarfile
import urllib.request
import zipfile
from pathlib import Path

import pytest

from docnmt.demo import EXAMPLES
from tests.system.conftest import ROOT

BUILD = "import sys; from setuptools import build_meta as b; print(getattr(b, sys.argv[1])(sys.argv[2]))"
SHORT = ("sentence.updates=2", "document.updates=2", "validation.decode=false", "model.width=32", "decoding.beam=1")


def build(what: str, tree: Path, out: Path) -> Path:
    done = subprocess.run(
        [sys.executable, "-c", BUILD, what, str(out)], cwd=tree, text=True, capture_output=True, check=True
    )
    return out / done.stdout.splitlines()[-1]


@pytest.fixture(scope="module")
def sdist(tmp_path_factory: pytest.TempPathFactory) -> Path:
    tree = tmp_path_factory.mktemp("clone") / "docnmt"
    kept = shutil.ignore_patterns(".*", "runs", "build", "dist", "tests", "__pycache__", "*.so", "*.egg-info")
    shutil.copytree(ROOT, tree, ignore=kept)
    return build("build_sdist", tree, tree.parent)


@pytest.fixture(scope="module")
def wheel(sdist: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """From the archive: it has to have all that is needed."""
    folder = tmp_path_factory.mktemp("wheel")
    with tarfile.open(sdist) as archive:
        archive.extractall(folder, filter="data")
    (tree,) = folder.iterdir()
    return build("build_wheel", tree, folder)


def test_both_say_what_they_are(sdist, wheel):
    pytest.importorskip("twine", reason="needs twine: pip install 'docnmt[dev]'")
    checked = subprocess.run(
        [sys.executable, "-m", "twine", "check", "--strict", str(sdist), str(wheel)], text=True, capture_output=True
    )
    assert checked.returncode == 0 and checked.stdout.count("PASSED") == 2, checked.stdout + checked.stderr


def test_the_wheel_has_all_data_and_nothing_else(wheel):
    packed = set(zipfile.ZipFile(wheel).namelist())
    data = [p for p in (ROOT / "docnmt").rglob("*") if p.suffix in (".py", ".toml", ".css", ".js", ".html", ".svg")]
    assert {str(path.relative_to(ROOT)) for path in data} <= packed and "docnmt/py.typed" in packed
    assert [name for name in packed if not name.startswith("docnmt")] == []
    assert any(re.search(r"_accelerator.*\.so$", name) for name in packed) == bool(shutil.which("cc"))


@pytest.fixture(scope="module")
def bare(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An environment with docnmt from its wheel; what it depends on is borrowed from this one."""
    folder = tmp_path_factory.mktemp("bare")
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(folder)], check=True)
    python = folder / "bin" / "python"
    command = [sys.executable, "-m", "pip", "--python", str(python), "install", "--no-deps", "--no-index", str(wheel)]
    subprocess.run(command, check=True, capture_output=True)
    (site,) = folder.glob("lib/python*/site-packages")
    (site / "borrowed.pth").write_text(sysconfig.get_path("purelib") + "\n")
    return folder


def run(bare: Path, *arguments: str, cwd: Path, stdin: str = "") -> str:
    done = subprocess.run(
        [str(bare / "bin" / "docnmt"), *arguments],
        cwd=cwd, env=environment(), input=stdin, text=True, capture_output=True, timeout=300,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stdout


def environment() -> dict[str, str]:
    return {name: value for name, value in os.environ.items() if name != "PYTHONPATH"} | {"OMP_NUM_THREADS": "1"}


def test_the_wheel_works_alone(bare, tmp_path):
    """From nothing to a model, a translation and a page, in a folder that knows nothing of the clone."""
    where = "import docnmt, docnmt.engine.native as n; print(docnmt.__file__); print(n.accelerator() is not None)"
    python = [str(bare / "bin" / "python"), "-c", where]
    told = subprocess.run(python, cwd=tmp_path, env=environment(), text=True, capture_output=True, check=True)
    assert told.stdout.startswith(str(bare)) and told.stdout.endswith(f"{bool(shutil.which('cc'))}\n")
    settings = [word for setting in SHORT for word in ("--set", setting)]
    shown = run(bare, "demo", *settings, cwd=tmp_path)
    assert "runs/demo/document/model my-text.txt" in shown
    lines = "\n".join(EXAMPLES[0].source) + "\n"
    assert run(bare, "translate", "runs/demo/document/model", cwd=tmp_path, stdin=lines).count("\n") == 2
    serving = subprocess.Popen(
        [str(bare / "bin" / "docnmt"), "serve", "--port", "0", "--workers", "1"],
        cwd=tmp_path, env=environment(), text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
    )  # fmt: skip
    try:
        assert serving.stdout is not None
        address = next(found[0] for line in serving.stdout if (found := re.search(r"http://[\w.:]+", line)))
        with contextlib.closing(urllib.request.urlopen(address, timeout=60)) as page:
            assert b"<html" in page.read()
    finally:
        serving.terminate()
        serving.wait(60)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["runs"]
