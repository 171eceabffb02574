"""A vocabulary shortlist: the target pieces that a batch of source sentences can need, so that no others are scored.

These are the most frequent pieces, and for each source piece its most probable translations, learnt from the training
pairs, and what copies it letter by letter. The sentences that are a sentence's context add nothing: a context decides
which of a word's own translations to take, and some more of these cover more than the context's words would.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save

from docnmt.base.errors import DocnmtError
from docnmt.base.files import write_atomically
from docnmt.data.subwords import Subwords
from docnmt.decoding.lexicon import Lexicon
from docnmt.decoding.training_pairs import TrainingPairs

FILE = "shortlist.safetensors"
FREQUENT = 500  # pieces that every sentence may use
CANDIDATES = 20  # translations of a source piece beside them


class Shortlist:
    """`always` are the pieces that every sentence may use, row f of `lexicon` those that source piece f adds. Rows are
    filled up with pieces of their own or of `always`."""

    def __init__(self, always: NDArray, lexicon: NDArray):
        self.always, self.lexicon = always.astype(np.int32), lexicon.astype(np.int32)
        self.everywhere = np.zeros(1 + max(self.always.max(initial=0), self.lexicon.max(initial=0)), bool)
        self.everywhere[self.always] = True

    def candidates(self, sources: Iterable[Sequence[int]]) -> NDArray[np.int64]:
        """The target pieces for a batch of source sentences, in the order of their ids."""
        wanted = self.everywhere.copy()
        wanted[self.lexicon[np.unique(np.concatenate([*sources]))]] = True
        return np.flatnonzero(wanted)

    def write(self, folder: Path) -> None:
        """Into a model folder."""
        content = save({"always": self.always, "lexicon": self.lexicon}, {"subwords": subwords_key(folder)})
        with write_atomically(folder / FILE, binary=True) as file:
            file.write(content)

    @classmethod
    def read(cls, folder: Path) -> Shortlist | None:
        """That of a model folder; None where it has none."""
        path = folder / FILE
        if not path.exists():
            return None
        try:
            with safe_open(path, "numpy") as file:
                key = (file.metadata() or {}).get("subwords")
                shortlist = cls(file.get_tensor("always"), file.get_tensor("lexicon"))
        except (OSError, SafetensorError) as error:
            raise DocnmtError(f"{path}: damaged ({error})\n  Run docnmt shortlist again, or delete the file.") from None
        if key != subwords_key(folder):
            raise DocnmtError(
                f"{path}: was made for other sub-words than the model's\n"
                "  Run docnmt shortlist for this model, or delete the file."
            )
        return shortlist


def subwords_key(folder: Path) -> str:
    """A hash of a model folder's sub-words."""
    models = b"".join((folder / f"{side}.spm").read_bytes() for side in ("source", "target"))
    return hashlib.sha256(models).hexdigest()


def make_shortlist(
    lexicon: Lexicon,
    pairs: TrainingPairs,
    source: Subwords,
    target: Subwords,
    frequent: int = FREQUENT,
    candidates: int = CANDIDATES,
) -> Shortlist:
    counts = np.bincount(pairs.target.tokens, minlength=len(target))
    counts[target.eos] = len(pairs.target.tokens) + 1  # every sentence ends, so this one is always there
    order = np.argsort(-counts, kind="stable")[: max(1, frequent)]
    always = order[counts[order] > 0]
    copies = [(f, e) for f, spelt in enumerate(_spelt(source, target)) for e in spelt]
    added = np.stack(lexicon.best(candidates, always), axis=1)
    added = np.concatenate([added, np.array(copies, np.int32).reshape(-1, 2)])
    added = np.unique(added[~np.isin(added[:, 1], always)], axis=0)
    place = np.arange(len(added)) - np.searchsorted(added[:, 0], added[:, 0])
    rows = np.full((len(source), 1 + place.max(initial=-1)), target.eos)
    rows[added[:, 0], place] = added[:, 1]
    return Shortlist(always, rows)


def _spelt(source: Subwords, target: Subwords) -> Iterator[list[int]]:
    """For each source piece the target pieces that write the same: one where there is one, else the longest that fit,
    bytes at last."""
    # Bytes come before letters in a vocabulary: where both write the same, the letter stays.
    ids = {text: piece for piece, text in enumerate(target.written()) if text}
    for text in source.written():
        spelt = []
        while text:
            size = next((n for n in range(len(text), 0, -1) if text[:n] in ids), 0)
            spelt += [ids[text[:size]]] if size else []
            text = text[size or 1 :]
        yield spelt
