"""How figures are shown: one table class for terminal, Markdown, LaTeX and HTML; single-file pages."""

from __future__ import annotations

import html
import itertools
import json
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from rich.cells import cell_len
from rich.console import Console
from rich.padding import Padding
from rich.table import Table as RichTable
from rich.text import Text

from docnmt.base.files import write_atomically

# ---- One table class for terminal, Markdown, LaTeX and HTML ----

_LATEX = {c: f"\\{c}" for c in "&%$#_{}"} | {
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "\\": r"\textbackslash{}",
    "±": r"$\pm$",
    "−": "$-$",
    "|": r"\textbar\allowbreak{}",  # signatures are long
    "<": "$<$",
    ">": "$>$",
    "≥": r"$\geq$",
    "≤": r"$\leq$",
    "→": r"$\rightarrow$",
    "–": "--",
    "…": r"\ldots{}",
}
# Above these numbers of characters per row, characters per text cell, or rows, LaTeX needs help to fit a table.
_WIDE, _LONG, _TALL = 75, 60, 45
_EDGE = 3  # of a column: a line and two spaces


@dataclass(frozen=True)
class Column:
    """A column's heading; `paper` marks the paper's figures, `text` aligns to the left."""

    name: str
    text: bool = False
    paper: bool = False


def columns(*names: str, text: int = 1) -> list[Column]:
    """The first `text` columns hold text, the others figures."""
    return [Column(name, text=number < text) for number, name in enumerate(names)]


@dataclass
class Table:
    """Rows of text. `strong` lists cells (row, column) to highlight; `rules` rows that have a line above them.

    Strong cells are bold, or have a star where bold is impossible: in a pipe or a file. `strong_means` tells the
    reader what they are."""

    title: str
    columns: Sequence[Column]
    rows: list[Sequence[str]] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)  # below the table: signatures, the meaning of marks
    strong: set[tuple[int, int]] = field(default_factory=set)
    strong_means: str = ""
    rules: set[int] = field(default_factory=set)
    figures: list[dict[str, Any]] = field(default_factory=list)  # the rows as numbers, for machines

    def add(self, *cells: str, rule: bool = False, strong: Iterable[int] = ()) -> None:
        if len(cells) != len(self.columns):
            raise ValueError(f"{len(cells)} cells for {len(self.columns)} columns of {self.title!r}")
        if rule:
            self.rules.add(len(self.rows))
        self.strong |= {(len(self.rows), column) for column in strong}
        self.rows.append(cells)

    def print(self, console: Console) -> None:
        if self.strong and not console.is_terminal:
            self._with_stars().print(console)
            return
        parts = self._parts(console.width)
        whole = len(parts) == 1 and self._widest() < console.width
        for number, chosen in enumerate(parts):
            table = RichTable(title=None if number else Text(self.title), title_justify="left")
            for k in chosen:
                column = self.columns[k]
                table.add_column(
                    Text(column.name),
                    justify="left" if column.text else "right",
                    style="italic dim" if column.paper else None,
                    overflow="fold",
                    width=None if whole or k < self._labels else self._narrowest(k),
                    min_width=None if column.text else self._narrowest(k),
                )
            for row, cells in enumerate(self.rows):
                shown = (Text(cells[k], style="bold" if (row, k) in self.strong else "") for k in chosen)
                table.add_row(*shown, end_section=row + 1 in self.rules)
            console.print(table)
        for note in self._notes():
            if console.is_terminal:
                console.print(Padding(Text(note, style="dim"), (0, 0, 0, 2)))
            else:  # one line per note for programs that read a pipe
                console.print(Text(f"  {note}"), soft_wrap=True)

    def _with_stars(self) -> Table:
        """For output that cannot be bold. The star is on the side where figures, or words, are not aligned."""

        def cell(number: int, k: int, text: str) -> str:
            if (number, k) not in self.strong:
                return text
            return f"{text} *" if self.columns[k].text else f"* {text}"

        rows: list[Sequence[str]] = [[cell(n, k, c) for k, c in enumerate(row)] for n, row in enumerate(self.rows)]
        legend = [f"*: {self.strong_means}"] if self.strong_means else []
        return replace(self, rows=rows, strong=set(), notes=[*legend, *self.notes])

    def _notes(self) -> list[str]:
        legend = [f"Bold: {self.strong_means}"] if self.strong and self.strong_means else []
        return [*legend, *self.notes]

    def _parts(self, width: int) -> list[list[int]]:
        """The columns of each part: all of them, or as many as fit beside the row labels."""
        count = len(self.columns)
        labels = range(self._labels)
        if self._widest() < width or len(labels) == count:
            return [list(range(count))]
        taken = 1 + sum(min(self._wide(k), max(self._narrowest(k), width // 3)) + _EDGE for k in labels)
        parts: list[list[int]] = []
        left = 0
        for k in range(len(labels), count):
            needed = self._narrowest(k) + _EDGE
            if not parts or needed > left or self.columns[k].paper != self.columns[k - 1].paper:
                parts.append([*labels])
                left = width - taken
            parts[-1].append(k)
            left -= needed
        return parts

    def _wide(self, k: int) -> int:
        return max(map(cell_len, self._cells(k)))

    def _widest(self) -> int:
        return sum(self._wide(k) + _EDGE for k in range(len(self.columns)))

    @property
    def _labels(self) -> int:
        """How many columns at the left label the rows."""
        return sum(1 for _ in itertools.takewhile(lambda column: column.text, self.columns))

    def _cells(self, k: int) -> list[str]:
        return [self.columns[k].name, *(row[k] for row in self.rows)]

    def _narrowest(self, k: int) -> int:
        """How narrow a column can be: headings and text may wrap between words, figures may not."""
        whole = [] if self.columns[k].text else self._cells(k)[1:]
        words = [word for cell in self._cells(k) for word in cell.split()]
        return max((cell_len(text) for text in (*whole, *words)), default=0)

    def _marked(self, row: int, escape: Callable[[str], str], strong: str, paper: str) -> Iterator[str]:
        """The cells of a row, with the strong ones and the paper's marked."""
        for k, text in enumerate(map(escape, self.rows[row])):
            mark = strong if (row, k) in self.strong else paper if self.columns[k].paper else "{}"
            yield mark.format(text) if text else text

    def markdown(self) -> str:
        def line(cells: Iterable[str]) -> str:
            return f"| {' | '.join(cells)} |\n"

        text = f"**{_markdown(self.title)}**\n\n" + line(_markdown(column.name) for column in self.columns)
        text += line(":--" if column.text else "--:" for column in self.columns)
        text += "".join(line(self._marked(n, _markdown, "**{}**", "*{}*")) for n in range(len(self.rows)))
        return text + "".join(f"\n{_markdown(note)}\n" for note in self._notes())

    def latex(self) -> str:
        """For the package booktabs. Long text is broken into lines; a wide table takes both columns
        of a page and is scaled down with graphicx; one with many rows continues over pages with
        longtable."""
        layout = "".join(map(self._latex_column, range(len(self.columns))))
        head = [r"\toprule", " & ".join(_latex(column.name) for column in self.columns) + r" \\", r"\midrule"]
        lines = []
        for number in range(len(self.rows)):
            if number in self.rules and number:
                lines.append(r"\midrule")
            text = " & ".join(self._marked(number, _latex, r"\textbf{{{}}}", r"\textit{{{}}}")) + r" \\"
            # A star or a bracket would be taken as an argument of the line break above.
            lines.append("{}" + text if text.startswith(("*", "[")) else text)
        text = " ".join([_sentence(self.title), *(_sentence(note) for note in self._notes())])
        caption = rf"\caption{{{_latex(text)}}}"
        if len(self.rows) > _TALL:
            pages = [rf"\begin{{longtable}}{{{layout}}}", rf"{caption} \\", *head, r"\endhead"]
            return "\n".join([*pages, r"\bottomrule", r"\endfoot", *lines, r"\end{longtable}", ""])
        tabular = [rf"\begin{{tabular}}{{{layout}}}", *head, *lines, r"\bottomrule", r"\end{tabular}"]
        kind = "table"
        if sum(min(_LONG, self._wide(k)) + 2 for k in range(len(self.columns))) > _WIDE:
            kind, tabular = "table*", [r"\resizebox{\textwidth}{!}{" + tabular[0], *tabular[1:-1], tabular[-1] + "}"]
        return "\n".join([rf"\begin{{{kind}}}", r"\centering", *tabular, caption, rf"\end{{{kind}}}", ""])

    def _latex_column(self, k: int) -> str:
        if not self.columns[k].text:
            return "r"
        return r"p{0.7\linewidth}" if max(map(len, self._cells(k))) > _LONG else "l"

    def html(self) -> str:
        def cell(tag: str, column: int, text: str, *, strong: bool = False) -> str:
            kinds = ["text"] * self.columns[column].text + ["paper"] * self.columns[column].paper
            inner = f"<strong>{html.escape(text)}</strong>" if strong and text else html.escape(text)
            names = f' class="{" ".join(kinds)}"' if kinds else ""
            return f"<{tag}{names}>{inner}</{tag}>"

        head = "".join(cell("th", k, column.name) for k, column in enumerate(self.columns))
        body = []
        for number, row in enumerate(self.rows):
            cells = "".join(cell("td", k, c, strong=(number, k) in self.strong) for k, c in enumerate(row))
            ruled = ' class="rule"' if number in self.rules and number else ""
            body.append(f"<tr{ruled}>{cells}</tr>")
        notes = "".join(f'<p class="note">{html.escape(note)}</p>' for note in self._notes())
        return (
            f"<figure><figcaption>{html.escape(self.title)}</figcaption><div class=scroll><table><thead><tr>{head}"
            f"</tr></thead><tbody>{''.join(body)}</tbody></table></div>{notes}</figure>"
        )

    def as_dict(self) -> dict[str, Any]:
        names = [column.name for column in self.columns]
        twice = [name for name in names if names.count(name) > 1]
        if twice:
            raise ValueError(f"two columns of {self.title!r} are called {twice[0]!r}")
        rows = [dict(zip(names, row, strict=True)) for row in self.rows]
        figures = {"figures": self.figures} if self.figures else {}
        return {"title": self.title, "rows": rows, **figures, "notes": self.notes}


def _sentence(text: str) -> str:
    return text if text.endswith((".", "?", "!")) else f"{text}."


def _markdown(text: str) -> str:
    return re.sub(r"([|*_`\\<&\[])", r"\\\1", text).replace("\n", " ")


def _latex(text: str) -> str:
    return "".join(_LATEX.get(character, character) for character in text)


# ---- Single-file HTML pages: style, script and pictures are inside, nothing is fetched ----

STYLE = Path(__file__).parent / "static" / "page.css"


def page(title: str, parts: Iterable[str | Table], style: str = "", script: str = "", data: Any = None) -> str:
    """A whole page; `parts` are HTML or tables. The script comes last, so that it finds all of them; it reads
    `data` as JSON from the element of that id."""
    body = "\n".join(part.html() if isinstance(part, Table) else part for part in parts)
    if data is not None:
        text = json.dumps(data, ensure_ascii=False, separators=(",", ":"))
        text = text.replace("<", "\\u003c")  # "</script>" or "<!--" in a text would end the element
        body += f'\n<script type="application/json" id="data">{text}</script>'
    return (
        "<!doctype html>\n"
        f'<html lang="en"><head><meta charset="utf-8"><title>{html.escape(title)}</title>\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<style>\n{STYLE.read_text(encoding='utf-8')}{style}</style></head>\n<body><main>\n<h1>{html.escape(title)}</h1>\n{body}\n</main>"
        + (f"\n<script>{script}</script>" if script else "")
        + "</body></html>\n"
    )


def write_page(path: str | Path, text: str) -> None:
    with write_atomically(path) as file:
        file.write(text)


def write_tables(tables: Sequence[Table], markdown: str = "", latex: str = "") -> None:
    """Writes the tables to the files that are named."""
    for path, texts in (
        (markdown, [table.markdown() for table in tables]),
        (latex, [table.latex() for table in tables]),
    ):
        if path:
            write_page(path, "\n".join(texts))
