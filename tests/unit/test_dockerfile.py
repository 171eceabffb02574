"""The Dockerfile says what the clone can do: no engine is needed to see that its commands are right."""

from __future__ import annotations

import json
import re
import shlex
import shutil
import subprocess
import sys
import sysconfig
import tomllib
from pathlib import Path

import pytest

from docnmt.cli import parser
from docnmt.serving.api import API

ROOT = Path(__file__).parents[2]
LINES = (ROOT / "Dockerfile").read_text(encoding="utf-8").splitlines()
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
IGNORED = (ROOT / ".dockerignore").read_text(encoding="utf-8").split()
PIP = "import sys; from pip._internal.commands import create_command as c; c(sys.argv[1]).parse_args(sys.argv[2:])"


def lines(word: str) -> list[str]:
    return [line.removeprefix(f"{word} ") for line in LINES if line.startswith(f"{word} ")]


def place(beginning: str) -> int:
    """Of the one line that begins so."""
    (found,) = (number for number, line in enumerate(LINES) if line.startswith(beginning))
    return found


def test_its_instructions_are_dockers_in_an_order_that_works():
    words = [line.split()[0] for line in LINES if line and not line.startswith("#")]
    assert set(words) <= {"FROM", "RUN", "WORKDIR", "COPY", "USER", "EXPOSE", "HEALTHCHECK", "ENTRYPOINT", "CMD"}
    install = "RUN python -m pip install --no-cache-dir"
    first = ("FROM ", "RUN apt-get", "WORKDIR /source", "COPY ", f"{install} --index-url", f"{install} --constraint")
    order = [place(beginning) for beginning in (*first, "RUN useradd ", "USER ", "ENTRYPOINT ", "CMD ")]
    assert order == sorted(order) and words[0] == "FROM"
    assert lines("RUN")[-1].split()[-1] == lines("USER")[0]  # is the one that was made


def test_it_is_based_on_a_python_that_is_tested():
    version = re.fullmatch(r"python:(\d\.\d+)-slim", lines("FROM")[0])
    assert version and f"Programming Language :: Python :: {version[1]}" in PROJECT["classifiers"]


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
    extra = re.fullmatch(r"\.\[(\w+)\]", docnmt[-1])
    assert extra and extra[1] in PROJECT["optional-dependencies"]
    assert (ROOT / docnmt[docnmt.index("--constraint") + 1]).is_file()
    for command in (torch, docnmt):
        assert command[:3] == ["python", "-m", "pip"]
        subprocess.run([sys.executable, "-c", PIP, *command[3:]], check=True)  # pip knows all options


def test_what_it_needs_is_copied():
    assert not {"docnmt", "pyproject.toml", "setup.py", "constraints.txt", "README.md", "LICENSE"} & set(IGNORED)
    assert lines("COPY") == [". ."]


@pytest.mark.slow
def test_its_command_installs_from_what_is_copied(tmp_path):
    """As it stands in the file, in an environment of its own; what docnmt depends on is borrowed from this one."""
    tree, made = tmp_path / "source", tmp_path / "made"
    ignored = (Path(pattern).name for pattern in IGNORED)
    shutil.copytree(ROOT, tree, ignore=shutil.ignore_patterns(*ignored, "build", "*.so", "*.egg-info"))
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(made)], check=True)
    (site,) = made.glob("lib/python*/site-packages")
    (site / "borrowed.pth").write_text(sysconfig.get_path("purelib") + "\n")
    (command,) = (command for command in lines("RUN") if "--constraint" in command)
    alone = command.replace("pip install", "pip install --no-index --no-deps --no-build-isolation")
    paths = {"PATH": f"{made / 'bin'}:/usr/bin:/bin", "HOME": str(tmp_path)}
    done = subprocess.run(["sh", "-c", alone], cwd=tree, env=paths, text=True, capture_output=True)
    assert done.returncode == 0, done.stderr
    started = [*json.loads(lines("ENTRYPOINT")[0]), json.loads(lines("CMD")[0])[0], "--help"]
    shown = subprocess.run([made / "bin" / started[0], *started[1:]], cwd=tmp_path, text=True, capture_output=True)
    assert shown.returncode == 0 and "--host" in shown.stdout, shown.stderr


def test_its_check_of_health_asks_for_what_is_there():
    (check,) = lines("HEALTHCHECK")
    program = json.loads(check[check.index("[") :])[2]
    compile(program, "HEALTHCHECK", "exec")
    paths = [route.path for route in API.routes(API.__new__(API))]  # type: ignore[attr-defined]
    assert re.search(r":5000(/\w+)", program)[1] in paths
