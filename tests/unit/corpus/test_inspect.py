"""The numbers of an inspection, checked against plain counting."""

from __future__ import annotations

import io
import json
import statistics

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from docnmt.base.errors import DocnmtError
from docnmt.corpus.inspect import (
    NAMES,
    PAPER,
    Lengths,
    agrees,
    comparison,
    count_words,
    expected_of,
    inspect,
    print_inspection,
)
from docnmt.document import ContextSpec, ParallelDocument, context_sentences

DOCUMENTS = [
    ParallelDocument("a", ("Un deux.", "Trois [bold]quatre[/bold] cinq.", "Six."), ("One two.", "Three.", "Six.")),
    ParallelDocument("b", ("Un deux.",), ("One two.",)),
    ParallelDocument("c", ("Un deux.", "Sept huit neuf dix."), ("One, two.", "Seven to ten.")),
    ParallelDocument("d", tuple(f"Phrase {n}." for n in range(8)), tuple(f"Sentence {n}." for n in range(8))),
]


def test_counts() -> None:
    result = inspect(iter(DOCUMENTS), ContextSpec(previous=2))
    assert (result.documents, result.sentences) == (4, 14)
    assert result.source_words == sum(len(s.split()) for d in DOCUMENTS for s in d.source)
    assert result.target_words == sum(len(s.split()) for d in DOCUMENTS for s in d.target)
    assert (result.document_lengths.minimum, result.document_lengths.maximum) == (1, 8)
    assert result.document_lengths.mean == 3.5
    assert result.repeated_pairs == 1  # document b; in c the target is another
    assert result.repeated_sources == 2


@pytest.mark.parametrize(
    ("spec", "some", "full"),
    [
        (ContextSpec(2, 0), 10, 7),
        (ContextSpec(1, 0), 10, 10),
        (ContextSpec(1, 1), 13, 7),
        (ContextSpec(0, 0), 0, 0),
    ],
)
def test_share_of_context(spec: ContextSpec, some: int, full: int) -> None:
    result = inspect(DOCUMENTS, spec)
    assert result.with_context == pytest.approx(some / 14)
    assert result.with_full_context == pytest.approx(full / 14)


def test_examples_have_the_context_of_their_document() -> None:
    spec = ContextSpec(previous=1, following=1)
    examples = inspect(DOCUMENTS, spec).examples
    assert [example.document for example in examples] == ["a", "d", "a"]
    by_id = {document.id: document for document in DOCUMENTS}
    for example in examples:
        document = by_id[example.document]
        assert example.source == document.source[example.position]
        assert example.target == document.target[example.position]
        assert example.context == context_sentences(document.source, example.position, spec)
    assert len({(example.document, example.position) for example in examples}) == 3


@pytest.mark.parametrize(
    ("sentence", "words"),
    [
        ("It's a test.", 3),
        ("L'été\u00a0: «\u00a0oui\u00a0»", 5),
        ("本节介绍 Basic IDE 的结构。", 9),
        ("これはペンです。", 7),
        ("한국어 문장입니다.", 2),
        ("ＡＢ！", 1),
    ],
)
def test_words(sentence: str, words: int) -> None:
    assert count_words(sentence) == words


@given(st.lists(st.integers(0, 50), min_size=1))
def test_lengths_agree_with_sorting(values: list[int]) -> None:
    from collections import Counter

    lengths = Lengths.of(Counter(values))
    ordered = sorted(values)
    assert (lengths.minimum, lengths.maximum) == (ordered[0], ordered[-1])
    assert lengths.mean == pytest.approx(statistics.mean(values))
    assert lengths.median == statistics.median_low(values)
    assert lengths.percentile_95 == ordered[-(-len(ordered) * 95 // 100) - 1]


def test_as_json_and_as_text() -> None:
    result = inspect(DOCUMENTS, ContextSpec())
    assert json.loads(json.dumps(result.as_dict()))["context"] == {"previous": 2, "following": 0}
    output = io.StringIO()
    print_inspection(Console(file=output, width=80), result)
    text = output.getvalue()
    assert max(map(len, text.splitlines())) <= 80
    assert "[bold]quatre[/bold]" in text  # shown as it is, not taken for markup
    for shown in ("documents", "14", "71.4%", "50.0%", "example 3: a, sentence 3"):
        assert shown in text


def test_nothing_to_inspect() -> None:
    result = inspect([], ContextSpec())
    assert (result.documents, result.sentences, result.with_context, result.examples) == (0, 0, 0.0, ())
    assert result.source_lengths == Lengths(0, 0, 0.0, 0, 0)


# ---- a corpus beside the paper's ----


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
