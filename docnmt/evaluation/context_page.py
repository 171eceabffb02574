"""The page of `docnmt context-gain`: figures on top, below them sentences whose words can be asked what context did."""

from __future__ import annotations

import base64
import html
import json
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from docnmt.base.report import page
from docnmt.decoding.translator import Translator
from docnmt.document import ParallelDocument
from docnmt.evaluation import static
from docnmt.evaluation.context_gain import Encoded, encode, own_contexts
from docnmt.evaluation.context_report import Figures, document_table
from docnmt.evaluation.context_trace import Trace, looks, spaced, traced
from docnmt.evaluation.controls import NONE, TRUE


def context_gain_page(
    names: str, translator: Translator, documents: Sequence[ParallelDocument], figures: Figures, sentences: int = 100
) -> str:
    """A page that holds the `sentences` that gained most and a fifth as many that lost most.

    `names` says what was measured: the model and the corpus.
    """
    chosen = chosen_sentences(figures, sentences)
    encoded = encode(translator, documents, own_contexts(translator, documents))
    with traced(translator.model) as trace:
        shown = [_sentence(number, translator, documents, encoded, trace, figures) for number in chosen]
    gated = any(sublayer.gate is not None for sublayer in trace.values())
    data = {
        "languages": [translator.card.source_language, translator.card.target_language],
        "gated": gated,
        "layers": {side: sum(name.startswith(side) for name in trace) for side in ("encoder", "decoder")},
        "sentences": shown,
    }
    total = len(figures.gain.tokens)
    which = f"All {total:,} sentences."
    if len(shown) < total:
        which = f"{len(shown):,} of {total:,} sentences: those that gained most over no context, a few that lost most."
    return page(
        "What context does",
        [
            f'<p class="lead names">{html.escape(names)}</p><p class="verdict">{html.escape(figures.verdict())}</p>',
            *_grid(figures),
            f"<details><summary>Every document</summary>{document_table(figures.gain).html()}</details>",
            _HEAD.format(which=which, gate=_GATE if gated else _NO_GATE if trace else _NO_ATTENTION),
            # "<" would end the element early, in a text that has "</script>"
            f'<script type="application/json" id="data">{_json(data)}</script>',
        ],
        static("context-gain.css"),
        static("context-gain.js"),
    )


_GATE = (
    "The gate's share is the mean of 1 − lambda over dimensions: lambda weighs what the layer had, 1 − lambda what it "
    "took from the context."
)
_NO_GATE = "This model's context connection is residual: it has no gate, all that is attended to is added."
_NO_ATTENTION = "This system has no context attention of the paper's kind: there are figures, but no weights to show."
_HEAD = """<h2 id="words">Word by word</h2>
<p class="lead">{which} Choose a word of a target sentence (or, where the encoder sees context, of a source sentence) to
see its figures and the context words it attended to. {gate}</p>
<div class="bar"><label>Order <select id="order"><option value="gain">largest gain first</option>
<option value="loss">largest loss first</option><option value="document">as in the documents</option></select></label>
<label>Search <input type="search" id="search" placeholder="a word or a document"></label>
<span id="count" role="status"></span></div>
<p id="legend" class="legend"></p>
<noscript><p>The sentences need JavaScript.</p></noscript>
<div id="sentences"></div>"""


def _grid(figures: Figures) -> list[str]:
    """Wide tables one below the other, narrow ones side by side."""
    tables = figures.tables()
    narrow = "".join(table.html() for table in tables if len(table.columns) <= 4)
    return [*(table.html() for table in tables if len(table.columns) > 4), f'<div class="tables">{narrow}</div>']


def _json(data: Any) -> str:
    return json.dumps(data, ensure_ascii=False, separators=(",", ":")).replace("<", "\\u003c")


def chosen_sentences(figures: Figures, count: int) -> list[int]:
    """Sentences by falling gain: the first `count`, and the last of a fifth as many."""
    order = np.argsort(-figures.gain.totals(), kind="stable").tolist()
    return order if len(order) <= count + count // 5 else [*order[:count], *order[len(order) - count // 5 :]]


# ---- a sentence ----


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
    found = looks(translator, sources, position, gain.pieces[number], encoded.batch([number]), trace)
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
