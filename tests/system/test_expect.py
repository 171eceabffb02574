"""`docnmt corpus inspect --expect`: a recipe's corpora beside the paper's."""

from __future__ import annotations

import json

from tests.system.conftest import command


def test_a_recipe_is_held_against_the_paper(tmp_path):
    for name, documents, sentences in (("train", 3, 4), ("dev", 8, 1), ("test", 11, 2)):
        rows = (f"{name}-{n}\tun {n} {k}\tone {n} {k}\n" for n in range(documents) for k in range(sentences))
        (tmp_path / f"{name}.tsv").write_text("".join(rows))
    roles = 'documents = "train.tsv"\ndev = "dev.tsv"\ntest = "test.tsv"'
    (tmp_path / "own.toml").write_text(f'[data]\nsource_language = "fr"\ntarget_language = "en"\n{roles}\n')
    said = command("corpus", "inspect", tmp_path / "own.toml", "--expect", "fr-en", "--json", tmp_path / "found.json")
    assert said.code == 0, said.err
    lines = {" ".join(line.replace("│", " ").split()) for line in said.lines}
    assert "documents documents 3 1,824 differs: -1,821 (-99.8%)" in lines
    assert "dev documents 8 8 as in the paper" in lines and "test documents 11 11 as in the paper" in lines
    assert "docs/corpora.md describes" in said.out
    assert json.loads((tmp_path / "found.json").read_text())["test"]["sentences"] == 22
    alone = command("corpus", "inspect", tmp_path / "dev.tsv", "--expect", "fr-en-dev")
    assert "as in the paper" in alone.out and "differs: -879" in alone.out


def test_what_the_paper_has_no_figures_for_is_refused(tmp_path):
    (tmp_path / "a.tsv").write_text("a\tb\tc\n")
    said = command("corpus", "inspect", tmp_path / "a.tsv", "--expect", "de-en")
    assert said.code == 2 and "unknown value 'de-en'" in said.err
