"""Whether two revisions hold the same code, wherever it lies: for commits that only move or merge modules.

    python tools/same.py OLD NEW [--renamed old=new ...]

Compares the multisets of all top-level definitions and assignments under docnmt/, as syntax trees: without imports,
docstrings of modules and comments, and with module names inside strings left out. Prints what only one side has.
"""

from __future__ import annotations

import argparse
import ast
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator


def sources(revision: str) -> Iterator[str]:
    listed = subprocess.run(["git", "ls-tree", "-r", "--name-only", revision, "docnmt/"], **PIPED).stdout.split("\n")
    for path in listed:
        if path.endswith(".py"):
            yield subprocess.run(["git", "show", f"{revision}:{path}"], **PIPED).stdout


PIPED = {"capture_output": True, "text": True, "check": True}


class WithoutModules(ast.NodeTransformer):
    """Imports go; so do names of our own modules in strings, and what a module was called where it was imported."""

    def visit_Import(self, node: ast.Import) -> None:
        return None

    def visit_ImportFrom(self, node: ast.ImportFrom) -> None:
        return None

    def visit_Constant(self, node: ast.Constant) -> ast.Constant:
        if isinstance(node.value, str):
            node.value = re.sub(r"docnmt(\.\w+)+", "docnmt", node.value)
        return node

    def generic_visit(self, node: ast.AST) -> ast.AST:
        super().generic_visit(node)
        if isinstance(node, ast.FunctionDef | ast.If) and not node.body:
            node.body = [ast.Pass()]
        return node


def definitions(revision: str, renamed: dict[str, str]) -> Counter[str]:
    found: Counter[str] = Counter()
    for source in sources(revision):
        for old, new in renamed.items():
            source = re.sub(rf"(?<![\w.]){old}(?!\w)", new, source)
        for node in ast.parse(source).body:
            docstring = isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
            guard = isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"
            if not docstring and not guard and not isinstance(node, ast.Import | ast.ImportFrom):
                found[ast.unparse(WithoutModules().visit(node))] += 1
    return found


def main() -> int:
    arguments = argparse.ArgumentParser()
    arguments.add_argument("old")
    arguments.add_argument("new")
    arguments.add_argument("--renamed", nargs="*", default=[], metavar="OLD=NEW")
    options = arguments.parse_args()
    renamed = dict(pair.split("=") for pair in options.renamed)
    old, new = definitions(options.old, renamed), definitions(options.new, renamed)
    for sign, rest in (("-", old - new), ("+", new - old)):
        for text, count in rest.items():
            print(f"{sign} {count} x {text.splitlines()[0][:110]}")
    print(f"{sum(old.values())} definitions, {sum(new.values())} afterwards, {sum((old & new).values())} the same")
    return int(old != new)


if __name__ == "__main__":
    sys.exit(main())
