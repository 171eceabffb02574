"""Single-file HTML pages: style, script and pictures inside, nothing fetched from anywhere."""

from __future__ import annotations

import html
from collections.abc import Iterable
from pathlib import Path

from docnmt.files_on_disk import write_atomically
from docnmt.reporting.table import Table

STYLE = """
:root { color-scheme: light dark; --ink: #1b1f24; --dim: #666d76; --line: #d8dce1; --paper: #ffffff; --soft: #f4f5f7;
  --accent: #0b62c4; --gain: #14733b; --gain-soft: #d9f2e1; --loss: #b3261e; --loss-soft: #fbe0de; }
@media (prefers-color-scheme: dark) { :root { --ink: #e7e9ec; --dim: #9aa2ac; --line: #363b42; --paper: #15181c;
  --soft: #1e2227; --accent: #74b0ff; --gain: #7fd79c; --gain-soft: #123f23; --loss: #ff9c94; --loss-soft: #4d1b18; } }
* { box-sizing: border-box; }
body { font: 16px/1.5 system-ui, sans-serif; color: var(--ink); background: var(--paper); margin: 0; }
main { max-width: 84rem; margin: 0 auto; padding: 1.5rem 1rem 4rem; }
h1 { font-size: 1.6rem; line-height: 1.2; margin: 0 0 .5rem; }
h2 { font-size: 1.2rem; margin: 2.5rem 0 .5rem; }
a { color: var(--accent); }
p.lead, p.note { color: var(--dim); max-width: 46rem; }
p.note { font-size: .85rem; margin: .4rem 0 0; overflow-wrap: anywhere; }
figure { margin: 1.5rem 0; }
figcaption { font-weight: 600; margin-bottom: .4rem; }
.scroll { overflow-x: auto; }
table { border-collapse: collapse; font-size: .92rem; font-variant-numeric: tabular-nums; }
th, td { text-align: right; padding: .3rem .5rem; border-bottom: 1px solid var(--line); vertical-align: top; }
th { border-bottom: 2px solid var(--ink); vertical-align: bottom; }
th.text, td.text { text-align: left; }
td.text:first-child { min-width: min(12rem, 40vw); }
td:not(.text) { white-space: nowrap; }
tr.rule td { border-top: 2px solid var(--line); }
td.paper, th.paper { color: var(--dim); font-style: italic; font-weight: 400; }
svg { max-width: 100%; height: auto; }
.side-by-side { display: flex; flex-wrap: wrap; gap: 1rem 2.5rem; align-items: flex-start; }
.side-by-side > * { flex: 0 1 auto; max-width: min(100%, 66rem); min-width: 0; }
.side-by-side > figure:has(> svg) { flex-basis: 33rem; max-width: 33rem; }
"""


def page(title: str, parts: Iterable[str | Table], style: str = "", script: str = "") -> str:
    """A whole page; `parts` are HTML already, or tables. The script comes last, so it finds all of them."""
    body = "\n".join(part.html() if isinstance(part, Table) else part for part in parts)
    return (
        "<!doctype html>\n"
        f'<html lang="en"><head><meta charset="utf-8"><title>{html.escape(title)}</title>\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<style>{STYLE}{style}</style></head>\n<body><main>\n<h1>{html.escape(title)}</h1>\n{body}\n</main>"
        + (f"\n<script>{script}</script>" if script else "")
        + "</body></html>\n"
    )


def write_page(path: str | Path, text: str) -> None:
    with write_atomically(Path(path)) as file:
        file.write(text)
