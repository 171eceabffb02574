"""ctxpro (Wicks and Post 2023, "Identifying Context-Dependent Translations for Evaluation Set Production").

A JSON list of sentences, each with the word that its translation must have (`expected`) and the rule by which it was
found; there are no wrong candidates, so a model is asked to translate. The contexts are in a text file beside it, a
line an item: the sentences before, and the sentence itself last, each but the last followed by `<eos>`.
"""

from __future__ import annotations

import re
import string
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from docnmt.base.errors import DocnmtError
from docnmt.base.lines import MAX_CHARACTERS, SENTENCES_PER_LINE, InputFile
from docnmt.evaluation.contrastive_items import Item, legible
from docnmt.text.words import letters

_BETWEEN = re.compile(r"\s*<eos>\s*")
_STRAYED = 0.05  # the share of lines that may be another sentence's: more is another set's file
_NO_PUNCTUATION = str.maketrans("", "", string.punctuation)


def ctxpro_fields(record: Mapping[str, Any], _: int) -> dict[str, Any]:
    distance = record.get("ante distance")
    return {
        "document": record["document id"],
        "phenomenon": record["rule"],
        "distance": None if distance is None or distance < 0 else distance,
        "source": " ".join(record["src segment"].split()),
        "right": " ".join(record["ref segment"].split()),
        "wrong": [],
        "expected": record["expected"],
    }


def with_contexts(items: list[Item], name: str, context_from: Sequence[str]) -> list[Item]:
    """The items with the sentences before them, from the file that is given with the set."""
    if not context_from:
        return items
    if len(context_from) > 1:
        raise DocnmtError("--context-from takes the one file of inputs that belongs to a ctxpro set\n  Name one.")
    (path,) = context_from
    with InputFile(path) as file:
        lines = [
            legible(line, file.name, number)
            for number, line in enumerate(file.lines(MAX_CHARACTERS * SENTENCES_PER_LINE), 1)
        ]
    if len(lines) != len(items):
        raise DocnmtError(
            f"{path}: {len(lines):,} lines for the {len(items):,} items of {name}\n"
            "  Name the file of inputs with the same name as the set."
        )
    parts = [_BETWEEN.split(line.strip()) for line in lines]
    own = [letters(sentences[-1]) == letters(item.source[0]) for sentences, item in zip(parts, items, strict=True)]
    if own.count(False) > _STRAYED * len(items):
        first = own.index(False)
        raise DocnmtError(
            f"{path}, line {first + 1}: does not end with the source sentence of item {first + 1} of {name}\n"
            "  Name the inputs that belong to the set, with <eos> after each sentence of the context."
        )
    return [
        replace(item, previous=tuple(sentences[:-1]) if fits else ())
        for item, sentences, fits in zip(items, parts, own, strict=True)
    ]


def has_expected(translation: str, expected: str) -> bool:
    """By the rule of the set's own script: in lower case, without marks of punctuation, between spaces."""
    words = " ".join(translation.lower().translate(_NO_PUNCTUATION).split())
    return f" {expected.lower()} " in f" {words} "
