"""The token store gives back what was written, notices damage, and is never half there."""

from __future__ import annotations

import json

import numpy as np
import pytest

from docnmt.base.errors import DocnmtError
from docnmt.data.store import TokenStore, open_store, sentences_of, write_store
from docnmt.document import ParallelDocument
from tests.builders import make_store, parallel_documents, subwords

FILES = ("source.tokens", "target.tokens", "source.ends", "target.ends", "documents.ends")


@pytest.fixture
def store(tmp_path):
    return make_store(tmp_path / "store", parallel_documents([3, 1, 4]))


def test_sentences_are_as_the_sub_words_encode_them(store):
    documents = parallel_documents([3, 1, 4])
    assert len(store) == 8
    for side in ("source", "target"):
        expected = subwords(side).encode(list(sentences_of(documents, side)))
        assert [store.sentence(side, i).tolist() for i in range(len(store))] == expected
        assert store.lengths(side).tolist() == [len(ids) for ids in expected]


def test_sources_decode_to_the_text(store):
    documents = parallel_documents([3, 1, 4])
    ids = [store.sentence("source", i).tolist() for i in range(len(store))]
    assert subwords("source").decode(ids) == list(sentences_of(documents, "source"))


def test_documents(store):
    assert store.document_ends.tolist() == [3, 4, 8]
    assert store.document_ids() == ["document-0-0", "document-0-1", "document-0-2"]


def test_text_never_seen_is_not_lost(tmp_path):
    text = "Ж 語 🙂 <s> </s>"  # spelt in bytes, and no mark comes out of what looks like one
    store = make_store(tmp_path / "s", [ParallelDocument("d", (text,), (text,))])
    ids = store.sentence("source", 0).tolist()
    assert subwords("source").decode([ids]) == [text]
    assert not {subwords("source").bos, subwords("source").eos} & set(ids)


def test_blocks_do_not_show(tmp_path, monkeypatch):
    documents = parallel_documents([3, 1, 4, 2])
    whole = make_store(tmp_path / "whole", documents)
    monkeypatch.setattr("docnmt.data.store.BLOCK", 2)
    blocks = make_store(tmp_path / "blocks", documents)
    for name in (*FILES, "documents.ids"):
        assert (blocks.folder / name).read_bytes() == (whole.folder / name).read_bytes()


def test_an_empty_corpus_and_empty_documents(tmp_path):
    empty = make_store(tmp_path / "empty", [])
    assert len(empty) == 0 and empty.document_ids() == [] and empty.lengths("source").tolist() == []
    store = make_store(tmp_path / "s", [ParallelDocument("a", (), ()), *parallel_documents([2])])
    assert store.document_ends.tolist() == [0, 2] and len(store) == 2


@pytest.mark.parametrize("name", ["", "a b", "é/語", "a\nb", "a\rb", "a\u2028b", " a "])
def test_odd_document_ids_stay_one_a_document(tmp_path, name):
    store = make_store(tmp_path / "s", [ParallelDocument(name, ("x",), ("y",)), ParallelDocument("z", ("x",), ("y",))])
    ids = store.document_ids()
    assert len(ids) == 2 and ids[1] == "z"


# ---- damage ----


@pytest.mark.parametrize("name", FILES)
def test_a_truncated_file_is_noticed(store, name):
    path = store.folder / name
    path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(DocnmtError, match=name.replace(".", r"\.")) as caught:
        TokenStore(store.folder)
    assert "prepare again" in str(caught.value)


@pytest.mark.parametrize("name", FILES)
def test_a_file_that_is_too_long_or_missing_is_noticed(store, name):
    path = store.folder / name
    content = path.read_bytes()
    path.write_bytes(content + b"\0\0\0\0\0\0\0\0")
    with pytest.raises(DocnmtError):
        TokenStore(store.folder)
    path.unlink()
    with pytest.raises(DocnmtError):
        TokenStore(store.folder)


def test_no_folder_or_no_card(tmp_path, store):
    with pytest.raises(DocnmtError, match="its prepared data is missing or damaged"):
        TokenStore(tmp_path / "nothing")
    (store.folder / "store.json").unlink()
    with pytest.raises(DocnmtError, match="its prepared data is missing or damaged"):
        TokenStore(store.folder)


@pytest.mark.parametrize("text", ["", "{", "\ufffe", "{}", "[]"])
def test_a_damaged_card_is_noticed(store, text):
    (store.folder / "store.json").write_text(text, encoding="utf-8")
    with pytest.raises(DocnmtError):
        TokenStore(store.folder)
    assert open_store(store.folder, "k") is None


@pytest.mark.parametrize("name", [*FILES, "documents.ids"])
def test_a_flipped_bit_makes_it_no_store_to_train_on(store, name):
    key = store.card["key"]
    assert open_store(store.folder, key) is not None
    path = store.folder / name
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)
    assert open_store(store.folder, key) is None


def test_a_changed_count_makes_it_no_store_to_train_on(store):
    card = json.loads((store.folder / "store.json").read_text())
    (store.folder / "store.json").write_text(json.dumps(card | {"gaps": 1}))
    assert open_store(store.folder, card["key"]) is None


def test_a_store_of_an_older_docnmt_knows_no_hashes(store):
    card = json.loads((store.folder / "store.json").read_text())
    del card["files"]
    (store.folder / "store.json").write_text(json.dumps(card))
    assert open_store(store.folder, card["key"]) is not None


# ---- atomic ----


def documents_that_break():
    yield from parallel_documents([2, 2])
    raise KeyboardInterrupt


def test_an_exception_in_the_middle_leaves_nothing(tmp_path):
    folder = tmp_path / "stores" / "store"
    with pytest.raises(KeyboardInterrupt):
        write_store(folder, documents_that_break(), subwords("source"), subwords("target"), 1, "k")
    assert list(folder.parent.iterdir()) == []
    assert open_store(folder, "k") is None


def test_an_exception_leaves_the_store_that_was_there(store):
    before = {path.name: path.read_bytes() for path in store.folder.iterdir()}
    with pytest.raises(KeyboardInterrupt):
        write_store(store.folder, documents_that_break(), subwords("source"), subwords("target"), 1, "k")
    assert {path.name: path.read_bytes() for path in store.folder.iterdir()} == before
    assert [path.name for path in store.folder.parent.iterdir()] == [store.folder.name]


def test_a_new_store_replaces_the_old_one(store):
    write_store(store.folder, parallel_documents([2]), subwords("source"), subwords("target"), 1, "new")
    assert len(TokenStore(store.folder)) == 2
    assert open_store(store.folder, "new") is not None and open_store(store.folder, "k") is None
    assert [path.name for path in store.folder.parent.iterdir()] == [store.folder.name]


# ---- token type ----


class ManyWords:
    """Sub-words of any size, encoding each sentence to its largest ids."""

    def __init__(self, size: int):
        self.size = size

    def __len__(self) -> int:
        return self.size

    def encode(self, sentences, threads=1):
        return [[self.size - 1, 0, self.size - 1 - len(sentence)] for sentence in sentences]


@pytest.mark.parametrize(
    ("source_size", "target_size", "token_type"),
    [(300, 65_536, "uint16"), (65_536, 300, "uint16"), (300, 65_537, "int32"), (250_000, 300, "int32")],
)
def test_the_token_type_holds_the_largest_id(tmp_path, source_size, target_size, token_type):
    source, target = ManyWords(source_size), ManyWords(target_size)
    store = write_store(tmp_path / "s", parallel_documents([3]), source, target, 1, "k")
    assert store.card["token_type"] == token_type
    assert store.tokens["source"].dtype == store.tokens["target"].dtype == np.dtype(token_type)
    sentences = list(sentences_of(parallel_documents([3]), "source"))
    assert [store.sentence("source", i).tolist() for i in range(3)] == source.encode(sentences)
    assert json.loads((store.folder / "store.json").read_text())["sentences"] == 3
