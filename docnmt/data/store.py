"""The token store: a corpus as token ids on disk, memory-mapped, never loaded as a whole.

A store is a folder:
    source.tokens, target.tokens   token ids of all sentences, one after another (uint16; int32 for a large vocabulary)
    source.ends, target.ends       int64, where each sentence ends in .tokens
    documents.ends                 int64, how many sentences there are up to the end of each document
    documents.ids                  one document id per line
    store.json                     counts, token type, hashes of what determined the content, of each file and of itself
A gap is a sentence without tokens on either side; store.json counts gaps if there are any.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from itertools import chain, product
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from docnmt.base.errors import DocnmtError
from docnmt.base.files import check_card, folder_atomically, read_json, write_card
from docnmt.data.context import Ints
from docnmt.data.subwords import Subwords
from docnmt.document import ParallelDocument, windows

SIDES = ("source", "target")


class TokenStore:
    def __init__(self, folder: str | Path):
        self.folder = Path(folder)
        try:
            self.card = read_json(self.folder / "store.json")
            token_type, sentences = np.dtype(self.card["token_type"]), self.card["sentences"]
            self.tokens = {side: self._map(f"{side}.tokens", token_type, self.card[f"{side}_tokens"]) for side in SIDES}
            self.ends = {side: self._map(f"{side}.ends", np.dtype(np.int64), sentences) for side in SIDES}
            self.document_ends = self._map("documents.ends", np.dtype(np.int64), self.card["documents"])
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise DocnmtError(
                f"{folder}: its prepared data is missing or damaged ({error!r})\n  Run docnmt prepare again."
            ) from None

    def _map(self, name: str, dtype: np.dtype, count: int) -> NDArray:
        path = self.folder / name
        if not path.is_file() or path.stat().st_size != count * dtype.itemsize:
            raise DocnmtError(f"{path}: damaged or missing\n  Delete {self.folder} and run docnmt prepare again.")
        return np.memmap(path, dtype, "r", shape=(count,)) if count else np.empty(0, dtype)

    def __len__(self) -> int:
        return int(self.card["sentences"])

    def lengths(self, side: str) -> Ints:
        return np.diff(self.ends[side], prepend=0)

    def gaps(self) -> NDArray[np.bool_]:
        """Whether each sentence is a gap."""
        if "gaps" not in self.card:
            return np.zeros(len(self), bool)
        return (self.lengths("source") == 0) & (self.lengths("target") == 0)

    @property
    def pairs(self) -> int:
        """How many sentence pairs there are to train on."""
        return len(self) - int(self.card.get("gaps", 0))

    def sentence(self, side: str, index: int) -> NDArray:
        ends = self.ends[side]
        return self.tokens[side][ends[index - 1] if index else 0 : ends[index]]

    def document_ids(self) -> list[str]:
        # As bytes: read as text, a carriage return within an id would become a line break.
        return (self.folder / "documents.ids").read_bytes().decode().split("\n")[:-1]


BLOCK = 8192  # sentences encoded together


def write_store(
    folder: Path, documents: Iterable[ParallelDocument], source: Subwords, target: Subwords, threads: int, key: str
) -> TokenStore:
    """Memory does not grow with the corpus: one block of sentences is encoded and written in a thread while the next is
    read (SentencePiece releases Python's lock), so at most two are in memory."""
    token_type = np.dtype(np.uint16 if max(len(source), len(target)) <= 1 << 16 else np.int32)
    counts = {"source_tokens": 0, "target_tokens": 0, "sentences": 0, "documents": 0}
    gaps = 0
    with folder_atomically(folder) as temporary:
        with ExitStack() as opened:
            names = [f"{side}.{kind}" for side, kind in product(SIDES, ("tokens", "ends"))]
            files = {
                name: opened.enter_context((temporary / name).open("wb"))
                for name in (*names, "documents.ends", "documents.ids")
            }

            def write(block: Sequence[ParallelDocument]) -> None:
                for side, subwords in zip(SIDES, (source, target), strict=True):
                    encoded = subwords.encode([text for each in block for text in getattr(each, side)], threads)
                    lengths = np.fromiter(map(len, encoded), np.int64, len(encoded))
                    total = int(lengths.sum())
                    tokens = np.fromiter(chain.from_iterable(encoded), token_type, total)
                    files[f"{side}.tokens"].write(tokens.tobytes())
                    files[f"{side}.ends"].write((lengths.cumsum() + counts[f"{side}_tokens"]).tobytes())
                    counts[f"{side}_tokens"] += total

            # Entered last, so left first: the files are closed once no block is being written.
            worker = opened.enter_context(ThreadPoolExecutor(max_workers=1))
            writing = worker.submit(write, [])
            for block in windows(documents, BLOCK, len):
                for document in block:
                    counts["sentences"] += len(document)
                    gaps += len(document) - len(document.filled)
                    counts["documents"] += 1
                    files["documents.ends"].write(np.int64(counts["sentences"]).tobytes())
                    files["documents.ids"].write(document.id.replace("\n", " ").encode() + b"\n")
                writing.result()  # raises its errors
                writing = worker.submit(write, block)
            writing.result()
        card = {**counts, "token_type": token_type.name, "key": key}
        write_card(temporary / "store.json", card | ({"gaps": gaps} if gaps else {}))
    return TokenStore(folder)


def open_store(folder: Path, key: str, say: Callable[[str], None] = lambda line: None) -> TokenStore | None:
    """The store that was made with this key; None if there is none, or it is damaged, which is said."""
    if not folder.exists():
        return None
    try:
        store = TokenStore(folder)
        if store.card["key"] == key:
            check_card(folder / "store.json", store.card)
            return store
    except (DocnmtError, OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        problem = str(error).partition("\n")[0].removeprefix(f"{folder}: ")
        say(f"{folder}: {problem}; prepared again")
    return None


def sentences_of(documents: Iterable[ParallelDocument], side: str) -> Iterator[str]:
    """The sentences of one side, without gaps."""
    return filter(None, chain.from_iterable(getattr(document, side) for document in documents))
