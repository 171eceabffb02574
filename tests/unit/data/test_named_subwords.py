"""Sub-words whose ids are a vocabulary's, not SentencePiece's own."""

from __future__ import annotations

from itertools import pairwise

import pytest
import sentencepiece
from hypothesis import given
from hypothesis import strategies as st

from docnmt.base.errors import DocnmtError
from docnmt.data.subwords import NamedSubwords, Subwords, Vocabulary
from docnmt.text.scripts import normalise
from tests.builders import lines
from tests.marian_folders import joint_vocabulary, sentencepiece_model

PIECES = tuple(joint_vocabulary("☃☃", ">>fra<<", ">>deu<<"))


def made(punctuation: str = "", language: str = "", pieces: tuple[str, ...] = PIECES) -> NamedSubwords:
    return NamedSubwords(sentencepiece_model("source"), Vocabulary(pieces, punctuation, language))


def test_pieces_are_looked_up_by_name():
    own = sentencepiece.SentencePieceProcessor(model_proto=sentencepiece_model("source"))
    subwords = made()
    for sentence, ids in zip(lines(20), subwords.encode(lines(20)), strict=True):
        assert subwords.pieces(ids) == own.encode(sentence, out_type=str)
        assert ids != own.encode(sentence)
    assert subwords.encode(lines(20), threads=2) == subwords.encode(lines(20))
    assert PIECES[subwords.eos] == "</s>" and PIECES[subwords.unk] == "<unk>" and len(subwords) == len(PIECES)


def test_what_sentencepiece_does_not_know_the_vocabulary_may():
    subwords = made()
    assert subwords.pieces(subwords.encode(["le ☃☃"])[0])[-1] == "☃☃"
    assert subwords.pieces(subwords.encode(["le ☃☂"])[0])[-1] == "<unk>"


def test_ranks_are_sentencepieces_own_whatever_the_vocabulary():
    plain = Subwords(sentencepiece_model("source"))
    for sentence in [*lines(5), "le ☃"]:
        assert made("opus-mt").ranks(sentence) == plain.ranks(sentence)
    assert plain.ranks("☃")[-1] is None


def test_what_is_written_comes_back():
    subwords = made()
    assert subwords.decode(subwords.encode(lines(20))) == lines(20)
    # Also pieces that are none of this SentencePiece model's, and marks are not written.
    ids = subwords.ids([">>fra<<", "▁le", "☃☃", "</s>"])
    assert subwords.decode([ids]) == ["le☃☃"] and len(subwords.written()) == len(subwords)
    assert b"".join(subwords.written()[i] for i in ids) == " le☃☃".encode()


def test_it_is_saved_and_loaded_with_its_vocabulary(tmp_path):
    subwords = made("opus-mt", ">>fra<<")
    subwords.save(tmp_path / "source.spm")
    again = Subwords.load(tmp_path / "source.spm")
    assert isinstance(again, NamedSubwords) and again.vocabulary == subwords.vocabulary
    assert again.content == subwords.content != made().content
    Vocabulary.path(tmp_path / "source.spm").write_text("[]")
    with pytest.raises(DocnmtError, match="not a vocabulary"):
        Subwords.load(tmp_path / "source.spm")


def test_a_list_that_sentencepiece_leaves_beside_its_models_is_none_of_ours(tmp_path):
    (tmp_path / "x.model").write_bytes(sentencepiece_model("source"))
    (tmp_path / "x.vocab").write_text("<unk>\t0\n")
    assert type(Subwords.load(tmp_path / "x.model")) is Subwords


def test_the_marks_have_to_be_there():
    with pytest.raises(DocnmtError, match="has no piece </s>"):
        made(pieces=tuple(piece for piece in PIECES if piece != "</s>"))


def test_the_language_comes_first_unless_a_sentence_names_its_own():
    subwords = made(language=">>fra<<")
    plain, named = subwords.encode(["le chat", ">>deu<< le chat"])
    assert subwords.pieces(subwords.whole(plain)) == [">>fra<<", *subwords.pieces(plain), "</s>"]
    assert subwords.pieces(subwords.whole(named)) == [">>deu<<", *subwords.pieces(plain), "</s>"]
    assert made().whole(plain) == [*plain, subwords.eos]
    assert ">>xxx<<" not in subwords.pieces(subwords.encode([">>xxx<< le chat"])[0])


# ---- punctuation ----


def test_punctuation_becomes_what_opus_mt_made_of_it():
    assert normalise("“l’été…”\u00a0？ １２％\u200b 。fin。")[0] == '"l\'été..."\u00a0? 12% . fin.'
    assert normalise("  a\t\u00ad  b  ")[0] == "a b" and normalise(" \u200b ")[0] == ""


@given(st.text())
def test_each_character_has_a_place_in_order(text):
    found, places = normalise(text)
    assert len(places) == len(found) + 1 and places == sorted(places) and places[-1] == len(text)
    assert "  " not in found and found == found.strip(" ")
    assert normalise(found)[0] == found


@given(st.text(alphabet="le chat.…’“☃ \u200b。", max_size=20), st.sampled_from(["", "opus-mt"]))
def test_spans_are_of_the_sentence_as_given(text, punctuation):
    subwords = made(punctuation)
    ids, spans = subwords.encode_with_spans(text)
    assert ids == subwords.encode([text])[0] and len(ids) == len(spans)
    assert all(a <= b <= len(text) for a, b in spans) and spans == sorted(spans)
    assert all(one[1] <= other[0] for one, other in pairwise(spans))
