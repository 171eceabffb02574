"""From packages to a corpus with a card."""

import hashlib
import json
import shutil

import pytest

from docnmt.base.errors import DocnmtError
from docnmt.base.lines import CorpusFiles
from docnmt.base.progress import Progress
from docnmt.corpus.read import read_corpus
from docnmt.document import GAP
from tests.tools.debian.packages import FolderApt, build, help_files, sentence
from tools.debian.get import get_debian

pytestmark = pytest.mark.skipif(shutil.which("dpkg-deb") is None, reason="dpkg-deb is not on this machine")
HOLES = [(3, 5), (3, 6), (7, 0)]
PAGES, BLOCKS = 30, 12


@pytest.fixture(scope="module")
def shelf(tmp_path_factory):
    folder = tmp_path_factory.mktemp("shelf")
    build(folder, "libreoffice-help-en-us", help_files("en", PAGES))
    build(folder, "libreoffice-help-fr", help_files("fr", PAGES, gaps=HOLES))
    build(folder, "libreoffice-help-de", help_files("de", PAGES, gaps=[(3, 1)]))
    build(folder, "manpages", {"usr/share/man/man1/x.1": b"no"})
    return folder


def get(shelf, folder, languages, only="libreoffice", **options):
    apt = FolderApt(shelf)
    progress = Progress(quiet=True)
    card, _ = get_debian(folder, languages, only=only, cache=folder / "cache", apt=apt, progress=progress, **options)
    return card, apt


def documents_of(folder):
    return {
        name: {d.id: d for d in read_corpus(CorpusFiles(str(folder / f"{name}.tsv")))}
        for name in ("train", "dev", "test")
    }


@pytest.mark.parametrize("languages", ["fr-en", "en-fr", "fr-de", "de-en"])
def test_documents_come_out_whole_and_in_order(shelf, tmp_path, languages):
    get(shelf, tmp_path, languages)
    source, target = languages.split("-")
    splits = documents_of(tmp_path)
    found = {name: d for documents in splits.values() for name, d in documents.items()}
    assert sum(map(len, splits.values())) == len(found) == PAGES
    assert len(splits["dev"]) == len(splits["test"]) == 1
    for number in range(PAGES):
        document = found[f"libreoffice-help:p/{number:03}"]
        holes = {block for page, block in HOLES if page == number} if "fr" in languages else set()
        holes |= {1} if "de" in languages and number == 3 else set()
        expected = [
            (GAP, GAP)
            if block in holes
            else tuple(sentence(number * BLOCKS + block, each) for each in (source, target))
            for block in range(BLOCKS)
        ]
        pairs = list(zip(document.source, document.target, strict=True))
        while expected[0] == (GAP, GAP):  # a gap at the beginning tells nothing
            del expected[0]
        assert pairs == expected


def test_the_card_tells_what_is_there(shelf, tmp_path):
    get(shelf, tmp_path, "fr-en", only="libreoffice,manpages,apache")
    card = json.loads((tmp_path / "corpus.json").read_text(encoding="utf-8"))
    assert card["languages"] == ["fr", "en"] and card["seed"] == 1
    for name, figures in card["splits"].items():
        raw = (tmp_path / f"{name}.tsv").read_bytes()
        assert figures["sha256"] == hashlib.sha256(raw).hexdigest()
        lines = raw.decode().splitlines()
        assert figures["gaps"] == sum(line.endswith("\t\t") for line in lines)
        assert figures["pairs"] + figures["gaps"] == len(lines)
    sources = {source["name"]: source for source in card["sources"]}
    assert sources["libreoffice-help"]["packages"] == {"libreoffice-help-en-us": "1.0", "libreoffice-help-fr": "1.0"}
    assert sources["libreoffice-help"]["pairs"] == sum(figures["pairs"] for figures in card["splits"].values())
    assert sources["apache-docs"]["missing"] == ["apache2-doc"]
    assert sources["manpages"]["packages"] == {}  # nothing in French: its English package is not fetched for nothing
    text = (tmp_path / "README.md").read_text(encoding="utf-8")
    assert card["sha256"] in text and "MPL-2.0" in text and "apache2-doc" in text and "repeated pair" in text


def test_the_same_again_and_nothing_fetched_twice(shelf, tmp_path):
    first, apt = get(shelf, tmp_path, "fr-en")
    assert len(apt.fetched) == 1
    again, apt = get(shelf, tmp_path, "fr-en")
    assert apt.fetched == [] and again.digest == first.digest
    other, _ = get(shelf, tmp_path, "fr-en", seed=2)
    assert other.digest != first.digest
    assert not (shelf / "was-run").exists()


def test_what_cannot_be_had_is_told(shelf, tmp_path):
    with pytest.raises(
        DocnmtError, match=r"the chosen sources have no text in xx\n  Give a language as packages name it"
    ):
        get(shelf, tmp_path, "xx-en")
    with pytest.raises(DocnmtError, match=r"apt knows none of the packages\n  Run `apt-get update`"):
        get(shelf, tmp_path, "fr-en", only="gimp")
    with pytest.raises(DocnmtError, match=r"--held-out 0.5"):
        get(shelf, tmp_path, "fr-en", held_out=0.5)
    assert not (tmp_path / "train.tsv").exists()
