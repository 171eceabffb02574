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

from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack
from itertools import chain, product
from pathlib import Path
from types import TracebackType

import numpy as np
from numpy.typing import NDArray

from docnmt.base.errors import DocnmtError
from docnmt.base.files import check_card, folder_atomically, read_json, write_card
from docnmt.data.context import Ints
from docnmt.data.subwords import Subwords
from docnmt.document import ParallelDocument

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


class StoreWriter:
    """Appends documents; its memory does not grow with the corpus.

    One block of sentences is encoded and written in a thread while the caller reads the next
    (SentencePiece releases Python's lock), so at most two blocks are in memory.
    """

    BLOCK = 8192  # sentences encoded together

    def __init__(self, folder: Path, source: Subwords, target: Subwords, threads: int):
        self.folder, self.threads = folder, threads
        self.subwords = {"source": source, "target": target}
        self.token_type = np.dtype(np.uint16 if max(len(source), len(target)) <= 1 << 16 else np.int32)
        self.open = ExitStack()
        names = [f"{side}.{kind}" for side, kind in product(SIDES, ("tokens", "ends"))]
        self.files = {
            name: self.open.enter_context((folder / name).open("wb"))
            for name in (*names, "documents.ends", "documents.ids")
        }
        # Entered last, so left first: the files are closed once no block is being written.
        self.worker = self.open.enter_context(ThreadPoolExecutor(max_workers=1))
        self.waiting: dict[str, list[str]] = {side: [] for side in SIDES}
        self.encoding: Future[None] | None = None
        self.counts = {"source_tokens": 0, "target_tokens": 0, "sentences": 0, "documents": 0}
        self.gaps = 0

    def __enter__(self) -> StoreWriter:
        return self

    def __exit__(self, kind: type | None, error: BaseException | None, trace: TracebackType | None) -> None:
        with self.open:
            if kind is None:
                self._hand_over()
                self._wait()

    def add(self, document: ParallelDocument) -> None:
        self.waiting["source"] += document.source
        self.waiting["target"] += document.target
        self.counts["sentences"] += len(document)
        self.gaps += len(document) - len(document.filled)
        self.counts["documents"] += 1
        self.files["documents.ends"].write(np.int64(self.counts["sentences"]).tobytes())
        self.files["documents.ids"].write(document.id.replace("\n", " ").encode() + b"\n")
        if len(self.waiting["source"]) >= self.BLOCK:
            self._hand_over()

    def _hand_over(self) -> None:
        self._wait()
        self.encoding = self.worker.submit(self._encode, self.waiting)
        self.waiting = {side: [] for side in SIDES}

    def _wait(self) -> None:
        """Waits until the last block is written; its errors are raised here."""
        if self.encoding is not None:
            self.encoding.result()

    def _encode(self, block: dict[str, list[str]]) -> None:
        for side in SIDES:
            encoded = self.subwords[side].encode(block[side], self.threads)
            lengths = np.fromiter(map(len, encoded), np.int64, len(encoded))
            total = int(lengths.sum())
            tokens = np.fromiter(chain.from_iterable(encoded), self.token_type, total)
            ends = lengths.cumsum() + self.counts[f"{side}_tokens"]
            self.files[f"{side}.tokens"].write(tokens.tobytes())
            self.files[f"{side}.ends"].write(ends.tobytes())
            self.counts[f"{side}_tokens"] += total


def write_store(
    folder: Path, documents: Iterable[ParallelDocument], source: Subwords, target: Subwords, threads: int, key: str
) -> TokenStore:
    with folder_atomically(folder) as temporary:
        with StoreWriter(temporary, source, target, threads) as writer:
            for document in documents:
                writer.add(document)
        card = {**writer.counts, "token_type": writer.token_type.name, "key": key}
        write_card(temporary / "store.json", card | ({"gaps": writer.gaps} if writer.gaps else {}))
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
