"""Do the tests notice when the code is wrong? A sample of small changes to the package, each run against its tests.

    python benchmarks/mutants.py [--count 300] [--seed 1] [--package NAME ...] [--against REVISION] [--json FILE]

A mutant is one changed operator, constant or condition in a function; the tests that import its module run until one of
them fails. With --against only functions are changed that an earlier revision has as well, with the same syntax tree
but for strings, and a mutant that survives is tried there, with the tests of that time: what was noticed then and is
not any more is what a change of the tests has lost.
"""

from __future__ import annotations

import argparse
import ast
import copy
import os
import random
import re
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path
from typing import Any

import pytest  # noqa: F401 - without it every test fails, and every mutant would seem to be untested
from rich.console import Console

from docnmt.base.files import write_json
from docnmt.base.progress import Progress
from docnmt.base.report import Column, Table

ROOT = Path(__file__).resolve().parents[1]
SECONDS = 300  # of the processor; a mutant that takes more does not end: it was noticed
PYTEST = [sys.executable, "-B", "-m", "pytest", "-q", "-m", "not slow", "-p", "no:cacheprovider"]
OPERATORS: dict[type[ast.AST], Any] = {
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
    ast.And: ast.Or,
    ast.Or: ast.And,
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Add,
}


# ---- mutants ----


@dataclass(frozen=True)
class Mutant:
    """One change in a file of a revision."""

    path: str
    line: int
    start: int  # in bytes of the file
    end: int
    text: str

    def apply(self, source: bytes) -> bytes:
        return source[: self.start] + self.text.encode() + source[self.end :]


def definitions(tree: ast.Module) -> Iterator[tuple[str, ast.FunctionDef]]:
    """The functions and methods of a module, by their names."""
    for node in tree.body:
        members = node.body if isinstance(node, ast.ClassDef) else [node]
        for member in members:
            if isinstance(member, ast.FunctionDef):
                yield (f"{node.name}.{member.name}" if isinstance(node, ast.ClassDef) else member.name), member


def nodes(node: ast.AST) -> Iterator[ast.AST]:
    """What may be changed in a function: not its annotations and decorators, nor how errors are worded."""
    if isinstance(node, ast.Raise | ast.JoinedStr | ast.Assert):
        return
    yield node
    for field, value in ast.iter_fields(node):
        if field in ("annotation", "returns", "decorator_list"):
            continue
        for child in value if isinstance(value, list) else [value]:
            if isinstance(child, ast.AST):
                yield from nodes(child)


def changed(node: ast.AST) -> ast.expr | None:
    match node:
        case ast.Compare(left=left, ops=[operator], comparators=right) if type(operator) in OPERATORS:
            return ast.Compare(left, [OPERATORS[type(operator)]()], right)
        case ast.BoolOp(op=operator, values=values) if type(operator) in OPERATORS:
            return ast.BoolOp(OPERATORS[type(operator)](), values)
        case ast.BinOp(left=left, op=operator, right=other) if type(operator) in OPERATORS:
            return ast.BinOp(left, OPERATORS[type(operator)](), other)
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            return operand
        case ast.Constant(value=bool(value)):
            return ast.Constant(not value)
        case ast.Constant(value=int(value)):
            return ast.Constant(value + 1)
    return None


def mutants(path: str, source: bytes, function: ast.FunctionDef) -> list[Mutant]:
    """All of a function, in an order that is the same wherever the function stands."""
    lines = [0]
    for line in source.splitlines(keepends=True):
        lines.append(lines[-1] + len(line))
    found = []
    for node in nodes(function):
        new = changed(node)
        if new is not None:
            assert isinstance(node, ast.expr) and node.end_lineno is not None and node.end_col_offset is not None
            start, end = lines[node.lineno - 1] + node.col_offset, lines[node.end_lineno - 1] + node.end_col_offset
            found.append(Mutant(path, node.lineno, start, end, f"({ast.unparse(new)})"))
    return found


# ---- a revision and its tests ----


class Revision:
    """A copy of the package and its tests, to be changed. Without a name it is that of the working tree."""

    def __init__(self, folder: Path, name: str = ""):
        self.folder = folder
        if name:
            archive = subprocess.run(["git", "-C", str(ROOT), "archive", name], capture_output=True, check=True).stdout
            subprocess.run(["tar", "-x", "-C", folder], input=archive, check=True)
        else:
            listed = ["git", "-C", str(ROOT), "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
            files = subprocess.run(listed, capture_output=True, check=True, text=True).stdout.split("\0")
            built = [str(path.relative_to(ROOT)) for path in (ROOT / "docnmt").rglob("*.so")]
            for file in filter(None, [*files, *built]):
                if (ROOT / file).exists():
                    (folder / file).parent.mkdir(parents=True, exist_ok=True)
                    shutil.copy2(ROOT / file, folder / file)
        self.texts = {path: path.read_text(encoding="utf-8") for path in (folder / "tests" / "unit").rglob("test_*.py")}

    def functions(self) -> Iterator[tuple[str, bytes, str, ast.FunctionDef]]:
        for path in sorted((self.folder / "docnmt").rglob("*.py")):
            source = path.read_bytes()
            for name, function in definitions(ast.parse(source)):
                yield str(path.relative_to(self.folder)), source, name, function

    @cache  # noqa: B019 - as many as there are modules
    def tests(self, path: str) -> tuple[str, ...]:
        """Those that import a module, its own before those of others."""
        package, _, name = path.removesuffix(".py").replace("/", ".").rpartition(".")
        spelt = (f"{package}.{name} ", f"{package}.{name}:", f"{package}.{name}.", f"from {package} import {name}\n")
        users = [str(test) for test, text in self.texts.items() if any(each in text for each in spelt)]
        return tuple(sorted(users, key=lambda test: (Path(test).stem != f"test_{name}", test)))

    @cached_property
    def failing(self) -> list[str]:
        """Tests that fail as they are, on this machine: they notice nothing."""
        options = ("-rfE", "--tb=no", "tests/unit")
        told = subprocess.run(
            [*PYTEST, *options], cwd=self.folder, env=self._environment, capture_output=True, text=True
        )
        if told.returncode > 1:
            raise SystemExit(told.stdout + told.stderr)
        return re.findall(r"^(?:FAILED|ERROR) (.+?)(?: - .*)?$", told.stdout, re.MULTILINE)

    def notices(self, mutant: Mutant) -> bool | None:
        """None if nothing tests it."""
        if not self.tests(mutant.path):
            return None
        others = [f"--deselect={test}" for test in self.failing]
        command = [*PYTEST, "-x", *others, *self.tests(mutant.path)]
        limited = ["sh", "-c", f'ulimit -t {SECONDS}; exec "$@"', "sh", *command]
        file = self.folder / mutant.path
        source = file.read_bytes()
        file.write_bytes(mutant.apply(source))
        try:
            done = subprocess.run(limited, cwd=self.folder, env=self._environment, capture_output=True)
            return done.returncode not in (0, 5)  # 5: no test was left
        finally:
            file.write_bytes(source)

    @property
    def _environment(self) -> dict[str, str]:
        return os.environ | {"PYTHONPATH": str(self.folder), "OMP_NUM_THREADS": "1"}


# ---- the sample ----


def shape(name: str, function: ast.FunctionDef) -> str:
    """What stays the same when only words were changed."""
    bare = copy.deepcopy(function)
    for node in ast.walk(bare):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            node.value = ""
    return f"{name} {ast.dump(bare)}"


def candidates(now: Revision, before: Revision | None, packages: list[str]) -> list[tuple[Mutant, Mutant | None]]:
    """Every mutant, with the same one of the earlier revision. Nothing is changed that no test imports."""
    old: dict[str, list[Mutant]] = {}
    if before is not None:
        for path, source, name, function in before.functions():
            old[shape(name, function)] = mutants(path, source, function)
    found: list[tuple[Mutant, Mutant | None]] = []
    for path, source, name, function in now.functions():
        key = shape(name, function)
        if (packages and path.split("/")[1] not in packages) or (before is not None and key not in old):
            continue
        made = mutants(path, source, function)
        found += zip(made, old[key] if before is not None else [None] * len(made), strict=True)
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=300)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--package", nargs="*", default=[], help="only these, such as: documents corpus")
    parser.add_argument("--against", metavar="REVISION", help="an earlier revision")
    parser.add_argument("--json", metavar="FILE")
    options = parser.parse_args()
    progress, made, noticed, lost = Progress(), Counter[str](), Counter[str](), Counter[str]()
    survivors: list[dict[str, str | int]] = []
    with tempfile.TemporaryDirectory() as one, tempfile.TemporaryDirectory() as other:
        now = Revision(Path(one))
        before = Revision(Path(other), options.against) if options.against else None
        every = candidates(now, before, options.package)
        sample = random.Random(options.seed).sample(every, min(options.count, len(every)))
        for mutant, earlier in progress.track(sample, "mutants", total=len(sample), unit="mutants"):
            package = mutant.path.split("/")[1].removesuffix(".py")
            made[package] += 1
            seen = now.notices(mutant)
            if seen:
                noticed[package] += 1
                continue
            was = seen is False and before is not None and earlier is not None and bool(before.notices(earlier))
            lost[package] += was
            line = (now.folder / mutant.path).read_text(encoding="utf-8").splitlines()[mutant.line - 1].strip()
            survivors.append({"file": mutant.path, "line": mutant.line, "code": line, "as": mutant.text, "lost": was})
            fate = "lost" if was else "survives" if seen is False else "not tested"
            progress.say(f"{fate}: {mutant.path}:{mutant.line}: {line}   as   {mutant.text}")
    columns = [Column("package", text=True), Column("mutants"), Column("noticed"), Column("%")]
    table = Table("Mutants", [*columns, *([Column(f"noticed at {options.against} only")] if options.against else [])])
    for package in [*sorted(made), "all"]:
        counts = [made.total(), noticed.total(), lost.total()] if package == "all" else []
        total, found, gone = counts or (made[package], noticed[package], lost[package])
        cells = [package, str(total), str(found), f"{100 * found / max(1, total):.0f}"]
        table.add(*cells, *([str(gone)] if options.against else []), rule=package == "all")
    table.notes.append(f"A sample of {len(sample):,} of {len(every):,}, seed {options.seed}.")
    table.print(Console())
    if options.json:
        write_json(Path(options.json), survivors)
    return 0


if __name__ == "__main__":
    sys.exit(main())
