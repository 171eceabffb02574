"""The words that probes are made of, by language: classes, cues and names."""

from __future__ import annotations

import re
import tomllib
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from functools import cache
from pathlib import Path
from typing import Any

from docnmt.base.errors import DocnmtError
from docnmt.text.scripts import CJK, primary

# ---- what is known of languages ----

GENDER = "gender"  # in the place of words to swap: all pronouns of a person at once
MASCULINE, FEMININE, OTHERWISE = "masculine", "feminine", "otherwise"

UNSPACED = re.compile(f"[{CJK}]")
WORD = r"[^\W_]+(?:-[^\W_]+)*"
_NEXT = re.compile(rf"[ \u00a0]({WORD})|('[a-z]+)")
_PREVIOUS = re.compile(rf"({WORD}'?)[ \u00a0]?$|-$")


@dataclass(frozen=True)
class Role:
    """What a word may be, and the neighbours by which it is known to be that."""

    words: tuple[str, ...]
    doubtful: tuple[str, ...] = ()  # the words that may also be something else
    next: tuple[str, ...] = ("*",)
    next_not: tuple[str, ...] = ()
    previous_not: tuple[str, ...] = ()
    unless: tuple[str, ...] = ()  # patterns: a word inside such a one is not asked about

    def fits(self, word: str, previous: str, following: str) -> bool:
        if word not in self.doubtful:
            return word in self.words
        return (
            _is_one_of(following, self.next)
            and not _is_one_of(following, self.next_not)
            and not _is_one_of(previous, self.previous_not)
        )


@cache
def _is_one_of(word: str, patterns: tuple[str, ...]) -> bool:
    return any(fnmatchcase(word, pattern) for pattern in patterns)


@dataclass(frozen=True)
class Language:
    """For a language without word lists, it is empty: no cues, no roles."""

    cues: Mapping[str, re.Pattern[str]] = field(default_factory=dict)  # by what they tell
    names: bool = False
    no_names: frozenset[str] = frozenset()  # words with a capital that are none
    roles: Mapping[str, Role] = field(default_factory=dict)
    genders: Mapping[str, tuple[str, str]] = field(default_factory=dict)  # role -> masculine and feminine pronoun
    persons: tuple[re.Pattern[str], ...] = ()  # words for the speaker, and for whoever is spoken to

    def role_of_all(self, words: Sequence[str]) -> str:
        """The one role that all these words can have; "" where they have none in common."""
        return next((name for name, role in self.roles.items() if set(role.words).issuperset(words)), "")

    def role_at(self, text: str, begin: int, end: int) -> str:
        """What the word at a place is; "" where its neighbours do not tell."""
        text = plain(text)
        previous, following = _PREVIOUS.search(text[:begin]), _NEXT.match(text[end:])
        sides = (previous[1] or "-") if previous else "", (following[1] or following[2]) if following else ""
        possible = [name for name, role in self.roles.items() if role.fits(text[begin:end], *sides)]
        if len(possible) != 1:
            return ""
        around = any_of((), self.roles[possible[0]].unless).finditer(text)
        return "" if any(match.start() <= begin < match.end() for match in around) else possible[0]

    def gender_of(self, word: str) -> str:
        """Masculine or feminine; "" for other words."""
        pairs = [pair for pair in self.genders.values() if word in pair]
        return (MASCULINE, FEMININE)[pairs[0].index(word)] if pairs else ""

    def tells(self, text: str, kind: str) -> bool:
        """Whether a text has a cue: a word that tells a gender, or otherwise whom it is about."""
        return kind in self.cues and self.cues[kind].search(plain(text)) is not None


def plain(text: str) -> str:
    """In lower case with straight apostrophes, every letter in its place."""
    text = text.replace("’", "'")
    lower = text.lower()
    if len(lower) == len(text):
        return lower
    return "".join(letter.lower() if len(letter.lower()) == 1 else letter for letter in text)


@cache
def any_of(words: tuple[str, ...], patterns: tuple[str, ...] = ()) -> re.Pattern[str]:
    """Matches one of these words in plain text, a whole one where spaces separate words; a star is
    any letters. Of no words it matches nothing."""
    parts = [_as_pattern(word) for word in sorted(words, key=len, reverse=True)]  # "elle-même" before "elle"
    return re.compile("|".join((*parts, *patterns)) or r"(?!)")


def _as_pattern(word: str) -> str:
    if UNSPACED.search(word):
        return re.escape(word)
    end = "" if word.endswith("'") else r"(?![\w~-])"
    return r"(?<!\w)" + r"\w*".join(map(re.escape, word.split("*"))) + end


@cache
def _tables() -> dict[str, Any]:
    text = (Path(__file__).parent / "probe_words.toml").read_text(encoding="utf-8")
    return tomllib.loads(text)


@cache
def language(code: str) -> Language:
    table = _tables()["language"].get(primary(code))
    if table is None:
        return Language()
    roles = {
        name: Role(**{field: tuple(words) for field, words in role.items()})
        for name, role in table.get("roles", {}).items()
    }
    cues = {
        MASCULINE: any_of(tuple(table[MASCULINE])),
        FEMININE: any_of(tuple(table[FEMININE])),
        OTHERWISE: any_of(tuple(table["generic"]), tuple(table["patterns"])),
    }
    genders = {role: (pair[0], pair[1]) for role, pair in table.get("gender", {}).items()}
    persons = tuple(any_of(tuple(words)) for words in table.get("persons", ()))
    return Language(cues, table["names"], frozenset(table.get("no_names", ())), roles, genders, persons)


def same_persons(source: Language, source_text: str, target: Language, target_text: str) -> bool:
    """Whether the target has a word for the speaker, and for whoever is spoken to, where the source has one."""
    persons = zip(source.persons, target.persons, strict=False)
    return not any(one.search(plain(source_text)) and not other.search(plain(target_text)) for one, other in persons)


def presets() -> dict[str, dict[str, dict[str, Any]]]:
    """Language pair -> class -> its fields."""
    return _tables()["pair"]


# ---- names: by their capitals, and in a script without capitals by the names of the other language ----

# A capital tells nothing after these, nor at the beginning.
_OPENS = re.compile(r"(?:^|[.!?:…«»“”\"'‘(\[—–-])\s*$")
_HAN = re.compile(rf"{UNSPACED.pattern}+")
_LEAST = 3  # times that a name must have been seen to be learnt


def common_words(sentences: Sequence[str]) -> frozenset[str]:
    """All words that are seen in lower case."""
    return frozenset(word for text in sentences for word in re.findall(r"[^\W_]+", text) if not word[0].isupper())


def names_in(text: str, common: frozenset[str], no_names: frozenset[str]) -> Iterator[str]:
    """Words with a capital that need none, and first words that are never seen without it."""
    for word in re.finditer(WORD, text):
        if word[0][0].isupper() and len(word[0]) > 1 and plain(word[0]) not in no_names:
            opens = _OPENS.search(text[: word.start()])
            if not opens or plain(word[0]).partition("-")[0] not in common:
                yield word[0]


def is_reverent(text: str, begin: int, end: int) -> bool:
    """A pronoun with a capital inside a sentence: God's. It is not swapped for another."""
    return text[begin].isupper() and not text[begin:end].isupper() and not _OPENS.search(text[:begin])


def learnt_names(sources: Sequence[str], names: Sequence[frozenset[str]]) -> tuple[str, ...]:
    """The names in sources without spaces or capitals: strings that mostly go with one name of the
    target sentences, and that name with them."""
    seen: Counter[str] = Counter()
    named: Counter[str] = Counter()
    together: Counter[tuple[str, str]] = Counter()
    for source, found in zip(sources, names, strict=True):
        strings = _strings(source)
        seen.update(strings)
        named.update(found)
        together.update((string, name) for string in strings for name in found)
    return tuple(
        dict.fromkeys(
            string
            for (string, name), count in together.items()
            if count >= _LEAST
            and count >= seen[string] * (0.5 if len(string) > 1 else 0.8)
            and 3 * count >= named[name]
        )
    )


def _strings(text: str) -> set[str]:
    """All runs of up to four characters."""
    runs = _HAN.findall(text)
    return {run[at : at + size] for run in runs for size in (1, 2, 3, 4) for at in range(len(run) - size + 1)}


# ---- classes of words that take each other's place: ready-made ones, and those of the command line ----


@dataclass(frozen=True)
class ProbeClass:
    name: str
    swap: tuple[str, ...]  # words that take each other's place; or GENDER alone
    source: tuple[str, ...] = ()  # words of which the source has one; none: any source will do
    source_not: tuple[str, ...] = ()  # words that it has not
    told: tuple[str, ...] = ()  # words of `swap` that the sentence mostly tells by itself
    ignore: tuple[str, ...] = ()  # cues that tell nothing here
    source_cues: tuple[str, ...] = ()  # patterns instead of the languages' cues
    target_cues: tuple[str, ...] = ()
    people: bool = False  # with such patterns: people and names of the sentence tell as well
    several: tuple[str, ...] = ()  # words for several: one of them, or two people, must stand just before
    unclear: tuple[str, ...] = ()  # words after which more than one of `swap` would be right
    things: bool = False  # the words stand for things here: they may be those of people who stand before them
    before: Mapping[str, Sequence[str]] = field(default_factory=dict)  # word -> what tells it in the text before

    def __post_init__(self) -> None:
        if not self.is_gender and len(set(self.swap)) < 2:
            raise DocnmtError(
                f"--swap {','.join(self.swap)}: this is only one word\n"
                f"  Give two or more different words, or {GENDER} to swap all gendered pronouns at once."
            )

    @property
    def is_gender(self) -> bool:
        return self.swap == (GENDER,)


def ready_made(languages: tuple[str, str]) -> list[ProbeClass]:
    """None for a pair of languages that we have no words for."""
    classes = []
    for name, table in presets().get("-".join(languages), {}).items():
        fields: dict[str, Any] = {
            key: tuple(value) if isinstance(value, list) else value for key, value in table.items()
        }
        classes.append(ProbeClass(name, **fields))
    return classes


def chosen_classes(
    languages: tuple[str, str], swaps: Sequence[Sequence[str]] = (), source: Sequence[str] = ()
) -> list[ProbeClass]:
    """Those of the command line, or all ready-made ones. Words that are a ready-made class's are
    taken as it has them."""
    known = {one.swap: one for one in ready_made(languages)}
    if not swaps and not known:
        raise DocnmtError(
            f"there are no ready-made word classes for {'-'.join(languages)!r}\n"
            f"  There are some for {', '.join(presets())}; for others, give words with --swap."
        )
    classes = [known.get(words) or ProbeClass("/".join(words), words) for words in map(tuple, swaps)]
    if source:
        classes = [replace(one, source=tuple(source)) for one in classes]
    return classes or list(known.values())
