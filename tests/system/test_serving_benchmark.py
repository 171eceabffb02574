"""The benchmark of the server, in seconds instead of minutes: what it checks holds."""

from __future__ import annotations

import json
import subprocess
import sys

from tests.system.conftest import ROOT, environment


def test_a_server_under_load_makes_no_mistakes(model, tiny, tmp_path):
    words = ["--model", model, "--corpus", tiny.folder / "corpus" / "dev.tsv", "--json", tmp_path / "figures.json"]
    words += ["--seconds", 3, "--clients", 40, "--malformed", 300, "--workers", 1]
    script = [sys.executable, str(ROOT / "benchmarks" / "serving.py"), *map(str, words)]
    done = subprocess.run(script, env=environment(), text=True, capture_output=True, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr
    figures = json.loads((tmp_path / "figures.json").read_text())
    for phase in ("sustained", "double", "half", "after"):
        assert figures[phase]["failures"] == 0
        assert figures[phase]["translated"] > 0
    assert figures["malformed_failures"] == 0
    assert sum(figures["malformed"].values()) == 300
    assert figures["ratio"] > 0
