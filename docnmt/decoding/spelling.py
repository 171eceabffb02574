"""How pieces of a vocabulary write a text, and phrases in it: in bytes, since some pieces are no whole characters."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from itertools import accumulate

from docnmt.data.subwords import Subwords
from docnmt.decoding.phrases import CLOSING, Form, Matched, Phrase, forms_of, parts_words
from docnmt.text.scripts import unspaced

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
        self.longest = max(map(len, self.pieces), default=0)
        # Pieces that a word cannot go on with, those that are whole characters.
        self.parting = [n for n, text in enumerate(written) if _is_text(text) and parts_words(text.decode()[0])]
        # What stands before the first word: a space, mostly.
        self.opening = b" " if encode is None else self.text(encode("a"))[:1].replace(b"a", b"")
        self._choice = lru_cache(maxsize=4096)(self._owners_choice)

    @classmethod
    def of(cls, subwords: Subwords) -> Spelling:
        return cls(subwords.written(), lambda text: subwords.encode([text])[0])

    def text(self, pieces: Sequence[int]) -> bytes:
        return b"".join(self.written[piece] for piece in pieces)

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


class SpeltPhrase:
    """The forms of a phrase, each with its spelling."""

    def __init__(self, phrase: Phrase, spelling: Spelling):
        self.forms = forms_of(phrase)
        self.spelt = [SpeltForm(form, spelling) for form in self.forms]
        self.possible = any(spelt.stops for spelt in self.spelt)
        self.worth = next((len(spelt.stops) for spelt in self.spelt if spelt.stops), 0)

    def written(self, form: int, place: int = 0, tail: bytes = b"") -> int:
        """How many pieces the first so many bytes of it are, and those of half a character if it goes on with them."""
        spelt = self.spelt[form]
        if not spelt.text.startswith(tail, place):
            return 0
        place += len(tail)
        stops = self.worth if place == len(spelt.text) else sum(stop <= place for stop in spelt.stops)
        return min(stops, self.worth)


class SpeltForm:
    """A form of a phrase in bytes, and the pieces to write it with, after a space and without one."""

    def __init__(self, form: Form, spelling: Spelling):
        self.spelling = spelling
        self.text = form.text.encode()
        after_space, bare = (spelling.split(before + self.text) for before in (b" ", b""))
        self.first_after_space, self.first = (pieces[0] if pieces else None for pieces in (after_space, bare))
        spaced = after_space is not None and not unspaced(form.text[0])
        pieces = (after_space if spaced else bare) or []
        # Where in the text each piece ends; a space that is a piece of its own ends before it, at 0.
        self.stops = [end - spaced for end in accumulate(len(spelling.written[piece]) for piece in pieces)]
        self.next = dict(zip(self.stops, pieces[1:], strict=False))

    def begin(self, form: Form, matched: Matched) -> Sequence[int | None]:
        """The piece to begin with after a text. A space comes first, unless there is one or none is needed."""
        if not matched.last:
            return [self.first_after_space if self.spelling.opening else self.first]
        first = form.text[0]
        if matched.last == " " or first in CLOSING or (matched.last == "(" and unspaced(first)):
            return [self.first]
        if matched.last == "(" or unspaced(first):
            return [self.first_after_space, self.first]
        return [self.first_after_space]

    def piece(self, place: int, tail: bytes) -> int | None:
        """The piece to go on with after so many bytes and those of half a character."""
        if not self.text.startswith(tail, place):
            return None
        place += len(tail)
        return self.next.get(place, self.spelling.longest_piece(self.text[place:]))
