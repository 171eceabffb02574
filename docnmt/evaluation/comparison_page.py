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
    return page(title, parts, style=_STYLE, script=_SCRIPT)


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

_STYLE = """
#controls { position: sticky; top: 0; z-index: 1; display: flex; flex-wrap: wrap; gap: .4rem 1.2rem;
  align-items: center; padding: .6rem 0; background: var(--paper); border-bottom: 1px solid var(--line); }
#controls input[type=search], #controls select { font: inherit; color: inherit; background: var(--soft);
  border: 1px solid var(--line); border-radius: .3rem; padding: .25rem .5rem; max-width: 100%; }
#count { color: var(--dim); font-size: .9rem; }
:focus-visible { outline: 2px solid var(--accent); outline-offset: 1px; }
article { padding: .8rem 0; border-bottom: 1px solid var(--line); content-visibility: auto;
  contain-intrinsic-size: auto 9rem; }
article h3 { font-size: .85rem; font-weight: 400; color: var(--dim); margin: 0 0 .3rem; overflow-wrap: anywhere; }
dl { display: grid; grid-template-columns: fit-content(12rem) 6.5rem 1fr; gap: .2rem .9rem; margin: 0; }
dt { color: var(--dim); font-size: .85rem; line-height: 1.7; overflow-wrap: anywhere; }
dd { margin: 0; overflow-wrap: anywhere; }
dd.given, dd.text { grid-column: 3; }
dd.given { color: var(--dim); }
dd.score { text-align: right; font-size: .85rem; line-height: 1.7; font-variant-numeric: tabular-nums;
  white-space: nowrap; }
.gain { color: var(--gain); } .loss { color: var(--loss); }
mark { color: inherit; border-radius: .15rem; padding: 0 .1em; text-decoration: underline;
  text-underline-offset: .2em; }
mark.right { background: var(--gain-soft); text-decoration-color: var(--gain); }
mark.wrong { background: var(--loss-soft); text-decoration-color: var(--loss); text-decoration-style: wavy; }
#more { font: inherit; margin: 1rem 0; padding: .4rem 1rem; color: inherit; background: var(--soft);
  border: 1px solid var(--line); border-radius: .3rem; }
@media (max-width: 42rem) {
  #controls { position: static; }
  #controls label:first-child, #find { width: 100%; }
  dl { grid-template-columns: 1fr auto; gap: 0 .9rem; }
  dt { margin-top: .35rem; }
  dd.score { align-self: end; }
  dt.given, dd.given, dd.text { grid-column: 1 / 3; }
}
"""

_SCRIPT = r"""
"use strict";
const data = JSON.parse(document.getElementById("data").textContent);
const [find, order, differing, count, list, more] =
  ["find", "order", "differing", "count", "sentences", "more"].map(id => document.getElementById(id));
const PAGE = 40;
const number = new Intl.NumberFormat("en");
let shown = [], done = 0;

// Words and marks, each with the space before it; in a script without spaces, each character.
const UNSPACED = "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff";
const TOKEN = new RegExp(`\\s*(?:[${UNSPACED}]|(?:(?![${UNSPACED}])[\\p{L}\\p{M}\\p{N}])+|[^\\s])`, "gu");
const tokens = text => text.match(TOKEN) || [];
const bare = parts => parts.map(part => part.trim());

function element(name, kind, text) {
  const made = document.createElement(name);
  if (kind) made.className = kind;
  if (text !== undefined) made.textContent = text;
  return made;
}

// Which tokens of either side are not in their longest common subsequence.
function differences(a, b) {
  const width = b.length + 1, best = new Uint16Array((a.length + 1) * width);
  for (let i = a.length - 1; i >= 0; i--)
    for (let j = b.length - 1; j >= 0; j--)
      best[i * width + j] = a[i] === b[j] ? best[(i + 1) * width + j + 1] + 1
        : Math.max(best[(i + 1) * width + j], best[i * width + j + 1]);
  const left = a.map(() => true), right = b.map(() => true);
  for (let i = 0, j = 0; i < a.length && j < b.length;) {
    if (a[i] === b[j]) left[i++] = right[j++] = false;
    else if (best[(i + 1) * width + j] >= best[i * width + j + 1]) i++;
    else j++;
  }
  return [left, right];
}

function marked(parts, differs, known) {
  const line = element("dd", "text");
  line.dir = "auto";
  bare(parts).forEach((word, k) => {
    const mark = element("mark", known.has(word.toLowerCase()) ? "right" : "wrong", word);
    line.append(parts[k].slice(0, -word.length), differs[k] ? mark : word);
  });
  return line;
}

function scored(scores, k) {
  const cell = element("dd", "score", scores[k].toFixed(1));
  if (k) {
    const gap = scores[k] - scores[0];
    const text = Math.abs(gap) < 0.05 ? "0.0" : (gap > 0 ? "+" : "\u2212") + Math.abs(gap).toFixed(1);
    cell.append(" ", element("span", text === "0.0" ? "" : gap > 0 ? "gain" : "loss", `(${text})`));
  }
  return cell;
}

function article(sentence) {
  const made = element("article"), rows = element("dl");
  made.append(element("h3", "", `${data.documents[sentence.document]}, sentence ${sentence.position}`), rows);
  const given = [];
  if (sentence.source !== null) given.push(["source", sentence.source]);
  sentence.references.forEach((text, k) =>
    given.push([sentence.references.length > 1 ? `reference ${k + 1}` : "reference", text]));
  for (const [name, text] of given) {
    const line = element("dd", "given", text);
    line.dir = "auto";
    rows.append(element("dt", "given", name), line);
  }
  const known = new Set(bare(sentence.references.flatMap(tokens)).map(word => word.toLowerCase()));
  const lines = sentence.outputs.map(tokens);
  const differs = lines.map(line => line.map(() => false));
  for (let k = 1; k < lines.length; k++) {
    const [left, right] = differences(bare(lines[0]), bare(lines[k]));
    left.forEach((apart, i) => { differs[0][i] ||= apart; });
    differs[k] = right;
  }
  lines.forEach((line, k) =>
    rows.append(element("dt", "", data.systems[k]), scored(sentence.scores, k), marked(line, differs[k], known)));
  return made;
}

function showMore() {
  list.append(...shown.slice(done, done + PAGE).map(article));
  done = Math.min(done + PAGE, shown.length);
  more.hidden = done >= shown.length;
}

const searched = new Map();
function searchable(sentence) {
  if (!searched.has(sentence)) searched.set(sentence, [data.documents[sentence.document], sentence.source || "",
    ...sentence.references, ...sentence.outputs].join("\n").toLowerCase());
  return searched.get(sentence);
}

function update() {
  const wanted = find.value.trim().toLowerCase();
  shown = data.sentences.filter(sentence =>
    (!differing.checked || sentence.outputs.some(text => text !== sentence.outputs[0]))
    && (!wanted || searchable(sentence).includes(wanted)));
  if (order.value) {
    const [kind, system] = order.value.split(" ");
    const gap = sentence => (sentence.scores[system] - sentence.scores[0]) * (kind === "gain" ? -1 : 1);
    shown.sort((a, b) => gap(a) - gap(b));
  }
  count.textContent = `${number.format(shown.length)} of ${number.format(data.sentences.length)} sentences`;
  list.replaceChildren();
  done = 0;
  showMore();
}

let waiting;
find.addEventListener("input", () => { clearTimeout(waiting); waiting = setTimeout(update, 120); });
order.addEventListener("change", update);
differing.addEventListener("change", update);
document.getElementById("controls").addEventListener("submit", event => event.preventDefault());
more.addEventListener("click", showMore);
new IntersectionObserver(entries => { if (entries.some(entry => entry.isIntersecting) && !more.hidden) showMore(); },
  { rootMargin: "800px" }).observe(more);
document.addEventListener("keydown", event => {
  if (event.key === "/" && !/^(INPUT|SELECT|TEXTAREA)$/.test(event.target.tagName)) {
    event.preventDefault();
    find.focus();
  }
});
update();
"""
