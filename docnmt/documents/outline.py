"""What was written into XML, read again: still well-formed, and with every element that was there where it was."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from xml.parsers import expat

from docnmt.base.errors import DocnmtError

_REMEDY = "This is a fault of docnmt: nothing was written. Report it with the file, please."
_XML = "http://www.w3.org/XML/1998/namespace"


class Outline:
    """How often each element stands where, which no translation changes but for what a kind of file says."""

    def __init__(
        self,
        namespaces: Mapping[str, str],
        inline: frozenset[str] | Callable[[str], bool] = frozenset(),
        free: Callable[[str, Mapping[str, str]], bool] = lambda name, attributes: False,
        added: frozenset[str] = frozenset(),
    ):
        """`namespaces` gives the prefixes for names. `inline` elements move among the words, into each other and out
        again. `free` ones come and go, but not what is in them; `added` ones do with all that is in them."""
        self._prefixes = {**namespaces, _XML: "xml"}
        self._inline = inline.__contains__ if isinstance(inline, frozenset) else inline
        self._free, self._added = free, added
        self._names: dict[str, str] = {}
        self._paths: dict[tuple[int, str], int] = {}  # a number for each path: its parent's and a name

    def checked(self, old: bytes, new: bytes, name: str) -> bytes:
        """`new`, if it can stand for `old`. What was no XML before need not be any."""
        try:
            before = self._counts(old)
        except (expat.ExpatError, ValueError, LookupError):
            return new
        try:
            after = self._counts(new)
        except expat.ExpatError as error:
            problem = f"{expat.errors.messages[error.code]} in line {error.lineno} of its translation"
            raise DocnmtError(f"{name}: {problem}, which would be no XML\n  {_REMEDY}") from error
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
            name = self._short(raw)
            if skipped or name in self._added:
                skipped += 1
                return
            parent = around[-1]
            if self._free(name, {self._short(key): value for key, value in attributes.items()}):
                around.append(parent)
                return
            path = self._paths.setdefault((parent, name), len(self._paths) + 1)
            found[path] += 1
            around.append(parent if self._inline(name) else path)

        def end(raw: str) -> None:
            nonlocal skipped
            if skipped:
                skipped -= 1
            else:
                around.pop()

        parser = expat.ParserCreate(namespace_separator=" ")
        parser.UseForeignDTD(True)  # else the name of an entity in a page without a DOCTYPE would be an error
        parser.StartElementHandler, parser.EndElementHandler = start, end
        parser.Parse(data, True)
        return found

    def _short(self, raw: str) -> str:
        if raw not in self._names:
            address, _, local = raw.rpartition(" ")
            prefix = self._prefixes.get(address)
            if prefix is None:
                local = f"{{{address}}}{local}" if address else local
            self._names[raw] = f"{prefix}:{local}" if prefix else local
        return self._names[raw]

    def _spelt(self, path: int) -> str:
        spelt = {number: key for key, number in self._paths.items()}
        names: list[str] = []
        while path:
            path, name = spelt[path]
            names.append(name)
        return "/".join(reversed(names))
