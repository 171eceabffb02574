"""Errors meant for people: each says what is wrong, where, and what to do about it."""

from __future__ import annotations

import difflib
import re
import sys
from collections import Counter
from collections.abc import Callable, Iterable
from pathlib import Path

_HERE = Path(__file__).parents[2]  # the clone; for a docnmt that was installed from a wheel, what holds all packages


class DocnmtError(Exception):
    """A problem that the user can fix. The command line prints it without a traceback."""


def install_again() -> str:
    """The command that installs docnmt again, as it was installed, and builds its C extension."""
    command = f"{sys.executable} -m pip install --force-reinstall --no-deps"
    if (_HERE / "setup.py").exists():
        return f'{command} --editable "{_HERE}"'
    return f"{command} FOLDER, where FOLDER has docnmt's source"


def missing_extra(what: str, extra: str) -> DocnmtError:
    """For a missing optional dependency; the message gives the command that installs it for this Python.

    The command names the extra's packages, which works however docnmt was installed.
    """
    from importlib import metadata  # slow to import, and seldom needed

    try:
        listed = [line.partition(";") for line in metadata.requires("docnmt") or ()]
    except metadata.PackageNotFoundError:
        listed = []
    packages = [name.strip() for name, _, when in listed if re.search(rf"extra == .{extra}\b", when)]
    wanted = " ".join(f'"{package}"' for package in packages)
    if not packages:  # a clone that is not installed, or was installed before this extra existed
        wanted = f'--editable "{_HERE}[{extra}]"'
    return DocnmtError(f"{what}\n  Install it: {sys.executable} -m pip install {wanted}")


def nearest(given: str, known: Iterable[str], otherwise: str) -> str:
    """What the user may have meant; otherwise `otherwise` and all that is known."""
    known = list(known)
    near = difflib.get_close_matches(given, known, n=1)
    return f"Did you mean {near[0]!r}?" if near else f"{otherwise} {', '.join(known)}."


class BadInput(DocnmtError):
    """One bad place in somebody's data.

    `kind` is a short stable name ("empty side", "bad UTF-8") under which skipped cases are counted.
    """

    def __init__(
        self,
        kind: str,
        problem: str,
        remedy: str,
        *,
        file: str = "",
        document: str = "",
        line: int | None = None,
    ):
        self.kind, self.problem, self.remedy = kind, problem, remedy
        self.file, self.document, self.line = file, document, line
        place = [file] if file else []
        if line is not None:
            place.append(f"line {line}")
        if document:
            place.append(f"document {document}")
        where = ", ".join(place)
        super().__init__(f"{where}: {problem}\n  {remedy}" if where else f"{problem}\n  {remedy}")


# What to do with bad input: raise (the default) or count it and continue (--skip-bad).
OnBad = Callable[[BadInput], None]


def raise_bad(error: BadInput) -> None:
    raise error


class SkipBad:
    """Counts bad places by kind instead of raising, keeping the first of each kind as an example."""

    def __init__(self) -> None:
        self.counts: Counter[str] = Counter()
        self.examples: dict[str, BadInput] = {}

    def __call__(self, error: BadInput) -> None:
        self.counts[error.kind] += 1
        self.examples.setdefault(error.kind, error)

    def report(self) -> str:
        if not self.counts:
            return "skipped nothing"
        lines = [f"skipped {self.counts.total():,} bad places:"]
        for kind, count in self.counts.most_common():
            lines.append(f"  {count:>8,}  {kind}  (first: {str(self.examples[kind]).splitlines()[0]})")
        return "\n".join(lines)


class Interrupted(Exception):
    """SIGINT or SIGTERM: the state is saved, the run can be resumed."""

    def __init__(self, update: int | None, number: int):
        saved = "stopped, but could not save; run the same command to continue from the last checkpoint"
        if update is not None:
            saved = f"stopped and saved at update {update:,}; run the same command to continue from there"
        super().__init__(saved)
        self.signal = number
