"""What the README and the docs tell people to type and to write is what docnmt understands."""

import dataclasses
import re
import shlex
import tomllib
import typing
from pathlib import Path

import pytest

from docnmt.cli import parser
from docnmt.config import Recipe, from_table

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]


def blocks(page: Path, language: str) -> list[str]:
    """The fenced blocks of a page in one language; "" for what is to be typed."""
    fences = re.split(r"^```", page.read_text(encoding="utf-8"), flags=re.M)[1::2]
    return [text for name, _, text in (fence.partition("\n") for fence in fences) if name == language]


def commands(page: Path) -> list[str]:
    lines = [line for block in blocks(page, "") for line in block.splitlines()]
    inline = re.findall(r"`((?:docnmt|torchrun) [^`\n]+)`", page.read_text(encoding="utf-8"))
    return [line.partition("docnmt ")[2] for line in (*lines, *inline) if re.search(r"\bdocnmt \S", line)]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_command_of_the_docs_is_one_docnmt_knows(page):
    for command in commands(page):
        words = shlex.split(command.partition(" > ")[0])
        if len(words) == 1 or words[-1] == "...":  # named in a sentence, not typed
            words = [words[0], "--help"]
        if words[:2] == ["corpus", "inspect"]:
            words = ["FILE" if word == "FILE..." else word for word in words]
        try:
            parser().parse_args(words)
        except SystemExit as stop:
            assert stop.code == 0, f"{page.name}: docnmt {command}"


def test_the_docs_have_commands_to_check():
    assert len(commands(ROOT / "README.md")) >= 4
    assert len(commands(ROOT / "docs" / "tutorial.md")) >= 8


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_recipe_of_the_docs_is_read_strictly(page):
    for block in blocks(page, "toml"):
        if block.startswith("documents ="):  # one line each, not a recipe
            for line in block.splitlines():
                from_table(Recipe, {"data": tomllib.loads(line)}, page.name)
        else:
            from_table(Recipe, tomllib.loads(block), page.name)


@pytest.mark.parametrize("page", [page for page in PAGES if page.parent != ROOT], ids=lambda page: page.name)
def test_every_recipe_of_the_docs_leaves_its_warm_up(page):
    for block in blocks(page, "toml"):
        if not block.startswith("documents ="):
            recipe = from_table(Recipe, tomllib.loads(block), page.name)
            assert recipe.sentence.warmup <= recipe.sentence.updates / 2
            assert recipe.document.warmup <= recipe.document.updates / 2


def test_every_key_of_a_recipe_is_documented_with_its_default():
    page = (ROOT / "docs" / "recipes.md").read_text(encoding="utf-8")

    def check(kind: type, shown_in: str) -> None:
        for item in dataclasses.fields(kind):
            hint = typing.get_type_hints(kind)[item.name]
            if dataclasses.is_dataclass(hint):
                section = re.search(rf"^## [^\n]*\[{item.name}\].*?(?=^## |\Z)", page, re.S | re.M)
                assert section, f"[{item.name}] has no section"
                check(hint, section[0])
            else:
                row = re.search(rf"^\| `{item.name}` \| `(.*?)` \|", shown_in, re.M)
                assert row, f"{item.name} is not documented"
                assert row[1] == toml_value(item.default), f"{item.name} has another default"

    check(Recipe, page)


def toml_value(value) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if value == ():
        return "none"
    return f'"{value}"' if isinstance(value, str) else str(value)


OTHERS = [ROOT / name for name in ("LOG.md", "CHANGELOG.md", "CONTRIBUTING.md")]


@pytest.mark.parametrize("page", [*PAGES, *OTHERS], ids=lambda page: page.name)
def test_pages_are_finished_and_their_links_lead_somewhere(page):
    text = page.read_text(encoding="utf-8")
    assert "{{" not in text
    for target in re.findall(r"\]\(([^)#]+)\)", text):
        assert target.startswith("http") or (page.parent / target).exists(), target


def test_what_runs_elsewhere_is_what_make_runs():
    """CI calls the README's two commands; before a commit the checks of `make test` run, as the Makefile has them."""
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    checks = re.search(r"^test: .*?\n\n", makefile, re.S | re.M)
    assert checks
    hooks = re.findall(r"entry: (.*)", (ROOT / ".pre-commit-config.yaml").read_text(encoding="utf-8"))
    assert len(hooks) == checks[0].count("$(BIN)/")
    for hook in hooks:
        command = hook.removeprefix("env ").replace(".venv/bin/", "$(BIN)/").replace(" --force-exclude", "")
        assert command in checks[0], hook
    workflow = (ROOT / ".github" / "workflows" / "ci.yml").read_text(encoding="utf-8")
    assert "run: make test\n" in workflow and "run: make demo " in workflow


@pytest.mark.parametrize(
    "path", re.findall(r"`((?:docnmt|tests)/[\w/.]+)`", (ROOT / "CONTRIBUTING.md").read_text("utf-8"))
)
def test_files_that_contributors_are_sent_to_are_there(path):
    assert (ROOT / path).exists()
