"""Damaged files: whatever the damage, there are good documents or an error for people, never a traceback."""

from __future__ import annotations

import tempfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from docnmt.base.errors import BadInput, DocnmtError, SkipBad
from docnmt.base.lines import CorpusFiles, find_flaw
from docnmt.corpus.read import read_corpus, read_source

DOC = b'<doc docid="d%d" id="d%d"><src lang="fr"><p><seg id="1">Un.</seg>\n<seg id="2">Deux.</seg></p></src>'
REF = b'<ref lang="en"><seg id="1">One.</seg><seg id="2">Two &amp; so.</seg></ref></doc>\n'
UNIT = (
    b'<tu><prop type="document">d</prop><tuv lang="fr"><seg>Un.</seg></tuv><tuv lang="en"><seg>One.</seg></tuv></tu>\n'
)
TALK = b"<url>u</url>\n<talkid>%d</talkid>\nUn.\nDeux.\n"

WHOLE: dict[str, bytes] = {
    "tsv": b"d1\tUn.\tOne.\nd1\tDeux.\tTwo.\nd2\tTrois.\tThree.\n",
    "bars": b"d1 ||| Un. ||| One.\nd1 ||| Deux. ||| Two.\nd2 ||| Trois. ||| Three.\n",
    "jsonl": b'{"id": "d1", "source": ["Un.", "Deux."], "target": ["One.", "Two."]}\n'
    b'{"doc_id": "d2", "source": "Un.", "target": "One."}\n',
    "text": b"Un.\nDeux.\n\nTrois.\nQuatre.\nCinq.\n\nSix.\n",
    "sentences": b"Un.\nDeux.\n\nTrois.\nQuatre.\nCinq.\n\nSix.\n",
    "lines": b"Un. </s> Deux.\nTrois. </s> Quatre. </s> Cinq.\n",
    "nist-sgml": b"<srcset>" + DOC % (1, 1) + b"</doc>" + DOC % (2, 2) + b"</doc></srcset>",
    "iwslt-xml": b"<mteval><srcset>" + DOC % (1, 1) + b"</doc>" + DOC % (2, 2) + b"</doc></srcset></mteval>",
    "iwslt-tags": TALK % 1 + TALK % 2,
    "wmt-xml": b"<dataset>" + DOC % (1, 1) + REF + DOC % (2, 2) + REF + b"</dataset>",
    "tmx": b'<?xml version="1.0"?><tmx><body>' + UNIT * 3 + b"</body></tmx>",
}
ONE_FILE = ("tsv", "bars", "jsonl", "wmt-xml", "tmx")
BITS = st.one_of(
    st.binary(max_size=4),
    st.sampled_from(
        [
            b"\n",
            b"\n\n",
            b"\t",
            b"<",
            b">",
            b'"',
            b"</seg>",
            b"<seg>",
            b"<doc>",
            b"\xff",
            b"\xff\xfe",
            b"\0",
            b"</s>",
            b"{",
            b"",
        ]
    ),
)
DAMAGE = st.lists(st.tuples(st.just(0.0) | st.floats(0, 1), st.integers(0, 6), BITS), max_size=4)


def damaged(whole: bytes, damage: list[tuple[float, int, bytes]]) -> bytes:
    """Bytes cut out and others put in, at some places."""
    for place, length, bits in damage:
        start = int(place * len(whole))
        whole = whole[:start] + bits + whole[start + length :]
    return whole


@pytest.mark.parametrize("name", WHOLE)
@settings(max_examples=80, deadline=None)
@given(damage=DAMAGE, told=st.booleans())
def test_damaged_corpus(name: str, damage: list[tuple[float, int, bytes]], told: bool) -> None:
    with tempfile.TemporaryDirectory() as folder:
        good, bad = Path(folder, "good"), Path(folder, "bad")
        good.write_bytes(WHOLE[name])
        bad.write_bytes(damaged(WHOLE[name], damage))
        sides = {"path": str(bad)} if name in ONE_FILE else {"source": str(bad), "target": str(good)}
        files = CorpusFiles(**sides, format=name if told else "")
        for pairs in (False, True):
            skipped = SkipBad()
            try:
                documents = list(read_corpus(files, on_bad=skipped, sentence_level=pairs))
            except DocnmtError as error:
                # Skipping never stops at one bad place; what stops it is a file that is nothing as a whole.
                assert not isinstance(error, BadInput)
                documents = []
            for document in documents:
                for sentence in (*document.source, *document.target):
                    assert sentence.strip() and find_flaw(sentence, 20_000) is None
            strict: list[object] = []
            try:
                strict.extend(read_corpus(files, sentence_level=pairs))
            except DocnmtError as error:
                assert skipped.counts or not isinstance(error, BadInput)
            else:
                # Without an error nothing was there to skip.
                assert strict == documents and not skipped.counts


@pytest.mark.parametrize("name", [name for name in WHOLE if name != "tmx"])
@settings(max_examples=60, deadline=None)
@given(damage=DAMAGE)
def test_damaged_source(name: str, damage: list[tuple[float, int, bytes]]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "bad")
        path.write_bytes(damaged(WHOLE[name], damage))
        try:
            documents = list(read_source(str(path), format=name, on_bad=SkipBad()))
        except DocnmtError as error:
            assert not isinstance(error, BadInput)
        else:
            sentences = [sentence for document in documents for sentence in document.sentences]
            assert all((not s or s.strip()) and find_flaw(s, 20_000) is None for s in sentences)


def test_undamaged_files_are_good() -> None:
    with tempfile.TemporaryDirectory() as folder:
        for name, whole in WHOLE.items():
            path = Path(folder, name)
            path.write_bytes(whole)
            sides = {"path": str(path)} if name in ONE_FILE else {"source": str(path), "target": str(path)}
            assert list(read_corpus(CorpusFiles(**sides, format=name))), name
