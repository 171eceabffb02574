"""A translation memory that docnmt wrote is one that docnmt reads, whatever the texts are."""

from __future__ import annotations

import re
import tempfile
import xml.etree.ElementTree
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from docnmt.base.lines import CorpusFiles
from docnmt.corpus.memories import tmx
from docnmt.corpus.read import read_corpus
from docnmt.document import ParallelDocument

XML_LANG = "{http://www.w3.org/XML/1998/namespace}lang"


def test_pairs_of_documents_come_back():
    pairs = [("a", "Le <chat> & moi.", 'The "cat" & I.'), ("a", "Oui.", "Yes."), ("b ]]>", "Non.", "No.")]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "memory.tmx"
        path.write_bytes(tmx(pairs, ("fr", "pt-BR")))
        found = list(read_corpus(CorpusFiles(path=str(path)), languages=("fr", "pt-BR")))
    assert found == [
        ParallelDocument("a", ("Le <chat> & moi.", "Oui."), ('The "cat" & I.', "Yes.")),
        ParallelDocument("b ]]>", ("Non.",), ("No.",)),
    ]


@given(st.lists(st.tuples(*[st.text(st.characters(), max_size=8)] * 3), max_size=3))
def test_it_is_xml_whatever_is_in_it(pairs):
    root = xml.etree.ElementTree.fromstring(tmx(pairs, ('"<', "en")))
    for unit, pair in zip(root.iter("tu"), pairs, strict=True):
        texts = [unit.findtext("prop"), *(segment.text for segment in unit.iter("seg"))]
        for text, given_text in zip(texts, pair, strict=True):
            assert (text or "") == re.sub("[\x00-\x1f\ud800-\udfff\ufffe\uffff]", " ", given_text)
        assert [variant.get(XML_LANG) for variant in unit.iter("tuv")] == ['"<', "en"]
