"""Metrics are sacrebleu's to the last digit, and multi-bleu is the published algorithm."""

from __future__ import annotations

import math
from collections import Counter

import numpy as np
import pytest
import sacrebleu
from hypothesis import example, given, settings
from hypothesis import strategies as st

from docnmt.base.errors import DocnmtError
from docnmt.evaluation.metrics import METRICS, corpus_statistics, make_metric

HYPOTHESES = [
    "The lawyer puts on his robe.",
    "She is ripe, and the hearing begins at 9.30!",
    "The cat sleeps on the roof of the old house.",
    "",
    "A dress hung in the hall; nobody bought it.",
]
REFERENCES = [
    [
        "The lawyer puts on her gown.",
        "It is ripe; the hearing starts at 9:30.",
        "The cat is sleeping on the roof of the old house.",
        "Nobody came.",
        "A dress hung in the hall, but nobody bought it.",
    ],
    [
        "The barrister puts his robe on.",
        "It's ripe, and the session begins at 9.30.",
        "On the old roof sleeps the Cat.",
        "Nobody was there.",
        "A robe hung in the hall. It was not sold.",
    ],
]
DOCUMENTS = np.array([0, 0, 1, 1, 1])

SACREBLEU = {
    "bleu": lambda lowercase: sacrebleu.BLEU(lowercase=lowercase),
    "chrf": lambda lowercase: sacrebleu.CHRF(lowercase=lowercase),
    "ter": lambda lowercase: sacrebleu.TER(),
    "multi-bleu": lambda lowercase: sacrebleu.BLEU(lowercase=True, smooth_method="none"),
}


def score(name: str, hypotheses, references, **choices) -> float:
    metric = make_metric(name, **choices)
    return metric.score(metric.statistics(hypotheses, references).sum(axis=0))


# ---- sacrebleu's numbers ----


@pytest.mark.parametrize("count", [1, 2])
@pytest.mark.parametrize("lowercase", [False, True])
@pytest.mark.parametrize("name", SACREBLEU)
def test_scores_are_those_of_sacrebleu(name, lowercase, count):
    expected = SACREBLEU[name](lowercase).corpus_score(HYPOTHESES, REFERENCES[:count])
    assert 0 < expected.score < 100
    assert score(name, HYPOTHESES, REFERENCES[:count], lowercase=lowercase) == expected.score


@pytest.mark.parametrize("name", ["bleu", "chrf", "ter"])
def test_signatures_are_those_of_sacrebleu_and_count_references(name):
    metric, other = make_metric(name), SACREBLEU[name](False)
    metric.statistics(HYPOTHESES, REFERENCES)
    other.corpus_score(HYPOTHESES, REFERENCES)
    assert metric.signature == str(other.get_signature())
    assert "nrefs:2" in metric.signature


def test_only_ter_is_better_when_lower():
    assert [name for name in METRICS if not make_metric(name).higher_is_better] == ["ter"]


@pytest.mark.parametrize("name", METRICS)
def test_the_whole_is_the_sum_of_its_parts(name):
    metric = make_metric(name)
    whole = metric.statistics(HYPOTHESES, REFERENCES)
    parts = [
        metric.statistics(HYPOTHESES[a:b], [reference[a:b] for reference in REFERENCES]) for a, b in ((0, 2), (2, 5))
    ]
    assert len(whole) == len(HYPOTHESES)
    assert np.array_equal(whole, np.concatenate(parts))


@pytest.mark.parametrize("name", METRICS)
def test_a_perfect_translation_and_an_empty_one(name):
    best, worst = (100.0, 0.0) if name != "ter" else (0.0, 100.0)
    assert score(name, REFERENCES[0], REFERENCES[:1]) == pytest.approx(best)
    assert score(name, [""] * 5, REFERENCES[:1]) == worst


def test_references_that_do_not_match_are_refused():
    with pytest.raises(DocnmtError, match="5 translations, but reference 2 has 4 segments"):
        make_metric("bleu").statistics(HYPOTHESES, [REFERENCES[0], REFERENCES[1][:4]])


# ---- documents ----


def test_document_bleu_takes_a_document_for_a_segment():
    metric = make_metric("document-bleu")
    statistics, documents = corpus_statistics(metric, HYPOTHESES, REFERENCES, DOCUMENTS)
    joined = [[" ".join(side[:2]), " ".join(side[2:])] for side in (HYPOTHESES, *REFERENCES)]
    assert len(statistics) == 2
    assert documents.tolist() == [0, 1]
    assert metric.score(statistics.sum(axis=0)) == sacrebleu.BLEU().corpus_score(joined[0], joined[1:]).score
    assert metric.signature.startswith("segment:document|nrefs:2|")


def test_document_bleu_takes_sentences_together_that_stand_apart():
    metric = make_metric("document-bleu")
    order = [2, 0, 3, 1, 4]
    mixed = [[side[i] for i in order] for side in (HYPOTHESES, *REFERENCES)]
    statistics, _ = corpus_statistics(metric, HYPOTHESES, REFERENCES, DOCUMENTS)
    again, documents = corpus_statistics(metric, mixed[0], mixed[1:], DOCUMENTS[order])
    assert np.array_equal(statistics, again)
    assert documents.tolist() == [0, 1]


def test_other_metrics_keep_sentences():
    statistics, documents = corpus_statistics(make_metric("bleu"), HYPOTHESES, REFERENCES, DOCUMENTS)
    assert len(statistics) == len(documents) == 5


# ---- multi-bleu ----


def published(hypotheses: list[str], references: list[list[str]]) -> float:
    """Papineni et al. (2002) as multi-bleu.perl has it, for tokens with spaces between them."""
    right, made = [0] * 4, [0] * 4
    length = wanted = 0
    for number, hypothesis in enumerate(hypotheses):
        words = hypothesis.lower().split()
        others = [reference[number].lower().split() for reference in references]
        length += len(words)
        wanted += min((abs(len(other) - len(words)), len(other)) for other in others)[1]
        for n in range(1, 5):

            def grams(tokens: list[str], n: int = n) -> Counter[tuple[str, ...]]:
                return Counter(tuple(tokens[i : i + n]) for i in range(len(tokens) - n + 1))

            best: Counter[tuple[str, ...]] = Counter()
            for other in others:
                best |= grams(other)
            right[n - 1] += (grams(words) & best).total()
            made[n - 1] += grams(words).total()
    if not all(right):
        return 0.0
    penalty = min(1.0, math.exp(1 - wanted / length))
    return 100 * penalty * math.prod(r / m for r, m in zip(right, made, strict=True)) ** 0.25


CASES = {
    "one reference": (["a b c d e f"], [["a b c d x f"]]),
    "case is nothing": (["A b C d E"], [["a B c D e"]]),
    "two references that share the matches": (["a b c d e f g h"], [["a b c d x y z w"], ["q r s t e f g h"]]),
    "as close, the shorter counts": (["a b c d e"], [["a b c d e f g"], ["a b c"]]),
    "the closer counts, not the shorter": (["a b c d e"], [["a b c d e f"], ["a b"]]),
    "a word said too often": (["the the the the a b c d"], [["the a b c d the"], ["a b c d"]]),
    "no four words in a row": (["a b c x e f g"], [["a b c d e f g"]]),
    "nothing right": (["x y z w v"], [["a b c d e"]]),
    "an empty translation": (["", "a b c d e"], [["a b", "a b c d e"]]),
    "empty altogether": (["", ""], [["a b", "c"]]),
    "too short for four words": (["a b"], [["a b"]]),
    "three sentences": (
        [
            "The lawyer put on her robe , and left .",
            "She did not say a word to the judge .",
            "It was raining when the court opened again .",
        ],
        [
            [
                "The lawyer put her robe on and left .",
                "She said not a word to the judge .",
                "It rained when the court opened again .",
            ],
            [
                "The attorney put on her robe , then left .",
                "To the judge she did not say anything .",
                "When the court opened again , it was raining .",
            ],
        ],
    ),
}
# What `multi-bleu.perl -lc` of the Moses decoder printed for them; where all is empty, it divides by zero.
PRINTED = {
    "one reference": "53.73",
    "case is nothing": "100.00",
    "two references that share the matches": "69.14",
    "as close, the shorter counts": "100.00",
    "the closer counts, not the shorter": "81.87",
    "a word said too often": "54.11",
    "no four words in a row": "0.00",
    "nothing right": "0.00",
    "an empty translation": "67.03",
    "too short for four words": "0.00",
    "three sentences": "72.54",
}


@pytest.mark.parametrize("case", PRINTED)
def test_multi_bleu_is_what_the_script_prints(case):
    assert f"{score('multi-bleu', *CASES[case], tokenized=True):.2f}" == PRINTED[case]


@pytest.mark.parametrize("case", CASES)
def test_multi_bleu_is_the_published_algorithm(case):
    hypotheses, references = CASES[case]
    assert score("multi-bleu", hypotheses, references, tokenized=True) == pytest.approx(
        published(hypotheses, references), abs=1e-9
    )


WORDS = st.lists(st.sampled_from(["a", "b", "c", "A", "B"]), max_size=12).map(" ".join)


@st.composite
def corpora(draw):
    size, count = draw(st.integers(1, 4)), draw(st.integers(1, 4))
    sides = [draw(st.lists(WORDS, min_size=size, max_size=size)) for _ in range(1 + count)]
    return sides[0], sides[1:]


@settings(max_examples=200, deadline=None)
@given(corpora())
@example((["a b c d"], [["a b c d e"], ["a b c"], ["a b c d e f"]]))
def test_multi_bleu_is_the_published_algorithm_whatever_the_corpus(corpus):
    hypotheses, references = corpus
    ours = score("multi-bleu", hypotheses, references, tokenized=True)
    assert ours == pytest.approx(published(hypotheses, references), abs=1e-9)


def test_multi_bleu_tokenises_raw_text_and_says_so():
    metric = make_metric("multi-bleu")
    metric.statistics(HYPOTHESES, REFERENCES)
    assert metric.signature.startswith("multi-bleu|nrefs:2|case:lc|tok:13a|smooth:none|length:closest|version:")
    as_it_is = make_metric("multi-bleu", tokenized=True)
    as_it_is.statistics(HYPOTHESES, REFERENCES)
    assert "|tok:none|" in as_it_is.signature
    assert score("multi-bleu", ["a b c d."], [["a b c d ."]]) == pytest.approx(100)
    assert score("multi-bleu", ["a b c d."], [["a b c d ."]], tokenized=True) == 0


# ---- languages and names ----


@pytest.mark.parametrize("language", ["zh", "zh-CN", "ZH_tw"])
def test_chinese_is_counted_by_characters(language):
    hypotheses, references = ["律师穿上了袍子。"], [["律师穿上他的袍子。"]]
    for name in ("bleu", "multi-bleu", "document-bleu"):
        metric = make_metric(name, language=language)
        metric.statistics(hypotheses, references)
        assert "|tok:zh|" in metric.signature
    assert 0 < score("bleu", hypotheses, references, language=language) < 100
    assert 0 < score("ter", hypotheses, references, language=language) < 100
    assert score("ter", hypotheses, references) == 100  # one word that is another


@pytest.mark.parametrize(("language", "module"), [("ja", "ja_mecab"), ("ko", "ko_mecab")])
def test_a_tokenizer_that_is_not_installed_is_named_with_its_pip_line(language, module, monkeypatch):
    monkeypatch.setattr(f"sacrebleu.tokenizers.tokenizer_{module}.MeCab", None, raising=False)
    monkeypatch.setattr(f"sacrebleu.tokenizers.tokenizer_{module}.mecab_ko", None, raising=False)
    with pytest.raises(DocnmtError, match=rf"{language}-mecab.*\n  Run: pip install 'sacrebleu\[{language}\]'"):
        make_metric("bleu", language=language)
    make_metric("chrf", language=language)  # needs none


def test_an_unknown_metric_is_told_with_what_was_meant():
    with pytest.raises(DocnmtError, match=r"unknown metric 'blue'\n  Did you mean 'bleu'\?"):
        make_metric("blue")
    with pytest.raises(DocnmtError, match=r"unknown metric 'comet'\n  Choose from bleu, chrf, ter, "):
        make_metric("comet")
    assert make_metric("BLEU").name == "BLEU"
