"""One table, told in four ways: what is in it comes out of each of them whole, and marked."""

from __future__ import annotations

import io
import re
from html.parser import HTMLParser

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from docnmt.base.report import Column, Table

# Whatever somebody's sentence, document id or file name may hold.
NASTY = '[bold]x[/] | a_b *c* `d` 100 % & {e} $f$ #g ~h ^i \\ <j> "k" & &amp; [l](m) ± ≥ …'
TEXTS = st.text(st.characters(exclude_categories=("Cc", "Cs", "Zl", "Zp")), min_size=1, max_size=20).map(str.strip)


def sample(*rows: tuple[str, ...]) -> Table:
    table = Table("Effect of x", (Column("Method", text=True), Column("Dev"), Column("paper: MT06", paper=True)))
    for row in rows:
        table.add(*row)
    return table


def printed(table: Table, width: int = 200) -> str:
    console = Console(file=io.StringIO(), width=width, color_system=None)
    table.print(console)
    return console.file.getvalue()  # type: ignore[attr-defined]


def cells_of_markdown(text: str) -> list[list[str]]:
    """The cells of a Markdown table, as a reader of it sees them: a backslash before a sign is not shown."""
    rows = []
    for line in text.splitlines():
        if line.startswith("| "):
            cells = re.findall(r" ((?:\\.|[^|\\])*) (?=\|)", line)
            rows.append([re.sub(r"\\(.)", r"\1", cell) for cell in cells])
    return rows


class _Cells(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.rows: list[list[str]] = []
        self.kinds: list[list[str]] = []
        self.inside = False

    def handle_starttag(self, tag, attributes):
        if tag == "tr":
            self.rows.append([])
            self.kinds.append([])
        self.inside = tag in ("td", "th") or (self.inside and tag == "strong")
        if tag in ("td", "th"):
            self.rows[-1].append("")
            self.kinds[-1].append(dict(attributes).get("class", ""))

    def handle_endtag(self, tag):
        self.inside = self.inside and tag not in ("td", "th")

    def handle_data(self, data):
        if self.inside:
            self.rows[-1][-1] += data


def cells_of_html(text: str) -> _Cells:
    parser = _Cells()
    parser.feed(text)
    return parser


def test_a_row_has_as_many_cells_as_there_are_columns():
    with pytest.raises(ValueError, match="2 cells for 3 columns of 'Effect of x'"):
        sample(("a", "1"))


# ---- what is in a table comes out of it ----


@given(st.lists(st.tuples(TEXTS, TEXTS, TEXTS), min_size=1, max_size=3))
def test_html_says_what_the_cells_say(rows):
    table = sample(*rows)
    assert cells_of_html(table.html()).rows == [["Method", "Dev", "paper: MT06"], *map(list, rows)]


@given(st.lists(st.tuples(TEXTS, TEXTS), min_size=1, max_size=3))
def test_markdown_keeps_every_cell_in_its_column(rows):
    table = sample(*((a, b, "1.00") for a, b in rows))
    head, dashes, *body = cells_of_markdown(table.markdown())
    assert (head, dashes) == (["Method", "Dev", "paper: MT06"], [":--", "--:", "--:"])
    assert [row[:2] for row in body] == [list(row) for row in rows]


def test_markdown_takes_nothing_in_a_cell_for_markup():
    text = sample((NASTY, "1", "2")).markdown()
    *_, row = text.splitlines()
    cell = row.removeprefix("| ").removesuffix(" | 1 | *2* |")
    bare = re.sub(r"\\.", "", cell)
    assert not set("|*_`<&[") & set(bare)
    assert cells_of_markdown(text)[-1] == [NASTY, "1", "*2*"]


@given(TEXTS, TEXTS)
def test_the_terminal_shows_cells_as_they_are(name, value):
    shown = printed(sample((name, value, "")))
    assert name in shown and value in shown


@pytest.mark.parametrize("text", [NASTY, "ends in \\", "[/]", "[red]", ":smile:"])
def test_the_terminal_takes_no_cell_for_markup(text):
    table = Table(text, (Column("Method", text=True), Column(text)), notes=[text])
    table.add(text, text, strong=[0, 1])
    assert printed(table).count(text) == 5


def test_json_has_every_cell_under_the_name_of_its_column():
    table = sample(("a", "1.50", "2.00"), ("b", "±", ""))
    table.notes.append("note")
    assert table.as_dict() == {
        "title": "Effect of x",
        "rows": [
            {"Method": "a", "Dev": "1.50", "paper: MT06": "2.00"},
            {"Method": "b", "Dev": "±", "paper: MT06": ""},
        ],
        "notes": ["note"],
    }


def test_two_columns_of_one_name_would_lose_one_in_json_and_are_refused():
    table = Table("t", (Column("Test"), Column("Test")))
    table.add("1", "2")
    with pytest.raises(ValueError, match="'Test'"):
        table.as_dict()


# ---- what stands out ----


def test_the_papers_figures_are_marked_in_every_layout():
    table = sample(("a", "1.50", "2.25"))
    table.add("b", "3.00", "", strong=[1])
    assert "| a | 1.50 | *2.25* |\n| b | **3.00** |  |" in table.markdown()
    assert r"a & 1.50 & \textit{2.25} \\" in table.latex()
    assert r"b & \textbf{3.00} &  \\" in table.latex()
    found = cells_of_html(table.html())
    assert found.kinds == [["text", "", "paper"]] * 3
    assert "<strong>3.00</strong>" in table.html()
    styled = Console(file=io.StringIO(), width=80, force_terminal=True, color_system="standard")
    table.print(styled)
    cell = re.search(r"\x1b\[([\d;]+)m[^\x1b]*2\.25", styled.file.getvalue())  # type: ignore[attr-defined]
    assert cell and set(cell[1].split(";")) == {"2", "3"}  # dim and italic


def test_what_stands_out_is_explained_in_every_layout_and_starred_where_nothing_can_be_bold():
    table = sample(("a", "1.50", ""))
    table.add("b", "3.00", "", strong=[1])
    table.strong_means = "the best score"
    shown = printed(table)
    assert "│   1.50 │" in shown and "│ * 3.00 │" in shown and "  *: the best score\n" in shown and "Bold" not in shown
    styled = Console(file=io.StringIO(), width=80, force_terminal=True, color_system="standard")
    table.print(styled)
    assert "Bold: the best score" in styled.file.getvalue()  # type: ignore[attr-defined]
    assert "*" not in styled.file.getvalue()  # type: ignore[attr-defined]
    for text in (table.markdown(), table.latex(), table.html()):
        assert "Bold: the best score" in text
    table.strong.clear()
    for text in (printed(table), table.markdown(), table.latex(), table.html()):
        assert "the best score" not in text


def test_rules_are_drawn_above_their_rows():
    table = sample(("a", "1", "2"), ("b", "1", "2"))
    table.add("control", "1", "2", rule=True)
    latex = table.latex().splitlines()
    assert latex[latex.index(r"control & 1 & \textit{2} \\") - 1] == r"\midrule"
    assert latex.count(r"\midrule") == 2  # the other below the heading
    assert table.html().count('<tr class="rule"><td class="text">control') == 1
    lines = printed(table).splitlines()
    assert lines[next(i for i, line in enumerate(lines) if "control" in line) - 1].startswith("├")


def test_a_rule_above_the_first_row_is_that_of_the_heading():
    table = Table("t", (Column("a"),))
    table.add("1", rule=True)
    assert table.latex().count(r"\midrule") == 1
    assert "rule" not in table.html()


# ---- LaTeX ----


def balanced(text: str) -> bool:
    depth = 0
    for sign in re.findall(r"(?<!\\)(?:\\\\)*([{}])", text):
        depth += 1 if sign == "{" else -1
        if depth < 0:
            return False
    return depth == 0 and len(re.findall(r"(?<!\\)(?:\\\\)*\$", text)) % 2 == 0


@given(TEXTS, TEXTS, st.booleans())
def test_latex_is_balanced_and_has_a_cell_a_column(name, value, strong):
    table = sample()
    table.add(name, value, value, strong=[0] if strong else [])
    table.notes.append(name)
    text = table.latex()
    assert balanced(text)
    (row,) = text[text.index("\\midrule\n") + 9 : text.index("\\bottomrule")].splitlines()
    assert len(re.findall(r"(?<!\\)&", row)) == 2 and row.endswith(r" \\")
    assert "%" not in re.sub(r"\\%", "", text)


@pytest.mark.parametrize("label", ["[applause]", "*", "* 2"])
def test_a_row_that_starts_with_a_bracket_or_a_star_is_no_argument_of_the_line_end_before_it(label):
    lines = sample(("a", "1", "2"), (label, "1", "2")).latex().splitlines()
    row = lines[lines.index(r"a & 1 & \textit{2} \\") + 1]
    assert row[0] not in "[*" and label.strip("[]*") in row


def test_the_caption_is_the_title_and_the_notes_as_sentences():
    table = sample(("a", "1", "2"))
    table.notes += ["multi-bleu: case:lc|nrefs:4", "A sentence."]
    assert r"\caption{Effect of x. multi-bleu: case:lc\textbar\allowbreak{}nrefs:4. A sentence.}" in table.latex()


def test_latex_that_is_wide_is_made_to_fit_and_one_that_is_long_goes_on_over_pages():
    assert r"\resizebox" not in sample(("a", "1", "2")).latex()
    wide = wide_table().latex()
    assert (
        wide.startswith("\\begin{table*}") and r"\resizebox{\textwidth}{!}{\begin{tabular}" in wide and balanced(wide)
    )
    long = sample(*((f"row {number}", "1", "2") for number in range(100))).latex()
    assert long.startswith(r"\begin{longtable}") and "{table" not in long and balanced(long)
    assert long.count(r"\caption") == 1 and all(f"row {number} &" in long for number in range(100))
    # What is said at the head of each page ends with \endhead, what is said at its foot with \endfoot.
    assert long.index(r"\caption") < long.index(r"\endhead") < long.index(r"\endfoot") < long.index("row 0 &")


# ---- narrow terminals ----


def wide_table() -> Table:
    names = ("MT06", "MT02", "MT03", "MT04", "MT05", "MT08", "All")
    ours = [Column(name) for name in (*names, "gain on All", "95 %", "p")]
    table = Table(
        "Wide", (Column("Integration", text=True), *ours, *(Column(f"paper: {n}", paper=True) for n in names))
    )
    for name in ("none", "encoder", "control: shuffled context"):
        ours_cells = (*(f"4{k}.{k}7" for k in range(7)), "+1.96", "+1.07 … +2.51", "0.0001")
        table.add(name, *ours_cells, *(f"3{k}.{k}9" for k in range(7)))
    return table


@pytest.mark.parametrize("width", [80, 100, 120])
def test_figures_are_not_broken_by_a_narrow_terminal(width):
    table = wide_table()
    shown = printed(table, width)
    assert max(map(len, shown.splitlines())) <= width
    for row in table.rows:
        for cell in row[1:]:
            assert shown.count(f" {cell} ") >= 3, cell
    assert shown.count("encoder") == shown.count("none") >= 2  # every part says whose figures they are
    assert [word for column in table.columns for word in column.name.split() if f" {word} " not in shown] == []


def test_labels_give_way_to_figures():
    table = Table("Narrow", (Column("metric", text=True), Column("system", text=True), Column("95 %"), Column("p")))
    table.add("BLEU", "a-system-with-a-name-of-some-length", "[−1.21, +1.94]", "0.1234")
    for width in (40, 50, 60, 70):
        assert " [−1.21, +1.94] " in printed(table, width)


def test_a_wide_terminal_shows_a_table_in_one_piece():
    assert printed(wide_table(), 250).count("encoder") == 1


def test_long_text_is_folded_and_never_cut():
    table = Table("Example", (Column("who", text=True), Column("text", text=True)))
    words = [f"word{number}" for number in range(60)]
    table.add("Source", " ".join(words))
    shown = printed(table, 60)
    assert [word for word in words if word not in shown] == []


@pytest.mark.parametrize("names", [("sentence", "document"), ("a" * 30, "b"), ("two words and more of a name", "x")])
def test_no_figure_is_cut_at_any_width(names):
    """Also where the table would fit if its headings were broken into lines, by a column or two."""
    heads = ("score", "difference", "95 % interval", "p bootstrap", "p swaps")
    figures = ("14.99", "+0.45", "[+0.23, +0.68]", "0.0010", "0.0029")
    table = Table("Comparison", [Column("metric", text=True), Column("system", text=True), *map(Column, heads)])
    table.add("chrF", names[0], "14.54", "baseline", "", "", "")
    table.add("", names[1], *figures)
    for width in range(64, 130):
        text = printed(table, width)
        assert all(figure in text for figure in figures), width
        assert max(map(len, text.splitlines())) <= width
