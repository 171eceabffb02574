"""Probes: contrastive items from any corpus, in which one word depends on what comes before.

A class is a few words that can replace each other (his, her, its) where the source
has one word for all of them (son). An item is a sentence whose reference has exactly one of them;
its wrong translations are the reference with each of the others in its place. Both languages are
searched for cues: words by which the sentence itself tells which one it must be.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from docnmt.base.report import Column, Table
from docnmt.document import ParallelDocument
from docnmt.evaluation.contrastive import decisive
from docnmt.evaluation.contrastive_items import KEPT, Item
from docnmt.evaluation.probe_words import (
    FEMININE,
    GENDER,
    MASCULINE,
    OTHERWISE,
    UNSPACED,
    Language,
    ProbeClass,
    any_of,
    common_words,
    is_reverent,
    language,
    learnt_names,
    names_in,
    plain,
    same_persons,
)

CUE, NO_CUE = "with cue", "no cue"
_NEAR = 3  # sentences: just before
_LONGEST = 2.2  # times as many letters on one side as on the other: the two are hardly each other's translation


@dataclass
class _Side:
    """All texts of a corpus in one language."""

    language: Language
    texts: list[str]
    learnt: tuple[str, ...] = ()  # names of a script without capitals

    def __post_init__(self) -> None:
        self._common = common_words(self.texts)

    def names(self, text: str) -> frozenset[str]:
        capital = names_in(text, self._common, self.language.no_names) if self.language.names else ()
        return frozenset((*capital, *(name for name in self.learnt if name in text)))


class ProbeMaker:
    """Finds the items of some classes in documents."""

    def __init__(self, documents: Sequence[ParallelDocument], languages: tuple[str, str]):
        self.documents = documents
        source, target = map(language, languages)
        self.source = _Side(source, [text for document in documents for text in document.source])
        self.target = _Side(target, [text for document in documents for text in document.target])
        if target.names and UNSPACED.search("".join(self.source.texts)):
            names = [self.target.names(text) for text in self.target.texts]
            self.source.learnt = learnt_names(self.source.texts, names)
        self._ratio = sum(map(len, self.target.texts)) / max(1, sum(map(len, self.source.texts)))

    def make(self, classes: Sequence[ProbeClass], *, limit: int = 0, seed: int = 1) -> list[Item]:
        """Class by class, in the order of the corpus, at most `limit` of a class and cue in a
        document (0: all).

        What one class asks about, `gender` does not ask about again.
        """
        items: list[Item] = []
        asked: set[tuple[str, int]] = set()
        for chosen in sorted(classes, key=lambda one: one.is_gender):
            for document in self.documents:
                found = [item for item in self._items(chosen, document) if _place(item) not in asked]
                items += _sample(found, limit, random.Random(f"{seed} {chosen.name} {document.id}"))
                asked |= set() if chosen.is_gender else set(map(_place, found))
        return items

    def _items(self, chosen: ProbeClass, document: ParallelDocument) -> Iterator[Item]:
        wanted, unwanted = any_of(chosen.source), any_of(chosen.source_not)
        for position in document.filled:
            source, target = document.source[position], document.target[position]
            if not source or not target or not self._are_alike(source, target):
                continue
            if not same_persons(self.source.language, source, self.target.language, target):
                continue  # the reference says it of somebody else
            if (chosen.source and not wanted.search(plain(source))) or unwanted.search(plain(source)):
                continue
            swapped = self._swap_all(target) if chosen.is_gender else self._swap_one(chosen, target)
            if not swapped or self._is_unclear(chosen, document.target[max(0, position - _NEAR) : position], target):
                continue
            item = self._item(chosen, document, position, *swapped)
            if item:
                yield item

    def _are_alike(self, source: str, target: str) -> bool:
        return 1 / _LONGEST <= len(target) / (self._ratio * len(source)) <= _LONGEST

    def _is_unclear(self, chosen: ProbeClass, near: Sequence[str], target: str) -> bool:
        """Whether the word may be that of somebody else, of people in general, or another one as well."""
        before = " ".join(near)
        if any_of(chosen.unclear).search(plain(f"{before} {target}")):
            return True
        if chosen.several and not any_of(chosen.several).search(plain(before)) and len(self._people(before)) < 2:
            return True
        return chosen.things and bool(self._people(target[: _find(chosen.swap, target)[0][0]]))

    def _people(self, text: str) -> set[str]:
        """Words of the target language that tell of someone, and names."""
        cues = self.target.language.cues
        words = (cues[gender].finditer(plain(text)) for gender in (MASCULINE, FEMININE) if gender in cues)
        return {match[0] for found in words for match in found} | self.target.names(text)

    def _swap_one(self, chosen: ProbeClass, text: str) -> tuple[list[str], str, str] | None:
        """The text with each other word in the place of the one it has; the text without it; the word."""
        found = _find(chosen.swap, text)
        if len(found) != 1 or is_reverent(text, *found[0]):
            return None
        ((begin, end),) = found
        role = self.target.language.role_of_all(chosen.swap)
        if role and self.target.language.role_at(text, begin, end) != role:
            return None
        right = plain(text[begin:end])
        others = [word for word in chosen.swap if word != right]
        wrong = [text[:begin] + _in_case_of(text[begin:end], word) + text[end:] for word in others]
        return wrong, f"{text[:begin]} {text[end:]}", right

    def _swap_all(self, text: str) -> tuple[list[str], str, str] | None:
        """The same for all pronouns of a person at once, which have to be of one gender."""
        target = self.target.language
        found = _find([word for pair in target.genders.values() for word in pair], text)
        if len({target.gender_of(plain(text[begin:end])) for begin, end in found}) != 1:
            return None
        wrong = rest = text
        for begin, end in reversed(found):  # from the end, so that the places before stay where they are
            role, word = target.role_at(text, begin, end), plain(text[begin:end])
            if role not in target.genders or is_reverent(text, begin, end):
                return None
            (other,) = set(target.genders[role]) - {word}
            wrong = wrong[:begin] + _in_case_of(text[begin:end], other) + wrong[end:]
            rest = f"{rest[:begin]} {rest[end:]}"
        return [wrong], rest, plain(text[slice(*found[0])])

    def _item(
        self, chosen: ProbeClass, document: ParallelDocument, position: int, wrong: list[str], rest: str, right: str
    ) -> Item | None:
        """None where neither the sentence nor anything before it tells, or where that is not known."""
        source = document.source[position]
        told = right in chosen.told or self._told(chosen, source, rest)
        first = max(0, position - KEPT)
        gender = self.target.language.gender_of(right)
        decided = right in chosen.told or (told and gender and self._tells_or_names(gender, source, rest))
        distance = None if decided else self._distance(chosen, document, position, right)
        if not (decided or distance is not None or self._may_be_told_before(chosen, document, position, gender, told)):
            return None
        if not told and not self._shows_names(document):
            return None
        return Item(
            document=document.id,
            phenomenon=f"{chosen.name}, {CUE if told else NO_CUE}",
            source=(source,),
            right=(document.target[position],),
            wrong=tuple((text,) for text in wrong),
            position=position,
            distance=0 if told else distance,
            previous=document.source[first:position],
            following=document.source[position + 1 : position + 1 + KEPT],
            previous_target=document.target[first:position],
        )

    def _told(self, chosen: ProbeClass, source: str, target: str) -> bool:
        """Whether the source sentence, or the rest of the reference, has a cue."""
        has_cues = bool(chosen.source_cues or chosen.target_cues)
        if has_cues:
            cues = ((chosen.source_cues, source), (chosen.target_cues, target))
            if any(any_of((), patterns).search(plain(text)) for patterns, text in cues):
                return True
            if not chosen.people:
                return False
        for side, text in ((self.source, source), (self.target, target)):
            rest = any_of(chosen.ignore).sub(" ", plain(text))
            if any(side.language.tells(rest, gender) for gender in (MASCULINE, FEMININE)):
                return True
            if side.names(text) or (not has_cues and side.language.tells(text, OTHERWISE)):
                return True
        return False

    def _tells_or_names(self, gender: str, source: str, target: str) -> bool:
        sides = ((self.source, source), (self.target, target))
        return any(side.language.tells(text, gender) or side.names(text) for side, text in sides)

    def _shows_names(self, document: ParallelDocument) -> bool:
        """Whether names have capitals: where everything is in lower case they are not seen."""
        sides = ((self.source, document.source), (self.target, document.target))
        return all("".join(texts).lower() != "".join(texts) for side, texts in sides if side.language.names)

    def _distance(self, chosen: ProbeClass, document: ParallelDocument, position: int, right: str) -> int | None:
        """How far back that stands which tells: one of the class's words for it, with none for another; for
        other classes a word of the same gender, in either language."""
        gender = self.target.language.gender_of(right)
        for back in range(1, min(position, KEPT) + 1):
            source, target = document.source[position - back], document.target[position - back]
            if chosen.before:
                told = {word for word, words in chosen.before.items() if any_of(tuple(words)).search(plain(target))}
                if told:
                    return back if told == {right} else None
            elif self.source.language.tells(source, gender) or self.target.language.tells(target, gender):
                return back
        return None

    def _may_be_told_before(
        self, chosen: ProbeClass, document: ParallelDocument, position: int, gender: str, told: bool
    ) -> bool:
        """By a name; where the word that is asked about has no gender of its own, by anything, unless it is known
        what would tell it."""
        near = slice(max(0, position - KEPT), position)
        before = [*zip(document.source[near], document.target[near], strict=True)]
        if gender:
            return any(self.source.names(source) or self.target.names(target) for source, target in before)
        return (told or not chosen.before) and any(source and target for source, target in before)


def _place(item: Item) -> tuple[str, int]:
    assert item.position is not None
    return item.document, item.position


def _sample(items: list[Item], limit: int, generator: random.Random) -> list[Item]:
    kept: list[Item] = []
    for name in dict.fromkeys(item.phenomenon for item in items):
        own = [item for item in items if item.phenomenon == name]
        kept += generator.sample(own, limit) if 0 < limit < len(own) else own
    return sorted(kept, key=_place)


def _find(words: Sequence[str], text: str) -> list[tuple[int, int]]:
    return [match.span() for match in any_of(tuple(words)).finditer(plain(text))]


def _in_case_of(model: str, word: str) -> str:
    if len(model) > 1 and model.isupper():
        return word.upper()
    return word[0].upper() + word[1:] if model[0].isupper() else word


def prior_table(items: Sequence[Item], languages: tuple[str, str]) -> Table:
    """What is in a set: for each class and cue its items, how often each word is the right one, and
    how far one gets by always saying the same."""
    target = language(languages[1])
    heads = ("class", "items", "documents", "right word", "most frequent", "chance")
    table = Table("Probes", [Column(name, text=name in ("class", "right word")) for name in heads])
    names = dict.fromkeys(item.phenomenon for item in items)
    classes = [name.partition(", ")[0] for name in names]
    for name in sorted(names, key=lambda name: (classes.index(name.partition(", ")[0]), name)):
        own = [item for item in items if item.phenomenon == name]
        first = [next(iter(decisive(item).right), "") for item in own]
        right = Counter(target.gender_of(word) for word in first) if name.startswith(GENDER) else Counter(first)
        shares = {word: 100 * count / len(own) for word, count in right.most_common()}
        chance = 100 * sum(item.chance for item in own) / len(own)
        documents = len({item.document for item in own})
        listed = ", ".join(f"{word} {share:.0f} %" for word, share in shares.items())
        most = max(shares.values())
        table.add(name, f"{len(own):,}", f"{documents:,}", listed, f"{most:.1f}", f"{chance:.1f}")
        table.figures.append(
            {"class": name, "items": len(own), "documents": documents, "right": shares, "chance": chance}
        )
    table.notes.append(
        "Most frequent: percent right by always choosing the most frequent word; chance: by guessing. With cue: a word "
        "of the sentence, or of its reference, may reveal the right one."
    )
    return table
