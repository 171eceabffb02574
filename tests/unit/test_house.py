"""The house: each package imports only from those before it."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import docnmt
from tools.size import WALKS, loaded

PACKAGE = Path(docnmt.__file__).parent
ORDER = [
    "base",
    "text",
    "document",
    "config",
    "recipes",
    "documents",
    "corpus",
    "data",
    "model",
    "systems",
    "engine",
    "model_folder",
    "decoding",
    "evaluation",
    "training",
    "experiments",
    "demo",
    "serving",
    "judging",
    "interop",
    "cli",
    "__init__",
    "__main__",
]
NO_MODEL = ("base", "text", "document", "config", "recipes", "documents", "corpus")


def room(module: str) -> str:
    """docnmt.corpus.read -> corpus"""
    return module.split(".")[1]


def imports(source: str) -> Iterator[str]:
    """Whatever is imported: at the top, in functions, for types alone, and by a name in a string."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.ImportFrom):
            assert node.level == 0, "imports name their module in full"
            module = node.module or ""
            yield from (f"docnmt.{alias.name}" for alias in node.names) if module == "docnmt" else (module,)
        elif isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and " " not in node.value:
            yield from re.findall(r"^docnmt\.[a-z_.]+", node.value)


def modules() -> dict[str, str]:
    return {
        ".".join(("docnmt", *path.relative_to(PACKAGE).with_suffix("").parts)): path.read_text(encoding="utf-8")
        for path in sorted(PACKAGE.rglob("*.py"))
    }


@pytest.mark.parametrize("name", ORDER)
def test_imports_point_one_way(name: str):
    allowed = ORDER[: ORDER.index(name) + 1]
    against = [
        f"{module} imports {imported}"
        for module, source in modules().items()
        if room(module) == name
        for imported in imports(source)
        if imported.startswith("docnmt.") and room(imported) not in allowed
    ]
    assert not against


def test_every_module_has_its_room():
    assert {room(module) for module in modules()} == set(ORDER)


def test_what_reads_files_and_corpora_knows_no_torch():
    assert not [
        m for m, s in modules().items() if room(m) in NO_MODEL and any(i.startswith("torch") for i in imports(s))
    ]


def test_no_file_has_more_than_400_lines():
    assert not [module for module, source in modules().items() if source.count("\n") > 400]


def test_one_module_says_what_makes_two_trainings_the_same_run():
    """Resuming a run, finding it for a table and using another's all ask training/identity.py: nobody else hashes."""
    hashes = re.compile(r"hashlib|\b(json|file)_hash\b")
    hashing = [m for m, s in modules().items() if room(m) in ("training", "experiments") and hashes.search(s)]
    assert hashing == ["docnmt.training.identity"]


def test_a_row_is_defined_once():
    """Corpora, references and translations have one reader a format: all of them yield `docnmt.corpus.rows.Row`."""
    defined = [
        f"{module}.{node.name}"
        for module, source in modules().items()
        for node in ast.walk(ast.parse(source))
        if room(module) in ("documents", "corpus", "data", "decoding", "evaluation")
        and isinstance(node, ast.ClassDef)
        and node.name == "Row"
    ]
    assert defined == ["docnmt.corpus.rows.Row"]


@pytest.mark.parametrize("walk", WALKS)
def test_what_is_not_needed_is_not_loaded(walk: str):
    assert loaded(WALKS[walk][0]) <= WALKS[walk][1]
