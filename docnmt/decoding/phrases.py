"""Phrases that a translation has to contain, and how many of them a text contains.

A text is read character by character. Which of several overlapping occurrences counts is left open until it matters:
"New York" and "New York Times" are both in "the New York Times of New York", not in "the New York Times". What is known
after each character is a set of readings, each with the phrases met so far and the one it is in the middle of.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import accumulate
from typing import NamedTuple

from docnmt.base.errors import DocnmtError
from docnmt.data.subwords import Subwords
from docnmt.text.scripts import in_word, unspaced

CLOSING = frozenset(".,;:!?)]}”»…%")  # marks with a space between them and the next word


@dataclass(frozen=True)
class Phrase:
    text: str
    source: str  # the term that it translates
    at: tuple[int, int]  # the characters of the source sentence that are the term

    def __post_init__(self) -> None:
        if not self.text.strip():
            raise DocnmtError("an empty phrase cannot be asked for\n  Leave it out, or write what is to be there.")


class Form(NamedTuple):
    """One way to write a phrase. It has to be whole words, but for a side that ends in a mark or in a script without
    spaces."""

    text: str
    first: bool  # good only before any other word of the sentence

    @property
    def begins_word(self) -> bool:
        return not parts_words(self.text[0])

    @property
    def ends_word(self) -> bool:
        return not parts_words(self.text[-1])


def parts_words(character: str) -> bool:
    """Whether a word may begin or end beside this character."""
    return not in_word(character) or unspaced(character)


Forms = tuple[Form, ...]  # of one phrase


def forms_of(phrase: Phrase) -> Forms:
    """As it is given; where the sentence begins it may begin with a capital, too."""
    capital = with_capital(phrase.text)
    if capital != phrase.text:
        return Form(phrase.text, False), Form(capital, True)
    return (Form(phrase.text, False),)


def with_capital(text: str) -> str:
    return text[0].upper() + text[1:]


class Place(NamedTuple):
    """Inside a phrase: so many of its characters are written. After the last one the end of the word is awaited."""

    phrase: int
    form: Form
    written: int

    @property
    def whole(self) -> bool:
        return self.written == len(self.form.text)


class Reading(NamedTuple):
    met: tuple[int, ...]  # how often each phrase was met
    inside: Place | None


class Matched(NamedTuple):
    """What is known of a text after a character."""

    readings: frozenset[Reading]
    last: str  # a character like the last one: "a", " ", "." or another mark, "("; "" where there is none
    begun: bool  # there was a word

    @property
    def between_words(self) -> bool:
        return self.last != "a"


class Matcher:
    """Finds given phrases in a text; one that is given n times has to be there n times, side by side."""

    def __init__(self, forms: Sequence[Forms]):
        self.forms = list(dict.fromkeys(forms))
        self.needed = tuple(forms.count(each) for each in self.forms)
        self.start = Matched(frozenset([Reading((0,) * len(self.forms), None)]), "", False)
        self._firsts = {form.text[0] for each in self.forms for form in each}

    def read(self, matched: Matched, text: str) -> Matched:
        """What is known after some more characters."""
        outside = all(reading.inside is None for reading in matched.readings)
        if outside and self._firsts.isdisjoint(text):  # nothing can begin: true of nearly all that is read
            begun = matched.begun or any(map(in_word, text))
            return Matched(matched.readings, _alike(text[-1]) if text else matched.last, begun)
        for character in text:
            matched = self._after(matched, character)
        return matched

    def _after(self, matched: Matched, character: str) -> Matched:
        found: set[Reading] = set()
        for met, inside in self._past_a_word(matched.readings, parts_words(character)):
            if inside is None:
                found.add(Reading(met, None))
                found.update(self._begun(met, matched, character))
                continue
            if inside.form.text[inside.written] == character:
                found.add(self._on(met, inside._replace(written=inside.written + 1)))
        return Matched(_best(found), _alike(character), matched.begun or in_word(character))

    def open(self, met: Sequence[int], matched: Matched) -> Iterator[tuple[int, Form]]:
        """The phrases, number and form, that may begin after the text."""
        for number, forms in enumerate(self.forms):
            if met[number] < self.needed[number]:
                yield from ((number, form) for form in forms if not (form.first and matched.begun))

    def ended(self, matched: Matched) -> frozenset[Reading]:
        """The readings where the text ends here."""
        return _best(set(self._past_a_word(matched.readings, True)))

    def complete(self, matched: Matched) -> bool:
        return any(reading.met == self.needed for reading in self.ended(matched))

    def awaits_end(self, matched: Matched) -> bool:
        """Whether a phrase is written that counts only if the word ends with it."""
        return any(reading.inside and reading.inside.whole for reading in matched.readings)

    def _begun(self, met: tuple[int, ...], matched: Matched, character: str) -> Iterator[Reading]:
        for number, form in self.open(met, matched):
            if form.text[0] == character and (matched.between_words or not form.begins_word):
                yield self._on(met, Place(number, form, 1))

    def _on(self, met: tuple[int, ...], place: Place) -> Reading:
        if place.whole and not place.form.ends_word:
            return Reading(_one_more(met, place.phrase), None)
        return Reading(met, place)

    def _past_a_word(self, readings: frozenset[Reading], between: bool) -> Iterator[Reading]:
        """Phrases that are written count as met where a word ends, and as nothing where it goes on."""
        for reading in readings:
            if reading.inside is None or not reading.inside.whole:
                yield reading
            elif between:
                yield Reading(_one_more(reading.met, reading.inside.phrase), None)


def _alike(character: str) -> str:
    if character == " ":
        return " "
    if not parts_words(character):
        return "a"
    return "." if character in CLOSING else "("


def _one_more(met: tuple[int, ...], phrase: int) -> tuple[int, ...]:
    return (*met[:phrase], met[phrase] + 1, *met[phrase + 1 :])


def _best(readings: set[Reading]) -> frozenset[Reading]:
    """Without those that another one at the same place betters: all that they could still meet, it could."""

    def bettered(reading: Reading) -> bool:
        return any(
            other.inside == reading.inside
            and other.met != reading.met
            and all(a >= b for a, b in zip(other.met, reading.met, strict=True))
            for other in readings
        )

    return frozenset(readings) if len(readings) == 1 else frozenset(r for r in readings if not bettered(r))


def missing(phrases: Sequence[Phrase], text: str) -> list[Phrase]:
    """Those of the phrases that are not in the text."""
    # Parts of a long sentence, and sentences in a segment, begin anywhere in a text.
    anywhere = [tuple(form._replace(first=False) for form in forms_of(phrase)) for phrase in phrases]
    matcher = Matcher(anywhere)
    met = max((reading.met for reading in matcher.ended(matcher.read(matcher.start, text))), key=sum)
    left = dict(zip(matcher.forms, met, strict=True))
    absent = []
    for phrase, forms in zip(phrases, anywhere, strict=True):
        left[forms] -= 1
        if left[forms] < 0:
            absent.append(phrase)
    return absent


# ---- How pieces of a vocabulary write phrases: in bytes, since some pieces are no whole characters ----

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
        self.spelt = {form: SpeltForm(form, spelling) for form in self.forms}
        # How many pieces it has; none if it cannot be written with these pieces.
        self.worth = next((len(spelt.stops) for spelt in self.spelt.values() if spelt.stops), 0)

    def written(self, form: Form, place: int = 0, tail: bytes = b"") -> int:
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
