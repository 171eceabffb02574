"""The Plural-Forms field of a catalogue: which form a number takes."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

_FIELD = re.compile(r"nplurals\s*=\s*([0-9]{1,2})\s*;\s*plural\s*=\s*([^;]{1,1000})")
_TOKEN = re.compile(r"\s*(\d{1,9}|n\b|\|\||&&|[=!<>]=|[<>!?:%*/+()-])")
_MAX_DEPTH = 50  # of brackets; real ones need three
# C's binary operators, from the loosest on.
_LEVELS: tuple[dict[str, Callable[[int, int], int]], ...] = (
    {"||": lambda a, b: int(bool(a or b))},
    {"&&": lambda a, b: int(bool(a and b))},
    {"==": lambda a, b: int(a == b), "!=": lambda a, b: int(a != b)},
    {
        "<": lambda a, b: int(a < b),
        ">": lambda a, b: int(a > b),
        "<=": lambda a, b: int(a <= b),
        ">=": lambda a, b: int(a >= b),
    },
    {"+": lambda a, b: a + b, "-": lambda a, b: a - b},
    {"*": lambda a, b: a * b, "/": lambda a, b: a // b if b else 0, "%": lambda a, b: a % b if b else 0},
)
# A form that so few numbers take may spell the number out ("one file"), as gettext sees it, too.
_FEW = 5
_NUMBERS = 1001

_Value = Callable[[int], int]


@dataclass(frozen=True, slots=True)
class PluralForms:
    count: int
    of_one: int | None  # the form that 1 takes; None where that is not told, or where all numbers take the same
    few: bool  # it is the form of few numbers: 1, or 0 and 1

    @classmethod
    def parse(cls, field: str) -> PluralForms | None:
        """None where the field tells nothing (a template's has INTEGER and EXPRESSION in it)."""
        found = _FIELD.search(field)
        if found is None or not int(found[1]):
            return None
        count = int(found[1])
        try:
            plural = _Expression(found[2]).parsed()
            forms = [plural(n) for n in range(_NUMBERS)]
        except ValueError:
            return cls(count, None, False)
        if count == 1 or not 0 <= forms[1] < count:
            return cls(count, None, False)
        return cls(count, forms[1], forms.count(forms[1]) <= _FEW)


class _Expression:
    """A C expression in n, as gettext allows it."""

    def __init__(self, text: str):
        self._tokens: list[str] = []
        at = 0
        text = text.strip()
        while at < len(text):
            token = _TOKEN.match(text, at)
            if token is None:
                raise ValueError(text)
            self._tokens.append(token[1])
            at = token.end()
        self._depth = 0

    def parsed(self) -> _Value:
        value = self._condition()
        if self._tokens:
            raise ValueError(self._tokens[0])
        return value

    def _take(self, *wanted: str) -> str:
        if self._tokens and (not wanted or self._tokens[0] in wanted):
            return self._tokens.pop(0)
        return ""

    def _need(self, wanted: str) -> None:
        if not self._take(wanted):
            raise ValueError(wanted)

    def _condition(self) -> _Value:
        self._depth += 1
        if self._depth > _MAX_DEPTH:
            raise ValueError("too deep")
        value = self._binary(0)
        if self._take("?"):
            yes = self._condition()
            self._need(":")
            value = _chosen(value, yes, self._condition())
        self._depth -= 1
        return value

    def _binary(self, level: int) -> _Value:
        if level == len(_LEVELS):
            return self._operand()
        value = self._binary(level + 1)
        while operator := self._take(*_LEVELS[level]):
            value = _combined(_LEVELS[level][operator], value, self._binary(level + 1))
        return value

    def _operand(self) -> _Value:
        negations = 0
        while self._take("!"):
            negations += 1
        token = self._take()
        if token == "(":
            value = self._condition()
            self._need(")")
        elif token == "n":
            value = _number
        elif token.isdecimal():
            value = _constant(int(token))
        else:
            raise ValueError(token)
        for _ in range(min(negations, _MAX_DEPTH)):
            value = _negated(value)
        return value


def _number(n: int) -> int:
    return n


def _constant(value: int) -> _Value:
    return lambda n: value


def _negated(value: _Value) -> _Value:
    return lambda n: int(not value(n))


def _chosen(condition: _Value, yes: _Value, no: _Value) -> _Value:
    return lambda n: yes(n) if condition(n) else no(n)


def _combined(operator: Callable[[int, int], int], left: _Value, right: _Value) -> _Value:
    return lambda n: operator(left(n), right(n))
