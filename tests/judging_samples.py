"""Documents translated by two made-up systems, some sentences by both alike."""

from __future__ import annotations

from pathlib import Path

from docnmt.judging.store import JudgedDocument, Sample, Store

NAMES = ("plain-baseline", "proposed-system")


def sentences(document: int, length: int) -> tuple[tuple[str, ...], tuple[str, ...], tuple[str, ...]]:
    """Source and two translations; every third sentence is the same in both."""
    source = tuple(f"Phrase {i} du texte {document}." for i in range(length))
    one = tuple(f"Sentence {i} of text {document}." for i in range(length))
    other = tuple(text if i % 3 == 2 else f"The {text[0].lower()}{text[1:]}" for i, text in enumerate(one))
    return source, one, other


def make_sample(lengths: tuple[int, ...] = (4, 3, 5), seed: int = 1) -> Sample:
    documents = []
    for k, length in enumerate(lengths):
        source, one, other = sentences(k, length)
        documents.append(JudgedDocument(f"story-{k}", source, (one, other)))
    return Sample(NAMES, seed, tuple(documents))


def write_files(folder: Path, lengths: tuple[int, ...]) -> tuple[Path, Path, Path]:
    """The source and both translations as TSV."""
    rows: list[list[str]] = [[], [], []]
    for k, length in enumerate(lengths):
        source, *outputs = sentences(k, length)
        for side, texts in zip(rows, (source, *outputs), strict=True):
            side += [f"story-{k}\t{text}\t{said}\n" for text, said in zip(source, texts, strict=True)]
    paths = folder / "source.tsv", folder / f"{NAMES[0]}.tsv", folder / f"{NAMES[1]}.tsv"
    for path, side in zip(paths, rows, strict=True):
        path.write_text("".join(side), encoding="utf-8")
    return paths


def prefer(store: Store, judge: str, wanted: str) -> None:
    """The judge's verdicts about the first questions: `>` the first system is better, `=` equal, `<` the second."""
    judge, _ = store.enter(judge)
    firsts = store.first_systems(judge)
    for place, sign in zip(store.sample.questions, wanted, strict=False):
        better = {">": 0, "<": 1}.get(sign)
        choice = "equal" if better is None else "first" if better == firsts[place.document] else "second"
        store.judge(judge, place, choice)
