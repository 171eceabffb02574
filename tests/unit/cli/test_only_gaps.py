"""A corpus may have gaps, but of one that has nothing else there is nothing to say."""

from __future__ import annotations

import pytest

from docnmt.cli import main
from docnmt.model_folder import save_model, weights_of
from tests.builders import loaded_model


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    made, folder = loaded_model(), tmp_path_factory.mktemp("gaps") / "model"
    save_model(folder, weights_of(made.model), made.card, made.source, made.target, {})
    return str(folder)


@pytest.mark.parametrize("verb", ["score", "context-gain"])
def test_a_corpus_of_gaps_alone_is_refused(verb, model, tmp_path, capsys):
    corpus, figures = tmp_path / "gaps.tsv", tmp_path / "figures.json"
    corpus.write_text("a\t\t\na\t\t\nb\t\t\n", encoding="utf-8")
    assert main([verb, model, str(corpus), "--json", str(figures)]) == 2
    assert f"docnmt: {corpus}: all pairs are gaps\n  Give a corpus" in capsys.readouterr().err
    assert not figures.exists()
