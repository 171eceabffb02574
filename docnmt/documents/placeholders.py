"""What must come through a translation as it is: %s, {name}, <b>, &amp;, addresses, escapes.

A model is trusted with them first: it knows best where they belong. A sentence that comes back with one lost, changed
or doubled is translated without them, and they are put back next to the words they stood at.
"""

from __future__ import annotations

import re
from collections import Counter, deque
from collections.abc import Sequence
from dataclasses import dataclass, replace

from docnmt.documents.segment import Mark
from docnmt.text.scripts import in_spaced_word

Span = tuple[int, int]

# A glance that leaves nearly all sentences alone.
_HINT = re.compile(r"[%{$<&@\\]|://|www\.")

_OPENING, _CLOSING = "(«“", ".,;:!?…)»”"

_ASCII = r"!#-;=?-Z\[\]_a-z~\u00c0-\u024f"  # of an address; not quotes and angles, nor Chinese that follows at once
_PLACEHOLDER = re.compile(
    rf"""
    (?:https?|ftp|file|mailto|tel):(?://)?[{_ASCII}]{{1,2000}}(?<![.,;:!?)\]'*_])
  | \bwww\.[{_ASCII}]{{1,2000}}(?<![.,;:!?)\]'*_])
  | (?<![\w.+-])[\w.+-]{{1,64}}@\w[\w-]{{0,62}}(?:\.[\w-]{{1,63}})+
  | <(?:!--[^<]{{0,1000}}?--|[/?!]?[A-Za-z](?:[^<>"']|"[^"<]{{0,500}}"|'[^'<]{{0,500}}'|["']){{0,500}}+)>
  | &(?:[A-Za-z][A-Za-z0-9]{{1,31}}|\#[0-9]{{1,7}}|\#[xX][0-9A-Fa-f]{{1,6}});
  # messages with forms for several numbers: whole, for what is inside is no sentence
  | \{{[^{{}}]{{1,80}},\s?(?:plural|select|selectordinal|choice)\s?,
    (?:[^{{}}]|\{{(?:[^{{}}]|\{{[^{{}}]{{0,200}}\}})*+\}})*+\}}
  | \$?\{{\{{[^{{}}]{{0,200}}\}}\}}
  | \{{%[^{{}}]{{0,200}}?%\}}
  | [$#%]?\{{[^{{}}\s]{{0,100}}\}}
  | \$(?:t\([^()\n]{{1,200}}|\([\w.]{{1,100}})\)  # $t(key): another message of i18next's
  | \$[A-Za-z_]\w*\$?
  | %%
  | (?<![\w%])%(?!(?:hh|h|ll|l|L|z|j|t|q)?[diouxXeEfFgGaAcsp]%)[A-Za-z_][\w.]{{0,60}}%  # %name%, not two as in %s%s
  | (?<![0-9])%(?:\([\w.\- ]{{1,100}}\)|[0-9]{{1,2}}\$|\[[0-9]{{1,2}}\])?
    [-+\#0]{{0,3}}(?:[0-9]{{1,4}}|\*)?(?:\.(?:[0-9]{{1,4}}|\*))?(?:hh|h|ll|l|L|z|j|t|q)?[diouxXeEfFgGaAcsp@]
  | @@(?:\w{{1,60}}@@)?
  | \b[A-Za-z]:\\[^\s"<>|]{{1,300}}(?<![.,;:!?)\]'])
  | \\(?:u[0-9A-Fa-f]{{4}}|x[0-9A-Fa-f]{{2}}|[nrtabfv0"'\\])
    """,
    re.VERBOSE,
)


# Of these a program fills in the first with the first value, whatever they are called: their order must stay.
_IN_ORDER = re.compile(r"%[-+#0]{0,3}(?:[0-9]{1,4}|\*)?(?:\.(?:[0-9]{1,4}|\*))?[hlLzjtq]{0,2}[A-Za-z@]|\{\}")


def find(text: str) -> list[Span]:
    if not _HINT.search(text):
        return []
    return [found.span() for found in _PLACEHOLDER.finditer(text)]


def counts(text: str, spans: Sequence[Span] | None = None) -> Counter[str]:
    """How often each stands in a text."""
    return Counter(text[start:end] for start, end in (find(text) if spans is None else spans))


def in_order(text: str, source: str) -> str:
    """A translation with the same placeholders as its source, those without number or name in the source's order."""
    spans = [span for span in find(text) if _IN_ORDER.fullmatch(text, *span)]
    wanted = [source[start:end] for start, end in find(source) if _IN_ORDER.fullmatch(source, start, end)]
    pieces: list[str] = []
    end = 0
    for (start, stop), code in zip(spans, wanted, strict=True):
        pieces += text[end:start], code
        end = stop
    return "".join([*pieces, text[end:]])


@dataclass(frozen=True)
class Bare:
    """A sentence without its placeholders: they are marks like the others."""

    text: str
    marks: tuple[Mark, ...]
    taken: tuple[tuple[int, str, str, str], ...]  # which of the marks they are, what, and the characters beside them


def take_out(text: str, spans: Sequence[Span], marks: Sequence[Mark]) -> Bare:
    pieces: list[str] = []
    kept: list[Mark] = []
    taken: list[tuple[int, str, str, str]] = []
    waiting = deque(marks)
    length = end = 0  # of what is kept, and what was looked at

    def keep(until: int) -> None:
        nonlocal length, end
        while waiting and waiting[0].at <= until:
            mark = waiting.popleft()
            kept.append(replace(mark, at=length + max(0, mark.at - end)))
        pieces.append(text[end:until])
        length, end = length + until - end, until

    for start, stop in spans:
        keep(start)
        before, after = text[start - 1 : start], text[stop : stop + 1]
        taken.append((len(kept), text[start:stop], before, after))
        kept.append(Mark(length, ""))
        # one space of two, and none at the beginning
        end = stop + (after.isspace() and (before.isspace() or not length))
        while waiting and waiting[0].at < end:  # inside of it
            kept.append(replace(waiting.popleft(), at=length))
    keep(len(text))
    return Bare("".join(pieces), tuple(kept), tuple(taken))


def put_back(text: str, marks: Sequence[tuple[int, Mark]], bare: Bare) -> tuple[str, list[tuple[int, Mark]]]:
    """Writes the placeholders into the translation of a bare sentence, at their marks, and leaves the other marks.

    Each mark comes with its number among the bare sentence's; the ones that stay keep theirs among the sentence's own.
    """
    spelt = {number: (code, before, after) for number, code, before, after in bare.taken}
    ordered = (code for _, code, _, _ in bare.taken if _IN_ORDER.fullmatch(code))
    own = {number: n for n, number in enumerate(k for k in range(len(bare.marks)) if k not in spelt)}
    pieces: list[str] = []
    left: list[tuple[int, Mark]] = []
    length = at = 0
    for number, mark in marks:
        pieces.append(text[at : mark.at])
        length, at = length + mark.at - at, mark.at
        if number in own:
            left.append((own[number], replace(mark, at=length)))
            continue
        code, before, after = spelt[number]
        code = next(ordered) if _IN_ORDER.fullmatch(code) else code
        written = next(filter(None, reversed(pieces)), "")
        space_before = _needs_space(before, written[-1:], _OPENING)
        space_after = _needs_space(after, text[at : at + 1], _CLOSING)
        pieces.append(" " * space_before + code + " " * space_after)
        length += len(pieces[-1])
    pieces.append(text[at:])
    return "".join(pieces), left


def _needs_space(was: str, now: str, no_word: str) -> bool:
    """Whether there is to be a space between a placeholder and what is beside it now: where there was one, and before
    a word where there was none. Both are empty where the sentence ends."""
    return bool(now) and (not now.isspace() if was.isspace() else was in no_word and in_spaced_word(now))


def without(text: str) -> str:
    """A translation without the placeholders that a model made up."""
    pieces, end = [], 0
    for start, stop in find(text):
        pieces.append(text[end:start])
        end = stop
    return "".join([*pieces, text[end:]]) if pieces else text
