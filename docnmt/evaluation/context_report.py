"""The figures of `docnmt context-gain` as tables and as JSON."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, astuple, dataclass, field
from typing import Any

from docnmt.base.report import Column, Table
from docnmt.evaluation.context_classes import WORDS, WordClasses, by_word_class, class_json
from docnmt.evaluation.context_gain import ContextGain, Domains, Gain, Quality, WordGain
from docnmt.evaluation.controls import NONE, REPEATED, SHUFFLED, TRUE
from docnmt.evaluation.scores import FEW
from docnmt.evaluation.significance import Interval

GAINING, LOSING = 20, 10  # words shown
DIGITS = 4  # of nats a token


@dataclass(frozen=True)
class Figures:
    """All that is reported of a model and a corpus."""

    gain: ContextGain
    quality: Quality | None  # None: nothing was translated
    gates: Mapping[str, float]  # layer -> context share; empty for a model without gates
    seed: int = 1
    domains: Domains = field(default_factory=dict)  # none: no table by domain
    classes: WordClasses = field(default_factory=dict)  # of words, beside all words

    def tables(self) -> list[Table]:
        return [
            self.overall(),
            *([quality_table(self.quality)] if self.quality else []),
            *([self.by_domain()] if self.domains else []),
            self.by_position(),
            self.by_word_class(),
            *self.words(),
            *([gate_table(self.gates)] if self.gates else []),
        ]

    def verdict(self) -> str:
        """The answer in a sentence."""
        over_none, over_wrong = self._sign(NONE), self._sign(SHUFFLED)
        if over_none < 0:
            return "With its context the model is worse than without one."
        repeats = REPEATED in self.gain.log_probabilities
        if over_none > 0 and over_wrong > 0 and repeats and self._sign(REPEATED) <= 0:
            return (
                "The true context makes the reference more probable than none and than one of another document, but no "
                "more than the sentence itself repeated: it may do no more than fit the text."
            )
        if over_none > 0 and over_wrong > 0:
            return (
                "The model uses its context: the true one makes the reference more probable than none, "
                "and more than one of another document."
            )
        if over_none > 0:
            return "A context helps, but the true one no more than one of another document: what it says is not used."
        if over_wrong > 0:
            return "The true context is better than one of another document, but no better than none."
        return "No use of the context can be seen: no interval of its gain lies above 0."

    def _sign(self, over: str) -> int:
        """1 where the interval of the gain, as it is shown, lies above 0, -1 where it lies below."""
        low, high = (round(end, DIGITS) for end in astuple(self.gain.gain(over, seed=self.seed).interval))
        return (low > 0) - (high < 0)

    def overall(self) -> Table:
        gain = self.gain
        table = Table(
            "What the true context gives, nats a token",
            (
                Column("context", text=True),
                Column("log p"),
                Column("gain"),
                Column("95 % interval"),
                Column("in bits"),
                Column("a sentence"),
            ),
        )
        tokens = int(gain.tokens.sum())
        for name, values in gain.log_probabilities.items():
            mean = f"{sum(float(v.sum()) for v in values) / tokens:.4f}"
            if name == TRUE:
                table.add(name, mean, "", "", "", "")
                continue
            found = gain.gain(name, seed=self.seed)
            cells = signed(found.mean), between(found.interval)
            bits = signed(found.mean / math.log(2))
            table.add(
                name,
                mean,
                *cells,
                bits,
                signed(found.total / found.sentences, 2),
                strong={2} if name == NONE else (),
            )
        rising = sum(mean > 0 for _, _, mean in gain.by_document())
        repeated = "the sentence itself, as often as it has context sentences"
        if REPEATED not in gain.log_probabilities:
            repeated = "not scored, as this system would see the translation of the sentence itself"
        table.notes += [
            f"{len(gain.tokens):,} sentences, {tokens:,} target tokens (pieces and end marks), "
            f"{len(gain.documents):,} documents, of which {rising:,} gain over no context.",
            "Gain: log p with the true context - log p with this one; over none it is CXMI. Shuffled: sentences of "
            f"another document; repeated: {repeated}.",
            f"Intervals: bootstrap over documents, 1,000 resamples, seed {self.seed}.",
        ]
        if len(gain.documents) < FEW:
            table.notes.append(f"Only {len(gain.documents)} documents: the bootstrap is rough.")
        return table

    def by_domain(self) -> Table:
        parts = (self.gain.by_domain(self.domains, name, seed=self.seed) for name in (NONE, SHUFFLED))
        table = _part_table("domain", "domain", *parts)
        few = [f"{name} ({len(chosen)})" for name, chosen in self.domains.items() if len(chosen) < FEW]
        if few:
            table.notes.append(f"Rough, of fewer than {FEW} documents: {', '.join(few)}.")
        return table

    def by_position(self) -> Table:
        parts = (self.gain.by_position(name, seed=self.seed) for name in (NONE, SHUFFLED))
        return _part_table("place in the document", "place", *parts)

    def by_word_class(self) -> Table:
        parts = (by_word_class(self.gain, self.classes, name, seed=self.seed) for name in (NONE, SHUFFLED))
        over_none, over_shuffled = parts
        columns = ["words", "count", "none", "95 % interval", "shuffled", "95 % interval"]
        title = "Gain over none and over shuffled, nats a word"
        table = Table(title, [Column(name, text=k == 0) for k, name in enumerate(columns)])
        for name, one in over_none.items():
            other = over_shuffled[name]
            cells = (signed(one.mean), between(one.interval), signed(other.mean), between(other.interval))
            table.add(name, f"{one.tokens:,}", *cells, rule=name == WORDS)
        if self.classes:
            table.notes.append("A word may be in several classes; all words are without punctuation and end marks.")
        return table

    def words(self) -> tuple[Table, Table]:
        found = self.gain.by_word()
        least = least_count(sum(word.count for word in found))
        common = [word for word in found if word.count >= least]
        gaining = [word for word in common if word.total > 0][:GAINING]
        losing = [word for word in reversed(common) if word.total < 0][:LOSING]
        seen = f"words seen {least} times or more" if least > 1 else "all words"
        note = f"Against no context, in nats; {seen}, upper and lower case together."
        return (
            _word_table("Words that gain most", gaining, note),
            _word_table("Words that lose most", losing, note),
        )

    def as_dict(self) -> dict[str, Any]:
        gain = self.gain
        others = [name for name in gain.log_probabilities if name != TRUE]
        return {
            "unit": "nats a token",
            "documents": len(gain.documents),
            "sentences": len(gain.tokens),
            "tokens": int(gain.tokens.sum()),
            "seed": self.seed,
            "log_probability": {
                name: sum(float(v.sum()) for v in values) / int(gain.tokens.sum())
                for name, values in gain.log_probabilities.items()
            },
            "gain_over": {name: as_json(gain.gain(name, seed=self.seed)) for name in others},
            "by_position": {
                name: {place: as_json(found) for place, found in gain.by_position(name, seed=self.seed).items()}
                for name in (NONE, SHUFFLED)
            },
            "by_domain": {
                name: {
                    part: as_json(found) for part, found in gain.by_domain(self.domains, name, seed=self.seed).items()
                }
                for name in others
            },
            "by_word_class": {
                name: class_json(by_word_class(gain, self.classes, name, seed=self.seed)) for name in others
            },
            "by_document": [
                {"document": id, "tokens": tokens, "gain_over_none": mean} for id, tokens, mean in gain.by_document()
            ],
            "by_word": [
                {"word": word.word, "count": word.count, "mean": word.mean, "total": word.total}
                for word in gain.by_word()
            ],
            "gate": dict(self.gates),
            "bleu": None if self.quality is None else quality_json(self.quality),
        }


def least_count(words: int) -> int:
    """How often a word must have been seen to be shown: 5 times in a test set, less in a handful of sentences."""
    return min(5, max(1, words // 1000))


def quality_table(quality: Quality) -> Table:
    columns = ["context", quality.metric, "95 % interval", "to none", "95 % interval", "p"]
    table = Table("Translations under each context", [Column(name, text=k == 0) for k, name in enumerate(columns)])
    for name, (score, around) in quality.scores.items():
        cells = [name, f"{score:.2f}", between(around, 2)]
        if name in quality.differences:
            found = quality.differences[name]
            cells += [signed(found.difference, 2), between(found.interval, 2), f"{found.p_randomisation:.4f}"]
        table.add(*cells, *[""] * (len(columns) - len(cells)), strong={1} if name == TRUE else ())
    test = next(iter(quality.differences.values()))
    table.notes += [
        f"{quality.metric}: {quality.signature}",
        f"Intervals: bootstrap over documents, {test.resamples:,} resamples. p: documents swapped, {test.swaps}.",
    ]
    return table


def gate_table(gates: Mapping[str, float]) -> Table:
    table = Table("How much context the gates let in", (Column("layer", text=True), Column("mean of 1 - lambda")))
    for name, share in gates.items():
        table.add(name, f"{share:.3f}")
    table.notes.append("Over dimensions and positions, in sentences that have a context; up to 50 documents.")
    return table


def document_table(gain: ContextGain) -> Table:
    table = Table(
        "Every document", (Column("document", text=True), Column("tokens"), Column("gain over none, nats a token"))
    )
    for id, tokens, mean in sorted(gain.by_document(), key=lambda row: -row[2]):
        table.add(id, f"{tokens:,}", signed(mean))
    return table


def _part_table(by: str, heading: str, over_none: Mapping[str, Gain], over_shuffled: Mapping[str, Gain]) -> Table:
    columns = [heading, "sentences", "none", "95 % interval", "shuffled", "95 % interval"]
    table = Table(
        f"Gain over none and over shuffled, by {by}", [Column(name, text=k == 0) for k, name in enumerate(columns)]
    )
    for part, one in over_none.items():
        other = over_shuffled[part]
        cells = (signed(one.mean), between(one.interval), signed(other.mean), between(other.interval))
        table.add(part, f"{one.sentences:,}", *cells)
    return table


def _word_table(title: str, found: Sequence[WordGain], note: str) -> Table:
    table = Table(title, (Column("word", text=True), Column("count"), Column("mean gain"), Column("total")))
    for word in found:
        table.add(word.word, f"{word.count:,}", signed(word.mean, 3), signed(word.total, 1))
    table.notes.append(note)
    return table


def signed(value: float, digits: int = DIGITS) -> str:
    return f"{value:+.{digits}f}" if round(value, digits) else f"{0:.{digits}f}"


def between(interval: Interval, digits: int = DIGITS) -> str:
    """An interval as text; nothing where a single document gives none."""
    if math.isnan(interval.low):
        return ""
    low, high = (round(end, digits) + 0.0 for end in (interval.low, interval.high))  # no -0.00
    return f"{low:.{digits}f} … {high:.{digits}f}"


def as_json(gain: Gain) -> dict[str, Any]:
    """An interval that there is none of, from a single document, is null: JSON has no NaN."""
    return {**asdict(gain), "interval": _interval_json(gain.interval)}


def quality_json(quality: Quality) -> dict[str, Any]:
    return {
        "signature": quality.signature,
        "scores": {name: {"score": s, "interval": _interval_json(i)} for name, (s, i) in quality.scores.items()},
        "differences_to_none": {
            name: {**asdict(found), "interval": _interval_json(found.interval)}
            for name, found in quality.differences.items()
        },
    }


def _interval_json(interval: Interval) -> list[float] | None:
    return None if math.isnan(interval.low) else [interval.low, interval.high]
