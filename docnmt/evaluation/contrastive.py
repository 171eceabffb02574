"""How a model does on contrastive items, with its context and without.

It scores the candidates, and it can be asked to translate. A model may
prefer the right candidate and still write the other word, or a sentence with neither; so the two
stand side by side.
"""

from __future__ import annotations

import random
import re
import string
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from docnmt.base.errors import DocnmtError
from docnmt.decoding.scoring import OFF, Choice
from docnmt.decoding.translator import Translator
from docnmt.document import Document
from docnmt.evaluation.contrastive_items import Item, Passage
from docnmt.text.scripts import CJK

# How a model was used: columns.
WITH, SHUFFLED, WITHOUT, SENTENCE = "with context", "shuffled context", "no context", "sentence model"
_NAMES = {"none": WITHOUT, OFF: SENTENCE}

RIGHT, WRONG, NEITHER = "right", "wrong", "neither"  # outcomes
_TOKEN = re.compile(rf"[{CJK}]|[^\W_]+")  # a word, or a character where no spaces separate words
_NO_PUNCTUATION = str.maketrans("", "", string.punctuation)


def uses(translator: Translator, context: str | None, shuffled: bool = False) -> dict[str, str | None]:
    """The ways to score a set with a model, as contexts: all that show what context does, or the one requested."""
    if not translator.card.context.active:
        return {SENTENCE: None}
    if context in _NAMES:
        return {_NAMES[context]: context}
    wrong = {SHUFFLED: context} if shuffled else {}
    return {WITH: context, **wrong, WITHOUT: "none", SENTENCE: OFF}


def with_shuffled_contexts(items: Sequence[Item], seed: int = 1) -> list[Item]:
    """Each item with the context of an item of another document."""
    if len({item.document for item in items}) < 2:
        raise DocnmtError(
            "shuffled contexts come from other documents, but the set has only one\n"
            "  Give a set with items from several documents."
        )
    generator, result = random.Random(seed), []
    for item in items:
        other = item
        while other.document == item.document:
            other = generator.choice(items)
        before, gold = other.previous, other.previous_target
        result.append(replace(item, previous=before, following=other.following, previous_target=gold))
    return result


# ---- which candidate is most probable ----


@dataclass(frozen=True)
class Verdict:
    """What a model says of one item: the log-probability of each candidate, the right one's first."""

    scores: tuple[float, ...]
    right: bool

    @property
    def outcome(self) -> str:
        return RIGHT if self.right else WRONG

    def as_dict(self) -> dict[str, Any]:
        right, *wrong = self.scores
        return {"preferred": self.right, "right": right, "wrong": wrong}


def judge(
    translator: Translator, items: Sequence[Item], context: str | None, tick: Callable[[], Any] = lambda: None
) -> list[Verdict]:
    """Scores all candidates of all items; the score of several sentences is the sum of theirs."""
    choices = _choices(items, target_contexts(translator, items, context))
    scores = translator.score_choices(choices, context=context)
    verdicts = []
    for item in items:
        sentences = [next(scores) for _ in item.source]
        totals = [sum(found[n].total for found in sentences) for n in range(len(item.candidates))]
        # The same text twice is a tie, whatever the last digits of its two scores.
        right = all(totals[0] > other for other in totals[1:]) and item.right not in item.wrong
        verdicts.append(Verdict(tuple(totals), right))
        tick()
    return verdicts


def sees_translations(translator: Translator, context: str | None) -> bool:
    rule = translator.rule(context)
    return rule.sees_translations and rule.spec.previous > 0


def target_contexts(translator: Translator, items: Sequence[Item], context: str | None) -> list[Passage]:
    """For each item the translations of its `previous`: the set's, or, where it has none and the
    model sees them, the model's own. Those too far off to be seen are left empty."""
    found = [item.previous_target for item in items]
    rule = translator.rule(context)
    if not sees_translations(translator, context):
        return found
    bare = [n for n, item in enumerate(items) if not item.previous_target]
    documents = (Document(items[n].document, items[n].previous[-rule.spec.previous :]) for n in bare)
    for n, translated in zip(bare, translator.translate_documents(documents, context=context), strict=True):
        near = [sentence.text for sentence in translated.sentences]
        found[n] = (*[""] * (len(items[n].previous) - len(near)), *near)
    return found


def _choices(items: Sequence[Item], before: Sequence[Passage]) -> Iterator[Choice]:
    """Each sentence to be scored, in the document that its item makes. In a passage, what a
    candidate says of the earlier sentences is part of its context."""
    for item, known in zip(items, before, strict=True):
        document = Document(item.document, (*item.previous, *item.source, *item.following))
        for place in range(len(item.source)):
            yield Choice(
                document,
                len(item.previous) + place,
                [candidate[place] for candidate in item.candidates],
                [(*known, *candidate[:place]) for candidate in item.candidates],
            )


# ---- what the model writes itself ----


@dataclass(frozen=True)
class Written:
    translation: str
    outcome: str

    @property
    def right(self) -> bool:
        return self.outcome == RIGHT

    def as_dict(self) -> dict[str, Any]:
        return {"translation": self.translation, "generative": self.outcome}


def write(
    translator: Translator, items: Sequence[Item], context: str | None, tick: Callable[[], Any] = lambda: None
) -> list[Written]:
    """Translates the sentences of all items, each in its context; a system that sees the
    translations of its context translates that, too."""
    spec = translator.rule(context).spec
    asked, around = [], []
    for item in items:
        previous = item.previous[max(0, len(item.previous) - spec.previous) :]
        following = item.following[: spec.following]
        asked.append(Document(item.document, (*[""] * len(previous), *item.source, *[""] * len(following))))
        around.append(Document(item.document, (*previous, *item.source, *following)))
    written = []
    results = translator.translate_documents(asked, context_from=around, context=context)
    for item, result in zip(items, results, strict=True):
        text = " ".join(sentence.text for sentence in result.sentences if sentence.text)
        written.append(Written(text, outcome(item, text)))
        tick()
    return written


def outcome(item: Item, translation: str) -> str:
    """Right: a word that only the right candidate has, and none that only wrong ones have. Where a
    set names the expected word, the translation has to have that."""
    if item.expected:  # by the rule of ctxpro's own script: lower case, no punctuation, between spaces
        words = " ".join(translation.lower().translate(_NO_PUNCTUATION).split())
        return RIGHT if f" {item.expected.lower()} " in f" {words} " else NEITHER
    right, wrong = decisive(item)
    found = set(_tokens((translation,)))
    if not found.isdisjoint(wrong):
        return WRONG
    return NEITHER if found.isdisjoint(right) else RIGHT


class Decisive(NamedTuple):
    """The words that tell the candidates of an item apart."""

    right: tuple[str, ...]  # words of the right translation that a wrong one lacks, in its order
    wrong: tuple[str, ...]  # words of wrong translations that the right one lacks


def decisive(item: Item) -> Decisive:
    right = _tokens(item.right)
    counts = Counter(right)
    wrong = [Counter(_tokens(candidate)) for candidate in item.wrong]
    missing = set().union(*(counts - other for other in wrong))
    added = dict.fromkeys(word for other in wrong for word in other - counts)
    return Decisive(tuple(dict.fromkeys(word for word in right if word in missing)), tuple(added))


def _tokens(passage: Passage) -> list[str]:
    return [word for sentence in passage for word in _TOKEN.findall(sentence.lower())]
