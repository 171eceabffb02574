"""Splitting a corpus by document into train, dev and test, so that none of them tells what is in another.

No document is in two of them. And no sentence of train stands in dev or test, nor one of dev in test, not even with
other numbers, marks or case or, from eight words on, with a word put in, left out or changed: in the larger split it
becomes a gap.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from hashlib import blake2b

from docnmt.corpus.clean import word_key
from docnmt.document import GAP, ParallelDocument

SPLITS = ("train", "dev", "test")
SHORTEST, LONGEST = 8, 150  # pairs of a document that may be held out
FEWEST = 10  # documents of a source, for at least one to be held out
_SHORT_SENTENCE = 4  # words: shorter ones (titles, "Yes.") may stand everywhere
_LONG_SENTENCE = 8  # words: from here on, a word may differ


def split(
    documents: Sequence[ParallelDocument], share: float, seed: int
) -> tuple[dict[str, list[ParallelDocument]], dict[str, int]]:
    """The splits, and how many pairs became gaps in each because a smaller one has them.

    Of each source (what its ids begin with) about the same share goes to dev and as much to test, by hashes of the ids.
    """
    place = _places(documents, share, seed)
    found: dict[str, list[ParallelDocument]] = {name: [] for name in SPLITS}
    for document in documents:
        found[place.get(document.id, "train")].append(document)
    emptied = dict.fromkeys(SPLITS, 0)
    held: set[bytes] = set()
    for name in reversed(SPLITS):
        if held:
            found[name] = list(_without(found[name], held, name, emptied))
        if name != "train":
            for document in found[name]:
                for i in document.filled:
                    held.update(_keys(document.source[i]), _keys(document.target[i]))
    return found, emptied


def _places(documents: Iterable[ParallelDocument], share: float, seed: int) -> dict[str, str]:
    """The split of each document that is held out."""
    sources: dict[str, list[str]] = {}
    for document in documents:
        if SHORTEST <= len(document.filled) <= LONGEST:
            sources.setdefault(document.id.partition(":")[0], []).append(document.id)
    place: dict[str, str] = {}
    for ids in sources.values():
        ids.sort(key=lambda name: _hash(f"{seed}:{name}"))
        count = max(round(share * len(ids)), 1 if len(ids) >= FEWEST else 0)
        place |= dict.fromkeys(ids[:count], "test") | dict.fromkeys(ids[count : 2 * count], "dev")
    return place


def _without(
    documents: Iterable[ParallelDocument], held: set[bytes], name: str, emptied: dict[str, int]
) -> Iterator[ParallelDocument]:
    for document in documents:
        known = {i for i in document.filled for side in (document.source, document.target) if _is_held(side[i], held)}
        emptied[name] += len(known)
        if len(known) < len(document.filled):
            sides = document.source, document.target
            source, target = (tuple(GAP if i in known else text for i, text in enumerate(side)) for side in sides)
            yield ParallelDocument(document.id, source, target)


def _is_held(text: str, held: set[bytes]) -> bool:
    return not held.isdisjoint(_keys(text))


def _keys(text: str) -> Iterator[bytes]:
    """What two sentences share if they are the same but for little: all words, and all but one."""
    words = word_key(text)
    if len(words) < _SHORT_SENTENCE:
        return
    yield _hash(" ".join(words))
    if len(words) >= _LONG_SENTENCE:
        for i in range(len(words)):
            yield _hash(" ".join(words[:i] + words[i + 1 :]))


def _hash(text: str) -> bytes:
    return blake2b(text.encode(), digest_size=8).digest()
