"""What `docnmt context-gain` finds, as tables, as JSON, and as a page that shows what context did for each word."""

from __future__ import annotations

import base64
import html
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from docnmt.base.report import Table, columns, page
from docnmt.decoding.translator import Translator
from docnmt.document import ParallelDocument
from docnmt.evaluation import static
from docnmt.evaluation.context_gain import (
    END,
    WORDS,
    ContextGain,
    Domains,
    Encoded,
    Gain,
    Quality,
    WordClasses,
    WordGain,
    encode,
)
from docnmt.evaluation.context_trace import Trace, attention_by_word, spaced, traced
from docnmt.evaluation.scores import FEW
from docnmt.evaluation.significance import Difference, Interval
from docnmt.evaluation.test_sets import NONE, REPEATED, SHUFFLED, TRUE

GAINING, LOSING = 20, 10  # words shown
DIGITS = 4  # of nats a token


@dataclass(frozen=True)
class Figures:
    """All that is reported of a model and a corpus."""

    gain: ContextGain
    quality: Quality | None  # None: nothing was translated
    gates: Mapping[str, float]  # layer -> context share; empty for a model without gates
    domains: Domains = field(default_factory=dict)  # empty: no table by domain
    classes: WordClasses = field(default_factory=dict)  # of words, beside all words

    def verdict(self) -> str:
        """The answer in a sentence."""
        over_none, over_wrong = self._sign(NONE), self._sign(SHUFFLED)
        if over_none < 0:
            return "The model is worse with its context than without."
        repeats = REPEATED in self.gain.log_probabilities
        if over_none > 0 and over_wrong > 0 and repeats and self._sign(REPEATED) <= 0:
            return (
                "The true context makes the reference more probable than none and than one of another document, but no "
                "more than the sentence itself repeated: perhaps it merely fits the text."
            )
        if over_none > 0 and over_wrong > 0:
            return (
                "The model uses its context: the true context makes the reference more probable than no context "
                "and than one of another document."
            )
        if over_none > 0:
            return "A context helps, but the true one no more than one of another document: its content is not used."
        if over_wrong > 0:
            return "The true context is better than one of another document, but no better than no context."
        return "There is no sign that the context is used: no interval of its gain is above 0."

    def _sign(self, over: str) -> int:
        """1 where the interval of the gain, as it is shown, lies above 0, -1 where it lies below."""
        low, high = (round(end, DIGITS) for end in self.gain.gain(over).interval)
        return (low > 0) - (high < 0)

    # ---- tables ----

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

    def overall(self) -> Table:
        gain, tokens = self.gain, int(self.gain.tokens.sum())
        heads = ("context", "log p", "gain", "95 % interval", "in bits", "per sentence")
        table = Table("Gain from the true context, nats per token", columns(*heads))
        table.strong_means = "what context is worth to this model on this corpus (CXMI)"
        for name, mean in self._log_probabilities().items():
            if name == TRUE:
                table.add(name, f"{mean:.4f}", "", "", "", "")
                continue
            found = gain.gain(name)
            bits, a_sentence = signed(found.mean / math.log(2)), signed(found.total / found.sentences, 2)
            strong = {2} if name == NONE else ()
            table.add(name, f"{mean:.4f}", *_mean_and_interval(found), bits, a_sentence, strong=strong)
        rising = sum(mean > 0 for _, _, mean in gain.by_document())
        repeated = "the sentence itself, as many times as it has context sentences"
        if REPEATED not in gain.log_probabilities:
            repeated = "not scored, as this system would see the sentence's own translation"
        table.notes += [
            f"{len(gain.tokens):,} sentences, {tokens:,} target tokens (pieces and end marks), "
            f"{len(gain.documents):,} documents, {rising:,} of which gain over no context.",
            "Gain: log p with the true context - log p with this one; over none it is CXMI. Shuffled: sentences of "
            f"another document; repeated: {repeated}.",
            f"Intervals: bootstrap over documents, 1,000 resamples, seed {gain.seed}.",
        ]
        if len(gain.documents) < FEW:
            table.notes.append(f"Only {len(gain.documents)} documents: the bootstrap is rough.")
        return table

    def _log_probabilities(self) -> dict[str, float]:
        """Of a token, under each context."""
        tokens = int(self.gain.tokens.sum())
        contexts = self.gain.log_probabilities.items()
        return {name: sum(float(v.sum()) for v in values) / tokens for name, values in contexts}

    def by_domain(self) -> Table:
        table = _part_table(", by domain", "domain", lambda over: self.gain.by_domain(self.domains, over))
        few = [f"{name} ({len(chosen)})" for name, chosen in self.domains.items() if len(chosen) < FEW]
        if few:
            table.notes.append(f"Rough, of fewer than {FEW} documents: {', '.join(few)}.")
        return table

    def by_position(self) -> Table:
        return _part_table(", by position in the document", "position", self.gain.by_position)

    def by_word_class(self) -> Table:
        table = _part_table(", nats per word", "words", lambda over: self.gain.by_word_class(self.classes, over))
        table.rules = {number for number, row in enumerate(table.rows) if row[0] == WORDS}
        if self.classes:
            table.notes.append("A word may be in several classes; all words: without punctuation and end marks.")
        return table

    def words(self) -> tuple[Table, Table]:
        # Punctuation and end marks are in every sentence: their totals would outrank words. They have their own rows.
        found = [each for each in self.gain.by_word() if each.word != END and any(map(str.isalnum, each.word))]
        least = least_count(sum(word.count for word in found))
        common = [word for word in found if word.count >= least]
        gaining = [word for word in common if word.total > 0][:GAINING]
        losing = [word for word in reversed(common) if word.total < 0][:LOSING]
        seen = f"words seen {least} times or more" if least > 1 else "all words"
        note = f"Against no context, in nats; {seen}, upper and lower case together."
        return _word_table("Words that gain most", gaining, note), _word_table("Words that lose most", losing, note)

    def as_dict(self) -> dict[str, Any]:
        gain = self.gain
        others = [name for name in gain.log_probabilities if name != TRUE]
        return {
            "unit": "nats a token",
            "documents": len(gain.documents),
            "sentences": len(gain.tokens),
            "tokens": int(gain.tokens.sum()),
            "seed": gain.seed,
            "log_probability": self._log_probabilities(),
            "gain_over": _as_figures({over: gain.gain(over) for over in others}),
            "by_position": {over: _as_figures(gain.by_position(over)) for over in (NONE, SHUFFLED)},
            "by_domain": {over: _as_figures(gain.by_domain(self.domains, over)) for over in others},
            "by_word_class": {
                over: {
                    name: {"words": one.tokens, "mean": one.mean, "total": one.total, **one.interval.as_dict()}
                    for name, one in gain.by_word_class(self.classes, over).items()
                }
                for over in others
            },
            "by_document": [
                {"document": id, "tokens": tokens, "gain_over_none": mean} for id, tokens, mean in gain.by_document()
            ],
            "by_word": [
                {"word": word.word, "count": word.count, "mean": word.mean, "total": word.total}
                for word in gain.by_word()
            ],
            "gate": dict(self.gates),
            "bleu": self.quality
            and {
                "signature": self.quality.signature,
                "scores": {
                    name: {"score": score, "interval": _interval_json(around)}
                    for name, (score, around) in self.quality.scores.items()
                },
                "differences_to_none": _as_figures(self.quality.differences),
            },
        }


def least_count(words: int) -> int:
    """How often a word must have been seen to be shown: 5 times in a test set, less in a handful of sentences."""
    return min(5, max(1, words // 1000))


def quality_table(quality: Quality) -> Table:
    heads = ("context", quality.metric, "95 % interval", "to none", "95 % interval", "p")
    table = Table("Translations under each context", columns(*heads))
    table.strong_means = "translated with the model's own context"
    for name, (score, around) in quality.scores.items():
        cells = ["", "", ""]
        if name in quality.differences:
            found = quality.differences[name]
            cells = [signed(found.difference, 2), between(found.interval, 2), f"{found.p_randomisation:.4f}"]
        table.add(name, f"{score:.2f}", between(around, 2), *cells, strong={1} if name == TRUE else ())
    test = next(iter(quality.differences.values()))
    table.notes += [
        f"{quality.metric}: {quality.signature}",
        f"Intervals: bootstrap over documents, {test.resamples:,} resamples. p: documents swapped, {test.swaps}.",
    ]
    return table


def gate_table(gates: Mapping[str, float]) -> Table:
    table = Table("How much context the gates let in", columns("layer", "mean of 1 - lambda"))
    for name, share in gates.items():
        table.add(name, f"{share:.3f}")
    table.notes.append("Over dimensions and positions, in sentences that have a context; up to 50 documents.")
    return table


def document_table(gain: ContextGain) -> Table:
    table = Table("Every document", columns("document", "tokens", "gain over none, nats per token"))
    for id, tokens, mean in sorted(gain.by_document(), key=lambda row: -row[2]):
        table.add(id, f"{tokens:,}", signed(mean))
    return table


def _part_table(by: str, heading: str, gains: Callable[[str], Mapping[str, Gain]]) -> Table:
    """Parts of the corpus: `gains` has those over a context. Of words their number is shown, else that of sentences."""
    counted = "count" if heading == "words" else "sentences"
    heads = (heading, counted, "none", "95 % interval", "shuffled", "95 % interval")
    table = Table(f"Gain over none and over shuffled{by}", columns(*heads))
    over_shuffled = gains(SHUFFLED)
    for part, found in gains(NONE).items():
        count = found.tokens if heading == "words" else found.sentences
        table.add(part, f"{count:,}", *_mean_and_interval(found), *_mean_and_interval(over_shuffled[part]))
    return table


def _word_table(title: str, found: Sequence[WordGain], note: str) -> Table:
    table = Table(title, columns("word", "count", "mean gain", "total"), notes=[note])
    for word in found:
        table.add(word.word, f"{word.count:,}", signed(word.mean, 3), signed(word.total, 1))
    return table


def _mean_and_interval(gain: Gain) -> tuple[str, str]:
    return signed(gain.mean), between(gain.interval)


def signed(value: float, digits: int = DIGITS) -> str:
    return f"{value:+.{digits}f}" if round(value, digits) else f"{0:.{digits}f}"


def between(interval: Interval, digits: int = DIGITS) -> str:
    """An interval as text; nothing for a single document, which has none."""
    if not interval.is_known:
        return ""
    low, high = (round(end, digits) + 0.0 for end in interval)  # no -0.00
    return f"{low:.{digits}f} … {high:.{digits}f}"


def _as_figures(found: Mapping[str, Gain] | Mapping[str, Difference]) -> dict[str, Any]:
    return {name: {**asdict(one), "interval": _interval_json(one.interval)} for name, one in found.items()}


def _interval_json(interval: Interval) -> list[float] | None:
    return list(interval) if interval.is_known else None


# ---- the page ----


def context_gain_page(
    names: str, translator: Translator, documents: Sequence[ParallelDocument], figures: Figures, sentences: int = 100
) -> str:
    """Figures on top, below them sentences whose words can be clicked: the `sentences` that gained
    most and a fifth as many that lost most.

    `names` says what was measured: the model and the corpus.
    """
    chosen = chosen_sentences(figures, sentences)
    encoded = encode(translator, documents)
    with traced(translator.model) as trace:
        shown = [_sentence(number, translator, documents, encoded, trace, figures) for number in chosen]
    gated = any(sublayer.gate is not None for sublayer in trace.values())
    data = {
        "languages": translator.card.languages,
        "gated": gated,
        "layers": {side: sum(name.startswith(side) for name in trace) for side in ("encoder", "decoder")},
        "sentences": shown,
    }
    total = len(figures.gain.tokens)
    which = f"All {total:,} sentences."
    if len(shown) < total:
        which = f"{len(shown):,} of {total:,} sentences: those that gained most over no context, a few that lost most."
    tables = figures.tables()
    narrow = "".join(table.html() for table in tables if len(table.columns) <= 4)  # side by side
    parts = [
        f'<p class="lead names">{html.escape(names)}</p><p class="verdict">{html.escape(figures.verdict())}</p>',
        *(table.html() for table in tables if len(table.columns) > 4),
        f'<div class="tables">{narrow}</div>',
        f"<details><summary>Every document</summary>{document_table(figures.gain).html()}</details>",
        _HEAD.format(which=which, gate=_GATE if gated else _NO_GATE if trace else _NO_ATTENTION),
    ]
    return page("What context does", parts, static("context-gain.css"), static("context-gain.js"), data)


_GATE = (
    "The gate's share is the mean of 1 − lambda over dimensions: lambda weighs what the layer had, 1 − lambda what it "
    "took from the context."
)
_NO_GATE = "This model's context connection is residual: it has no gate; everything attended to is added."
_NO_ATTENTION = "This system lacks the paper's context attention: there are figures, but no weights to show."
_HEAD = """<h2 id="words">Word by word</h2>
<p class="lead">{which} Choose a word of a target sentence (or, if the encoder sees context, of a source sentence) to
see its figures and the context words it attended to. {gate}</p>
<div class="bar"><label>Order <select id="order"><option value="gain">largest gain first</option>
<option value="loss">largest loss first</option><option value="document">as in the documents</option></select></label>
<label>Search <input type="search" id="search" placeholder="a word or a document"></label>
<span id="count" role="status"></span></div>
<p id="legend" class="legend"></p>
<noscript><p>The sentences need JavaScript.</p></noscript>
<div id="sentences"></div>
<p><button type="button" id="more" hidden></button></p>"""


def chosen_sentences(figures: Figures, count: int) -> list[int]:
    """Sentences by decreasing gain: the first `count`, and a fifth as many from the end."""
    order = np.argsort(-figures.gain.totals(), kind="stable").tolist()
    return order if len(order) <= count + count // 5 else [*order[:count], *order[len(order) - count // 5 :]]


def _sentence(
    number: int,
    translator: Translator,
    documents: Sequence[ParallelDocument],
    encoded: Encoded,
    trace: Trace,
    figures: Figures,
) -> dict[str, Any]:
    gain = figures.gain
    document, position = int(gain.document[number]), int(gain.position[number])
    sources = documents[document].source
    found = attention_by_word(translator, sources, position, gain.pieces[number], encoded.batch([number]), trace)
    scores = {name: values[number] for name, values in gain.log_probabilities.items()}
    translations = figures.quality.translations if figures.quality else {}
    return {
        "number": number,
        "document": documents[document].id,
        "place": [position + 1, len(sources)],
        "gain": round(float((scores[TRUE] - scores[NONE]).sum()), 3),
        "context": found.context,
        "source": spaced(found.source),
        "target": spaced(found.target),
        "log": {
            name: [round(float(values[word.begin : word.end].sum()), 3) for word in found.target]
            for name, values in scores.items()
        },
        "attention": {side: _bytes(weights) for side, weights in found.attention.items()},
        "share": {side: _bytes(shares) for side, shares in found.share.items()},
        "translations": [translations[name][number] for name in (TRUE, NONE) if translations],
    }


def _bytes(shares: NDArray) -> str:
    """Numbers from 0 to 1 in a byte each, as base64: a page of a hundred sentences stays small."""
    return base64.b64encode(np.round(255 * shares).clip(0, 255).astype(np.uint8).tobytes()).decode()
