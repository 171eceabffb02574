"""Contrastive sets as parallel text files: what the scripts of ContraPro, and those after it, extract."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import dropwhile, pairwise

from docnmt.base.errors import DocnmtError
from docnmt.base.lines import MAX_CHARACTERS, InputFile
from docnmt.evaluation.contrastive_items import Item, Place, at_least_one, item_from, legible


def read_text_set(source: InputFile, target: InputFile, context_from: Sequence[str]) -> list[Item]:
    """The right translation first, its wrong ones on the lines after it, each beside the same source line.

    `context_from` names a file with the source lines before, and may name one with the target lines: the same number
    for each line of the set, empty where a document has no more.
    """
    if len(context_from) > 2:
        raise DocnmtError("--context-from takes a source and a target context file\n  Name one or two.")
    sources, targets = _lines(source), _lines(target)
    if len(sources) != len(targets):
        raise DocnmtError(
            f"{source.name} and {target.name}: {len(sources):,} and {len(targets):,} lines\n"
            "  Each line of one belongs to the same line of the other."
        )
    if not sources:
        return at_least_one([], source.name)
    contexts = [_contexts(path, len(sources)) for path in context_from]
    counts = {len(side[0]) for side in contexts}
    if len(counts) > 1:
        raise DocnmtError(
            f"{' and '.join(context_from)}: not as many context lines on both sides\n"
            "  Extract both with the same number of context sentences."
        )
    items = []
    for number, rows in enumerate(_groups(target.name, sources, targets, contexts), 1):
        place = Place(target.name, line=rows[0] + 1)
        if "_eos" in sources[rows[0]].split():
            raise place.bad(
                "several sentences on a line, with _eos between them, and nothing tells which candidate is right",
                "Read the JSON file of the set instead.",
            )
        if len(rows) == 1:
            raise place.bad(
                "a translation without wrong ones after it",
                "On the lines after a right translation are its wrong ones, beside the same source and context.",
            )
        before, gold = _before(contexts, rows[0])
        fields = {
            "document": str(number),
            "phenomenon": source.stem.split(".")[0],
            "source": sources[rows[0]],
            "right": targets[rows[0]],
            "wrong": [targets[row] for row in rows[1:]],
            "previous": before,
            "previous_target": gold,
        }
        items.append(item_from(fields, place))
    return items


def _groups(
    name: str, sources: list[str], targets: list[str], contexts: Sequence[Sequence[tuple[str, ...]]]
) -> list[list[int]]:
    """The rows of each item: those beside the same source and contexts.

    Items one after another may have the same source and contexts: then a translation comes again. (The right one right
    after itself is a wrong one that is the same: a tie.) They have as many translations each, or nothing tells where
    the second begins.
    """
    groups: list[list[int]] = []
    for row, line in enumerate(targets):
        alike = row > 0 and all(column[row] == column[row - 1] for column in (sources, *contexts))
        known = {targets[other] for other in groups[-1]} if alike else set()
        if alike and (line not in known or len(groups[-1]) == 1):
            groups[-1].append(row)
        else:
            groups.append([row])
    for first, second in pairwise(groups):
        alike = all(column[first[0]] == column[second[0]] for column in (sources, *contexts))
        if alike and len(first) != len(second):
            raise Place(name, line=second[0] + 1).bad(
                "another item with the same source as the one before, and nothing tells where it begins",
                "Name the context files with --context-from, or read the JSON file of the set.",
            )
    return groups


def _before(contexts: Sequence[Sequence[tuple[str, ...]]], row: int) -> tuple[list[str], list[str]]:
    """The context lines of a row, without the empty ones that stand for what is before the document."""
    beside = zip(*(side[row] for side in contexts), strict=True)
    kept = list(dropwhile(lambda lines: not any(line.strip() for line in lines), beside))
    return [lines[0] for lines in kept], [lines[1] for lines in kept if len(lines) == 2]


def _contexts(path: str, rows: int) -> list[tuple[str, ...]]:
    with InputFile(path) as file:
        lines = _lines(file)
    count, rest = divmod(len(lines), rows)
    if rest or not count:
        raise DocnmtError(
            f"{path}: {len(lines):,} context lines for a set of {rows:,}\n"
            "  The same number of lines goes before each line of the set, empty ones where there are no more."
        )
    return [tuple(lines[row * count : (row + 1) * count]) for row in range(rows)]


def _lines(file: InputFile) -> list[str]:
    return [legible(line, file.name, number) for number, line in enumerate(file.lines(MAX_CHARACTERS), 1)]
