"""Scores of systems on a test set, its domains and its documents."""

from __future__ import annotations

import difflib
import re
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any

import numpy as np

from docnmt.base.errors import DocnmtError
from docnmt.base.progress import Progress
from docnmt.base.report import Column, Table, columns
from docnmt.evaluation.metrics import Floats, Ints, Metric, corpus_statistics
from docnmt.evaluation.outputs import Output, References
from docnmt.evaluation.significance import UNKNOWN, Interval, interval
from docnmt.text.scripts import CJK

OTHER = "other"  # the domain of documents that are in no other
RESAMPLES, SEED = 1000, 1
FEW = 20  # documents (or sentences): resamples of fewer are too much alike
_SLICE = 256  # sentences measured between two steps of the bar
_CJK = re.compile(f"[{CJK}]")

# ---- parts of a test set ----


@dataclass(frozen=True, eq=False)
class Part:
    """Some documents of a test set: all of them, a domain, or one."""

    kind: str  # "all", "domain", "document"
    name: str
    documents: Ints
    sentences: int

    @property
    def title(self) -> str:
        return f"{_count(len(self.documents), 'document')}, {_count(self.sentences, 'sentence')}"

    def as_dict(self) -> dict[str, Any]:
        return {"part": self.kind, "name": self.name, "documents": len(self.documents), "sentences": self.sentences}


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def all_of(references: References) -> Part:
    return _part("all", "all", range(len(references.ids)), references)


def domains_of(references: References, groups: Sequence[str] = ()) -> list[Part]:
    return [_part("domain", *domain, references) for domain in by_domain(references.ids, groups).items()]


def documents_of(references: References) -> list[Part]:
    order = sorted(range(len(references.ids)), key=lambda number: references.ids[number])
    return [_part("document", references.ids[number], [number], references) for number in order]


def _part(kind: str, name: str, documents: Sequence[int], references: References) -> Part:
    chosen = np.array(documents, dtype=np.int64)
    return Part(kind, name, chosen, int(np.isin(references.documents, chosen).sum()))


def by_domain(ids: Sequence[str], groups: Sequence[str] = ()) -> dict[str, list[int]]:
    """The documents of each domain: those whose ids begin alike, up to a colon or with one of a
    group's prefixes.

    A group is `NAME=prefix,prefix`; where several prefixes fit, the longest counts. A prefix may
    match no document (a corpus may have more sources than its test set), a group must match one.
    """
    prefixes = _prefixes(groups, ids)
    members: dict[str, list[int]] = {}
    for number, name in enumerate(ids):
        fitting = [prefix for prefix in prefixes if name.startswith(prefix)]
        beginning, colon, _ = name.partition(":")
        own = prefixes[max(fitting, key=len)] if fitting else beginning if colon and not groups else OTHER
        members.setdefault(own, []).append(number)
    names = [*prefixes.values()] if groups else sorted(members.keys() - {OTHER})
    return {name: members[name] for name in dict.fromkeys((*names, OTHER)) if name in members}


def _prefixes(groups: Sequence[str], ids: Sequence[str]) -> dict[str, str]:
    """The domain of each prefix."""
    prefixes: dict[str, str] = {}
    for group in groups:
        domain, _, listed = (part.strip() for part in group.partition("="))
        for prefix in map(str.strip, listed.split(",")):
            if not domain or not prefix:
                raise DocnmtError(f"invalid domain {group!r}\n  Write NAME=prefix,prefix.")
            if prefix in prefixes:
                raise DocnmtError(f"{prefix!r} is listed twice among the domains\n  List it once.")
            prefixes[prefix] = domain
    used = {prefix for prefix in prefixes if any(name.startswith(prefix) for name in ids)}
    left_over = {name.partition(":")[0] for name in ids if not name.startswith(tuple(used))}
    for prefix, domain in prefixes.items():
        misspelt = difflib.get_close_matches(prefix, left_over, n=1, cutoff=0.75)
        if prefix not in used and misspelt:
            raise DocnmtError(f"no document id begins with {prefix!r}\n  Did you mean {misspelt[0]!r}?")
        if not any(prefixes[other] == domain for other in used):
            raise DocnmtError(
                f"no document id begins with a prefix of the domain {domain!r}\n  Ids here look like {ids[0]!r}."
            )
    return prefixes


# ---- measuring ----


@dataclass(frozen=True, eq=False)
class Measured:
    """What a metric found in a system's output."""

    metric: Metric
    statistics: Floats
    documents: Ints  # of each row of the statistics

    def on(self, part: Part, resample: str) -> tuple[Floats, Ints | None]:
        """The statistics of a part, and their documents if these are what is resampled."""
        chosen = np.isin(self.documents, part.documents)
        return self.statistics[chosen], self.documents[chosen] if resample == "documents" else None


def measure(
    outputs: Sequence[Output], references: References, metrics: Sequence[Metric], progress: Progress
) -> dict[str, list[Measured]]:
    """Each system by each metric."""
    found: dict[str, list[Measured]] = {}
    with progress.bar("measure", len(references) * len(metrics) * len(outputs), "sentences") as tick:
        for output in outputs:
            found[output.name] = []
            for metric in metrics:
                pieces = []
                for piece in _slices(references):
                    texts, documents = [text[piece] for text in references.texts], references.documents[piece]
                    pieces.append(corpus_statistics(metric, output.sentences[piece], texts, documents))
                    tick(piece.stop - piece.start)
                rows, documents = (np.concatenate(columns) for columns in zip(*pieces, strict=True))
                found[output.name].append(Measured(metric, rows, documents))
    return found


def _slices(references: References) -> Iterator[slice]:
    """Whole documents, a few hundred sentences at a time."""
    start = 0
    for end in np.cumsum(references.lengths()).tolist():
        if end - start >= _SLICE or end == len(references):
            yield slice(start, end)
            start = end


def warn_of_tokens(texts: Mapping[str, Sequence[str]], remedy: str = "--tokenized") -> None:
    for name, sentences in texts.items():
        if 2 * sum(sentence.endswith(" .") for sentence in sentences) > len(sentences):
            warnings.warn(
                f"{name}: this text looks tokenised and is tokenised again for BLEU; {remedy} prevents that",
                stacklevel=1,
            )


def warn_of_language(references: References) -> None:
    """If words have no spaces between them, BLEU of whole sentences is nearly zero."""
    text = "".join(references.texts[0])
    if 3 * len(_CJK.findall(text)) > len(text):
        warnings.warn(
            "the references look Chinese or Japanese, but BLEU expects spaces between words; --language zh "
            "(or ja) chooses the right tokenizer",
            stacklevel=1,
        )


# ---- scores ----


@dataclass(frozen=True)
class Result:
    part: Part
    system: str
    metric: Metric
    score: float
    interval: Interval

    @property
    def cell(self) -> str:
        around = f" [{self.interval.low:.1f}–{self.interval.high:.1f}]" if self.interval.is_known else ""
        return f"{self.score:.2f}{around}"


def evaluate(
    measured: dict[str, list[Measured]], parts: Sequence[Part], progress: Progress, resample: str = "documents"
) -> list[Result]:
    """The score of each system by each metric on each part, with its interval; a document has none."""
    results = []
    with progress.bar("resample", len(parts) * sum(map(len, measured.values())), "scores") as tick:
        for part in parts:
            for system, found in measured.items():
                for each in found:
                    rows, drawn = each.on(part, resample)
                    spread = UNKNOWN
                    if part.kind != "document":
                        spread = interval(each.metric, rows, drawn, resamples=RESAMPLES, seed=SEED)
                    results.append(Result(part, system, each.metric, each.metric.score(rows.sum(axis=0)), spread))
                    tick()
    return results


def result_tables(results: Sequence[Result], resample: str = "documents") -> list[Table]:
    """One for the whole, one for all domains, one for all documents, as far as there are results of them."""
    layouts = {
        "all": ("Scores", ()),
        "domain": ("By domain", ("domain", "documents", "sentences")),
        "document": ("By document", ("document", "sentences")),
    }
    tables = []
    for kind, (title, labels) in layouts.items():
        own = [result for result in results if result.part.kind == kind]
        if not own:
            continue
        metrics = list(dict.fromkeys(result.metric for result in own))
        heads = [*columns(*labels), Column("system", text=True), *(Column(metric.name) for metric in metrics)]
        table = Table(f"{title}: {own[0].part.title}" if kind == "all" else title, heads)
        table.strong_means = "the best score; docnmt compare tests whether the difference is more than chance"
        for part, here in groupby(own, key=lambda result: result.part):
            _add_rows(table, labels, part, list(here))
        if kind != "document":
            table.notes.append(_interval_note(own, resample))
        table.notes += signature_notes(metrics)
        tables.append(table)
    return tables


def _add_rows(table: Table, labels: Sequence[str], part: Part, results: Sequence[Result]) -> None:
    """A row for each system; the first names the part, and the best of several scores stands out."""
    values = {part.kind: part.name, "documents": f"{len(part.documents):,}", "sentences": f"{part.sentences:,}"}
    beside = [values[label] for label in labels]
    scores: dict[Metric, list[float]] = {}
    for result in results:
        scores.setdefault(result.metric, []).append(result.score)
    best = {metric: max(own) if metric.higher_is_better else min(own) for metric, own in scores.items()}
    systems = list(dict.fromkeys(result.system for result in results))
    for number, system in enumerate(systems):
        own = [result for result in results if result.system == system]
        strong = [k for k, r in enumerate(own, len(beside) + 1) if len(systems) > 1 and r.score == best[r.metric]]
        shown = [""] * len(beside) if number else beside
        table.add(*shown, system, *(result.cell for result in own), rule=bool(beside) and not number, strong=strong)


def _interval_note(results: Sequence[Result], resample: str) -> str:
    units = drawn_units((result.metric for result in results), resample)
    note = f"[ ]: 95 %, {RESAMPLES:,} resamples of {units}, seed {SEED}"
    fewest = min(len(r.part.documents) if resample == "documents" else r.part.sentences for r in results)
    if resample == "documents" and fewest == 1:
        return f"{note}. A single document has no interval; use --resample sentences"
    return f"{note}. Rough with fewer than {FEW} {resample}" if fewest < FEW else note


def drawn_units(metrics: Iterable[Metric], resample: str) -> str:
    whole = [metric.name for metric in dict.fromkeys(metrics) if metric.segment == "document"]
    return f"{resample} ({', '.join(whole)}: documents)" if whole and resample == "sentences" else resample


def signature_notes(metrics: Sequence[Metric]) -> list[str]:
    return [f"{m.name}{'' if m.higher_is_better else ' (lower is better)'}: {m.signature}" for m in metrics]


def figures(results: Sequence[Result], resample: str = "documents") -> dict[str, Any]:
    """For a JSON file."""
    return {
        "signatures": {result.metric.name: result.metric.signature for result in results},
        "resampled": resample,
        "resamples": RESAMPLES,
        "seed": SEED,
        "results": [
            {
                **result.part.as_dict(),
                "system": result.system,
                "metric": result.metric.name,
                "score": result.score,
                **result.interval.as_dict(),
            }
            for result in results
        ],
    }
