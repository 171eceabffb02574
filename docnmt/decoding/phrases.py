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

CLOSING = frozenset(".,;:!?)]}”»…%")  # marks that a space separates from the next word


@dataclass(frozen=True)
class Phrase:
    text: str
    source: str  # the term that it translates
    at: tuple[int, int]  # where the term is in the source sentence, in characters

    def __post_init__(self) -> None:
        if not self.text.strip():
            raise DocnmtError("a required phrase is empty\n  Leave it out, or write what the translation must contain.")


class Form(NamedTuple):
    """One way to write a phrase. Its ends must be ends of words, unless they are punctuation or in a script without
    spaces."""

    text: str
    first: bool  # allowed only as the first word of the sentence

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
    """As given; at the beginning of a sentence also with a capital."""
    capital = with_capital(phrase.text)
    if capital != phrase.text:
        return Form(phrase.text, False), Form(capital, True)
    return (Form(phrase.text, False),)


def with_capital(text: str) -> str:
    return text[0].upper() + text[1:]


class Place(NamedTuple):
    """Inside a phrase: how many of its characters are written. After the last one the word still has to end."""

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
    """What is known of a text that was read so far."""

    readings: frozenset[Reading]
    last: str  # class of the last character: "a" a letter, " ", "." a closing mark, "(" another mark; "" for none
    begun: bool  # it contains a word

    @property
    def between_words(self) -> bool:
        return self.last != "a"


class Matcher:
    """Finds phrases in a text; one that is given n times must occur n times without overlap."""

    def __init__(self, forms: Sequence[Forms]):
        self.forms = list(dict.fromkeys(forms))
        self.needed = tuple(forms.count(each) for each in self.forms)
        self.start = Matched(frozenset([Reading((0,) * len(self.forms), None)]), "", False)
        self._firsts = {form.text[0] for each in self.forms for form in each}

    def read(self, matched: Matched, text: str) -> Matched:
        """What is known after more of the text."""
        outside = all(reading.inside is None for reading in matched.readings)
        if outside and self._firsts.isdisjoint(text):  # nothing can begin: nearly always the case
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
        """The phrases, by number and form, that may begin now."""
        for number, forms in enumerate(self.forms):
            if met[number] < self.needed[number]:
                yield from ((number, form) for form in forms if not (form.first and matched.begun))

    def ended(self, matched: Matched) -> frozenset[Reading]:
        """The readings if the text ends here."""
        return _best(set(self._past_a_word(matched.readings, True)))

    def complete(self, matched: Matched) -> bool:
        return any(reading.met == self.needed for reading in self.ended(matched))

    def awaits_end(self, matched: Matched) -> bool:
        """Whether a phrase has just been written that counts only if the word ends here."""
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
        """A phrase that is written in full is met if the word ends; if not, its reading is dropped."""
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
    """Drops readings that cannot do better than another one at the same place."""

    def bettered(reading: Reading) -> bool:
        return any(
            other.inside == reading.inside
            and other.met != reading.met
            and all(a >= b for a, b in zip(other.met, reading.met, strict=True))
            for other in readings
        )

    return frozenset(readings) if len(readings) == 1 else frozenset(r for r in readings if not bettered(r))


def missing(phrases: Sequence[Phrase], text: str) -> list[Phrase]:
    """The phrases that the text does not contain."""
    # A text may consist of several sentences: a capital is right anywhere.
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


# ---- How pieces of a vocabulary write phrases: in bytes, since some pieces are not whole characters ----

Encode = Callable[[str], Sequence[int]]


def _is_text(written: bytes) -> bool:
    try:
        return bool(written.decode())
    except UnicodeDecodeError:
        return False


class Spelling:
    """A vocabulary, and the bytes that each of its pieces writes (b"" for special tokens)."""

    def __init__(self, written: Sequence[bytes], encode: Encode | None = None):
        self.written = written
        self.encode = encode  # the subword model's own way to split a text, if there is one
        self.pieces: dict[bytes, list[int]] = {}
        for piece, text in enumerate(written):
            if text:
                self.pieces.setdefault(text, []).append(piece)
        self.longest = max(map(len, self.pieces), default=0)
        # Pieces that end a word when they follow it.
        self.parting = [n for n, text in enumerate(written) if _is_text(text) and parts_words(text.decode()[0])]
        # What the subword model writes before the first word: usually a space.
        self.opening = b" " if encode is None else self.text(encode("a"))[:1].replace(b"a", b"")
        self._choice = lru_cache(maxsize=4096)(self._owners_choice)

    @classmethod
    def of(cls, subwords: Subwords) -> Spelling:
        return cls(subwords.written(), lambda text: subwords.encode([text])[0])

    def text(self, pieces: Sequence[int]) -> bytes:
        return b"".join(self.written[piece] for piece in pieces)

    def split(self, text: bytes) -> list[int] | None:
        """Pieces that spell the text: those of the subword model if they spell exactly that, else the longest piece at
        each place. None if the pieces cannot spell it."""
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
        """The longest piece that the text begins with; of those that write the same, the last, as bytes come first in a
        vocabulary and words later."""
        lengths = range(min(len(text), self.longest), 0, -1)
        return next((self.pieces[text[:n]][-1] for n in lengths if text[:n] in self.pieces), None)

    def _owners_choice(self, text: bytes) -> list[int] | None:
        """How the subword model splits it: after a space as at the start of a sentence, else as after a bracket."""
        if self.encode is None:
            return None
        try:
            after, words = (b"", text[1:]) if text.startswith(b" ") else (b"(", text)
            pieces = list(self.encode((after + words).decode()))
        except UnicodeDecodeError:  # the text begins in the middle of a character
            return None
        for cut in range(len(pieces) + 1):
            before = self.text(pieces[:cut])
            if before.lstrip(b" ") == after and self.text(pieces[cut:]) == text:
                return pieces[cut:]
        return None


class SpeltPhrase:
    """The forms of a phrase with their spellings."""

    def __init__(self, phrase: Phrase, spelling: Spelling):
        self.forms = forms_of(phrase)
        self.spelt = {form: SpeltForm(form, spelling) for form in self.forms}
        # How many pieces it has; none if it cannot be written with these pieces.
        self.worth = next((len(spelt.stops) for spelt in self.spelt.values() if spelt.stops), 0)

    def written(self, form: Form, place: int = 0, tail: bytes = b"") -> int:
        """How many pieces are written after `place` bytes of a form and those of an unfinished character."""
        spelt = self.spelt[form]
        if not spelt.text.startswith(tail, place):
            return 0
        place += len(tail)
        stops = self.worth if place == len(spelt.text) else sum(stop <= place for stop in spelt.stops)
        return min(stops, self.worth)


class SpeltForm:
    """A form of a phrase in bytes, and the pieces that spell it, after a space and without one."""

    def __init__(self, form: Form, spelling: Spelling):
        self.spelling = spelling
        self.text = form.text.encode()
        after_space, bare = (spelling.split(before + self.text) for before in (b" ", b""))
        self.first_after_space, self.first = (pieces[0] if pieces else None for pieces in (after_space, bare))
        spaced = after_space is not None and not unspaced(form.text[0])
        pieces = (after_space if spaced else bare) or []
        # Where each piece ends in the text; a space that is a piece of its own ends at 0.
        self.stops = [end - spaced for end in accumulate(len(spelling.written[piece]) for piece in pieces)]
        self.next = dict(zip(self.stops, pieces[1:], strict=False))

    def begin(self, form: Form, matched: Matched) -> Sequence[int | None]:
        """The pieces to begin with after a text: with a space before it, unless there is one or none is needed."""
        if not matched.last:
            return [self.first_after_space if self.spelling.opening else self.first]
        first = form.text[0]
        if matched.last == " " or first in CLOSING or (matched.last == "(" and unspaced(first)):
            return [self.first]
        if matched.last == "(" or unspaced(first):
            return [self.first_after_space, self.first]
        return [self.first_after_space]

    def piece(self, place: int, tail: bytes) -> int | None:
        """The piece to continue with after `place` bytes and those of an unfinished character."""
        if not self.text.startswith(tail, place):
            return None
        place += len(tail)
        return self.next.get(place, self.spelling.longest_piece(self.text[place:]))
