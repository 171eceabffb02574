"""Example analysis: sentences that context changed, in the paper's layout.

Chosen by a rule and not by hand: those whose translation gained most in sentence chrF over the sentence model's, and,
as no choice of winners is the whole story, the one that lost most.
"""

from __future__ import annotations

from dataclasses import dataclass

import sacrebleu

from docnmt.base.report import Column, Table
from docnmt.document import ContextSpec, context_sentences
from docnmt.experiments.translations import TestSet

WINNERS = 3


@dataclass(frozen=True)
class Example:
    document: str
    position: int
    context: tuple[str, ...]
    source: str
    reference: str
    plain: str
    informed: str
    gain: float


def find_examples(test: TestSet, plain: list[str], informed: list[str], spec: ContextSpec) -> list[Example]:
    """The winners and the loser, among sentences that have a context."""
    measure = sacrebleu.CHRF(lowercase=True)
    found, place = [], 0
    for document in test.documents:
        for position, source in enumerate(document.source):
            context = context_sentences(document.source, position, spec)
            references = [side[place] for side in test.references]
            if context and plain[place] != informed[place]:
                scores = [measure.sentence_score(text, references).score for text in (plain[place], informed[place])]
                texts = (context, source, references[0], plain[place], informed[place])
                found.append(Example(document.id, position, *texts, scores[1] - scores[0]))
            place += 1
    found.sort(key=lambda example: -example.gain)
    winners = [example for example in found[:WINNERS] if example.gain > 0]
    return winners + [example for example in found[-1:] if example.gain < 0]


def examples_table(examples: list[Example]) -> Table:
    table = Table("Example analysis", (Column("", text=True), Column("text", text=True)))
    for example in examples:
        where = f"{example.document}, sentence {example.position + 1}: {example.gain:+.1f} chrF"
        rows = {
            "Context": " … ".join(example.context),
            "Source": example.source,
            "Reference": example.reference,
            "Transformer": example.plain,
            "Our work": example.informed,
            "": where,
        }
        for number, (name, text) in enumerate(rows.items()):
            table.add(name, text, rule=number == 0 and bool(table.rows))
    won, lost = (sum(sign * example.gain > 0 for example in examples) for sign in (1, -1))
    gained = {0: "No test sentence with a context gained", 1: "The test sentence with a context that gained most"}
    chosen = gained.get(won, f"The {won} test sentences with a context that gained most")
    last = "the one that lost most" if lost else "none that lost"
    table.notes.append(f"{chosen} in sentence chrF over the sentence model, and {last}.")
    return table
