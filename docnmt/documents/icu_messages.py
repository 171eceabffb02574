"""ICU messages with choices: `You have {n, plural, one {# letter} other {# letters}}.`

A piece of a sentence cannot be translated alone, so a choice is widened to the whole message: what is translated is
"You have {n} letter." and "You have {n} letters.", and what is written is a choice between the two.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from docnmt.documents.messages import Message, message
from docnmt.documents.segment import Segment

HAS_CHOICE = re.compile(r"\{\s*[\w.-]+\s*,\s*(?:plural|selectordinal|select)\s*,")
_HEAD = re.compile(r"\{\s*([\w.-]+)\s*,\s*(plural|selectordinal|select)\s*,(\s*offset:\s*\d+)?\s*")
_SELECTOR = re.compile(r"\s*(=?[\w.-]+)\s*\{")
_QUOTED = re.compile(r"'[{}|]")
# More sentences than this out of one message, or braces deeper than this: nobody wrote it by hand.
_MAX_SENTENCES = 64
_MAX_DEPTH = 10


class _Unreadable(Exception):
    """The message does not follow the syntax, or cannot be widened."""


@dataclass(frozen=True, slots=True)
class _Choice:
    argument: str
    kind: str
    offset: str
    branches: tuple[tuple[str, tuple[_Node, ...]], ...]  # selector, content


_Node = str | _Choice


@dataclass(frozen=True, slots=True)
class _Sentence:
    """One way through all choices."""

    message: Message
    number: str  # the argument that # stands for, written {argument} in the text; "" where there is none
    doubled: bool  # apostrophes are written twice

    def written(self, translations: Sequence[Segment]) -> str:
        text = self.message.written(translations)
        text = text.replace("'", "''") if self.doubled else re.sub("'(?=[{}#])", "''", text)
        return text.replace(f"{{{self.number}}}", "#") if self.number else text


@dataclass(frozen=True, slots=True)
class _Widened:
    choice: _Choice
    branches: tuple[tuple[str, _Widened | _Sentence], ...]

    def sentences(self) -> Iterator[_Sentence]:
        for _, branch in self.branches:
            if isinstance(branch, _Sentence):
                yield branch
            else:
                yield from branch.sentences()

    def written(self, texts: Iterator[str]) -> str:
        branches = [
            f"{selector} {{{next(texts) if isinstance(branch, _Sentence) else branch.written(texts)}}}"
            for selector, branch in self.branches
        ]
        return f"{{{self.choice.argument}, {self.choice.kind},{self.choice.offset} {' '.join(branches)}}}"


@dataclass(frozen=True, slots=True)
class IcuMessage:
    text: str
    widened: _Widened

    @property
    def segments(self) -> tuple[Segment, ...]:
        return tuple(segment for sentence in self.widened.sentences() for segment in sentence.message.segments)

    def written(self, translations: Sequence[Segment]) -> str:
        if all(
            (new.text, new.marks) == (old.text, old.marks) for new, old in zip(translations, self.segments, strict=True)
        ):
            return self.text
        left = iter(translations)
        texts = [s.written([next(left) for _ in s.message.segments]) for s in self.widened.sentences()]
        return self.widened.written(iter(texts))


def icu_message(text: str) -> IcuMessage | None:
    """None where the message is to be left as it is: broken, or with choices that cannot be told apart from text."""
    if _QUOTED.search(text):
        return None
    try:
        nodes, _ = _parsed(text, 0, 0)
        widened = _widen(nodes, "", [_MAX_SENTENCES])
    except _Unreadable:
        return None
    return IcuMessage(text, widened) if isinstance(widened, _Widened) else None


def _parsed(text: str, at: int, depth: int) -> tuple[tuple[_Node, ...], int]:
    """The nodes from `at` to the brace that closes them, or to the end; and where that is."""
    if depth > _MAX_DEPTH:
        raise _Unreadable
    nodes: list[_Node] = []
    while at < len(text) and text[at] != "}":
        if text[at] != "{":
            end = next((i for i in range(at, len(text)) if text[i] in "{}"), len(text))
            nodes.append(text[at:end])
            at = end
        elif head := _HEAD.match(text, at):
            branches: list[tuple[str, tuple[_Node, ...]]] = []
            at = head.end()
            while selector := _SELECTOR.match(text, at):
                content, at = _parsed(text, selector.end(), depth + 1)
                branches.append((selector[1], content))
                at = _after(text, at, "}")
            at = _after(text, at, "}")
            nodes.append(_Choice(head[1], head[2], (head[3] or "").rstrip(), tuple(branches)))
        else:
            end = text.find("}", at) + 1
            if not end or "{" in text[at + 1 : end]:
                raise _Unreadable
            nodes.append(text[at:end])
            at = end
    if not depth and at < len(text):
        raise _Unreadable
    return tuple(nodes), at


def _after(text: str, at: int, wanted: str) -> int:
    while text[at : at + 1].isspace():
        at += 1
    if text[at : at + 1] != wanted:
        raise _Unreadable
    return at + 1


def _widen(nodes: tuple[_Node, ...], number: str, left: list[int]) -> _Widened | _Sentence:
    at = next((i for i, node in enumerate(nodes) if isinstance(node, _Choice)), None)
    if at is None:
        left[0] -= 1
        if left[0] < 0:
            raise _Unreadable
        return _sentence("".join(str(node) for node in nodes), number)
    choice = nodes[at]
    assert isinstance(choice, _Choice)
    around = nodes[:at], nodes[at + 1 :]
    counts = choice.kind != "select"
    # A # that stands outside of this choice would mean another number inside of it.
    if not choice.branches or (counts and any("#" in str(node) for side in around for node in side)):
        raise _Unreadable
    inside = choice.argument if counts else number
    branches = [(name, _widen((*around[0], *content, *around[1]), inside, left)) for name, content in choice.branches]
    return _Widened(choice, tuple(branches))


def _sentence(raw: str, number: str) -> _Sentence:
    used = number if "#" in raw and f"{{{number}}}" not in raw else ""
    text = raw.replace("''", "'")
    return _Sentence(message(text.replace("#", f"{{{used}}}") if used else text), used, "''" in raw)
