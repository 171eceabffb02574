"""Test sets as `docnmt tables` reads them."""

from __future__ import annotations

import warnings
from dataclasses import replace

import pytest

from docnmt.base.errors import DocnmtError
from docnmt.base.lines import CorpusFiles
from docnmt.config import EvaluationConfig, Recipe
from docnmt.evaluation.test_sets import read_test_set
from docnmt.experiments.scores import parts_of


@pytest.fixture
def skipping() -> Recipe:
    recipe = Recipe()
    return replace(recipe, data=replace(recipe.data, skip_bad=True))


def test_what_is_skipped_of_a_test_set_is_said(tmp_path, skipping):
    path = tmp_path / "test.tsv"
    path.write_text("a\tUn.\tOne.\na\tDeux\x01.\tTwo.\nb\tTrois.\tThree.\n", encoding="utf-8")
    with pytest.warns(UserWarning, match="test.tsv: skipped 1 bad places"):
        found = read_test_set(CorpusFiles(path=str(path)), skipping)
    assert found.references == [["One.", "Three."]]


def test_of_a_good_test_set_nothing_is_said(tmp_path, skipping):
    path = tmp_path / "test.tsv"
    path.write_text("a\tUn.\tOne.\nb\tTrois.\tThree.\n", encoding="utf-8")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert read_test_set(CorpusFiles(path=str(path)), skipping).references == [["One.", "Three."]]


@pytest.mark.parametrize("name", ["p", "95 %", "Dev"])
def test_a_domain_may_not_have_the_name_of_another_column(tmp_path, skipping, name):
    path = tmp_path / "test.tsv"
    path.write_text("a\tUn.\tOne.\nb\tTrois.\tThree.\n", encoding="utf-8")
    files = (CorpusFiles(path=str(path)),)
    recipe = replace(skipping, data=replace(skipping.data, dev=files, test=files))
    with pytest.raises(DocnmtError, match=f"two columns of the tables would be named '{name}'"):
        parts_of(replace(recipe, evaluation=EvaluationConfig(domains=(f"{name}=a",))))
