"""How pieces of a vocabulary write a text: in bytes, since some pieces are no whole characters."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Sequence
from functools import lru_cache

from docnmt.data.subwords import Subwords
from docnmt.decoding.phrases import parts_words

Encode = Callable[[str], Sequence[int]]


def _is_text(written: bytes) -> bool:
    try:
        return bool(written.decode())
    except UnicodeDecodeError:
        return False


class Spelling:
    """A vocabulary and what each of its pieces writes (b"" for marks)."""

    def __init__(self, written: Sequence[bytes], encode: Encode | None = None):
        self.written = written
        self.encode = encode  # the pieces that the vocabulary's owner would choose, if there is one
        self.pieces: dict[bytes, list[int]] = {}
        for piece, text in enumerate(written):
            if text:
                self.pieces.setdefault(text, []).append(piece)
        self.sorted = sorted(self.pieces)
        self.longest = max(map(len, self.pieces), default=0)
        # Pieces that a word cannot go on with, those that are whole characters.
        self.parting = [n for n, text in enumerate(written) if _is_text(text) and parts_words(text.decode()[0])]
        self.opening = self.normalised("a")[:1].replace(b"a", b"")  # what stands before the first word: a space, mostly
        self._choice = lru_cache(maxsize=4096)(self._owners_choice)

    @classmethod
    def of(cls, subwords: Subwords) -> Spelling:
        return cls(subwords.written(), lambda text: subwords.encode([text])[0])

    def text(self, pieces: Sequence[int]) -> bytes:
        return b"".join(self.written[piece] for piece in pieces)

    def normalised(self, text: str) -> bytes:
        """A text as the vocabulary's owner writes it, with the space before its first word."""
        if self.encode is None:
            return b" " + text.encode()
        found = self.text(self.encode(text))
        return found + b" " if text[-1:].isspace() and not found.endswith(b" ") else found

    def begin_with(self, prefix: str, pieces: Sequence[int], text: str) -> str:
        """What the pieces write, `text`, with its beginning as the prefix is given and not as it was normalised."""
        after = self.text(pieces)[len(self.normalised(prefix)) :].decode(errors="replace")
        return prefix + text[len(text) - len(after) :]

    def split(self, text: bytes) -> list[int] | None:
        """Pieces that write the text: the owner's choice if they write just that, else the longest piece each time.
        None where there is a byte that no piece begins with."""
        pieces = self._choice(text)
        if pieces is not None:
            return pieces
        pieces, begin = [], 0
        while begin < len(text):
            piece = self.longest_piece(text[begin : begin + self.longest])
            if piece is None:
                return None
            pieces.append(piece)
            begin += len(self.written[piece])
        return pieces

    def longest_piece(self, text: bytes) -> int | None:
        """The longest piece that the text begins with; of pieces that write the same, bytes come first in a vocabulary
        and words later."""
        lengths = range(min(len(text), self.longest), 0, -1)
        return next((self.pieces[text[:n]][-1] for n in lengths if text[:n] in self.pieces), None)

    def ways(self, text: bytes) -> list[list[int]]:
        """For each place in a text the pieces that can come next if the text is to be written from there to its end.
        The last piece may write more than is left. No pieces: there is no way from there."""
        ways: list[list[int]] = [[] for _ in text]
        for place in range(len(text) - 1, -1, -1):
            rest = text[place : place + self.longest]
            for n in range(1, len(rest) + 1):
                if place + n == len(text) or ways[place + n]:
                    ways[place] += self.pieces.get(rest[:n], ())
            if place + len(rest) == len(text):
                ways[place] += self._longer(rest)
        return ways

    def _longer(self, text: bytes) -> list[int]:
        """Pieces that write the text and more."""
        found = []
        for i in range(bisect_left(self.sorted, text), len(self.sorted)):
            if not self.sorted[i].startswith(text):
                break
            if self.sorted[i] != text:
                found += self.pieces[self.sorted[i]]
        return found

    def _owners_choice(self, text: bytes) -> list[int] | None:
        """`text` after a space as the beginning of a sentence; any other text as what follows a bracket."""
        if self.encode is None:
            return None
        try:
            after, words = (b"", text[1:]) if text.startswith(b" ") else (b"(", text)
            pieces = list(self.encode((after + words).decode()))
        except UnicodeDecodeError:  # the rest of a text from the middle of a character
            return None
        for cut in range(len(pieces) + 1):
            before = self.text(pieces[:cut])
            if before.lstrip(b" ") == after and self.text(pieces[cut:]) == text:
                return pieces[cut:]
        return None
