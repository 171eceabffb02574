"""The Dockerfile says what the clone can do: no engine is needed to see that its commands are right."""

from __future__ import annotations

import json
import re
import shlex
import subprocess
import tomllib
from pathlib import Path

import pytest

from docnmt.cli import parser
from docnmt.serving.api import API

ROOT = Path(__file__).parents[2]
LINES = (ROOT / "Dockerfile").read_text(encoding="utf-8").splitlines()


def lines(word: str) -> list[str]:
    return [line.removeprefix(f"{word} ") for line in LINES if line.startswith(f"{word} ")]


def test_it_runs_docnmt_as_docnmt_understands():
    entry, command = (json.loads(lines(word)[0]) for word in ("ENTRYPOINT", "CMD"))
    options = parser().parse_args([*entry, *command][1:])
    assert entry == ["docnmt"] and options.host == "0.0.0.0"
    assert lines("EXPOSE") == [str(options.port)]
    told = " ".join(LINES[:10])
    assert f"-p {options.port}:{options.port}" in told and f":{options.models[0]}:ro" in told


@pytest.mark.parametrize("command", lines("RUN"))
def test_its_commands_are_ones_of_a_shell(command):
    subprocess.run(["sh", "-n", "-c", command], check=True)


def test_it_installs_what_the_project_names_with_the_cpu_build_first():
    torch, docnmt = (shlex.split(command) for command in lines("RUN") if "pip install" in command)
    found = subprocess.run(["sh", "-c", f"echo {torch[-1]}"], cwd=ROOT, capture_output=True, text=True, check=True)
    assert re.fullmatch(r"torch==[\d.]+", found.stdout.strip()) and torch[-2].endswith("/cpu")
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["optional-dependencies"]
    extra = re.fullmatch(r"\.\[(\w+)\]", docnmt[-1])
    assert extra and extra[1] in extras
    assert (ROOT / docnmt[docnmt.index("--constraint") + 1]).is_file()


def test_what_it_needs_is_copied():
    ignored = (ROOT / ".dockerignore").read_text(encoding="utf-8").split()
    assert not {"docnmt", "pyproject.toml", "setup.py", "constraints.txt", "README.md", "LICENSE"} & set(ignored)
    assert lines("COPY") == [". ."]


def test_its_check_of_health_asks_for_what_is_there():
    (check,) = lines("HEALTHCHECK")
    program = json.loads(check[check.index("[") :])[2]
    compile(program, "HEALTHCHECK", "exec")
    paths = [route.path for route in API.routes(API.__new__(API))]  # type: ignore[attr-defined]
    assert re.search(r":5000(/\w+)", program)[1] in paths
