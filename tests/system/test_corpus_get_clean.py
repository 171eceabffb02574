"""`python -m tools.debian.get` and `docnmt corpus clean`, and what a training makes of the gaps they leave."""

import json
import os
import shutil
import sys

import pytest

from tests.system.conftest import command
from tests.tools.debian.packages import build, help_files, sentence
from tools.debian import get

# An apt-get whose packages lie in a folder.
APT = """#!{python}
import hashlib, os, pathlib, shutil, sys
shelf = {{path.name.split("_")[0]: path for path in pathlib.Path({shelf!r}).glob("*.deb")}}
names = [word for word in sys.argv[1:] if not word.startswith("-") and word != "download"]
missing = [name for name in names if name not in shelf]
for name in missing:
    print("E: Unable to locate package", name, file=sys.stderr)
if missing:
    sys.exit(100)
for name in names:
    raw = shelf[name].read_bytes()
    if "--print-uris" in sys.argv:
        print(f"'http://x/{{name}}' {{shelf[name].name}} {{len(raw)}} SHA256:{{hashlib.sha256(raw).hexdigest()}}")
    else:
        shutil.copy(shelf[name], os.getcwd())
"""


@pytest.fixture(scope="module")
def shelf(tmp_path_factory):
    if shutil.which("dpkg-deb") is None:
        pytest.skip("dpkg-deb is not on this machine")
    folder = tmp_path_factory.mktemp("shelf")
    build(folder, "libreoffice-help-en-us", help_files("en", 40))
    build(folder, "libreoffice-help-fr", help_files("fr", 40, gaps=[(5, 4), (5, 5), (9, 2)]))
    (folder / "apt-get").write_text(APT.format(python=sys.executable, shelf=str(folder)))
    (folder / "apt-get").chmod(0o755)
    return folder


@pytest.fixture
def corpus(shelf, tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("PATH", f"{shelf}:{os.environ['PATH']}")
    folder = tmp_path / "corpus"
    assert get.main([str(folder), "--languages", "fr-en", "--cache", str(tmp_path / "cache")]) == 0
    said = capsys.readouterr()
    assert "libreoffice-help" in said.out and "not in this release" in said.err
    return folder


def fails(done, said: str) -> None:
    assert done.code == 2 and "Traceback" not in done.err
    assert said in done.err, done.err


def lines(path):
    return [line.split("\t") for line in path.read_text(encoding="utf-8").splitlines()]


def test_a_corpus_out_of_packages_trains_and_its_gaps_are_no_pairs(corpus, tmp_path):
    card = json.loads((corpus / "corpus.json").read_text(encoding="utf-8"))
    rows = [row for name in ("train", "dev", "test") for row in lines(corpus / f"{name}.tsv")]
    assert len(rows) == 40 * 12 and sum(row[1:] == ["", ""] for row in rows) == 3
    assert (corpus / "README.md").read_text(encoding="utf-8").count("MPL-2.0") == 1

    done = command("corpus", "inspect", corpus / "train.tsv", "--json", tmp_path / "i.json")
    assert done.code == 0, done.err
    found = json.loads((tmp_path / "i.json").read_text(encoding="utf-8"))
    figures = card["splits"]["train"]
    assert (found["sentences"], found["gaps"]) == (figures["pairs"], figures["gaps"])

    recipe = tmp_path / "recipe.toml"
    recipe.write_text(
        'output = "run"\n[data]\ndocuments = "corpus/train.tsv"\ndev = "corpus/dev.tsv"\n[subwords]\nvocabulary = 330\n'
        "[model]\nwidth = 16\nfilter_width = 16\nheads = 2\nencoder_layers = 1\ndecoder_layers = 1\n"
        "[sentence]\nupdates = 2\nbatch_tokens = 3000\n[document]\nupdates = 2\nbatch_tokens = 3000\n"
        "[validation]\ndecode = true\n[decoding]\nbeam = 1\n"
    )
    done = command("train", recipe)
    assert done.code == 0, done.err
    assert f"{figures['pairs']:,} sentence pairs and {figures['gaps']:,} gaps" in done.err
    model = tmp_path / "run" / "document" / "model"

    holed = next(row[0] for row in rows if row[1:] == ["", ""])
    test = tmp_path / "test.tsv"
    mine = ["\t".join(row) for row in rows if row[0] in (holed, rows[0][0])]
    test.write_text("\n".join(mine) + "\n", encoding="utf-8")
    assert command("translate", model, test, "-o", tmp_path / "out").code == 0
    (out,) = (tmp_path / "out").iterdir() if (tmp_path / "out").is_dir() else (tmp_path / "out",)
    translated = lines(out)
    assert [row[:2] for row in translated] == [line.split("\t")[:2] for line in mine]  # N in, N out
    assert all(bool(row[1]) or not row[2] for row in translated)
    done = command("evaluate", out, "--reference", test, "--json", tmp_path / "e.json")
    assert done.code == 0, done.err
    assert f"{sum(line.split(chr(9))[1] != '' for line in mine)} sentences" in done.out
    done = command("score", model, test)
    assert done.code == 0, done.err
    assert len(done.out.splitlines()) == len(mine) + 1


def test_apt_absent(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("PATH", str(tmp_path))
    assert get.main([str(tmp_path / "c"), "--languages", "fr-en"]) == 2
    assert "apt-get, which is not" in capsys.readouterr().err


def test_clean(tmp_path):
    good = [(f"d{n // 5}", sentence(n, "fr"), sentence(n, "en")) for n in range(20)]
    rows = list(good)
    rows[1] = ("d0", "Le <b>mot</b> ici.", "The word here.")
    rows[7] = ("d1", good[3][1], good[3][2])
    rows[12] = ("d2", "un", "")
    (tmp_path / "in.tsv").write_text("".join("\t".join(row) + "\n" for row in rows), encoding="utf-8")
    out, report = tmp_path / "out.tsv", tmp_path / "report.json"
    done = command("corpus", "clean", tmp_path / "in.tsv", "-o", out, "--languages", "fr-en", "--report", report)
    assert done.code == 0, done.err
    expected = [row if n not in (1, 7, 12) else (row[0], "", "") for n, row in enumerate(rows)]
    assert lines(out) == [list(row) for row in expected]
    figures = json.loads(report.read_text(encoding="utf-8"))
    assert {name: count for name, count in figures["removed"].items() if count} == {"markup": 1, "repeated pair": 1}
    assert figures["unreadable"] == {"empty side": 1}
    assert "Le <b>mot</b> ici." in done.out and "skipped 1 bad place" in done.out
    # Clean is clean; and filters can be left out.
    again = command("corpus", "clean", out, "-o", tmp_path / "again.jsonl.gz", "--report", tmp_path / "r.md")
    assert again.code == 0 and "17 pairs" in (tmp_path / "r.md").read_text(encoding="utf-8")
    loose = command("corpus", "clean", tmp_path / "in.tsv", "-o", out, "--without", "markup,repeated pair")
    assert loose.code == 0 and sum(row[1] == "" for row in lines(out)) == 1


def test_clean_takes_two_sides_and_says_what_it_cannot_do(tmp_path):
    for language in ("fr", "en"):
        text = "".join(f"{sentence(n, language)}\n" for n in range(6))
        (tmp_path / f"c.{language}").write_text(text, encoding="utf-8")
    sides = tmp_path / "c.fr", tmp_path / "c.en"
    done = command("corpus", "clean", *sides, "--sides", "-o", tmp_path / "o.tsv", "--languages", "fr-en")
    assert done.code == 0, done.err
    assert len(lines(tmp_path / "o.tsv")) == 6
    fails(command("corpus", "clean", *sides, "--sides", "-o", tmp_path / "o.txt"), "must end in .tsv or .jsonl")
    fails(
        command("corpus", "clean", *sides, "--sides", "-o", tmp_path / "o.tsv", "--report", tmp_path / "r.txt"),
        "must end in .json or .md",
    )
    fails(
        command("corpus", "clean", *sides, "--sides", "-o", tmp_path / "o.tsv", "--without", "all"),
        "unknown filter",
    )
    before = (tmp_path / "o.tsv").read_bytes()
    fails(command("corpus", "clean", tmp_path / "o.tsv", "-o", tmp_path / "o.tsv"), "would be overwritten")
    assert (tmp_path / "o.tsv").read_bytes() == before
    other = "-o", tmp_path / "p.tsv"
    fails(command("corpus", "clean", tmp_path / "o.tsv", *other, "--document-ids", "x"), "Add --sides")
    fails(command("corpus", "clean", tmp_path / "o.tsv", *other, "--languages", "fren"), "fren: not a language pair")
