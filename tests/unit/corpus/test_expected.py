"""A corpus beside the paper's."""

from __future__ import annotations

import pytest

from docnmt.base.errors import DocnmtError
from docnmt.corpus.inspect import NAMES, PAPER, agrees, comparison, expected_of, inspect
from docnmt.document import ContextSpec, ParallelDocument


@pytest.mark.parametrize(
    ("printed", "same", "other"),
    [
        ("41K", (40_500, 41_000, 41_500), (40_499, 41_501)),
        ("940K", (935_000, 940_123, 945_000), (934_999, 950_000)),
        ("22.9", (22.85, 22.93), (22.8, 23.0)),
        ("1,824", (1824,), (1823, 1825)),
        ("5,833", (5833,), (5834,)),
        ("8", (8,), (7, 9)),
    ],
)
def test_a_figure_is_the_papers_if_the_paper_would_print_it_so(printed, same, other):
    assert all(agrees(figure, printed) for figure in same)
    assert not any(agrees(figure, printed) for figure in other)


def corpus(documents: int, sentences: int):
    return inspect((ParallelDocument(f"d{n}", ("a",) * sentences, ("b",) * sentences) for n in range(documents)),
                   ContextSpec(2, 0))  # fmt: skip


def test_what_differs_is_told_with_how_much():
    table = comparison({"dev": corpus(8, 111)}, {"dev": PAPER["fr-en"]["dev"]})
    assert table.rows[0][-1] == "as in the paper"
    assert table.rows[1][2:] == ("888", "887", "differs: +1 (+0.1%)")
    assert [figure["agrees"] for figure in table.as_dict()["figures"]] == [True, False] and table.notes


def test_what_agrees_says_no_more():
    assert not comparison({"x": corpus(8, 5)}, {}).notes


def test_names_are_those_of_the_papers_corpora():
    assert list(NAMES) == ["zh-en", "zh-en-dev-test", "fr-en", "fr-en-dev", "fr-en-test"]
    assert expected_of("zh-en").pairs == "940K"
    with pytest.raises(DocnmtError, match="Did you mean 'zh-en'"):
        expected_of("zh-em")
