"""A page to read systems side by side: tables on top, below them each sentence with the words that differ.

The sentences are data in the page; a script shows them as one scrolls, so that thousands stay light.
"""

from __future__ import annotations

import html
import json
from collections.abc import Sequence
from typing import Any

from docnmt.base.progress import Progress
from docnmt.base.report import Table, page
from docnmt.evaluation import static
from docnmt.evaluation.metrics import make_metric
from docnmt.evaluation.outputs import Output, References


def comparison_page(
    tables: Sequence[Table], outputs: Sequence[Output], references: References, progress: Progress
) -> str:
    """The first output is the baseline."""
    metric = make_metric("chrf")
    scores = []
    for output in progress.track(outputs, "sentence chrF", total=len(outputs), unit="systems"):
        rows = metric.statistics(output.sentences, references.texts)
        scores.append([round(metric.score(row), 2) for row in rows])
    sentences = [
        {
            "document": int(references.documents[number]),
            "position": references.position(number),
            "source": references.sources[number] if references.sources else None,
            "references": [text[number] for text in references.texts],
            "outputs": [output.sentences[number] for output in outputs],
            "scores": [score[number] for score in scores],
        }
        for number in range(len(references))
    ]
    names = [output.name for output in outputs]
    data = {"systems": names, "documents": references.ids, "sentences": sentences}
    baseline = html.escape(names[0])
    lead = (
        f'<p class="lead">Words that differ from those of {baseline} are underlined: <mark class="right">with a line'
        '</mark> where a reference has the word, <mark class="wrong">with a wave</mark> where none has. Beside each '
        "translation stand its sentence chrF and the difference from the baseline's.</p>"
        f'<p class="note">sentence chrF: {html.escape(metric.signature)}</p>'
    )
    title = f"{', '.join(names[1:])} against {names[0]}"
    parts: list[str | Table] = [*tables, "<h2>Sentences</h2>", lead, _controls(names), _RESULTS, _data_block(data)]
    return page(title, parts, style=static("comparison.css"), script=static("comparison.js"))


def _controls(names: Sequence[str]) -> str:
    orders = ['<option value="">document order</option>']
    for number, name in enumerate(names[1:], 1):
        for value, label in (("gain", "largest gain"), ("loss", "largest loss")):
            of = f" of {html.escape(name)}" if len(names) > 2 else ""
            orders.append(f'<option value="{value} {number}">{label}{of} first</option>')
    return (
        '<form id="controls" role="search">'
        '<label>Find <input type="search" id="find" placeholder="in all text; press /" autocomplete="off"></label>'
        f'<label>Order <select id="order">{"".join(orders)}</select></label>'
        '<label><input type="checkbox" id="differing" checked> only where they differ</label>'
        '<output id="count" aria-live="polite"></output></form>'
    )


def _data_block(data: dict[str, Any]) -> str:
    # A text that ends a script element, or begins a comment in one, must not do so here.
    text = json.dumps(data, ensure_ascii=False, separators=(",", ":")).replace("<", "\\u003c")
    return f'<script type="application/json" id="data">{text}</script>'


_RESULTS = (
    '<div id="sentences"></div><button type="button" id="more" hidden>Show more</button>'
    "<noscript><p>The sentences are shown by a script, which this browser does not run.</p></noscript>"
)
