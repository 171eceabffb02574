"""Several systems on the same probes: accuracy by class, what each gains over the first, plots, examples.

    docnmt contrast make bovary.tsv -o probes.jsonl --languages fr-en
    docnmt contrast SENTENCE probes.jsonl --translate --items sentence.items
    docnmt contrast DOCUMENT probes.jsonl --translate --shuffled --items document.items
    python benchmarks/probes.py sentence=sentence.items document=document.items [--plots DIR] [--examples 5]
        [--languages fr-en]

A system that was trained several times has several files, `document=one.items,two.items`: its accuracy is their mean,
with the deviation behind it. Intervals and p are over documents (chapters), all trainings of a system together. A gain
is over the first system: its own context, if it has one, to each use of the others.

With --languages, which have words that tell a gender (`docnmt/evaluation/probe_words.toml`), there are two tables more.
Balanced: the mean of the accuracy on masculine and on feminine items, which is 50 % for whoever always says *her*,
however many items are feminine; items that are neither are left out. And the same items by whether the last such word
of the two sentences before tells the right gender.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from rich.console import Console

from docnmt.base.report import Column, Table
from docnmt.evaluation.metrics import Mean, Metric
from docnmt.evaluation.probe_words import FEMININE, MASCULINE, language, plain
from docnmt.evaluation.significance import compare

USES = {"with_context": "true", "shuffled_context": "shuffled", "no_context": "none", "sentence_model": "off"}
NO_CUE = "no cue"
ACCURACY = Mean("accuracy", scale=100)


class Balanced(Metric):
    """The mean of two accuracies; statistics are those of `Mean`, once for each of the two."""

    name = signature = "balanced accuracy"

    def score(self, totals: NDArray[np.float64]) -> float:
        return float(np.nanmean([ACCURACY.score(half) for half in np.split(np.asarray(totals), 2)]))


@dataclass(frozen=True)
class System:
    name: str
    trainings: list[list[dict[str, Any]]]  # the items as each of them answered

    @property
    def items(self) -> list[dict[str, Any]]:
        return self.trainings[0]

    @property
    def main(self) -> str:
        """The use that stands for the system: with its context, if it has one."""
        return next(use for use in USES if use in self.items[0])

    def each(self, use: str, measure: str) -> NDArray[np.float64]:
        """Whether an item is right, [trainings, items]"""

        def is_right(said: dict[str, Any]) -> bool:
            return said["generative"] == "right" if measure == "generative" else said["preferred"]

        return np.array([[float(is_right(item[use])) for item in items] for items in self.trainings])

    def right(self, use: str, measure: str) -> NDArray[np.float64]:
        """In what share of the trainings an item is right, [items]"""
        return self.each(use, measure).mean(axis=0)


def read_system(text: str) -> System:
    name, _, paths = text.rpartition("=")
    trainings = []
    for path in paths.split(","):
        with open(path, encoding="utf-8") as file:
            trainings.append([json.loads(line) for line in file])
    return System(name or Path(paths).stem, trainings)


def asked(items: Sequence[dict[str, Any]]) -> list[tuple[Any, ...]]:
    """What tells whether two systems were asked the same."""
    return [(item["document"], item["position"], item["phenomenon"]) for item in items]


def groups(items: Sequence[dict[str, Any]]) -> dict[str, NDArray[np.bool_]]:
    """Which items are in each row of the table: all without a cue first, then class by class."""
    names = [item["phenomenon"] for item in items]
    found = {"all without a cue": np.array([name.endswith(NO_CUE) for name in names])}
    found |= {name: np.array([each == name for each in names]) for name in sorted(set(names))}
    for stem in sorted({name.split(",")[0] for name in names}):
        members = np.array([name.split(",")[0] == stem for name in names])
        if not any(np.array_equal(members, known) for known in found.values()):
            found[f"{stem}, all"] = members
    return found


def by_last_told(items: Sequence[dict[str, Any]], languages: str) -> dict[str, NDArray[np.bool_]]:
    """Those without a cue, then class by class: the items in which the context last tells the right gender, the other
    one, or none. A rule that always takes the gender told last is right in the first of the three."""
    source = language(languages.split("-")[0])

    def told(text: str) -> str:
        places = {
            kind: max((match.end() for match in source.cues[kind].finditer(plain(text))), default=-1)
            for kind in (MASCULINE, FEMININE)
        }
        last = max(places, key=places.__getitem__)
        return last if places[last] >= 0 else ""

    def kind(item: dict[str, Any], right: str) -> str:
        if not right:
            return ""
        before = next(filter(None, map(told, reversed(item["previous"][-2:]))), "")
        return "none" if not before else "right" if before == right else "other"

    kinds = np.array([kind(item, right) for item, right in zip(items, genders(items, languages), strict=True)])
    names = np.array([item["phenomenon"] for item in items])
    stems = np.array([name.split(",")[0] for name in names])
    parts = {"all without a cue": np.char.endswith(names, NO_CUE)}
    parts |= {stem: stems == stem for stem in sorted(set(stems))}
    told_last = {"right": "the right gender", "other": "the other one", "none": "none"}
    return {
        f"{part}: {words}": members & (kinds == each)
        for part, members in parts.items()
        for each, words in told_last.items()
        if (members & (kinds == each)).any()
    }


def genders(items: Sequence[dict[str, Any]], languages: str) -> list[str]:
    """What is right in each item; empty for *its* and *it*."""
    target = language(languages.split("-")[1])

    def gender(item: dict[str, Any]) -> str:
        pairs = zip(_words(item["right"]), _words(item["wrong"][0]), strict=False)
        return next((found for one, other in pairs if one != other and (found := target.gender_of(one))), "")

    return [gender(item) for item in items]


def _words(text: str | list[str]) -> list[str]:
    return [plain(word).strip(".,;:!?'\"()") for word in " ".join(_listed(text)).split()]


Statistics = Callable[[NDArray[np.float64]], NDArray[np.float64]]  # of each item, from whether it is right


def accuracy_table(
    systems: Sequence[System],
    measure: str,
    title: str,
    parts: dict[str, NDArray[np.bool_]],
    metric: Metric = ACCURACY,
    statistics: Statistics = lambda right: np.stack([right, np.ones_like(right)], axis=1),
) -> Table:
    documents = np.unique([item["document"] for item in systems[0].items], return_inverse=True)[1]
    uses = [(system, use) for system in systems for use in USES if use in items_of(system)]
    columns = [Column("", text=True), Column("items")]
    columns += [
        Column(system.name if len(items_of(system)) == 1 else f"{system.name}, {USES[use]}") for system, use in uses
    ]
    table = Table(f"Probes, {title}", columns)
    first = statistics(systems[0].right(systems[0].main, measure))
    for name, members in parts.items():
        cells = [name, f"{members.sum():,}"]
        for system, use in uses:
            rows = statistics(system.right(use, measure))[members]
            cell = f"{metric.score(rows.sum(axis=0)):.1f}"
            if len(system.trainings) > 1:
                each = [metric.score(statistics(right)[members].sum(axis=0)) for right in system.each(use, measure)]
                cell += f" ± {np.std(each, ddof=1):.1f}"
            if system is not systems[0] and use == system.main:
                gain = compare(metric, first[members], rows, documents[members])
                low, high = gain.interval.low, gain.interval.high
                cell += f" ({gain.difference:+.1f}, {low:+.1f} … {high:+.1f}, p {gain.p_randomisation:.4f})"
            cells.append(cell)
        table.rows.append(cells)
    table.notes.append(
        "In brackets: gain over the first system, 95 % by a bootstrap of documents, p by random swaps of them."
    )
    return table


def gendered_tables(systems: Sequence[System], measure: str, languages: str) -> list[Table]:
    """Balanced, and by what the context tells last."""
    items = systems[0].items
    found = np.array(genders(items, languages))
    halves = np.array([found == MASCULINE, found == FEMININE]).astype(float)

    def statistics(right: NDArray[np.float64]) -> NDArray[np.float64]:
        return np.stack([halves[0] * right, halves[0], halves[1] * right, halves[1]], axis=1)

    parts = {name: members & (found != "") for name, members in groups(items).items()}
    balanced = {name: members for name, members in parts.items() if all((half * members).any() for half in halves)}
    title = "by what the two sentences before tell last, "
    return [
        accuracy_table(
            systems, measure, f"{measure}, balanced: the mean of both genders", balanced, Balanced(), statistics
        ),
        accuracy_table(systems, measure, f"{title}{measure}, percent right", by_last_told(items, languages)),
    ]


def items_of(system: System) -> list[str]:
    return [use for use in USES if use in system.items[0]]


# ---- plots ----


def draw(systems: Sequence[System], folder: Path) -> None:
    import matplotlib

    matplotlib.use("svg")
    import matplotlib.pyplot as plt

    items = systems[0].items
    bars = [(system.name, system.right(system.main, "contrastive")) for system in systems]
    _bar_chart(plt, groups(items), bars, "percent right", folder / "probes-by-class.svg")
    distances = np.array([item.get("distance") or 0 for item in items])
    parts = {"the sentence itself tells": distances == 0, "1 sentence back": distances == 1, "2 or more": distances > 1}
    told = {name: members for name, members in parts.items() if members.any()}
    _bar_chart(plt, told, bars, "percent right", folder / "probes-by-distance.svg")


def _bar_chart(
    plt: Any, parts: dict[str, NDArray[np.bool_]], bars: Sequence[tuple[str, Any]], label: str, path: Path
) -> None:
    figure, axes = plt.subplots(figsize=(10, 4.2), layout="constrained")
    width = 0.8 / len(bars)
    for number, (name, right) in enumerate(bars):
        places = np.arange(len(parts)) + (number - (len(bars) - 1) / 2) * width
        axes.bar(places, [100 * right[members].mean() for members in parts.values()], width, label=name)
    labels = [name.replace(", ", ",\n") + f"\n({members.sum():,})" for name, members in parts.items()]
    axes.set_xticks(np.arange(len(parts)), labels, fontsize=8)
    axes.set_ylabel(label)
    axes.set_ylim(0, 100)
    axes.grid(axis="y", alpha=0.3)
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=min(4, len(bars)), frameon=False, fontsize=8)
    figure.savefig(path)


# ---- examples ----


def examples(first: System, last: System, count: int) -> list[str]:
    """The first items without a cue, in the order of the book, in which the two systems' own translations differ in
    the word: those that the last one has right, then those that it has wrong."""
    shown = []
    tests: dict[str, Callable[[str, str], bool]] = {
        "right with context": lambda a, b: a == "wrong" and b == "right",
        "wrong with context": lambda a, b: a == "right" and b == "wrong",
    }
    for title, wanted in tests.items():
        pairs = [(a, a[first.main], b[last.main]) for a, b in zip(first.items, last.items, strict=True)]
        found = [
            each
            for each in pairs
            if each[0]["phenomenon"].endswith(NO_CUE) and wanted(each[1]["generative"], each[2]["generative"])
        ]
        shown.append(f"{title}: {len(found)} of {sum(i['phenomenon'].endswith(NO_CUE) for i in first.items)}")
        for item, before, after in found[:count]:
            context = " / ".join(item["previous"][-2:])
            shown.append(
                f"  context    {context}\n  source     {' '.join(_listed(item['source']))}\n"
                f"  reference  {' '.join(_listed(item['right']))}\n"
                f"  {first.name}: {before['translation']}\n  {last.name}: {after['translation']}\n"
            )
    return shown


def _listed(text: str | list[str]) -> list[str]:
    return text if isinstance(text, list) else [text]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("systems", nargs="+", metavar="NAME=ITEMS[,ITEMS]")
    parser.add_argument("--plots", default="", metavar="DIR")
    parser.add_argument("--examples", type=int, default=0, metavar="N")
    parser.add_argument("--languages", default="", metavar="SOURCE-TARGET")
    parser.add_argument("--markdown", default="", metavar="FILE")
    options = parser.parse_args()
    if options.languages and not all(language(code).cues for code in options.languages.split("-")):
        parser.error(f"--languages {options.languages}: there are no words that tell a gender in one of them")
    systems = [read_system(text) for text in options.systems]
    for system in systems:
        if any(asked(items) != asked(systems[0].items) for items in system.trainings):
            parser.error(f"{system.name} was not asked the same items as {systems[0].name}")
    measures = ["contrastive"] + ["generative"] * all(
        "generative" in items[0][s.main] for s in systems for items in s.trainings
    )
    tables = []
    for measure in measures:
        tables.append(accuracy_table(systems, measure, f"{measure}, percent right", groups(systems[0].items)))
        tables += gendered_tables(systems, measure, options.languages) if options.languages else []
    for table in tables:
        table.print(Console(width=200))
    if options.markdown:
        Path(options.markdown).write_text("\n".join(table.markdown() for table in tables), encoding="utf-8")
    if options.plots:
        draw(systems, Path(options.plots))
    if options.examples:
        print("\n".join(examples(systems[0], systems[-1], options.examples)))


if __name__ == "__main__":
    main()
