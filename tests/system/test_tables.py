"""`docnmt tables`: every table of the paper on a toy, from nothing to the report."""

from __future__ import annotations

import hashlib
import json
import os
import random
import re
import shutil
import signal
import sys
import xml.etree.ElementTree as ElementTree
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import sacrebleu

import docnmt.training.two_step
from docnmt.base.progress import Progress
from docnmt.data.batches import Stream
from docnmt.document import ParallelDocument
from docnmt.evaluation.significance import Difference, compare
from docnmt.evaluation.test_sets import TestSet
from docnmt.experiments import report, scores
from docnmt.experiments import timing as efficiency
from docnmt.experiments.scores import Translations
from docnmt.experiments.tables import TABLES
from docnmt.recipes import FOLDER, OWN, load_recipe
from docnmt.training.loop import Trainer
from tests.system.conftest import ROOT, Result, command, leftovers, same_bits, weights

SOURCE, TARGET = "abcdefgh", "stuvwxyz"
RECIPE = """\
seed = 3
output = "run"

[data]
source_language = "fr"
target_language = "en"
documents = "train.tsv"
sentences = "more.tsv"
dev = "dev.tsv"
test = "test.tsv"

[subwords]
vocabulary = 276

[model]
width = 32
filter_width = 32
heads = 4
encoder_layers = 1
decoder_layers = 1
dropout = 0.0

[context]
start = "sentence"

[sentence]
updates = 45
batch_tokens = 1200
warmup = 15
learning_rate = 0.4
validate_every = 15
checkpoint_every = 10

[document]
updates = 6
batch_tokens = 1000
warmup = 3
learning_rate = 0.4
validate_every = 3
checkpoint_every = 2

[validation]
decode = false

[decoding]
beam = 1

[evaluation]
metric = "chrf"

[hardware]
device = "cpu"
threads = 1
"""


class Toy:
    """A language of eight words and eight sentences, translated word by word, and its recipe."""

    def __init__(self, folder: Path):
        self.folder, self.recipe = folder, folder / "toy.toml"
        dice = random.Random(1)
        self.sentences = [dice.sample(range(8), dice.randint(4, 6)) for _ in range(8)]
        for name, documents, size in (("train", 16, 5), ("more", 60, 1), ("dev", 3, 4), ("test", 10, 6)):
            rows = [
                f"{name}-{number}\t{source}\t{target}\n"
                for number in range(documents)
                for source, target in (self.pair(dice) for _ in range(size))
            ]
            (folder / f"{name}.tsv").write_text("".join(rows), encoding="utf-8")
        self.recipe.write_text(RECIPE, encoding="utf-8")

    def pair(self, dice: random.Random) -> tuple[str, str]:
        words = dice.choice(self.sentences)
        return " ".join(SOURCE[word] for word in words), " ".join(TARGET[word] for word in words)

    def rows(self, name: str) -> list[list[str]]:
        return [line.split("\t") for line in (self.folder / f"{name}.tsv").read_text(encoding="utf-8").splitlines()]

    def tables(self, output: Path, *arguments: object, settings: tuple[str, ...] = ()) -> Result:
        chosen = [f"output={json.dumps(str(output))}", *settings]
        return command("tables", self.recipe, *arguments, *(part for s in chosen for part in ("--set", s)))

    def figures(self, output: Path, *arguments: object, settings: tuple[str, ...] = ()) -> list[dict]:
        """The tables as they are written to a file, which must work."""
        file = output.with_suffix(".figures.json")
        done = self.tables(output, *arguments, "--json", file, settings=settings)
        assert done.code == 0, done.err
        return json.loads(file.read_text(encoding="utf-8"))


@pytest.fixture(scope="module", autouse=True)
def few_trials() -> Iterator[None]:
    """Ten thousand trials for each row are for people; how p is found has tests of its own."""

    def compare_quickly(*arguments: Any, **options: Any) -> Difference:
        return compare(*arguments, **options | {"trials": 100, "resamples": 50})

    with pytest.MonkeyPatch.context() as patch:
        for module in (scores, report):
            patch.setattr(module, "compare", compare_quickly)
        patch.setattr(efficiency, "ROUNDS", 2)
        patch.setattr(efficiency, "SENTENCES", 20)
        yield


@pytest.fixture(scope="module")
def toy(tmp_path_factory) -> Toy:
    return Toy(tmp_path_factory.mktemp("toy"))


NAMES = ("integration", "two-step", "example", "efficiency")
ONLY = [part for name in NAMES for part in ("--only", name)]


class Done:
    """What a whole job printed and wrote; not to be written to."""

    def __init__(self, toy: Toy):
        pytest.importorskip("matplotlib", reason='reports need matplotlib: pip install "docnmt[plots]"')
        self.output, at = toy.folder / "done", toy.folder / "reports"
        at.mkdir()
        files = {kind: at / f"tables.{kind}" for kind in ("json", "markdown", "latex", "html")}
        asked = [part for kind, file in files.items() for part in (f"--{kind}", file)]
        self.result = toy.tables(self.output, *ONLY, *asked)
        assert self.result.code == 0, self.result.err
        texts = {kind: file.read_text(encoding="utf-8") for kind, file in files.items()}
        self.tables: list[dict] = json.loads(texts["json"])
        self.markdown, self.latex, self.html = texts["markdown"], texts["latex"], texts["html"]

    def table(self, name: str) -> dict:
        return self.tables[NAMES.index(name)]

    def run(self, name: str) -> Path:
        if name == "document":  # the recipe's own, which training makes, too
            return self.output
        (found,) = (self.output / "runs").glob(f"{name}-" + "[0-9a-f]" * 12)
        return found


@pytest.fixture(scope="module")
def done(toy) -> Done:
    return Done(toy)


def state_of(folder: Path) -> dict[str, tuple[int, str]]:
    """Every file that training or translating writes: when it was last written, and its content."""
    files = [f for f in folder.rglob("*") if f.is_file() and "data" not in f.parts and f.suffix != ".lock"]
    return {
        str(file.relative_to(folder)): (file.stat().st_mtime_ns, hashlib.sha256(file.read_bytes()).hexdigest())
        for file in files
    }


def copied(done: Done, tmp_path: Path) -> Path:
    return Path(shutil.copytree(done.output, tmp_path / "copy"))


def runs_in(output: Path) -> set[str]:
    return {folder.name.rpartition("-")[0] for folder in (output / "runs").iterdir()}


# ---- what is trained ----


def test_runs_are_listed_before_they_start_with_how_long_they_take(done):
    plan = done.result.out[: done.result.out.index("Effect of")]
    listed = re.findall(r"│ (\S+) +│ +3 │ (sentence|document) +│ +(\d+) │ +0 │ +(\d+ \w+(?: to \d+ \w+)?) │", plan)
    assert [name for name, *_ in listed] == [
        "sentence", "sentence-documents", "document", "integration-encoder", "integration-decoder", "control-shuffled",
        "control-none", "from-scratch", "after-sentence-documents",
    ]  # fmt: skip
    assert [updates for *_, updates, _ in listed] == ["45", "45", "6", "6", "6", "6", "6", "51", "6"]
    assert "training left" in plan
    said = done.result.err
    assert said.index("run 1 of 9: sentence") < said.index("run 9 of 9")


def test_step_1_is_trained_once_and_is_the_one_that_training_makes(toy, done, tmp_path):
    assert done.result.err.count("step 1: ") == 2  # on all pairs, and on those of the documents
    for name in ("document", "integration-encoder", "control-none"):
        trained = weights(done.run(name), "document")
        theta_s = weights(done.output, "sentence")
        assert same_bits(theta_s, {key: trained[key] for key in theta_s})
    output = f"output={json.dumps(str(tmp_path))}"
    trained = command("train", toy.recipe, "--step", "sentence", "--set", output)
    assert trained.code == 0, trained.err
    assert same_bits(weights(tmp_path, "sentence"), weights(done.output, "sentence"))


def test_what_training_made_is_taken_over_both_steps_and_the_other_way_round(toy, done, tmp_path):
    output = ("--set", f"output={json.dumps(str(tmp_path))}")
    trained = command("train", toy.recipe, *output)
    assert trained.code == 0, trained.err
    before = state_of(tmp_path)
    tables = toy.tables(tmp_path, "--only", "example")
    assert tables.code == 0 and "step 1" not in tables.err and "step 2" not in tables.err
    after = state_of(tmp_path)
    assert {name: after[name] for name in before} == before
    assert not (tmp_path / "runs").exists()
    # And training takes over what tables have made.
    copy = copied(done, tmp_path)
    again = command("train", toy.recipe, "--set", f"output={json.dumps(str(copy))}")
    assert again.code == 0 and "train: " not in again.err and "continuing from update 6" in again.err
    assert state_of(copy) == state_of(done.output)


def test_step_1_on_the_documents_alone_is_as_if_there_were_nothing_else(toy, done, tmp_path):
    """The same subwords given, as they would be others."""
    spm = done.output / "sentence" / "model"
    settings = ("data.sentences=[]", *(f"subwords.{side}_model={spm / side}.spm" for side in ("source", "target")))
    chosen = [f"output={json.dumps(str(tmp_path))}", *settings]
    trained = command("train", toy.recipe, "--step", "sentence", *(part for s in chosen for part in ("--set", s)))
    assert trained.code == 0, trained.err
    assert same_bits(weights(tmp_path, "sentence"), weights(done.run("sentence-documents"), "sentence"))
    assert not same_bits(weights(tmp_path, "sentence"), weights(done.output, "sentence"))


def test_a_second_time_nothing_is_trained_translated_or_different(toy, done):
    before = state_of(done.output)
    names = ("integration", "two-step", "example")
    again = toy.tables(done.output, *(part for name in names for part in ("--only", name)))
    assert again.code == 0, again.err
    assert state_of(done.output) == before
    assert "run 1 of" not in again.err and "step 2" not in again.err
    first, second = (result.out.rstrip().split("\n\n") for result in (done.result, again))
    assert second[1:] == [table for table in first[1:] if "Evaluation of training" not in table]
    plan = second[0]
    assert len(re.findall(r"│ +all │ +- │", plan)) == 9 and "training left" not in plan


def test_the_status_is_read_from_disk_and_changes_nothing(toy, done, tmp_path):
    before = state_of(done.output)
    status = toy.tables(done.output, "--only", "integration", "--status")
    assert status.code == 0 and state_of(done.output) == before
    assert len(re.findall(r"│ +all │ finished +│", status.out)) == 6
    shorter = toy.tables(done.output, "--only", "integration", "--status", settings=("document.updates=4",))
    assert len(re.findall(r"│ +0 │ nobody +│", shorter.out)) == 5
    nothing = toy.tables(tmp_path / "new", "--only", "integration", "--status")
    assert nothing.code == 2 and "the data is not prepared yet" in nothing.err


@pytest.mark.parametrize("where", ["here", "head:port", ":1"])
def test_work_is_shared_out_to_places_alone(toy, tmp_path, where):
    refused = toy.tables(tmp_path / "new", "--on", where)
    assert refused.code == 2 and f"--on {where}: must be `ray` or HOST:PORT" in refused.err


def test_without_ray_what_to_install_is_said(toy, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "ray", None)
    monkeypatch.delitem(sys.modules, "docnmt.base.cluster", raising=False)
    refused = toy.tables(tmp_path / "new", "--on", "ray")
    assert refused.code == 2 and re.search(r'pip install .*("ray|\[ray\])', refused.err)


def test_the_report_is_the_same_each_time(toy, done, tmp_path):
    texts = []
    for number in range(2):
        page = tmp_path / f"{number}.html"
        assert toy.tables(done.output, "--only", "integration", "--html", page).code == 0
        texts.append(page.read_text(encoding="utf-8"))
    assert texts[0] == texts[1]


class Killed(BaseException):
    """Not an Exception: nothing may catch it and go on."""


@pytest.mark.parametrize("moment", [17, 45, 48, "translate"])
def test_killed_in_the_middle_it_goes_on_to_the_same_end(toy, done, tmp_path, monkeypatch, moment):
    """In step 1, between the steps, in step 2, or while the test documents are translated."""
    output = tmp_path / "killed"
    with monkeypatch.context() as patch:
        if moment == "translate":
            patch.setattr(scores.Scoreboard, "texts", lambda *_: (_ for _ in ()).throw(Killed()))
        else:
            _at_update(patch, moment, _raise_killed)
        with pytest.raises(Killed):
            toy.tables(output, "--only", "example")
    assert toy.figures(output, "--only", "example") == [done.table("example")]
    same_as_done(output, done)


def test_asked_to_stop_it_says_so_and_goes_on_where_it_was(toy, done, tmp_path, monkeypatch):
    output = tmp_path / "stopped"
    with monkeypatch.context() as patch:
        _at_update(patch, 48, lambda: os.kill(os.getpid(), signal.SIGTERM))
        stopped = toy.tables(output, "--only", "example")
    assert stopped.code == 128 + signal.SIGTERM
    assert "stopped and saved at update 4" in stopped.message and "Example analysis" not in stopped.out
    again = toy.tables(output, "--only", "example")
    assert again.code == 0 and "continuing from update 4" in again.err and "step 1" not in again.err
    plan = again.out[: again.out.index("Example analysis")]
    assert re.search(r"│ sentence .* all │ +- │", plan) and re.search(r"│ document .*│ +6 │ +4 │ +\d", plan)
    same_as_done(output, done)


def _at_update(patch: pytest.MonkeyPatch, number: int, act) -> None:
    update, count = Trainer._update, iter(range(10**6))

    def watched(trainer: Trainer, state):
        if next(count) == number:
            act()
        return update(trainer, state)

    patch.setattr(Trainer, "_update", watched)


def _raise_killed() -> None:
    raise Killed()


def same_as_done(output: Path, done: Done) -> None:
    for step in ("sentence", "document"):
        assert same_bits(weights(output, step), weights(done.output, step))
        assert (output / step / "metrics.jsonl").read_bytes() == (done.output / step / "metrics.jsonl").read_bytes()
    assert leftovers(output) == []


def test_other_updates_of_step_2_are_new_runs_on_the_same_step_1(toy, done, tmp_path):
    output = copied(done, tmp_path)
    before = state_of(output)
    changed = toy.tables(output, "--only", "example", settings=("document.updates=4",))
    assert changed.code == 0, changed.err
    after = state_of(output)
    assert {name: after[name] for name in before} == before  # nothing that was there is touched
    added = {Path(name).parts[1] for name in set(after) - set(before) if name.startswith("runs")}
    assert len(added) == 1 and added.pop().startswith("document-")
    assert "step 1" not in changed.err and changed.err.count("step 2") == 1
    # Set back, the first ones are there.
    back = toy.tables(output, "--only", "example")
    assert "step 2" not in back.err and state_of(output) == after


def test_a_longer_step_1_is_trained_further_and_what_builds_on_it_is_new(toy, done, tmp_path):
    output = copied(done, tmp_path)
    longer = toy.tables(output, "--only", "example", settings=("sentence.updates=47",))
    assert longer.code == 0, longer.err
    assert "continuing from update 45" in longer.err
    assert len(list((output / "runs").glob("document-*"))) == 1  # beside the one that training made
    # The shorter one is gone: nobody is told that its scores are those of the longer one.
    refused = toy.tables(output, "--only", "example")
    assert refused.code == 2 and "47 updates, but the recipe says 45" in refused.err


def test_what_determines_nothing_trains_nothing(toy, done, tmp_path):
    output = copied(done, tmp_path)
    before = state_of(output)
    settings = [f"{step}.{every}_every=4" for step in ("sentence", "document") for every in ("log", "checkpoint")]
    again = toy.tables(output, "--only", "example", settings=(*settings, "validation.decode=true"))
    assert again.code == 0 and state_of(output) == before, again.err


@pytest.mark.parametrize(
    "setting",
    ["sentence.warmup=9", "model.filter_width=16", "seed=5", "sentence.average=3", "validation.metric=bleu"],
)
def test_a_sentence_model_of_another_recipe_is_not_taken_for_the_recipes_own(toy, done, tmp_path, setting):
    output = copied(done, tmp_path)
    before = state_of(output)
    refused = toy.tables(output, "--only", "example", settings=(setting, "validation.decode=true"))
    assert refused.code == 2 and "other settings" in refused.err and setting.partition("=")[0][-4:] in refused.err
    assert state_of(output) == before


def test_another_test_set_trains_nothing(toy, done, tmp_path):
    output = copied(done, tmp_path)
    before = {name: state for name, state in state_of(output).items() if "translations" not in name}
    (integration,) = toy.figures(output, "--only", "integration", settings=(f"data.test={toy.folder / 'dev.tsv'}",))
    after = {name: state for name, state in state_of(output).items() if "translations" not in name}
    assert before == after
    assert [row["Test"] for row in integration["rows"]] == [row["Dev"] for row in integration["rows"]]


# ---- seeds ----


def test_seeds_give_mean_and_deviation(toy, done, tmp_path):
    output = copied(done, tmp_path)
    (table,) = toy.figures(output, "--only", "french-english", "--seeds", 2)
    for row in table["rows"]:
        for column in ("Dev", "Test"):
            assert re.fullmatch(r"\d+\.\d\d ± \d+\.\d\d", row[column])
    assert any("2 seeds" in note for note in table["notes"])
    # One seed is the recipe's own, the other trains everything anew, with the same subwords.
    (other,) = (output / "runs").glob("sentence-????????????")
    assert not same_bits(weights(other, "sentence"), weights(output, "sentence"))
    for side in ("source", "target"):
        subwords = [folder / "sentence" / "model" / f"{side}.spm" for folder in (output, other)]
        assert subwords[0].read_bytes() == subwords[1].read_bytes()
    assert len(list((output / "runs").glob("document-*"))) == 1
    (single,) = toy.figures(output, "--only", "french-english")
    (second,) = toy.figures(output, "--only", "french-english", settings=_as_second_seed(output, other))
    for both, one, two in zip(table["rows"], single["rows"], second["rows"], strict=True):
        assert float(both["Test"].split()[0]) == pytest.approx((float(one["Test"]) + float(two["Test"])) / 2, abs=0.01)


def _as_second_seed(output: Path, other: Path) -> tuple[str, ...]:
    """The second seed's recipe alone, in the same folder: its runs are found there."""
    shutil.rmtree(output / "sentence")
    shutil.copytree(other / "sentence", output / "sentence")
    spm = other / "sentence" / "model"
    return ("seed=4", *(f"subwords.{side}_model={spm / side}.spm" for side in ("source", "target")))


# ---- what the tables say ----


def test_tables_have_the_papers_figures_beside_ours(done):
    integration = done.table("integration")
    assert [row["Integration"] for row in integration["rows"]] == [
        "none", "encoder", "decoder", "both", "control: shuffled context", "control: no context",
    ]  # fmt: skip
    none, encoder, *_ = integration["rows"]
    assert none["paper: MT06"] == "48.09" and encoder["paper: All"] == "47.51"
    assert none["gain on Test"] == "" and re.fullmatch(r"[+-]\d+\.\d\d", encoder["gain on Test"])
    assert 0 < float(encoder["p"]) <= 1
    assert any(note.startswith("chrF: ") and "nrefs:1" in note for note in integration["notes"])
    assert any(note.startswith("Only ") and "the bootstrap is rough" in note for note in integration["notes"])


def test_gains_are_the_differences_of_the_scores(done):
    for name in ("integration", "two-step"):
        base = float(next(row for row in done.table(name)["rows"] if not row["gain on Test"])["Test"])
        for row in done.table(name)["rows"]:
            if row["gain on Test"]:
                assert float(row["gain on Test"]) == pytest.approx(float(row["Test"]) - base, abs=0.011)
                low, high = map(float, row["95 %"].split(" … "))
                assert low <= high


def test_the_toy_tells_systems_apart(done):
    """Else the tests here would compare nothing with nothing."""
    found = {row["Test"] for name in ("integration", "two-step") for row in done.table(name)["rows"]}
    assert len(found) >= 5


def test_a_row_that_stands_in_two_tables_has_one_score(done):
    integration, two_step = done.table("integration")["rows"], done.table("two-step")["rows"]
    assert integration[0]["Test"] == two_step[1]["Test"] and integration[3]["Test"] == two_step[4]["Test"]
    assert [row["Test"] for row in integration[-2:]] == [row["Test"] for row in two_step[-2:]]


def test_efficiency_is_measured_for_both_models(done):
    base, ours, share = done.table("efficiency")["rows"]
    assert (base["paper: Training"], ours["paper: Decoding"]) == ("41K", "364")
    for column in ("Training", "Decoding"):
        speeds = [float(row[column].replace(",", "")) for row in (base, ours)]
        assert min(speeds) > 0
        assert float(share[column]) == pytest.approx(speeds[1] / speeds[0], abs=0.02)


def test_every_layout_has_every_table(done):
    titles = [table["title"] for table in done.tables]
    assert len(set(titles)) == len(titles) == 4
    for text in (done.result.out, done.markdown, done.latex, done.html):
        assert [title for title in titles if title not in text.replace("\\_", "_")] == []
    assert done.latex.count(r"\end{tabular}") == done.markdown.count("| :-- |") == 4


def test_latex_is_balanced(done):
    opened: list[str] = []
    for kind, name in re.findall(r"\\(begin|end)\{(\w+)\}", done.latex):
        if kind == "begin":
            opened.append(name)
        else:
            assert opened.pop() == name
    assert opened == []
    bare = re.sub(r"\\[{}$&%#_]", "", done.latex)
    assert bare.count("{") == bare.count("}") and bare.count("$") % 2 == 0 and "%" not in bare
    for layout, body in re.findall(r"\\begin\{tabular\}\{(\w+)\}(.*?)\\end\{tabular\}", bare, re.S):
        rows = [line for line in body.splitlines() if line.endswith(r"\\")]
        assert rows and {line.count("&") for line in rows} == {len(layout) - 1}


# ---- the report ----


def plots_of(page: str) -> list[ElementTree.Element]:
    return [ElementTree.fromstring(svg) for svg in re.findall(r"<svg.*?</svg>", page, re.S)]


def test_the_report_needs_no_network(done):
    without_names = re.sub(r'xmlns(?::\w+)?="[^"]*"|rdf:resource="[^"]*"|<dc:\w+[^>]*>[^<]*', "", done.html)
    assert re.findall(r"https?://\S+", without_names) == []
    assert re.findall(r"<(?:link|script|img|iframe|object|embed|base)\b|@import|\bsrc\s*=|url\((?!#)", done.html) == []
    assert re.findall(r'href="(?!#)[^"]*"', done.html) == []


def test_plots_are_well_formed_and_every_id_is_there_once(done):
    titles = [
        " ".join("".join(text.itertext()) for text in plot.iter("{http://www.w3.org/2000/svg}text"))
        for plot in plots_of(done.html)
    ]
    for wanted in ("Step 1", "Step 2", "Gain by sentence length", "Gain by position in the document", "Gates"):
        assert any(wanted in title for title in titles), wanted
    ids = re.findall(r'\bid="([^"]+)"', done.html)
    assert len(ids) == len(set(ids)) > 20
    used = [one or other for one, other in re.findall(r'url\(#([^)]+)\)|href="#([^"]+)"', done.html)]
    assert set(used) <= set(ids)


def test_the_report_has_learning_curves_with_and_without_context_and_the_controls(done):
    step_2 = next(svg for svg in re.findall(r"<svg.*?</svg>", done.html, re.S) if ">Step 2<" in svg)
    for name in ("true context", "the same model, no context", "control: shuffled context", "control: no context"):
        assert f">{name}<" in step_2, name


def test_the_report_tells_the_gates_of_every_layer(done):
    shares = re.findall(r'<td class="text">((?:en|de)coder \d)</td><td>(0\.\d+)</td>', done.html)
    assert [name for name, _ in shares] == ["encoder 1", "decoder 1"]


@pytest.mark.parametrize(
    ("documents", "told"),
    [(None, "the tables need parallel documents"), ("alone.tsv", "data.documents is a single document")],
)
def test_what_step_2_would_lack_is_found_before_step_1_is_trained(toy, tmp_path, documents, told):
    (tmp_path / "alone.tsv").write_text("d\tla\tthe\n" * 9, encoding="utf-8")
    files = "[]" if documents is None else json.dumps([str(tmp_path / documents)])
    refused = toy.tables(tmp_path / "run", "--only", "gating", settings=(f"data.documents={files}",))
    assert refused.code == 2 and told in refused.err and "step 1" not in refused.err
    dry = toy.tables(tmp_path / "run", "--only", "gating", "--dry-run", settings=("data.documents=[]",))
    assert dry.code == 2 and "the tables need parallel documents" in dry.err


def test_a_report_without_matplotlib_is_refused_before_anything_is_trained(toy, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    refused = toy.tables(tmp_path / "run", "--html", tmp_path / "x.html")
    assert refused.code == 2 and "pip install" in refused.err
    assert list(tmp_path.iterdir()) == []


# ---- controls ----


def split(test: TestSet) -> TestSet:
    """Every sentence a document of its own: none has a context."""
    alone = [
        ParallelDocument(f"{document.id}-{n}", (source,), (target,))
        for document in test.documents
        for n, (source, target) in enumerate(zip(document.source, document.target, strict=True))
    ]
    return TestSet(f"{test.title}-split", alone, test.references)


def test_the_control_without_context_is_step_2_on_sentences_that_have_none(toy, done, tmp_path, monkeypatch):
    """Bit by bit: every sentence as a document of its own, which has no context, is what the control is trained on, in
    the batches that the true contexts make."""
    streams = []

    def first_stream(*arguments) -> Stream:
        streams.append(Stream(*arguments))
        return streams[0]

    def train(folder: Path, *settings: str) -> None:
        start = f"document.start_from={done.output / 'sentence' / 'model'}"
        chosen = [f"output={json.dumps(str(folder))}", start, *settings]
        trained = command("train", toy.recipe, "--step", "document", *(part for s in chosen for part in ("--set", s)))
        assert trained.code == 0, trained.err

    monkeypatch.setattr(docnmt.training.two_step, "Stream", first_stream)
    rows = [f"{number}\t{source}\t{target}\n" for number, (_, source, target) in enumerate(toy.rows("train"))]
    (tmp_path / "alone.tsv").write_text("".join(rows), encoding="utf-8")
    train(tmp_path / "control", "document.context_from=none")
    train(tmp_path / "alone", f"data.documents={tmp_path / 'alone.tsv'}")
    assert len(streams) == 2
    control = weights(done.run("control-none"), "document")
    assert same_bits(weights(tmp_path / "control", "document"), control)
    assert same_bits(weights(tmp_path / "alone", "document"), control)


def test_only_the_control_without_context_is_decoded_without_any(toy, done):
    recipe = load_recipe(toy.recipe)
    test = scores.parts_of(recipe).whole.test
    texts = Translations(recipe, Progress(quiet=True))
    for name, contexts, depends in (("control-none", "none", False), ("document", "own", True)):
        model = done.run(name) / "document" / "model"
        whole, alone = texts.of(model, test, contexts), texts.of(model, split(test), contexts)
        assert (whole != alone) == depends, name


def test_controls_are_other_models_than_the_true_one(done):
    runs = {name: weights(done.run(name), "document") for name in ("document", "control-shuffled", "control-none")}
    names = list(runs)
    for one, other in ((0, 1), (0, 2), (1, 2)):
        assert not same_bits(runs[names[one]], runs[names[other]])


def test_a_run_does_not_go_on_with_other_contexts_than_it_began_with(toy, done, tmp_path):
    output = f"output={json.dumps(str(tmp_path))}"
    shutil.copytree(done.output / "sentence", tmp_path / "sentence")
    shutil.copytree(done.run("document") / "document", tmp_path / "document")
    same = command("train", toy.recipe, "--step", "document", "--set", output)
    assert same.code == 0 and "continuing from update 6" in same.err
    other = command(
        "train", toy.recipe, "--step", "document", "--set", output, "--set", "document.context_from=shuffled"
    )
    assert other.code == 2 and "other settings: step.context_from" in other.err


# ---- several references ----


def in_other_words(target: str, version: int) -> str:
    """The first reference says what the toy's language says; the others leave out some of it."""
    return " ".join(target.split()[: 4 - version]) if version else target


def write_set(folder: Path, name: str, toy: Toy, references: int) -> str:
    """The toy's test documents as a NIST set with some references, and what a recipe says to name it."""
    documents: dict[str, list[tuple[str, str]]] = {}
    for document, source, target in toy.rows("test"):
        documents.setdefault(document, []).append((source, target))

    def side(sysid: str, told: Callable[[str, str], str]) -> str:
        found = ""
        for document, pairs in documents.items():
            segments = "".join(f'<seg id="{n}">{told(*pair)}</seg>\n' for n, pair in enumerate(pairs, 1))
            found += f'<doc docid="{document}" sysid="{sysid}">\n{segments}</doc>\n'
        return found

    text = f'<srcset setid="{name}" srclang="Chinese">\n{side("source", lambda source, _: source)}</srcset>\n'
    (folder / f"{name}-src.sgm").write_text(text, encoding="utf-8")
    versions = [side(f"ref{k}", lambda _, target, k=k: in_other_words(target, k)) for k in range(references)]
    text = f'<refset setid="{name}" srclang="Chinese" trglang="English">\n{"".join(versions)}</refset>\n'
    (folder / f"{name}-ref.sgm").write_text(text, encoding="utf-8")
    return f'{{ source = "{folder / name}-src.sgm", target = "{folder / name}-ref.sgm", name = "{name.upper()}" }}'


def test_a_nist_set_is_scored_with_all_its_references(toy, done, tmp_path):
    output = copied(done, tmp_path)
    sets = [write_set(tmp_path, name, toy, references) for name, references in (("mt02", 4), ("mt03", 1))]
    (table,) = toy.figures(output, "--only", "integration", settings=(f"data.test=[{', '.join(sets)}]",))
    assert list(table["rows"][0])[1:5] == ["Dev", "MT02", "MT03", "All"]
    assert runs_in(output) == runs_in(done.output)
    kept = output / "document" / "translations" / "All.own.json"
    texts = json.loads(kept.read_text(encoding="utf-8"))["translations"]
    targets = [target for *_, target in toy.rows("test")]
    references = [[in_other_words(target, version) for target in targets] for version in range(4)]
    expected = {}
    for name, place, count in (("MT02", 0, 4), ("MT03", 1, 1)):
        own = texts[place * len(targets) :][: len(targets)]
        expected[name] = f"{sacrebleu.CHRF().corpus_score(own, references[:count]).score:.2f}"
    both, before = (found["rows"][3] for found in (table, done.table("integration")))
    assert {name: both[name] for name in expected} == expected
    assert both["MT02"] != both["MT03"] == before["Test"]


# ---- what cannot be done ----


@pytest.mark.parametrize(
    ("arguments", "settings", "message"),
    [
        (("--only", "gatings"), (), "unknown table 'gatings'"),
        (("--seeds", 0), (), "Use 1 or more"),
        (("--html", ROOT), (), "is a folder, not a file"),
        (("--dry-run", "--markdown", "tables.md"), (), "--dry-run makes no tables, so it cannot write tables.md"),
        ((), ("context.kind=none",), "has no context"),
        ((), ("data.test=[]",), "has no test documents"),
        ((), ("data.dev=[]",), "has no dev documents"),
        ((), ("data.test=gone.tsv",), "gone.tsv: no such file"),
        ((), ('evaluation.domains=["x=nothing"]',), "no document id begins with a prefix of the domain 'x'"),
        ((), ("evaluation.metric=blue",), "unknown metric 'blue'"),
    ],
)
def test_what_cannot_be_done_is_said_before_anything_is_trained(toy, tmp_path, arguments, settings, message):
    refused = toy.tables(tmp_path / "run", *arguments, settings=settings)
    assert refused.code == 2 and message in refused.err and "Traceback" not in refused.err
    assert not list(tmp_path.rglob("checkpoints"))


# ---- dry runs ----

SMALL = [
    part
    for setting in ("model.width=32", "model.filter_width=32", "model.heads=4", "model.encoder_layers=1",
                    "model.decoder_layers=1", "subwords.vocabulary=300", "hardware.device=cpu")
    for part in ("--set", setting)
]  # fmt: skip


def recipe_of_the_paper(name: str, tmp_path: Path) -> Path:
    """A copy of the recipe in a folder of its own, beside which its data is looked for."""
    folder = tmp_path / "project" / "recipes"
    folder.mkdir(parents=True)
    return Path(shutil.copy(FOLDER / f"{name}.toml", folder))


def write_papers_data(recipe: Path, toy: Toy) -> None:
    """Own sentences in the layouts that the recipe names, at the places that it names."""
    data = load_recipe(recipe).data
    if data.source_language == "zh":
        folder = Path(data.documents[0].path).parent
        folder.mkdir()
        shutil.copy(toy.folder / "train.tsv", data.documents[0].path)
        Path(data.sentences[0].source).write_text("a b\nc d\n", encoding="utf-8")
        Path(data.sentences[0].target).write_text("s t\nu v\n", encoding="utf-8")
        for files in (*data.dev, *data.test):
            name = Path(files.source).name.removesuffix("-src.sgm")
            write_set(folder, name, toy, 4)
            assert Path(files.source).exists() and Path(files.target).exists()
        return
    Path(data.documents[0].source).parent.mkdir()
    for path, word in ((data.documents[0].source, "a"), (data.documents[0].target, "s")):
        talks = (
            f"<url>talks.example/{n}</url>\n<talkid>{n}</talkid>\n<title>{word}</title>\n{word} one .\n{word} two .\n"
            for n in range(4)
        )
        Path(path).write_text("".join(talks), encoding="utf-8")
    for files in (*data.dev, *data.test):
        for path, kind, word in ((files.source, "srcset", "a"), (files.target, "refset", "s")):
            talks = (
                f'<doc docid="{n}" genre="lectures">\n<talkid>{n}</talkid>\n<seg id="1"> {word} one </seg>\n'
                f'<seg id="2"> {word} two </seg>\n</doc>\n'
                for n in range(3)
            )
            text = f'<?xml version="1.0" encoding="UTF-8"?>\n<mteval>\n<{kind} setid="x" srclang="fr" trglang="en">\n'
            Path(path).write_text(f"{text}{''.join(talks)}</{kind}>\n</mteval>\n", encoding="utf-8")


PAIR = re.compile(rf": [{SOURCE}] .* \| [{TARGET}] ")  # the beginning of a sentence, both sides
PAPERS = {"paper-zh-en": {"tsv", "text", "nist-sgml"}, "paper-fr-en": {"iwslt-tags", "iwslt-xml"}}


@pytest.mark.parametrize("name", PAPERS)
def test_a_dry_run_of_the_papers_recipe_reads_a_sample_in_each_format(name, toy, tmp_path):
    recipe = recipe_of_the_paper(name, tmp_path)
    write_papers_data(recipe, toy)
    before = state_of(tmp_path)
    dry = command("tables", recipe, "--dry-run", *SMALL)
    assert dry.code == 0, dry.err
    assert "missing" not in dry.out and "not given" not in dry.out
    data = load_recipe(recipe).data
    samples = [line for line in dry.out.splitlines() if " read (" in line]
    assert len(samples) == sum(len(getattr(data, role)) for role in ("documents", "sentences", "dev", "test"))
    assert {line.split("│")[3].strip() for line in samples} == PAPERS[name]
    assert [line for line in samples if not PAIR.search(line)] == []
    assert "layers-6" in dry.out and re.search(r"\d \w+ of training left", dry.out)
    assert state_of(tmp_path) == before  # nothing is written


@pytest.mark.parametrize("name", PAPERS)
def test_a_dry_run_without_the_data_says_which_files_are_missing(name, tmp_path):
    recipe = recipe_of_the_paper(name, tmp_path)
    dry = command("tables", recipe, "--dry-run", *SMALL, "--only", "gating")
    assert dry.code == 0, dry.err
    data = load_recipe(recipe).data
    for role in ("documents", "sentences", "dev", "test"):
        for files in getattr(data, role):
            for path in (files.path, files.source, files.target):
                assert path in dry.out
    assert dry.out.count("missing: ") == sum(len(getattr(data, r)) for r in ("documents", "sentences", "dev", "test"))
    assert [file.name for file in tmp_path.rglob("*") if file.is_file()] == [recipe.name]


@pytest.mark.parametrize("name", OWN)
def test_a_dry_run_works_for_every_recipe_here(name):
    dry = command("tables", name, "--dry-run", *SMALL, "--only", "french-english", "--seeds", 2)
    assert dry.code == 0, dry.err
    assert len(re.findall(r"│ control-none ", dry.out)) == 4  # two seeds, among the models and among the runs


@pytest.mark.parametrize("name", PAPERS)
def test_a_dry_run_at_the_papers_own_size(name, tmp_path):
    recipe = recipe_of_the_paper(name, tmp_path)
    dry = command("tables", recipe, "--dry-run", "--only", "gating", "--set", "hardware.device=cpu")
    assert dry.code == 0, dry.err
    assert re.search(r"│ document +│ +[\d,]+ │ +22,063,616 │", dry.out)
    assert re.search(r"[\d.]+ (h|days) of training left", dry.out)


def test_all_tables_at_once(toy, done, tmp_path):
    output = copied(done, tmp_path)
    tables = toy.figures(output)
    assert len(tables) == len(TABLES) + 3  # the claims of `comparison`, efficiency, examples
    assert len(runs_in(output)) == 20  # and the recipe's own two steps
    of_rows = [table for table in tables if "control: no context" in table["rows"][-1].values()]
    assert len(of_rows) == len(TABLES)
    for table in of_rows:
        # All rows of ours but the sentence model's are compared with it.
        compared = [row["p"] for row in table["rows"] if row["Dev"] != "-"]
        assert compared.count("") <= 1 and all(0 < float(p) <= 1 for p in compared if p)
