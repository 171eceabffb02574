"""Names in an XML file, and its outline: what is written is read again, and must have every element where it was."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Set
from enum import Enum
from xml.parsers import expat

from docnmt.base.errors import DocnmtError

_XML = "http://www.w3.org/XML/1998/namespace"
_REMEDY = "This is a bug in docnmt: nothing was written. Please report it with the file."


class Names(dict[str, str]):
    """Names with the prefixes of `namespaces` for names as expat gives them; with the address in braces for those in
    other namespaces."""

    def __init__(self, namespaces: Mapping[str, str]):
        self._prefixes = {**namespaces, _XML: "xml", "": ""}

    def __missing__(self, name: str) -> str:
        address, _, local = name.rpartition(" ")
        prefix = self._prefixes.get(address)
        self[name] = short = f"{{{address}}}{local}" if prefix is None else f"{prefix}:{local}" if prefix else local
        return short


class Inline(Enum):
    """What an element inside a paragraph is to its text."""

    AROUND = "around"  # it holds text: bold, a link
    UNSEEN = "unseen"  # it holds text and has no visible effect
    ALONE = "alone"  # it stays as it is, with everything in it
    GAP = "gap"  # the same, and it separates words like a space


def all_alone(name: str, attributes: Mapping[str, str]) -> Inline:
    return Inline.ALONE


class Outline:
    """How often each element occurs under each path. A translation must not change that, with exceptions by kind."""

    def __init__(
        self,
        namespaces: Mapping[str, str],
        inline: Callable[[str, Mapping[str, str]], Inline] = all_alone,
        added: Set[str] = frozenset(),
    ):
        """`namespaces` gives the prefixes for names. Of `inline` elements those around text may move, also into
        each other and out again; unseen ones may come and go, but not their content; `added` ones may come and go with
        it."""
        self.namespaces, self._names = namespaces, Names(namespaces)
        self._inline, self._added = inline, added
        # Each path is a number, by its parent's and a name: as strings, the paths of a hostile file would fill memory.
        self._paths: dict[tuple[int, str], int] = {}

    def checked(self, old: bytes, new: bytes, name: str) -> bytes:
        """`new`, if it can replace `old`. What was not XML before need not be XML."""
        try:
            before = self._counts(old)
        except (expat.ExpatError, ValueError, LookupError):
            return new
        try:
            after = self._counts(new)
        except expat.ExpatError as error:
            problem = f"{expat.errors.messages[error.code]} in line {error.lineno} of its translation"
            raise DocnmtError(f"{name}: {problem}, which would not be XML\n  {_REMEDY}") from error
        for what, changed in (("lost from", before - after), ("put into", after - before)):
            for path in changed:
                raise DocnmtError(f"{name}: {self._spelt(path)} would be {what} its translation\n  {_REMEDY}")
        return new

    def _counts(self, data: bytes) -> Counter[int]:
        found: Counter[int] = Counter()
        around = [0]  # the paths of the elements that are open, as their children see them
        skipped = 0  # how deep in what is added

        def start(raw: str, attributes: dict[str, str]) -> None:
            nonlocal skipped
            name, parent = self._names[raw], around[-1]
            if skipped or name in self._added:
                skipped += 1
                return
            kind = self._inline(name, {self._names[key]: value for key, value in attributes.items()})
            path = parent
            if kind is not Inline.UNSEEN:
                path = self._paths.setdefault((parent, name), len(self._paths) + 1)
                found[path] += 1
            around.append(parent if kind is Inline.AROUND else path)

        def end(raw: str) -> None:
            nonlocal skipped
            if skipped:
                skipped -= 1
            else:
                around.pop()

        parser = expat.ParserCreate(namespace_separator=" ")
        parser.UseForeignDTD(True)  # otherwise named entities would be errors in pages without a DOCTYPE
        parser.StartElementHandler, parser.EndElementHandler = start, end
        parser.Parse(data, True)
        return found

    def _spelt(self, path: int) -> str:
        keys = {number: key for key, number in self._paths.items()}
        names: list[str] = []
        while path:
            path, name = keys[path]
            names.insert(0, name)
        return "/".join(names)
