"""`docnmt evaluate` and `docnmt compare`, from files to tables, figures and a page."""

from __future__ import annotations

import itertools
import json
import re
import shutil
import subprocess
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest
import sacrebleu

from tests.builders import in_target_language, lines
from tests.system.conftest import command

SIZES = (7, 3, 5, 8, 4, 6, 2, 5)
IDS = ("game:a", "game:b", "play:a", "manual:a", "manual:b", "play:b", "game:c", "loose")
SHARES = {"base": 0.3, "near": 0.3, "good": 0.05}  # of words that are wrong, but for each fifth sentence
UNSAFE = "</script><script>alert(1)</script> <!-- & \u2028"


@pytest.fixture(scope="module")
def work(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Eight documents with two references each, and three systems."""
    folder = tmp_path_factory.mktemp("evaluation")
    sources = lines(sum(SIZES), seed=21)
    targets = in_target_language(sources)
    others = [" ".join(reversed(sentence.split())) for sentence in targets]
    documents = [name for name, size in zip(IDS, SIZES, strict=True) for _ in range(size)]
    sources[0] = f"{UNSAFE} {sources[0]}"

    def write(name: str, side) -> None:
        rows = zip(documents, sources, side, strict=True)
        (folder / name).write_text("".join("\t".join(row) + "\n" for row in rows), encoding="utf-8")

    write("ref.tsv", targets)
    write("ref2.tsv", others)
    random = np.random.default_rng(22)
    for name, share in SHARES.items():
        said = [
            " ".join("zzz" if random.random() < share and number % 5 else word for word in text.split())
            for number, text in enumerate(targets)
        ]
        write(f"{name}.tsv", said)
        (folder / f"{name}.txt").write_text("".join(f"{text}\n" for text in said), encoding="utf-8")
    return folder


def column(path: Path, keep=lambda document: True) -> list[str]:
    rows = [line.split("\t") for line in path.read_text(encoding="utf-8").rstrip("\n").split("\n")]
    return [row[2] for row in rows if keep(row[0])]


def evaluated(work: Path, *arguments: object) -> dict:
    done = command("evaluate", *arguments, "--json", work / "figures.json")
    assert done.code == 0, done.err
    return json.loads((work / "figures.json").read_text(encoding="utf-8"))


def compared(work: Path, *arguments: object) -> dict:
    done = command("compare", *arguments, "--json", work / "compared.json")
    assert done.code == 0, done.err
    return json.loads((work / "compared.json").read_text(encoding="utf-8"))


def figure(figures: dict, **wanted: str) -> dict:
    (row,) = [row for row in figures["results"] if all(row[key] == value for key, value in wanted.items())]
    return row


# ---- evaluate ----


def test_scores_are_sacrebleus_with_several_references(work):
    figures = evaluated(work, work / "base.tsv", work / "good.tsv", "--reference", work / "ref.tsv", work / "ref2.tsv")
    references = [column(work / "ref.tsv"), column(work / "ref2.tsv")]
    for name, metric in (("BLEU", sacrebleu.BLEU()), ("chrF", sacrebleu.CHRF()), ("TER", sacrebleu.TER())):
        for system in ("base", "good"):
            row = figure(figures, system=system, metric=name)
            assert row["score"] == pytest.approx(metric.corpus_score(column(work / f"{system}.tsv"), references).score)
            assert row["low"] < row["score"] < row["high"]
        assert figures["signatures"][name] == str(metric.get_signature())
    assert list(figures["signatures"]) == ["BLEU", "chrF", "TER", "multi-bleu", "document BLEU"]
    assert all("nrefs:2" in signature for signature in figures["signatures"].values())


def test_terminal_and_files_say_the_same(work):
    paths = {name: work / f"out.{name}" for name in ("markdown", "latex", "html", "json")}
    options = [part for name, path in paths.items() for part in (f"--{name}", path)]
    done = command("evaluate", work / "base.tsv", "--reference", work / "ref.tsv", "--metric", "bleu", *options)
    assert done.code == 0, done.err
    score = figure(json.loads(paths["json"].read_text()), metric="BLEU")["score"]
    signature = r"nrefs:1|case:mixed|eff:no|tok:13a|smooth:exp"
    for text in (done.out, *(paths[name].read_text(encoding="utf-8") for name in ("markdown", "latex", "html"))):
        said = " ".join(text.replace("\\textbar\\allowbreak{}", "|").replace("\\|", "|").replace("\\[", "[").split())
        assert f"{score:.2f} [" in said
        assert "8 documents, 40 sentences" in said
        assert signature in said
    assert re.search(r"\\begin\{tabular\}.*\\toprule", paths["latex"].read_text(), re.S)


def test_domains_are_scored_as_if_they_were_alone(work):
    figures = evaluated(work, work / "base.tsv", "--reference", work / "ref.tsv", "--by-domain", "--metric", "bleu")
    parts = {row["name"]: row for row in figures["results"] if row["part"] == "domain"}
    assert list(parts) == ["game", "manual", "play", "other"]
    assert [parts[name]["documents"] for name in parts] == [3, 2, 2, 1]
    for name in ("game", "manual", "play"):
        own = [column(work / file, lambda d, name=name: d.startswith(name)) for file in ("base.tsv", "ref.tsv")]
        assert parts[name]["score"] == pytest.approx(sacrebleu.BLEU().corpus_score(own[0], [own[1]]).score)
        assert parts[name]["sentences"] == len(own[0])
    assert parts["other"]["low"] is None, "a single document has no interval"


def test_domains_of_ones_own_and_documents(work):
    options = ("--domains", "fun=game,play", "--by-document", "--metric", "chrf", "document-bleu")
    figures = evaluated(work, work / "base.tsv", "--reference", work / "ref.tsv", *options)
    names = {
        kind: [r["name"] for r in figures["results"] if r["part"] == kind and r["metric"] == "chrF"]
        for kind in ("domain", "document")
    }
    assert names == {"domain": ["fun", "other"], "document": sorted(IDS)}
    assert figure(figures, name="fun", metric="chrF")["sentences"] == 23
    own = [column(work / file, lambda d: d == "play:b") for file in ("base.tsv", "ref.tsv")]
    joined = [" ".join(side) for side in own]
    expected = sacrebleu.BLEU().corpus_score(joined[:1], [joined[1:]]).score
    assert figure(figures, name="play:b", metric="document BLEU")["score"] == pytest.approx(expected)


def test_text_and_columns_give_the_same(work):
    results = [
        evaluated(work, work / f"base.{kind}", "--reference", work / "ref.tsv")["results"] for kind in ("tsv", "txt")
    ]
    assert results[0] == results[1]


def test_standard_input_is_a_system_whatever_its_format(work):
    for kind in ("tsv", "txt"):
        piped = command(
            "evaluate",
            "-",
            "--reference",
            work / "ref.tsv",
            "--metric",
            "bleu",
            stdin=(work / f"base.{kind}").read_bytes(),
        )
        named = command("evaluate", work / f"base.{kind}", "--reference", work / "ref.tsv", "--metric", "bleu")
        assert "stdin" in piped.out
        assert re.findall(r"\d+\.\d\d \[", piped.out) == re.findall(r"\d+\.\d\d \[", named.out) != []


def test_case_tokens_and_language_are_choices(work):
    upper = work / "upper.txt"
    upper.write_text((work / "base.txt").read_text(encoding="utf-8").upper(), encoding="utf-8")

    def scores(*options: str) -> dict[str, float]:
        figures = evaluated(work, upper, "--reference", work / "ref.tsv", *options)
        return {row["metric"]: row["score"] for row in figures["results"]}

    mixed, lower = scores(), scores("--lowercase")
    assert mixed["BLEU"] < lower["BLEU"]
    assert mixed["chrF"] < lower["chrF"]
    assert mixed["multi-bleu"] == lower["multi-bleu"], "case counts for nothing there"
    assert scores("--tokenized")["multi-bleu"] < mixed["multi-bleu"], "the full stop then belongs to its word"
    figures = evaluated(work, upper, "--reference", work / "ref.tsv", "--language", "zh", "--metric", "bleu")
    assert "tok:zh" in figures["signatures"]["BLEU"]


def test_tokenised_text_is_noticed(work):
    tokenised = work / "tokenised.txt"
    tokenised.write_text(re.sub(r"\W*$", " .", (work / "base.txt").read_text(encoding="utf-8"), flags=re.M).rstrip())
    plain, told = (
        command("evaluate", tokenised, "--reference", work / "ref.tsv", *more) for more in ((), ("--tokenized",))
    )
    assert "tokenised: this text looks tokenised" in plain.err
    assert "--tokenized" in plain.err
    assert "looks tokenised" not in told.err


def test_sentences_are_resampled_on_request(work):
    by_document, by_sentence = (
        evaluated(work, work / "base.tsv", "--reference", work / "ref.tsv", "--metric", "bleu", "--resample", unit)
        for unit in ("documents", "sentences")
    )
    assert by_document["results"][0]["score"] == by_sentence["results"][0]["score"]
    assert by_document["results"][0]["low"] != by_sentence["results"][0]["low"]


# ---- compare ----


def test_a_better_system_is_found_better_and_an_equal_one_is_not(work):
    systems = [work / f"{name}.tsv" for name in SHARES]
    figures = compared(work, *systems, "--reference", work / "ref.tsv")
    for metric in ("BLEU", "chrF", "TER", "multi-bleu", "document BLEU"):
        good, near = (figure(figures, system=name, metric=metric) for name in ("good", "near"))
        assert good["difference"] == pytest.approx(good["system_score"] - good["baseline_score"])
        assert (good["difference"] > 0) == (metric != "TER")
        assert good["low"] < good["difference"] < good["high"]
        assert good["low"] * good["high"] > 0, "zero is outside"
        assert (
            max(good["p_bootstrap"], good["p_randomisation"]) < 0.05 < min(near["p_bootstrap"], near["p_randomisation"])
        )
        assert good["unit"] == "documents"


def test_a_system_compared_with_itself(work):
    shutil.copy(work / "base.tsv", work / "again.tsv")
    options = ("--by-domain", "--metric", "bleu", "ter")
    figures = compared(work, work / "base.tsv", work / "again.tsv", "--reference", work / "ref.tsv", *options)
    assert len(figures["results"]) == 5 * 2
    for row in figures["results"]:
        assert row["difference"] == 0
        assert row["p_bootstrap"] == row["p_randomisation"] == 1


def test_comparison_tables(work):
    options = ("--by-domain", "--metric", "bleu", "ter", "--markdown", work / "c.md", "--latex", work / "c.tex")
    done = command("compare", work / "base.tsv", work / "good.tsv", "--reference", work / "ref.tsv", *options)
    assert done.code == 0, done.err
    markdown = (work / "c.md").read_text(encoding="utf-8")
    assert [line for line in markdown.splitlines() if line.startswith("**")] == [
        "**Comparison: 8 documents, 40 sentences**",
        "**game: 3 documents, 12 sentences**",
        "**manual: 2 documents, 12 sentences**",
        "**play: 2 documents, 11 sentences**",
        "**other: 1 document, 5 sentences**",
    ]
    assert re.search(r"\|  \| good \| \d+\.\d\d \| \*\*\+\d+\.\d\d\*\* \| \\?\[\+\d", markdown), "significant: bold"
    assert "Only 3 documents: the bootstrap is rough, and p by swaps cannot fall below 0.25" in markdown
    assert "A single document says nothing" in markdown
    assert "TER (lower is better): nrefs:1" in done.out
    assert (work / "c.tex").read_text().count(r"\begin{table}") == 5


def test_what_is_resampled_is_said(work):
    arguments = (work / "base.tsv", work / "good.tsv", "--reference", work / "ref.tsv", "--resample", "sentences")
    figures = compared(work, *arguments)
    assert figure(figures, metric="BLEU")["unit"] == "sentences"
    assert figure(figures, metric="document BLEU")["unit"] == "documents"
    for metrics in ((), ("--metric", "document-bleu", "bleu")):  # whichever comes first
        said = command("compare", *arguments, *metrics).out
        assert "trials) of sentences (document BLEU: documents), seed 1" in said
        assert "document BLEU: only 8 documents to draw from" in said
    alone = command("compare", *arguments, "--metric", "document-bleu").out
    assert "(all 256 swaps) of documents, seed 1" in alone and "Only 8 documents" in alone


def test_the_same_command_gives_the_same_figures(work):
    arguments = (work / "base.tsv", work / "near.tsv", "--reference", work / "ref.tsv", "--metric", "bleu")
    assert compared(work, *arguments) == compared(work, *arguments)


# ---- the page ----


class Page(HTMLParser):
    """What a browser would make of a page: its elements, and the data in it."""

    def __init__(self, text: str):
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.data, self._in_data = "", False
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        self.tags.append((tag, dict(attributes)))
        self._in_data = dict(attributes).get("id") == "data"

    def handle_data(self, data):
        if self._in_data:
            self.data += data

    def handle_endtag(self, tag):
        self._in_data = False


@pytest.fixture(scope="module")
def comparison_page(work) -> Path:
    path = work / "pages" / "comparison.html"
    systems = [work / f"{name}.tsv" for name in SHARES]
    done = command("compare", *systems, "--reference", work / "ref.tsv", work / "ref2.tsv", "--html", path)
    assert done.code == 0, done.err
    return path


def test_the_page_has_every_sentence_with_its_scores(work, comparison_page):
    page = Page(comparison_page.read_text(encoding="utf-8"))
    data = json.loads(page.data)
    assert data["systems"] == list(SHARES)
    assert data["documents"] == list(IDS)
    assert len(data["sentences"]) == 40
    first = data["sentences"][0]
    assert first["source"].startswith(UNSAFE)
    for number, sentence in enumerate(data["sentences"]):
        assert sentence["references"] == [column(work / name)[number] for name in ("ref.tsv", "ref2.tsv")]
        for system, said, score in zip(SHARES, sentence["outputs"], sentence["scores"], strict=True):
            assert said == column(work / f"{system}.tsv")[number]
            expected = sacrebleu.CHRF().sentence_score(said, sentence["references"]).score
            assert score == pytest.approx(expected, abs=0.005)
    positions = [(data["documents"][s["document"]], s["position"]) for s in data["sentences"]]
    assert positions == [(name, k + 1) for name, size in zip(IDS, SIZES, strict=True) for k in range(size)]


def test_the_page_needs_nothing_from_elsewhere_and_runs_no_text(comparison_page):
    text = comparison_page.read_text(encoding="utf-8")
    page = Page(text)
    assert sum(tag == "script" for tag, _ in page.tags) == 2, "the data and the script, and none that came as text"
    assert not any(key in attributes for _, attributes in page.tags for key in ("src", "href", "onclick", "onload"))
    assert not re.search(r"https?://|@import|url\(", text)


CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), "")


def shown(path: Path) -> str:
    """The page after its script has run, as text."""
    options = ["--headless", "--no-sandbox", "--disable-gpu", "--virtual-time-budget=5000", "--dump-dom"]
    try:
        done = subprocess.run([CHROMIUM, *options, path.as_uri()], capture_output=True, text=True, timeout=60)
    except subprocess.TimeoutExpired:
        return ""
    return done.stdout


@pytest.mark.skipif(not CHROMIUM, reason="there is no browser here")
def test_a_browser_shows_the_sentences(work, comparison_page):
    trial = work / "trial.html"
    trial.write_text("<p id=x></p><script>document.getElementById('x').textContent = 'r' + 'uns'</script>")
    if "runs" not in shown(trial):
        pytest.skip("the browser here does not start")
    # Typing and choosing, as a reader would.
    probe = work / "probe.html"
    script = """<script>
      const articles = () => [...document.querySelectorAll("article")], report = {};
      report.start = articles().length;
      differing.checked = false; update(); report.all = articles().length;
      order.value = "gain 2"; update();
      report.gains = articles().map(a => [2, 0].map(k => parseFloat(a.querySelectorAll(".score")[k].textContent)));
      find.value = "PLAY:b"; update(); report.found = articles().map(a => a.querySelector("h3").textContent);
      find.value = "no such text"; update(); report.none = articles().length; report.count = count.textContent;
      find.value = ""; order.value = ""; update();
      report.marks = [...document.querySelectorAll("mark")].slice(2).map(mark => [mark.className, mark.textContent]);
      document.title = JSON.stringify(report);
    </script>"""
    probe.write_text(comparison_page.read_text(encoding="utf-8") + script, encoding="utf-8")
    title = re.search(r"<title>(.*?)</title>", shown(probe), re.S)
    assert title
    report = json.loads(title[1].replace("&quot;", '"').replace("&amp;", "&").replace("&lt;", "<"))
    outputs = [column(work / f"{name}.tsv") for name in SHARES]
    assert report["start"] == sum(len(set(said)) > 1 for said in zip(*outputs, strict=True)) < report["all"] == 40
    gains = [round(there - here, 1) for there, here in report["gains"]]
    assert all(after <= before + 0.11 for before, after in itertools.pairwise(gains)), "shown rounded"
    assert sorted(report["found"]) == [f"play:b, sentence {number}" for number in range(1, 7)]
    assert (report["none"], report["count"]) == (0, "0 of 40 sentences")
    assert {kind for kind, _ in report["marks"]} == {"right", "wrong"}
    references = " ".join(column(work / "ref.tsv")).lower()
    assert all((word.lower() in references) == (kind == "right") for kind, word in report["marks"])


# ---- translate, then compare ----


def test_from_translate_to_compare(tiny, models, tmp_path):
    """Columns and plain text, as translate reads and writes them, come to the same."""
    reference = tiny.folder / "corpus" / "small-dev.tsv"
    rows = [line.split("\t") for line in reference.read_text(encoding="utf-8").splitlines()]
    documents = dict.fromkeys(row[0] for row in rows)
    shutil.copy(reference, tmp_path / "source.tsv")
    plain = "\n".join("".join(f"{row[1]}\n" for row in rows if row[0] == document) for document in documents)
    (tmp_path / "source.fr").write_text(plain, encoding="utf-8")
    results = []
    for kind in ("tsv", "fr"):
        outputs = [tmp_path / f"{step}.{kind}" for step in models]
        for folder, output in zip(models.values(), outputs, strict=True):
            done = command("translate", folder, tmp_path / f"source.{kind}", "-o", output, "--beam", 1)
            assert done.code == 0, done.err
        results.append(compared(tmp_path, *outputs, "--reference", reference, "--metric", "chrf")["results"])
    assert results[0] == results[1]
    (row,) = results[0]
    assert (row["baseline"], row["system"], row["sentences"]) == ("sentence", "document", len(rows))
    said = column(tmp_path / "document.tsv")
    assert row["system_score"] == pytest.approx(sacrebleu.CHRF().corpus_score(said, [[r[2] for r in rows]]).score)


# ---- errors ----


def test_errors_say_what_to_do(work, tmp_path):
    short = tmp_path / "short.txt"
    short.write_text("one\ntwo\n")
    reference = ("--reference", work / "ref.tsv")
    cases = {
        (
            "evaluate",
            short,
            *reference,
        ): f"{short}, line 3, document game:a: expected 40 lines, one for each sentence, found 2",
        ("evaluate", work / "base.tsv", "--reference", tmp_path / "no.tsv"): f"{tmp_path}/no.tsv: no such file",
        ("evaluate", work / "base.tsv", *reference, "--metric", "beu"): "unknown metric 'beu' Did you mean 'bleu'?",
        ("evaluate", work / "base.tsv", *reference, "--domains", "x"): "invalid domain 'x'",
        ("compare", work / "base.tsv", *reference): "a comparison needs a baseline and a system Give two or more files",
        ("compare", work / "base.tsv", work / "base.tsv", *reference): f"{work}/base.tsv: given twice",
    }
    for arguments, message in cases.items():
        done = command(*arguments)
        assert done.code == 2
        assert message in done.message
        assert not done.out
