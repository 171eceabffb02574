"""What a translation must not change: %s, {name}, <b>, &amp;, addresses, escapes.

First the model translates them: it knows best where they belong. If one is lost, changed or doubled, the
sentence is translated without them, and they are put back next to the words they were at.
"""

from __future__ import annotations

import re
from collections import Counter, deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import repeat

from docnmt.documents.segment import Change, Mark, Segment, Span, Splice
from docnmt.text.scripts import in_spaced_word

# A quick test that rules out nearly all sentences.
_HINT = re.compile(r"[%{$<&@\\]|://|www\.")

_OPENING, _CLOSING = "(«“", ".,;:!?…)»”"

_ASCII = r"!#-;=?-Z\[\]_a-z~\u00c0-\u024f"  # of an address; not quotes and angles, nor Chinese that follows at once
_PLACEHOLDER = re.compile(
    rf"""
    (?:https?|ftp|file|mailto|tel):(?://)?[{_ASCII}]{{1,2000}}(?<![.,;:!?)\]'*_])
  | \bwww\.[{_ASCII}]{{1,2000}}(?<![.,;:!?)\]'*_])
  | (?<![\w.+-])[\w.+-]{{1,64}}@\w[\w-]{{0,62}}(?:\.[\w-]{{1,63}})++
  | <(?:!--[^<]{{0,1000}}?--|[/?!]?[A-Za-z](?:[^<>"']|"[^"<]{{0,500}}"|'[^'<]{{0,500}}'|["']){{0,500}}+)>
  | &(?:[A-Za-z][A-Za-z0-9]{{1,31}}|\#[0-9]{{1,7}}|\#[xX][0-9A-Fa-f]{{1,6}});
  # messages with plural forms: as a whole, since what is inside is not a sentence
  | \{{[^{{}}]{{1,80}},\s?(?:plural|select|selectordinal|choice)\s?,
    (?:[^{{}}]|\{{(?:[^{{}}]|\{{[^{{}}]{{0,200}}\}})*+\}})*+\}}
  | \{{\s?\w{{1,80}}\s?,\s?(?:number|date|time|spellout|ordinal|duration|list)\b[^{{}}]{{0,200}}\}}
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


# A program fills these in by position: their order must not change.
_IN_ORDER = re.compile(r"%[-+#0]{0,3}(?:[0-9]{1,4}|\*)?(?:\.(?:[0-9]{1,4}|\*))?[hlLzjtq]{0,2}[A-Za-z@]|\{\}")


def find(text: str) -> list[Span]:
    if not _HINT.search(text):
        return []
    return [found.span() for found in _PLACEHOLDER.finditer(text)]


def counts(text: str) -> Counter[str]:
    """How often each occurs in a text."""
    return Counter(text[start:end] for start, end in find(text))


def without(text: str) -> str:
    """A translation without the placeholders that a model made up."""
    return _replaced(text, find(text), repeat(""))


def in_order(text: str, source: str) -> str:
    """A translation with its source's placeholders; those without number or name are in the source's order."""
    wanted = (source[start:end] for start, end in find(source) if _IN_ORDER.fullmatch(source, start, end))
    return _replaced(text, [span for span in find(text) if _IN_ORDER.fullmatch(text, *span)], wanted)


def _replaced(text: str, spans: Sequence[Span], codes: Iterable[str]) -> str:
    return Splice(text, [Change(*span, (code,)) for span, code in zip(spans, codes, strict=False)]).whole()


@dataclass(frozen=True, slots=True)
class Placeholder(Mark):
    """A mark in a sentence from which a placeholder was taken out."""

    text: str = ""
    before: str = ""  # the characters that stood beside it
    after: str = ""


def take_out(text: str, marks: Sequence[Mark]) -> Segment:
    """A sentence without its placeholders: they are marks like the others."""
    pieces: list[str] = []
    kept: list[Mark] = []
    waiting = deque(marks)
    length = end = 0  # of the text kept so far, and in the old text

    def keep(until: int) -> None:
        nonlocal length, end
        while waiting and waiting[0].at <= until:
            mark = waiting.popleft()
            kept.append(replace(mark, at=length + max(0, mark.at - end)))
        pieces.append(text[end:until])
        length, end = length + until - end, until

    for start, stop in find(text):
        keep(start)
        before, after = text[start - 1 : start], text[stop : stop + 1]
        kept.append(Placeholder(length, "", text=text[start:stop], before=before, after=after))
        # one space of two, and none at the beginning
        end = stop + (after.isspace() and (before.isspace() or not length))
        while waiting and waiting[0].at < end:  # inside of it
            kept.append(replace(waiting.popleft(), at=length))
    keep(len(text))
    return Segment("".join(pieces), tuple(kept))


def put_back(text: str, marks: Sequence[Mark], bare: Segment) -> tuple[str, list[Mark]]:
    """The translation of a bare sentence with the placeholders at their marks, and where the other marks are then."""
    taken = [mark.text for mark in bare.marks if isinstance(mark, Placeholder)]
    ordered = filter(_IN_ORDER.fullmatch, taken)
    pieces: list[str] = []
    left: list[Mark] = []
    length = at = 0
    for mark in marks:
        pieces.append(text[at : mark.at])
        length, at = length + mark.at - at, mark.at
        if not isinstance(mark, Placeholder):
            left.append(replace(mark, at=length))
            continue
        code = next(ordered) if _IN_ORDER.fullmatch(mark.text) else mark.text
        written = next(filter(None, reversed(pieces)), "")
        space_before = _needs_space(mark.before, written[-1:], _OPENING)
        space_after = _needs_space(mark.after, text[at : at + 1], _CLOSING)
        pieces.append(" " * space_before + code + " " * space_after)
        length += len(pieces[-1])
    pieces.append(text[at:])
    return "".join(pieces), left


def _needs_space(was: str, now: str, no_word: str) -> bool:
    """Whether to put a space between a placeholder and what is beside it now: if there was one before, or if a word is
    there now that was not. Both are empty at the ends of the sentence."""
    return bool(now) and (not now.isspace() if was.isspace() else was in no_word and in_spaced_word(now))
