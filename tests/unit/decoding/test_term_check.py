"""What a run says of its glossary."""

from __future__ import annotations

import json

from docnmt.decoding.demands import Demand
from docnmt.decoding.phrases import Phrase
from docnmt.decoding.results import TranslatedDocument, TranslatedSentence
from docnmt.decoding.term_check import TermCheck, UnmetTerm
from docnmt.document import Document


def checked() -> TermCheck:
    cat, dog, free = Phrase("cat", source="chat"), Phrase("dog", source="chien"), Phrase("own")
    check = TermCheck()
    check.note(
        Document("d", ("le chat", "le chien et le chat", "rien")),
        [Demand((cat,)), Demand((dog, cat, free)), Demand()],
        TranslatedDocument(
            "d",
            (
                TranslatedSentence(("a cat",), (0.0,)),
                TranslatedSentence(("a cat",), (0.0,), (dog, free)),
                TranslatedSentence(("nothing",), (0.0,)),
            ),
        ),
    )
    return check


def test_terms_are_counted_and_those_unmet_told():
    check = checked()
    assert check.found == 3  # what is no term of the glossary is none of its business
    assert check.unmet == [UnmetTerm("d", "le chien et le chat", "a cat", "chien", "dog")]
    assert check.summary() == "glossary: 2 of 3 terms met"
    (row,) = check.table().rows
    assert list(row) == ["d", "chien", "dog", "le chien et le chat", "a cat"]


def test_notes_go_from_one_process_to_another():
    first, second = checked(), checked()
    noted = json.loads(json.dumps(first.take()))
    assert first == TermCheck()
    second.give(noted)
    assert second.found == 6 and len(second.unmet) == 2
    first.give(noted)
    assert first == checked()
