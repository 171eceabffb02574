"""Parts of a test set: domains and documents."""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from docnmt.base.errors import DocnmtError
from docnmt.evaluation.outputs import References

OTHER = "other"


@dataclass(frozen=True, eq=False)
class Part:
    """Some documents of a test set: all of them, a domain, or one."""

    kind: str  # "all", "domain", "document"
    name: str
    documents: NDArray[np.int64]
    sentences: int

    @property
    def title(self) -> str:
        return f"{_count(len(self.documents), 'document')}, {_count(self.sentences, 'sentence')}"


def all_of(references: References) -> Part:
    return _part("all", "all", range(len(references.ids)), references)


def domains_of(references: References, groups: Sequence[str] = ()) -> list[Part]:
    return [_part("domain", *domain, references) for domain in by_domain(references.ids, groups).items()]


def by_domain(ids: Sequence[str], groups: Sequence[str] = ()) -> dict[str, list[int]]:
    """The domains of a test set: documents whose ids begin alike, up to a colon or with one of a group's prefixes.

    A group is `NAME=prefix,prefix`; where several prefixes fit, the longest counts. Not every prefix needs to have a
    document (a corpus may have more sources than its test set), but every group does.
    """
    prefixes = _prefixes(groups, ids)
    members: dict[str, list[int]] = {}
    for number, name in enumerate(ids):
        fitting = [prefix for prefix in prefixes if name.startswith(prefix)]
        beginning, colon, _ = name.partition(":")
        own = prefixes[max(fitting, key=len)] if fitting else beginning if colon and not groups else OTHER
        members.setdefault(own, []).append(number)
    names = [*prefixes.values()] if groups else sorted(members.keys() - {OTHER})
    ordered = dict.fromkeys((*names, OTHER))
    return {name: members[name] for name in ordered if name in members}


def _prefixes(groups: Sequence[str], ids: Sequence[str]) -> dict[str, str]:
    """The domain of each prefix."""
    prefixes: dict[str, str] = {}
    for group in groups:
        domain, _, listed = (part.strip() for part in group.partition("="))
        for prefix in map(str.strip, listed.split(",")):
            if not domain or not prefix:
                raise DocnmtError(f"cannot read the domain {group!r}\n  Write NAME=prefix,prefix.")
            if prefix in prefixes:
                raise DocnmtError(f"{prefix!r} is listed twice among the domains\n  List it once.")
            prefixes[prefix] = domain
    used = {prefix for prefix in prefixes if any(name.startswith(prefix) for name in ids)}
    left_over = {name.partition(":")[0] for name in ids if not name.startswith(tuple(used))}
    for prefix, domain in prefixes.items():
        misspelt = difflib.get_close_matches(prefix, left_over, n=1, cutoff=0.75)
        if prefix not in used and misspelt:
            raise DocnmtError(f"no document's id begins with {prefix!r}\n  Did you mean {misspelt[0]!r}?")
        if not any(prefixes[other] == domain for other in used):
            raise DocnmtError(f"no document is in the domain {domain!r}\n  Ids look like {ids[0]!r}.")
    return prefixes


def documents_of(references: References) -> list[Part]:
    order = sorted(range(len(references.ids)), key=lambda number: references.ids[number])
    return [_part("document", references.ids[number], [number], references) for number in order]


def _part(kind: str, name: str, documents: Sequence[int], references: References) -> Part:
    chosen = np.array(documents, dtype=np.int64)
    return Part(kind, name, chosen, int(np.isin(references.documents, chosen).sum()))


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"
