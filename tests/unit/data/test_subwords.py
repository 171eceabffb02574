"""Sub-words trained here: how many there are, and what they are made of."""

from __future__ import annotations

import pytest

from docnmt.base.errors import DocnmtError
from docnmt.config import SubwordConfig
from docnmt.data.prepare import _check_tokenised
from docnmt.data.subwords import Subwords, train_subwords
from tests.builders import lines, small_subwords

TEXT = [f"{line} !" for line in lines(200, seed=1)]
BESIDE = 4 + 256  # marks and bytes


def characters(text: list[str]) -> set[str]:
    return {c for line in text for c in line.replace(" ", "\u2581")} | {"\u2581"}


@pytest.mark.parametrize("merges", [5, 40])
def test_merges_are_counted_and_characters_stand_beside_them(merges):
    made = small_subwords(TEXT, merges, counts="merges")
    pieces = made.all_pieces()[BESIDE:]
    assert len([piece for piece in pieces if len(piece) > 1]) == merges
    assert {piece for piece in pieces if len(piece) == 1} == characters(TEXT)
    assert small_subwords(TEXT, len(made)).model == made.model  # so many pieces, counted the other way


def test_lower_case_is_for_both_ways():
    made = small_subwords([line.title() for line in TEXT], 320, lowercase=True)
    line = TEXT[0]
    assert made.encode([line.upper()]) == made.encode([line])
    assert made.decode(made.encode([line.title()])) == [line]


def test_tokens_are_cut_at_spaces_alone_where_the_corpora_are_tokenised():
    text = ["x86_64 don't a.m. "] * 50
    assert "\u2581a.m." in small_subwords(text, 300, tokenized=True).all_pieces()
    assert "\u2581a.m." not in small_subwords(text, 290).all_pieces()


def test_corpora_that_are_not_tokenised_are_refused():
    _check_tokenised(["A dog barks .", "He said : come in", "No mark", "Yes !"], "source")
    _check_tokenised([], "source")
    with pytest.raises(DocnmtError, match="target corpora are not"):
        _check_tokenised(["A dog barks.", "Yes !", "He said so."], "target")


def test_what_is_wrong_with_the_lines_is_told_as_such():
    """And not as a failure of the trainer, with advice on its vocabulary."""

    def lines():
        yield "Un mot."
        raise DocnmtError("a.tsv, line 2: two columns\n  Write three.")

    for counts in ("pieces", "merges"):
        with pytest.raises(DocnmtError, match=r"^a\.tsv, line 2: two columns\n  Write three\.$"):
            train_subwords(lines, SubwordConfig(vocabulary=300, counts=counts), seed=1)


def test_a_vocabulary_that_is_too_small_is_to_be_raised():
    with pytest.raises(DocnmtError, match=r"required_chars.*\n  Raise subwords\.vocabulary above 2\d\d\.$"):
        train_subwords(lambda: ["abc def ghi"] * 20, SubwordConfig(vocabulary=50), seed=1)


def test_a_damaged_model_is_told_though_sentencepieces_own_words_are_no_text():
    damaged = small_subwords(TEXT, 320).model.replace(b"<0x51>", b"<0x\xbe1>")
    with pytest.raises(DocnmtError) as error:
        Subwords(damaged, "source.spm")
    assert "source.spm: not a SentencePiece model (INTERNAL: byte piece <0x\ufffd1> is invalid" in str(error.value)
