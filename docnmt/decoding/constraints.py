"""Search for translations that contain given phrases.

What counts is the text, not the pieces: a phrase is met as whole words, whatever pieces it is spelt with.

Dynamic beam allocation (Post and Vilar, 2018): hypotheses are kept in banks by how many pieces of the phrases they have
written, and the beam is divided among the banks. So those that have written more, and paid for it, are not pushed out
by those that have not begun. Only those that have written all phrases may end.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import torch
from torch import Tensor

from docnmt.decoding.phrases import Form, Matched, Matcher, Phrase, Place, Spelling, SpeltPhrase

WIDEST = 48  # the most hypotheses a sentence may have, however long its phrases

# ---- How far a hypothesis is, piece by piece ----


class _Written(NamedTuple):
    """What a hypothesis has written, as far as it matters for phrases."""

    matched: Matched
    tail: bytes = b""  # the bytes of an unfinished character
    breaks: int = 0  # begin marks still to be written


@dataclass(eq=False)
class Progress:
    """How far a hypothesis has got with the phrases of its sentence."""

    written: _Written
    bank: int  # pieces of the phrases that it has written
    complete: bool  # all phrases are met: it may end
    wanted: Sequence[int]  # pieces that would continue or begin a phrase
    awaits_end: bool  # it has just written a phrase that counts only if the word ends here
    after: dict[int, Progress] = field(default_factory=dict)  # by the next piece, filled in as needed


class Tracker:
    """Tracks the phrases of one sentence in its hypotheses. Phrases that no pieces can spell are left out.

    The sentence's own translation begins after this many `breaks`, begin marks (see ContextRule.own); `length` is that
    of the translation without constraints.
    """

    def __init__(
        self,
        phrases: Sequence[Phrase],
        spelling: Spelling,
        bos: int,
        length: int,
        breaks: int = 0,
        floor: float = -math.inf,
    ):
        self.spelling, self.bos, self.length = spelling, bos, length
        spelt = [SpeltPhrase(phrase, spelling) for phrase in phrases]
        # A hypothesis with a lower log-probability is dropped: the phrases are then put in by alignment, which is the
        # only way for phrases that no pieces can spell.
        self.floor = floor if floor == -math.inf or all(phrase.worth for phrase in spelt) else math.inf
        self.matcher = Matcher([phrase.forms for phrase in spelt if phrase.worth])
        self.phrases = [next(phrase for phrase in spelt if phrase.forms == forms) for forms in self.matcher.forms]
        self.pieces = sum(n * phrase.worth for n, phrase in zip(self.matcher.needed, self.phrases, strict=True))
        self._known: dict[_Written, Progress] = {}
        self.start = self._progress(_Written(self.matcher.start, breaks=breaks))

    def after(self, progress: Progress, piece: int) -> Progress:
        found = progress.after.get(piece)
        if found is None:
            found = progress.after[piece] = self._progress(self._write(progress.written, piece))
        return found

    def _write(self, written: _Written, piece: int) -> _Written:
        if written.breaks:
            return written._replace(breaks=written.breaks - (piece == self.bos))
        characters, tail = _whole_characters(written.tail + self.spelling.written[piece])
        return _Written(self.matcher.read(written.matched, characters), tail)

    def _progress(self, written: _Written) -> Progress:
        if written not in self._known:
            own, whole = not written.breaks, not written.breaks and not written.tail
            self._known[written] = Progress(
                written,
                max(self._bank(written, met, inside) for met, inside in written.matched.readings),
                whole and self.matcher.complete(written.matched),
                sorted({piece for piece in self._wanted(written) if piece is not None}) if own else (),
                whole and self.matcher.awaits_end(written.matched),
            )
        return self._known[written]

    def _bank(self, written: _Written, met: Sequence[int], inside: Place | None) -> int:
        bank = sum(n * phrase.worth for n, phrase in zip(met, self.phrases, strict=True))
        if inside is not None:
            return bank + self.phrases[inside.phrase].written(inside.form, _bytes(inside), written.tail)
        # A space or a byte that is a piece of its own may be the first piece of a phrase.
        if written.matched.last != " " and not written.tail:
            return bank
        begun = (self.phrases[n].written(form, 0, written.tail) for n, form in self._open(met, written))
        return bank + max(begun, default=0)

    def _wanted(self, written: _Written) -> Iterator[int | None]:
        for met, inside in written.matched.readings:
            if inside is not None:
                yield self.phrases[inside.phrase].spelt[inside.form].piece(_bytes(inside), written.tail)
                continue
            for number, form in self._open(met, written):
                spelt = self.phrases[number].spelt[form]
                yield from [spelt.piece(0, written.tail)] if written.tail else spelt.begin(form, written.matched)

    def _open(self, met: Sequence[int], written: _Written) -> Iterator[tuple[int, Form]]:
        """The phrases that may begin here, or have begun with the bytes of an unfinished character."""
        for number, form in self.matcher.open(met, written.matched):
            if not written.tail or written.matched.between_words or not form.begins_word:
                yield number, form


def _bytes(inside: Place) -> int:
    """How many bytes of a phrase are written."""
    return len(inside.form.text[: inside.written].encode())


def _whole_characters(text: bytes) -> tuple[str, bytes]:
    """The whole characters of a text, and the bytes of an unfinished one at its end."""
    try:
        return text.decode(), b""
    except UnicodeDecodeError as error:
        if error.reason == "unexpected end of data":
            return text[: error.start].decode(), text[error.start :]
        return text.decode(errors="replace"), b""


# ---- Which hypotheses to keep ----


class _Candidate(NamedTuple):
    total: float  # log-probability
    origin: int  # the hypothesis that it continues
    word: int
    progress: Progress


def beam_for(tracker: Tracker, beam: int) -> int:
    """One more hypothesis for each piece of the phrases."""
    return max(beam, min(beam + tracker.pieces, WIDEST))


class Constraints:
    """The phrases of a batch of sentences, and how far each hypothesis has got with them.

    All sentences have as many hypotheses as the one with the most, but use no more than their own: what else is in the
    batch makes no difference.
    """

    def __init__(self, trackers: Sequence[Tracker], eos: int, beam: int, forbidden: Sequence[int] = ()):
        self.trackers, self.eos, self.forbidden = trackers, eos, list(forbidden)
        self.beams = [beam_for(tracker, beam) for tracker in trackers]
        self.widest = max(self.beams, default=beam)
        self.progress = [[tracker.start] * self.widest for tracker in trackers]
        self.limits: list[int] = []

    def begin(self, limits: Sequence[int]) -> tuple[list[int], list[int]]:
        """The length limit of each translation, not counting its phrases; and the length up to which its score gains by
        being long: otherwise improbable phrases would make it go on and on."""
        self.limits = [limit + tracker.pieces for limit, tracker in zip(limits, self.trackers, strict=True)]
        return self.limits, [tracker.length + tracker.pieces for tracker in self.trackers]

    def best(self, logits: Tensor, scores: Tensor, alive: Tensor, length: int) -> tuple[Tensor, Tensor, Tensor]:
        """As in beam search: the log-probabilities of the candidates, [alive, candidates], best first, the hypotheses
        that they continue, and their words. Those that do not end are exactly the ones to continue with."""
        sentences = alive.tolist()
        rows = [progress for sentence in sentences for progress in self.progress[sentence]]
        values, before = logits.log_softmax(dim=1), scores.flatten()[:, None]
        wanted = [(row, word) for row, progress in enumerate(rows) for word in progress.wanted]
        wanted += self._ends_of_words(rows, values)
        wanted_rows, wanted_words = [row for row, _ in wanted], [word for _, word in wanted]
        wanted_totals = before[wanted_rows, 0] + values[wanted_rows, wanted_words]
        values[:, self.forbidden] = -torch.inf
        values[[row for row, progress in enumerate(rows) if not progress.complete], self.eos] = -torch.inf
        top, top_words = values.topk(min(2 * self.widest, values.shape[1]), dim=1)
        best = zip(top_words.tolist(), (before + top).tolist(), strict=True)
        among = [2 * self.beams[sentence] for sentence in sentences for _ in range(self.widest)]
        candidates = [dict(zip(*(part[:n] for part in row), strict=True)) for n, row in zip(among, best, strict=True)]
        for (row, word), total in zip(wanted, wanted_totals.tolist(), strict=True):
            candidates[row][word] = total
        chosen = [
            self._choose(sentence, candidates[group * self.widest : (group + 1) * self.widest], length)
            for group, sentence in enumerate(sentences)
        ]
        return self._as_tensors(chosen, scores)

    def _ends_of_words(self, rows: Sequence[Progress], values: Tensor) -> list[tuple[int, int]]:
        """Rows where a word has to end, and the best continuation that ends it."""
        waiting = [row for row, progress in enumerate(rows) if progress.awaits_end]
        parting = torch.tensor(self.trackers[0].spelling.parting, device=values.device)
        if not waiting or not len(parting):
            return []
        best = parting[values[waiting][:, parting].argmax(dim=1)].tolist()
        return list(zip(waiting, best, strict=True))

    def _choose(self, sentence: int, rows: Sequence[dict[int, float]], length: int) -> list[_Candidate]:
        tracker, hypotheses, beam = self.trackers[sentence], self.progress[sentence], self.beams[sentence]
        banks: dict[int, list[_Candidate]] = {}
        for origin, (candidates, progress) in enumerate(zip(rows, hypotheses, strict=True)):
            for word, total in candidates.items():
                if total > tracker.floor:
                    then = progress if word == self.eos else tracker.after(progress, word)
                    banks.setdefault(then.bank, []).append(_Candidate(total, origin, word, then))
        most_first = [sorted(banks[bank], key=_worst_last) for bank in sorted(banks, reverse=True)]
        if length >= self.limits[sentence]:
            del most_first[1:]  # those with most pieces are taken, complete or not, unless there is another way
            if tracker.floor > -math.inf:
                most_first = [[candidate for candidate in bank if candidate.progress.complete] for bank in most_first]
        chosen = _share(most_first, beam, self.eos)
        going = [candidate.progress for candidate in chosen if candidate.word != self.eos]
        self.progress[sentence] = going + [tracker.start] * (self.widest - len(going))
        return chosen

    def _as_tensors(self, chosen: Sequence[Sequence[_Candidate]], scores: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        columns = max(self.widest, *map(len, chosen))
        nothing = (-math.inf, 0, int(self.eos == 0))  # any word that does not end the sentence
        cells = [[*(c[:3] for c in row), *[nothing] * (columns - len(row))] for row in chosen]
        totals, origins, words = (
            torch.tensor([[cell[k] for cell in row] for row in cells], device=scores.device) for k in range(3)
        )
        return totals, origins, words


def _share(banks: Sequence[Sequence[_Candidate]], beam: int, eos: int) -> list[_Candidate]:
    """Takes the best unfinished candidate of each bank in turn until the beam is full. Finished ones are added if they
    are among the best of their bank, twice as many as its share."""
    going = [[candidate for candidate in bank if candidate.word != eos] for bank in banks]
    shares, left = [0] * len(banks), min(beam, sum(map(len, going)))
    while left:
        for n, bank in enumerate(going):
            if left and shares[n] < len(bank):
                shares[n] += 1
                left -= 1
    chosen: list[_Candidate] = []
    for n, candidates in enumerate(banks):
        among = 2 * max(shares[n], 1) if beam > 1 else 1
        chosen += going[n][: shares[n]]
        chosen += [candidate for candidate in candidates[:among] if candidate.word == eos]
    return sorted(chosen, key=_worst_last)


def _worst_last(candidate: _Candidate) -> float:
    return -candidate.total
