"""What filters look at in a text: its size, its scripts, its letters and its numbers."""

from __future__ import annotations

import re
from collections import Counter

from docnmt.corpora.inspection import UNSPACED, count_words

CHARACTERS_A_WORD = 1.7  # of Chinese and its like, to a word of English
SHORT = 8  # words: below, two sides differ in length for many good reasons

_NUMBER = re.compile(r"\d+")
_THOUSANDS = re.compile(r"(?<=\d)[.,'’\u00a0\u2009\u202f ](?=\d{3}(?!\d))")
_NUMERALS = re.compile("[一二三四五六七八九十百千万亿两〇]")
_WORDS = re.compile(rf"{UNSPACED.pattern}|[^\W\d_]+")

# The script a language is written in; what is not named here is written in Latin letters.
_SCRIPTS = {
    "cyrillic": ("[\u0400-\u052f]", "be bg kk ky mk mn ru sr tg tt uk"),
    "arabic": ("[\u0600-\u06ff\u0750-\u077f\ufb50-\ufdff\ufe70-\ufefc]", "ar fa ps ug ur"),
    "greek": ("[\u0370-\u03ff\u1f00-\u1fff]", "el"),
    "hebrew": ("[\u0590-\u05ff]", "he yi"),
    "han": ("[\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff]", "zh"),
    "japanese": ("[\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff]", "ja"),
    "hangul": ("[\u1100-\u11ff\u3130-\u318f\uac00-\ud7af]", "ko"),
    "devanagari": ("[\u0900-\u097f]", "hi mr ne"),
    "bengali": ("[\u0980-\u09ff]", "as bn"),
    "gurmukhi": ("[\u0a00-\u0a7f]", "pa"),
    "gujarati": ("[\u0a80-\u0aff]", "gu"),
    "tamil": ("[\u0b80-\u0bff]", "ta"),
    "telugu": ("[\u0c00-\u0c7f]", "te"),
    "kannada": ("[\u0c80-\u0cff]", "kn"),
    "malayalam": ("[\u0d00-\u0d7f]", "ml"),
    "sinhala": ("[\u0d80-\u0dff]", "si"),
    "thai": ("[\u0e00-\u0e7f]", "th"),
    "georgian": ("[\u10a0-\u10ff]", "ka"),
    "armenian": ("[\u0530-\u058f]", "hy"),
    "khmer": ("[\u1780-\u17ff]", "km"),
}
_LATIN = re.compile("[A-Za-z\u00c0-\u024f\u1e00-\u1eff]")


def script_of(language: str) -> re.Pattern[str]:
    code = re.split("[-_]", language.lower())[0]
    for letters, languages in _SCRIPTS.values():
        if code in languages.split():
            return re.compile(letters)
    return _LATIN


def words_in(text: str, script: re.Pattern[str]) -> tuple[int, int]:
    """How many words of a text are in a script, and how many are not; a character without spaces counts as a word."""
    words: list[str] = _WORDS.findall(text)
    inside = sum(script.match(word) is not None for word in words)
    return inside, len(words) - inside


def size(text: str) -> float:
    """Words, such that those of languages with and without spaces can be compared."""
    if text.isascii():
        return len(text.split())
    unspaced = len(UNSPACED.findall(text))
    return unspaced / CHARACTERS_A_WORD + count_words(text) - unspaced


def similar_size(left: str, right: str, most: float) -> bool:
    """Whether neither text is more than `most` times as long as the other; short ones may differ twice as much."""
    sizes = max(1.0, size(left)), max(1.0, size(right))
    if min(sizes) < SHORT:
        most *= 2
    return max(sizes) <= most * min(sizes)


def letters(text: str) -> float:
    """The share of letters among all that is not space."""
    return sum(map(str.isalpha, text)) / max(1, len("".join(text.split())))


def numbers(text: str) -> Counter[str]:
    """The numbers of a text, however thousands and decimals are marked."""
    return Counter(found.lstrip("0") or "0" for found in _NUMBER.findall(_THOUSANDS.sub("", text)))


def has_numerals(text: str) -> bool:
    """Whether there are numbers written as Chinese characters."""
    return _NUMERALS.search(text) is not None


def word_key(text: str) -> tuple[str, ...]:
    """The words of a text without case, numbers and marks; characters where there are no spaces."""
    return tuple(_WORDS.findall(text.casefold()))
