"""The command line from outside: what goes in, what comes out, and what is said when something is wrong."""

from __future__ import annotations

import itertools
import json
import math
import random
import re
import subprocess
import sys
from pathlib import Path

import pytest
from safetensors.torch import load_file

import docnmt.decoding.translator as translating
from docnmt.base import __version__
from docnmt.decoding.beam import Hypothesis
from docnmt.decoding.translator import load
from docnmt.document import Document
from docnmt.recipes import FOLDER, OWN, load_recipe
from tests.builders import replace_weights
from tests.system.conftest import Result, Tiny, command, environment, first_documents, metrics


def fails(result: Result, *said: str) -> None:
    """Exit code 2 and a message, of which these are parts: no traceback, nothing on standard output."""
    assert result.code == 2
    assert result.err.startswith("docnmt: ") or "\ndocnmt: " in result.err
    assert "Traceback" not in result.err
    for part in said:
        assert part in result.err, result.err


@pytest.fixture(scope="session")
def documents(tiny: Tiny) -> list[Document]:
    found: dict[str, list[str]] = {}
    for line in first_documents(tiny.folder / "corpus" / "test.tsv", 3):
        name, source, _ = line.split("\t")
        found.setdefault(name, []).append(source)
    return [Document(name, tuple(sentences[:3])) for name, sentences in found.items()]


@pytest.fixture(scope="session")
def translations(model: Path, documents: list[Document]) -> list[list[str]]:
    """By the Python API, one document at a time."""
    translator = load(model)
    return [translator.translate(document) for document in documents]


@pytest.fixture
def plain(documents: list[Document], tmp_path: Path) -> Path:
    path = tmp_path / "plain.fr"
    path.write_text("\n".join("".join(f"{s}\n" for s in d.sentences) for d in documents), encoding="utf-8")
    return path


def as_lines(translations: list[list[str]]) -> list[str]:
    lines: list[str] = []
    for number, document in enumerate(translations):
        lines += [""] * (number > 0) + document
    return lines


# ---- translate: layouts ----


def test_translate_standard_input(model, plain, translations):
    done = command("translate", model, stdin=plain.read_bytes())
    assert done.code == 0, done.err
    assert done.out == "".join(f"{line}\n" for line in as_lines(translations))


def test_translate_to_a_file(model, plain, translations, tmp_path):
    out = tmp_path / "new folder" / "out.en"
    done = command("translate", model, plain, "-o", out)
    assert done.code == 0, done.err
    assert done.out == ""
    assert out.read_text(encoding="utf-8") == "".join(f"{line}\n" for line in as_lines(translations))
    assert [path.name for path in out.parent.iterdir()] == ["out.en"]


def test_translate_several_files_into_a_folder(model, documents, translations, tmp_path):
    files = []
    for document in documents:
        files.append(tmp_path / f"{document.id}.fr")
        files[-1].write_text("".join(f"{s}\n" for s in document.sentences), encoding="utf-8")
    done = command("translate", model, *files, "-o", tmp_path / "out")
    assert done.code == 0, done.err
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == sorted(file.name for file in files)
    for file, expected in zip(files, translations, strict=True):
        assert (tmp_path / "out" / file.name).read_text(encoding="utf-8").splitlines() == expected
    # ... and without -o one after the other
    assert command("translate", model, *files).lines == [line for document in translations for line in document]


@pytest.mark.parametrize("seed", range(8))
def test_every_line_stays_in_its_place(model, documents, translations, seed):
    """Documents parted, led and followed by empty lines of any number, some of them with spaces on them."""
    dice = random.Random(seed)
    blank = ("", "", " ", "\t", "   ")
    lines, expected = [], []
    for _ in range(dice.randint(0, 4)):
        number = dice.randrange(len(documents))
        gap = [dice.choice(blank) for _ in range(dice.choice((1, 1, 2, 5)))] if lines or dice.random() < 0.5 else []
        lines += [*gap, *documents[number].sentences]
        expected += [""] * len(gap) + translations[number]
    tail = dice.choice((0, 0, 1, 3))
    lines, expected = lines + [""] * tail, expected + [""] * tail
    ending = dice.choice(("\n", "\r\n"))
    given = "".join(f"{line}{ending}" for line in lines)
    done = command("translate", model, stdin=given.encode())
    assert done.code == 0, done.err
    assert done.out == "".join(f"{line}\n" for line in expected)


@pytest.mark.parametrize("given", [b"", b"\n", b"\n\n\n", b"   \n"])
def test_nothing_but_empty_lines(model, given):
    done = command("translate", model, stdin=given)
    assert done.code == 0, done.err
    assert done.out == "\n" * given.count(b"\n")


def test_no_newline_at_the_end(model, documents, translations):
    done = command("translate", model, stdin="\n".join(documents[0].sentences).encode())
    assert done.lines == translations[0]


@pytest.mark.parametrize("byte", ["<0x0A>", "<0x0D>", "<0x09>"])
def test_a_model_that_spells_a_line_break_in_bytes_does_not_break_lines(model, plain, tmp_path, monkeypatch, byte):
    """Every vocabulary has all bytes as pieces: a translation may hold a newline, the file it is written to may not."""
    target = load(model).target
    (piece,) = (number for number in range(len(target)) if target.pieces([number]) == [byte])
    word = target.encode(["the man"])[0]

    def search(_, source, *rest, **named):
        count = len(source.segments.lengths)
        return [[Hypothesis(-1.0, -2.0, (*word, piece, *word))] for _ in range(count)]

    monkeypatch.setattr(translating, "beam_search", search)
    done = command("translate", model, plain)
    assert done.code == 0, done.err
    assert len(done.out.split("\n")) - 1 == len(plain.read_bytes().split(b"\n")) - 1
    assert "\r" not in done.out
    tsv = tmp_path / "in.tsv"
    tsv.write_text("a\tUn chat.\nb\tUn chien.\n", encoding="utf-8")
    assert [line.count("\t") for line in command("translate", model, tsv).out.split("\n")[:-1]] == [2, 2]


# ---- translate: formats ----


def test_tsv_in_tsv_out(model, documents, translations, tmp_path):
    path = tmp_path / "in.tsv"
    path.write_text("".join(f"{d.id}\t{s}\n" for d in documents for s in d.sentences), encoding="utf-8")
    done = command("translate", model, path)
    assert done.code == 0, done.err
    expected = [
        f"{document.id}\t{source}\t{target}"
        for document, targets in zip(documents, translations, strict=True)
        for source, target in zip(document.sentences, targets, strict=True)
    ]
    assert done.lines == expected


def test_jsonl_in_jsonl_out(model, documents, translations, tmp_path):
    path, out = tmp_path / "in.jsonl", tmp_path / "out.jsonl"
    rows = [{"id": document.id, "source": list(document.sentences)} for document in documents]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    done = command("translate", model, path, "-o", out)
    assert done.code == 0, done.err
    found = [json.loads(line) for line in out.read_text(encoding="utf-8").splitlines()]
    assert found == [{**row, "target": target} for row, target in zip(rows, translations, strict=True)]


def test_the_format_can_be_named(model, documents, tmp_path):
    """A plain text with a tab in each line would be taken for TSV."""
    path = tmp_path / "plain.fr"
    path.write_text("".join(f"{sentence}\tencore\n" for sentence in documents[0].sentences), encoding="utf-8")
    assert all(line.count("\t") == 2 for line in command("translate", model, path).lines)
    done = command("translate", model, path, "--format", "text")
    assert done.code == 0, done.err
    assert len(done.out.split("\n")) - 1 == len(documents[0])


# ---- translate: options ----


def test_nbest(model, documents, translations):
    given = "\n" + "\n".join(documents[0].sentences) + "\n\n" + "\n".join(documents[1].sentences) + "\n"
    done = command("translate", model, "--beam", 3, "--nbest", 3, stdin=given.encode())
    assert done.code == 0, done.err
    rows = [line.split(" ||| ") for line in done.lines]
    numbers = [int(row[0]) for row in rows]
    first = len(documents[0])
    places = [*range(2, 2 + first), *range(first + 3, first + 3 + len(documents[1]))]
    assert sorted(set(numbers)) == places, "not the numbers of the lines"
    assert numbers == sorted(numbers)
    for place in places:
        scores = [float(row[2]) for row in rows if int(row[0]) == place]
        texts = [row[1] for row in rows if int(row[0]) == place]
        assert scores == sorted(scores, reverse=True) and 1 <= len(scores) <= 3
        assert len(set(texts)) == len(texts)
    best = command("translate", model, "--beam", 3, stdin=given.encode())
    firsts = [next(row[1] for row in rows if int(row[0]) == place) for place in places]
    assert firsts == [best.out.split("\n")[place - 1] for place in places]


def test_nbest_of_documents_in_a_table_can_be_told_apart(model, documents, tmp_path):
    path = tmp_path / "in.tsv"
    path.write_text("".join(f"{d.id}\t{s}\n" for d in documents[:2] for s in d.sentences), encoding="utf-8")
    done = command("translate", model, path, "--nbest", 2)
    numbers = [line.split(" ||| ")[0] for line in done.lines]
    assert len(set(numbers)) == sum(len(document) for document in documents[:2])


@pytest.mark.parametrize("context", ["none", "off", "previous=1", "following=1", "previous=1,following=1"])
def test_context(model, documents, context):
    given = "\n".join(documents[0].sentences) + "\n"
    done = command("translate", model, "--context", context, "--beam", 1, stdin=given.encode())
    assert done.code == 0, done.err
    assert done.lines == load(model).translate(documents[0], context=context, beam=1)


def test_context_off_is_the_sentence_model(model, models, documents):
    given = ("\n".join(documents[0].sentences) + "\n").encode()
    sentence = command("translate", models["sentence"], stdin=given)
    assert sentence.code == 0, sentence.err
    assert command("translate", model, "--context", "off", stdin=given).out == sentence.out
    assert command("translate", model, stdin=given).out != sentence.out


@pytest.mark.parametrize("context", ["two", "previous", "previous=x", "before=2", "previous=-1", ""])
def test_a_context_that_cannot_be_read(model, plain, context):
    fails(command("translate", model, plain, "--context", context), repr(context), "previous=N")


def test_a_context_that_cannot_be_read_is_no_better_with_a_model_that_has_no_use_for_it(models, plain):
    fails(command("translate", models["sentence"], plain, "--context", "previous=x"), "previous=x", "previous=N")


def test_nor_is_one_that_it_would_ignore(models, plain, tmp_path):
    fails(command("translate", models["sentence"], plain, "--context", "previous=2"), "uses no context")
    out = tmp_path / "out.txt"
    fails(command("translate", models["sentence"], plain, "--context", "following=1", "-o", out), "uses no context")
    assert not out.exists()


def test_options_that_cannot_work_leave_no_parts_behind(model, plain, tmp_path):
    fails(command("translate", model, plain, "--context", "x", "-o", tmp_path / "out" / "o.en"), "previous=N")
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    "options", [("--beam", 0), ("--beam", 1, "--nbest", 9), ("--nbest", 0), ("--device", "abacus")], ids=str
)
def test_options_out_of_range(model, plain, options):
    fails(command("translate", model, plain, *options), str(options[-1]))


def test_a_file_is_not_written_over_by_its_own_translation(model, plain, tmp_path):
    before = plain.read_bytes()
    fails(command("translate", model, plain, "-o", plain), str(plain))
    assert plain.read_bytes() == before
    fails(command("translate", model, plain, "-o", tmp_path), str(plain))
    assert plain.read_bytes() == before


def test_several_files_do_not_go_into_a_file(model, plain, tmp_path):
    other = tmp_path / "other.fr"
    other.write_text("Bonjour.\n", encoding="utf-8")
    out = tmp_path / "out"
    out.write_text("kept", encoding="utf-8")
    fails(command("translate", model, plain, other, "-o", out), str(out))
    assert out.read_text(encoding="utf-8") == "kept"


def test_files_of_one_name_do_not_go_into_one_folder(model, plain, tmp_path):
    other = tmp_path / "a" / plain.name
    other.parent.mkdir()
    other.write_bytes(plain.read_bytes())
    out = tmp_path / "out"
    said = f"{plain} and {other} would both be written to {out / plain.name}"
    fails(command("translate", model, plain, other, "-o", out), said, "different folders")
    fails(command("translate", model, plain, plain, "-o", out), f"{plain}: given twice")


# ---- translate: what is wrong ----


def test_bad_utf8_is_named_by_file_and_line(model, tmp_path):
    path = tmp_path / "bad.fr"
    path.write_bytes(b"Le chat.\n\nUn homme caf" + b"\xe9.\n")
    for options in ((), ("-o", tmp_path / "out.en")):
        fails(command("translate", model, path, *options), f"{path}, line 3", "0xE9", "iconv")
    assert not (tmp_path / "out.en").exists()
    fails(command("translate", model, stdin=path.read_bytes()), "stdin, line 3")


def test_a_missing_input_file(model, tmp_path):
    fails(command("translate", model, tmp_path / "nowhere.fr"), str(tmp_path / "nowhere.fr"))
    fails(command("translate", model, tmp_path / "nowhere.fr", "-o", tmp_path / "o"), str(tmp_path / "nowhere.fr"))


def test_standard_input_goes_to_standard_output(model, tmp_path):
    fails(command("translate", model, "-o", tmp_path / "out.en", stdin=b"Bonjour.\n"), "-o")


@pytest.mark.parametrize("verb", ["translate", "score"])
def test_a_missing_model_folder(plain, tmp_path, verb):
    fails(command(verb, tmp_path / "nowhere", plain), str(tmp_path / "nowhere"), "config.json")


def copy_of(model: Path, folder: Path) -> Path:
    folder.mkdir()
    for file in model.iterdir():
        (folder / file.name).write_bytes(file.read_bytes())
    return folder


@pytest.mark.parametrize("name", ["weights.safetensors", "config.json", "source.spm", "target.spm"])
@pytest.mark.parametrize("damage", ["gone", "cut"])
def test_a_damaged_model_folder(model, plain, tmp_path, name, damage):
    folder = copy_of(model, tmp_path / "model")
    if damage == "gone":
        (folder / name).unlink()
    else:
        (folder / name).write_bytes((folder / name).read_bytes()[:100])
    fails(command("translate", folder, plain), str(folder))


def test_weights_of_another_model(model, finished, plain, tmp_path):
    folder = copy_of(model, tmp_path / "model")
    (folder / "weights.safetensors").write_bytes((finished / "sentence/model/weights.safetensors").read_bytes())
    fails(command("translate", folder, plain), str(folder))
    (folder / "config.json").write_bytes((finished / "sentence/model/config.json").read_bytes())
    (folder / "weights.safetensors").write_bytes((model / "weights.safetensors").read_bytes())
    fails(command("translate", folder, plain), str(folder))


def test_a_sentence_longer_than_the_model_takes_is_translated_in_parts_with_a_warning(model):
    given = ("le chat voit la mer, " * 80).strip() + "\n"
    done = command("translate", model, "--beam", 1, stdin=given.encode())
    assert done.code == 0, done.err
    assert done.out.count("\n") == 1
    assert "warning:" in done.err and "parts" in done.err and "Traceback" not in done.err


# ---- score ----


@pytest.fixture(scope="session")
def scored_corpus(tiny: Tiny) -> Path:
    return tiny.folder / "corpus" / "small-dev.tsv"


def test_score(model, scored_corpus, tmp_path):
    summary_file = tmp_path / "summary.json"
    done = command("score", model, scored_corpus, "--json", summary_file)
    assert done.code == 0, done.err
    head, *rows = [line.split("\t") for line in done.lines]
    assert head == ["document", "sentence", "log_probability", "without_context", "pieces"]
    pairs = [line.split("\t") for line in scored_corpus.read_text(encoding="utf-8").splitlines()]
    assert [row[0] for row in rows] == [pair[0] for pair in pairs]
    numbers = [int(row[1]) for row in rows]
    assert numbers[0] == 1 and all(b in (a + 1, 1) for a, b in itertools.pairwise(numbers))
    assert all(float(row[2]) < 0 and float(row[3]) < 0 for row in rows)

    summary = json.loads(summary_file.read_text(encoding="utf-8"))
    pieces = sum(int(row[4]) for row in rows)
    assert (summary["sentences"], summary["pieces"]) == (len(rows), pieces)
    for key, column in (("log_probability_per_piece", 2), ("without_context_per_piece", 3)):
        assert summary[key] == pytest.approx(sum(float(row[column]) for row in rows) / pieces, abs=1e-4)
    gain = summary["log_probability_per_piece"] - summary["without_context_per_piece"]
    assert summary["gain_per_piece"] == pytest.approx(gain)
    assert f"{summary['gain_per_piece']:+.4f}" in done.err


def test_score_of_every_piece(model, scored_corpus):
    lines = command("score", model, scored_corpus).lines[1:]
    done = command("score", model, scored_corpus, "--tokens")
    assert done.code == 0, done.err
    rows = [json.loads(line) for line in done.lines]
    assert len(rows) == len(lines)
    targets = [line.split("\t")[2] for line in scored_corpus.read_text(encoding="utf-8").splitlines()]
    for row, line, target in zip(rows, lines, targets, strict=True):
        assert row["log_probability"] == pytest.approx(math.fsum(row["log_probabilities"]))
        assert row["without_context"] == pytest.approx(math.fsum(row["log_probabilities_without_context"]))
        assert len(row["pieces"]) == len(row["log_probabilities"]) == len(row["log_probabilities_without_context"])
        assert row["pieces"][-1] == "</s>"
        if not any(piece.startswith("<0x") for piece in row["pieces"]):
            assert "".join(row["pieces"][:-1]).replace("▁", " ").strip() == target
        assert line.split("\t")[2] == f"{row['log_probability']:.4f}"


def test_score_agrees_with_validation(finished, scored_corpus, tmp_path):
    """The losses of the dev set that training wrote down, with the weights of those validations."""
    kept = copy_of(finished / "document" / "model", tmp_path / "model")
    for line in metrics(finished, "document", "validation"):
        best = finished / "document" / "best" / f"update-{line['update']:08d}" / "weights.safetensors"
        if best.exists():
            merged = load_file(kept / "weights.safetensors") | load_file(best)
            replace_weights(kept, merged)
            done = command("score", kept, scored_corpus, "--json", tmp_path / "s.json")
            assert done.code == 0, done.err
            summary = json.loads((tmp_path / "s.json").read_text())
            assert -summary["log_probability_per_piece"] == pytest.approx(line["loss"], rel=1e-4)
            assert -summary["without_context_per_piece"] == pytest.approx(line["loss_without_context"], rel=1e-4)


def test_score_contexts_and_two_files(model, tiny):
    corpus = tiny.folder / "corpus"
    two = command("score", model, corpus / "dev.fr", corpus / "dev.en", "--context", "none")
    assert two.code == 0, two.err
    assert all(line.split("\t")[2] == line.split("\t")[3] for line in two.lines[1:])
    one = command("score", model, corpus / "dev.tsv", "--context", "none")
    assert [line.split("\t")[2:] for line in one.lines] == [line.split("\t")[2:] for line in two.lines]
    fails(command("score", model, corpus / "dev.tsv", "--context", "all"), "'all'")
    fails(command("score", model, "a", "b", "c"), "Give one file or two")


# ---- corpus ----


def test_corpus_demo(tmp_path):
    done = command("corpus", "demo", tmp_path / "a", "--documents", 60, "--seed", 2)
    assert done.code == 0, done.err
    assert "60 documents, seed 2" in done.out
    assert command("corpus", "demo", tmp_path / "b", "--documents", 60, "--seed", 2).code == 0
    for file in (tmp_path / "a").iterdir():
        assert file.read_bytes() == (tmp_path / "b" / file.name).read_bytes()
    fails(command("corpus", "demo", tmp_path / "c", "--documents", 3), "60 documents")


def test_corpus_inspect(tiny, tmp_path):
    path = tiny.folder / "corpus" / "train.tsv"
    done = command("corpus", "inspect", path, "--json", tmp_path / "i.json")
    assert done.code == 0, done.err
    found = json.loads((tmp_path / "i.json").read_text(encoding="utf-8"))
    rows = [line.split("\t") for line in path.read_text(encoding="utf-8").splitlines()]
    assert (found["documents"], found["sentences"]) == (40, len(rows))
    assert found["source_words"] == sum(len(row[1].split()) for row in rows)
    assert found["skipped"] == {}
    assert found["with_context"] == pytest.approx((len(rows) - 40) / len(rows))
    assert f"{len(rows):,}" in done.out and "skipped" not in done.out


def test_corpus_inspect_skips_and_counts_bad_places(tiny, tmp_path):
    path = tmp_path / "bad.tsv"
    good = first_documents(tiny.folder / "corpus" / "train.tsv", 2)
    bad = [*good[:2], f"{good[2]}\tone column more", f"{good[0].split(chr(9))[0]}\t\tempty", *good[3:]]
    path.write_text("\n".join(bad) + "\n", encoding="utf-8")
    fails(command("corpus", "inspect", path), f"{path}, line 3")
    done = command("corpus", "inspect", path, "--skip-bad", "--json", tmp_path / "i.json")
    assert done.code == 0, done.err
    found = json.loads((tmp_path / "i.json").read_text(encoding="utf-8"))
    assert sum(found["skipped"].values()) == 2
    assert "skipped 2 bad places" in done.out
    assert found["sentences"] == len(good) - 1


# ---- prepare ----


def recipe_in(folder: Path, tiny: Tiny) -> Path:
    corpus = folder / "corpus"
    corpus.mkdir()
    for name in ("train.tsv", "small-dev.tsv"):
        (corpus / name).write_bytes((tiny.folder / "corpus" / name).read_bytes())
    text = tiny.recipe.read_text(encoding="utf-8")
    lines = [line for line in text.splitlines() if not line.startswith(("source_model", "target_model"))]
    (folder / "recipe.toml").write_text("\n".join(lines) + "\n", encoding="utf-8")
    return folder / "recipe.toml"


def test_prepare_once_and_again(tiny, tmp_path):
    recipe = recipe_in(tmp_path, tiny)
    first = command("prepare", recipe)
    assert first.code == 0, first.err
    assert "documents: 40 documents" in first.err and "dev: 3 documents" in first.err
    files = {path: path.stat().st_mtime_ns for path in (tmp_path / "run" / "data").rglob("*")}
    second = command("prepare", recipe)
    assert second.code == 0 and second.err.count("already prepared") == 3
    assert {path: path.stat().st_mtime_ns for path in (tmp_path / "run" / "data").rglob("*")} == files


def test_prepare_learns_sub_words_again_that_changed_on_disk(tiny, tmp_path):
    recipe = recipe_in(tmp_path, tiny)
    assert command("prepare", recipe).code == 0
    (model,) = (tmp_path / "run" / "data").glob("target.*.spm")
    made = model.read_bytes()
    model.write_bytes(made[:-3] + bytes([made[-3] ^ 1]) + made[-2:])
    done = command("prepare", recipe)
    assert done.code == 0 and f"{model.name} has changed since it was written" in done.err, done.err
    assert model.read_bytes() == made and done.err.count("already prepared") == 3


def test_prepare_makes_anew_what_a_changed_file_makes_stale(tiny, tmp_path):
    recipe = recipe_in(tmp_path, tiny)
    assert command("prepare", recipe).code == 0
    dev = tmp_path / "corpus" / "small-dev.tsv"
    dev.write_text(dev.read_text(encoding="utf-8") + "one more\tUn chat.\tA cat.\n", encoding="utf-8")
    done = command("prepare", recipe)
    assert "dev: 4 documents" in done.err and done.err.count("already prepared") == 2
    train = tmp_path / "corpus" / "train.tsv"
    train.write_text(train.read_text(encoding="utf-8") + "one more\tUn chat zélé.\tA zealous cat.\n", encoding="utf-8")
    done = command("prepare", recipe)  # other sub-words: all is encoded anew
    assert "documents: 41 documents" in done.err and "dev: 4 documents" in done.err


def test_prepare_a_damaged_store_anew(tiny, tmp_path):
    recipe = recipe_in(tmp_path, tiny)
    assert command("prepare", recipe).code == 0
    tokens = tmp_path / "run" / "data" / "documents" / "source.tokens"
    whole = tokens.read_bytes()
    for damaged in (whole[:-10], bytes([whole[0] ^ 1]) + whole[1:]):
        tokens.write_bytes(damaged)
        again = command("prepare", recipe)
        assert again.code == 0 and tokens.read_bytes() == whole
        assert re.search(rf"^{tokens.parent}: .+; prepared again$", again.err, re.MULTILINE), again.err
    assert "prepared again" not in command("prepare", recipe).err


def test_prepare_names_the_bad_line_or_skips_it(tiny, tmp_path):
    recipe = recipe_in(tmp_path, tiny)
    train = tmp_path / "corpus" / "train.tsv"
    lines = train.read_bytes().splitlines()
    lines[6] = lines[6][:-4] + b"\xff\xfe."
    train.write_bytes(b"\n".join(lines) + b"\n")
    fails(command("prepare", recipe), f"{train}, line 7")
    done = command("prepare", recipe, "--skip-bad")
    assert done.code == 0, done.err
    assert "skipped 1 bad places" in done.err
    fails(command("train", recipe), f"{train}, line 7")


# ---- recipes that are wrong ----


@pytest.mark.parametrize("verb", ["train", "prepare", "demo"])
def test_a_missing_recipe(tmp_path, verb):
    fails(command(verb, tmp_path / "nowhere.toml"), str(tmp_path / "nowhere.toml"))


def test_a_recipe_that_is_a_folder(tmp_path):
    fails(command("train", tmp_path), str(tmp_path))


def test_a_missing_corpus_file(tiny, tmp_path):
    missing = tmp_path / "nowhere.tsv"
    fails(tiny.train(tmp_path, f"data.documents={missing}"), str(missing))
    fails(command("corpus", "inspect", missing), str(missing))


def test_the_demo_s_recipe_without_its_corpus_says_how_to_write_it(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    done = command("train", "demo")
    fails(done, "Write the embedded corpus first: docnmt corpus demo runs/demo/corpus")


@pytest.mark.parametrize(
    ("setting", "said"),
    [
        ("model.widht=16", "Did you mean 'width'?"),
        ("sentense.updates=3", "Did you mean 'sentence'?"),
        ("model.width=broad", "model: width"),
        ("model.width=16.5", "expected int"),
        ("context.kind=attentive", "Did you mean 'attention'?"),
        ("model.heads=3", "multiple of heads"),
        ("model", "--set"),
        ("hardware.device=abacus", "abacus"),
    ],
)
def test_wrong_settings(tiny, tmp_path, setting, said):
    fails(tiny.train(tmp_path, setting), said)


# ---- the command itself ----


def test_help_is_fast_because_it_imports_nothing_heavy():
    code = (
        "import sys\nfrom docnmt.cli import main\n"
        "try:\n    main(['--help'])\nexcept SystemExit:\n    pass\n"
        "print(sorted({'torch', 'numpy', 'sentencepiece', 'sacrebleu', 'rich'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], env=environment(), text=True, capture_output=True)
    assert done.stdout.splitlines()[-1] == "[]", done.stdout + done.stderr
    assert "translate" in done.stdout


def test_the_package_itself_imports_no_torch():
    code = "import sys, docnmt; print('torch' in sys.modules, docnmt.load.__name__, 'torch' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], env=environment(), text=True, capture_output=True)
    assert done.stdout.split() == ["False", "load", "True"], done.stderr


@pytest.mark.parametrize("verb", ["", "demo", "corpus", "prepare", "train", "translate", "score"])
def test_every_verb_explains_itself(verb):
    done = command(*([verb] if verb else []), "--help")
    assert done.code == 0 and "usage: docnmt" in done.out


def test_version_and_usage_errors():
    assert command("--version").out == f"docnmt {__version__}\n"
    assert command().code == 2
    assert command("transalte").code == 2


def test_a_reader_that_has_seen_enough_is_no_error(model, plain):
    """`docnmt translate ... | head -0`"""
    command = [sys.executable, "-m", "docnmt", "translate", str(model), str(plain)]
    process = subprocess.Popen(command, env=environment(), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    process.stdout.close()
    err = process.stderr.read()
    process.stderr.close()
    assert process.wait(timeout=60) in (0, 1)
    assert "Traceback" not in err and "BrokenPipe" not in err


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full")
def test_output_that_finds_no_room_is_named():
    with open("/dev/full", "w") as full:
        command = [sys.executable, "-m", "docnmt", "recipe"]
        done = subprocess.run(command, env=environment(), stdout=full, stderr=subprocess.PIPE, text=True)
    assert done.returncode == 2 and done.stderr == "docnmt: standard output: No space left on device\n"


# ---- a log ----


def test_training_is_heard_of_where_nobody_sees_a_bar(tiny, tmp_path):
    done = tiny.train(tmp_path, "sentence.updates=8", step="sentence")
    assert done.code == 0, done.err
    lines = [line for line in done.err.splitlines() if line.startswith("train: ") and " left)" in line]
    assert [line.split()[1] for line in lines] == ["3/8", "6/8"]  # log_every = 3
    assert all(re.search(r"\([\d.,]+ updates/s, \d+ s left\)  loss \d\.\d+  [\d,]+ tok/s$", line) for line in lines)


def test_own_recipes_are_listed_and_printed(tmp_path):
    listed = command("recipe")
    assert listed.code == 0 and [line.split()[0] for line in listed.lines] == list(OWN)
    for name, line in zip(OWN, listed.lines, strict=True):  # what is said of each is whole
        begins = (FOLDER / f"{name}.toml").read_text(encoding="utf-8").removeprefix(f"# {line[20:].strip()}")
        assert re.match(r"\.\s|:\s", begins), line
    copy = tmp_path / "mine.toml"
    copy.write_text(command("recipe", "demo").out, encoding="utf-8")
    assert load_recipe(copy).model == load_recipe("demo").model
    fails(command("recipe", "dmo"), "no recipe named 'dmo'", "Did you mean 'demo'?")
