"""Several systems on the same probes: accuracy by class, what each gains over the first, plots, examples.

    docnmt contrast make bovary.tsv -o probes.jsonl --languages fr-en
    docnmt contrast SENTENCE probes.jsonl --translate --items sentence.items
    docnmt contrast DOCUMENT probes.jsonl --translate --shuffled --items document.items
    python benchmarks/probes.py sentence=sentence.items document=document.items [--plots DIR] [--examples 5]
        [--languages fr-en]

A system that was trained several times has several files, `document=one.items,two.items`: its accuracy is their mean,
with the deviation behind it. Intervals and p are over documents (chapters), all trainings of a system together. A gain
is over the first system: its own context, if it has one, to each use of the others.

With --languages there is one table more: the same items by whether the last word of the two sentences before that tells
a gender (`docnmt/evaluation/probe_words.toml`) tells the right one.
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
from docnmt.evaluation.metrics import Mean
from docnmt.evaluation.probe_words import FEMININE, MASCULINE, language, plain
from docnmt.evaluation.significance import compare

USES = {"with_context": "true", "shuffled_context": "shuffled", "no_context": "none", "sentence_model": "off"}
NO_CUE = "no cue"
ACCURACY = Mean("accuracy", scale=100)


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
    """Class by class, the items in which the context last tells the right gender, the other one, or none."""
    source, target = map(language, languages.split("-"))

    def told(text: str) -> str:
        places = {
            kind: max((match.end() for match in source.cues[kind].finditer(plain(text))), default=-1)
            for kind in (MASCULINE, FEMININE)
        }
        last = max(places, key=places.__getitem__)
        return last if places[last] >= 0 else ""

    def kind(item: dict[str, Any]) -> str:
        pairs = zip(_words(item["right"]), _words(item["wrong"][0]), strict=False)
        right = next((gender for one, other in pairs if one != other and (gender := target.gender_of(one))), "")
        if not right:
            return ""  # its, it
        before = next(filter(None, map(told, reversed(item["previous"][-2:]))), "")
        return "none" if not before else "right" if before == right else "other"

    kinds = np.array([kind(item) for item in items])
    stems = np.array([item["phenomenon"].split(",")[0] for item in items])
    told_last = {"right": "the right gender", "other": "the other one", "none": "none"}
    return {
        f"{stem}: {words}": (stems == stem) & (kinds == each)
        for stem in sorted(set(stems))
        for each, words in told_last.items()
        if ((stems == stem) & (kinds == each)).any()
    }


def _words(text: str | list[str]) -> list[str]:
    return [plain(word).strip(".,;:!?'\"()") for word in " ".join(_listed(text)).split()]


def accuracy_table(systems: Sequence[System], measure: str, languages: str = "") -> Table:
    items = systems[0].items
    documents = np.unique([item["document"] for item in items], return_inverse=True)[1]
    uses = [(system, use) for system in systems for use in USES if use in items_of(system)]
    columns = [Column("", text=True), Column("items")]
    columns += [
        Column(system.name if len(items_of(system)) == 1 else f"{system.name}, {USES[use]}") for system, use in uses
    ]
    what = "by what the two sentences before tell last, " if languages else ""
    table = Table(f"Probes, {what}{measure}, percent right", columns)
    first = systems[0].right(systems[0].main, measure)
    for name, members in (by_last_told(items, languages) if languages else groups(items)).items():
        cells = [name, f"{members.sum():,}"]
        for system, use in uses:
            right = system.right(use, measure)[members]
            cell = f"{100 * right.mean():.1f}"
            if len(system.trainings) > 1:
                cell += f" ± {100 * system.each(use, measure)[:, members].mean(axis=1).std(ddof=1):.1f}"
            if system is not systems[0] and use == system.main:
                gain = compare(ACCURACY, *(_rows(each) for each in (first[members], right)), documents[members])
                low, high = gain.interval.low, gain.interval.high
                cell += f" ({gain.difference:+.1f}, {low:+.1f} … {high:+.1f}, p {gain.p_randomisation:.4f})"
            cells.append(cell)
        table.rows.append(cells)
    table.notes.append(
        "In brackets: gain over the first system, 95 % by a bootstrap of documents, p by random swaps of them."
    )
    return table


def items_of(system: System) -> list[str]:
    return [use for use in USES if use in system.items[0]]


def _rows(right: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.stack([right, np.ones_like(right)], axis=1)


# ---- plots ----


def draw(systems: Sequence[System], folder: Path) -> None:
    import matplotlib

    matplotlib.use("svg")
    import matplotlib.pyplot as plt

    items = systems[0].items
    bars = [
        (s.name if len(items_of(s)) == 1 else f"{s.name}, {USES[use]} context", s.right(use, "contrastive"))
        for s in systems
        for use in ("with_context", "shuffled_context", "sentence_model")
        if use in items_of(s) and (use != "sentence_model" or use == s.main)
    ]
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
    tables = [accuracy_table(systems, measure) for measure in measures]
    if options.languages:
        tables.append(accuracy_table(systems, "contrastive", options.languages))
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
