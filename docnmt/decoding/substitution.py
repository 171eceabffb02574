"""Phrases put in the place of the words that a model has for their source.

A phrase that a model finds very improbable, most of all a name it has never seen, throws it off its course: what it
writes around the phrase makes no sense. Its own translation does, with the phrase in the place of its own words.
"""

from __future__ import annotations

from collections.abc import Sequence

from docnmt.decoding.alignment import Links, Span
from docnmt.decoding.phrases import Phrase, missing
from docnmt.text.scripts import in_word


def substitute(translation: str, links: Links, phrases: Sequence[Phrase]) -> str | None:
    """The translation with all of the phrases in it; None if the place of one of them is not known."""
    changes: list[tuple[Span, str]] = []
    for phrase in phrases:
        linked = sorted({to for of, to in links if phrase.at is not None and _overlap(of, phrase.at)})
        begin, end = _longest_run([word for word in linked if in_word(translation[word[0]])], translation)
        if begin == end:
            continue
        first = phrase.capital and not any(character.isalnum() for character in translation[:begin])
        text = phrase.text[:1].upper() + phrase.text[1:] if first else phrase.text
        if translation[begin:end] != text and not any(_overlap((begin, end), place) for place, _ in changes):
            changes.append(((begin, end), text))
    for (begin, end), text in sorted(changes, reverse=True):
        translation = translation[:begin] + text + translation[end:]
    return None if missing(phrases, translation) else translation


def _overlap(one: Span, other: Span) -> bool:
    return one[0] < other[1] and other[0] < one[1]


def _longest_run(words: Sequence[Span], text: str) -> Span:
    """The longest row of these words with nothing but a space or a hyphen between them; an empty one for no words."""
    best = run = (0, 0)
    for begin, end in words:
        run = (run[0], end) if run[1] and text[run[1] : begin] in ("", " ", "-") else (begin, end)
        best = max(best, run, key=lambda span: span[1] - span[0])
    return best
