"""Wrong contexts on purpose (those of other documents are tested with the accuracy of context words)."""

import pytest

from docnmt.base.errors import DocnmtError
from docnmt.document import ContextSpec, Document, ParallelDocument, context_sentences
from docnmt.evaluation.test_sets import NONE, REPEATED, SHUFFLED, TRUE, repeated, with_contexts

DOCUMENTS = [Document(str(n), tuple(f"{n}-{i}" for i in range(length))) for n, length in enumerate((1, 4, 3))]
SPECS = [ContextSpec(2, 0), ContextSpec(1, 1), ContextSpec(0, 3)]


def contexts_of(kind) -> list[tuple[str, tuple[str, ...]]]:
    """Each sentence and its context, as a translator puts them together."""
    return [
        (sentence, context_sentences(other.sentences, position, kind.context))
        for document, other in zip(kind.documents, kind.context_from, strict=True)
        for position in kind.positions(document)
        for sentence in [document.sentences[position]]
    ]


@pytest.mark.parametrize("spec", SPECS)
def test_the_same_sentences_with_four_kinds_of_context(spec):
    kinds = {name: contexts_of(kind) for name, kind in with_contexts(DOCUMENTS, spec, seed=1).items()}
    sentences = [sentence for document in DOCUMENTS for sentence in document.sentences]
    for name, found in kinds.items():
        assert [sentence for sentence, _ in found] == sentences, name
    for (sentence, true), (_, none), (_, foreign), (_, again) in zip(
        *(kinds[name] for name in (TRUE, NONE, SHUFFLED, REPEATED)), strict=True
    ):
        document = sentence[0]
        assert all(other[0] == document and other != sentence for other in true)
        assert none == ()
        assert len(foreign) == len(true) and all(other[0] != document for other in foreign)
        assert again == (sentence,) * len(true)
    assert any(true for _, true in kinds[TRUE])


def test_a_repeated_sentence_is_as_long_as_its_context():
    found = repeated(DOCUMENTS, ContextSpec(2, 0))
    assert [len(document) - 1 for document in found] == [0, 0, 1, 2, 2, 0, 1, 2]
    assert all(len(set(document.sentences)) == 1 for document in found)


def test_documents_in_two_languages_keep_their_pairs():
    pairs = [ParallelDocument(d.id, d.sentences, tuple(f"t{s}" for s in d.sentences)) for d in DOCUMENTS]
    for spec in SPECS:
        plain, parallel = (with_contexts(documents, spec, seed=1) for documents in (DOCUMENTS, pairs))
        for name, kind in parallel.items():
            assert [d.source for d in kind.context_from] == [d.sentences for d in plain[name].context_from]
            assert [d.source for d in kind.documents] == [d.sentences for d in plain[name].documents]
            for document in (*kind.context_from, *kind.documents):
                assert document.target == tuple(s and f"t{s}" for s in document.source)


def test_a_single_document_has_no_other():
    with pytest.raises(DocnmtError, match="other documents"):
        with_contexts(DOCUMENTS[:1], ContextSpec(), seed=1)
