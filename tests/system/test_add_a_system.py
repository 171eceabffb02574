"""docs/add-a-system.md does what it says: its files, registered by its lines, are systems like any other."""

from __future__ import annotations

import re
import sys
from types import ModuleType

import pytest

from docnmt.systems import SYSTEMS
from tests.every_system import CASES, Case
from tests.system.conftest import ROOT, command, killed_at, outcome
from tests.system_checks import CHECKS

PAGE = (ROOT / "docs" / "add-a-system.md").read_text(encoding="utf-8")
FILES = re.findall(r"^`docnmt/systems/(\w+)\.py`:\n\n```python\n(.*?)^```", PAGE, re.S | re.M)
LINES = re.findall(r'^    \("(\w+)", "([\w-]+)"\): "([\w.]+)",$', PAGE, re.M)
NAMES = re.findall(r'^    "([\w-]+)": (Case\(.*\)),$', PAGE, re.M)
every_name = pytest.mark.parametrize("name", [name for name, _ in NAMES])


@pytest.fixture(autouse=True)
def added(monkeypatch):
    """The page's systems, as if they were there."""
    for name, code in FILES:
        module = ModuleType(f"docnmt.systems.{name}")
        monkeypatch.setitem(sys.modules, module.__name__, module)
        exec(compile(code, f"docs/add-a-system.md: {name}.py", "exec"), module.__dict__)
    for base, kind, module_name in LINES:
        monkeypatch.setitem(SYSTEMS, (base, kind), module_name)
    for name, case in NAMES:
        monkeypatch.setitem(CASES, name, eval(case, {"Case": Case}))


def test_each_file_has_its_lines():
    assert [name for name, _ in FILES] == ["mean", "mean_of_translations"]
    assert [module for _, _, module in LINES] == [f"docnmt.systems.{name}" for name, _ in FILES]
    assert [kind for _, kind, _ in LINES] == [name for name, _ in NAMES]


@every_name
@pytest.mark.parametrize("start", ["paper", "sentence"])
def test_what_holds_of_every_system(name, start):
    case = Case({**CASES[name].context, "start": start})
    for check in CHECKS:
        check(case)


@every_name
def test_it_trains_resumes_and_translates(systems, tmp_path, name):
    settings = ("document.updates=2", "document.checkpoint_every=1")
    systems.train(name, tmp_path / "whole", *settings)
    with killed_at(1):
        systems.train(name, tmp_path / "killed", *settings)
    assert "continuing from update 1" in systems.train(name, tmp_path / "killed", *settings).err
    assert outcome(tmp_path / "killed", ("document",)) == outcome(tmp_path / "whole", ("document",))
    model = tmp_path / "whole" / "document" / "model"
    done = command("translate", model, "--beam", 1, stdin="Le chat dort.\nIl rêve.\n\nFin.\n".encode())
    assert done.code == 0 and len(done.lines) == 4, done.err
