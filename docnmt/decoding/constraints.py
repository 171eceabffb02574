"""Which hypotheses to keep where something is asked of the translation.

Dynamic beam allocation (Post and Vilar, 2018): hypotheses stand in banks by how many pieces of the phrases asked for
they have written, and the beam is shared out among the banks. So those that have done more, and paid for it, are not
pushed out by those that have not begun. The end mark is open only to those that have done all.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from docnmt.decoding.demands import Progress, Tracker

WIDEST = 48  # hypotheses a sentence, however many pieces its phrases have


class _Candidate(NamedTuple):
    total: float  # log-probability
    origin: int  # the hypothesis that it continues
    word: int
    progress: Progress


def beam_for(tracker: Tracker, beam: int) -> int:
    """A sentence has one hypothesis more for each piece of its phrases."""
    return max(beam, min(beam + tracker.pieces, WIDEST))


class Constraints:
    """What is asked of a batch of sentences, and what each hypothesis has done of it.

    All sentences have as many hypotheses as the one that has most, but use no more than their own: what else is in the
    batch changes nothing.
    """

    def __init__(self, trackers: Sequence[Tracker], eos: int, beam: int):
        self.trackers, self.eos = trackers, eos
        self.beams = [beam_for(tracker, beam) for tracker in trackers]
        self.widest = max(self.beams, default=beam)
        self.progress = [[tracker.start] * self.widest for tracker in trackers]
        self.limits: list[int] = []

    def begin(self, limits: Sequence[int]) -> tuple[list[int], list[int]]:
        """The longest that each translation may get, where what is asked for does not count; and up to which length
        its score gains from being long. Phrases that cost much would have it go on and on otherwise."""
        own = list(zip(limits, self.trackers, strict=True))
        self.limits = [limit + tracker.pieces + len(tracker.prefix) for limit, tracker in own]
        return self.limits, [(tracker.length or limit) + tracker.pieces for limit, tracker in own]

    def best(self, logits: Tensor, scores: Tensor, alive: Tensor, length: int) -> tuple[Tensor, Tensor, Tensor]:
        """As beam search's own: the candidates' log-probabilities, [alive, candidates], best first, the hypothesis that
        each continues, and its word. Those that do not end are just the ones to go on with."""
        sentences = alive.tolist()
        rows = [progress for sentence in sentences for progress in self.progress[sentence]]
        values, before = logits.log_softmax(dim=1), scores.flatten()[:, None]
        wanted = [(row, word) for row, progress in enumerate(rows) for word in progress.wanted]
        wanted += self._ends_of_words(rows, values)
        wanted_rows, wanted_words = [row for row, _ in wanted], [word for _, word in wanted]
        wanted_totals = before[wanted_rows, 0] + values[wanted_rows, wanted_words]
        self._close(rows, values)
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
        """Rows that have to end a word, and the word each of them would best go on with."""
        waiting = [row for row, progress in enumerate(rows) if progress.awaits_end]
        parting = torch.tensor(self.trackers[0].spelling.parting, device=values.device)
        if not waiting or not len(parting):
            return []
        best = parting[values[waiting][:, parting].argmax(dim=1)].tolist()
        return list(zip(waiting, best, strict=True))

    def _close(self, rows: Sequence[Progress], values: Tensor) -> None:
        """Takes from the rows the words that must not follow."""
        values[[row for row, progress in enumerate(rows) if not progress.complete], self.eos] = -torch.inf
        for row, progress in enumerate(rows):
            if progress.open is not None:
                kept = values[row, progress.open]
                values[row] = -torch.inf
                values[row, progress.open] = kept

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
            del most_first[1:]  # those that have done most have to do, unless there is another way
            if tracker.floor > -math.inf:
                most_first = [[candidate for candidate in bank if candidate.progress.complete] for bank in most_first]
        chosen = _share(most_first, beam, self.eos)
        going = [candidate.progress for candidate in chosen if candidate.word != self.eos]
        self.progress[sentence] = going + [tracker.start] * (self.widest - len(going))
        return chosen

    def _as_tensors(self, chosen: Sequence[Sequence[_Candidate]], scores: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        columns = max(self.widest, *map(len, chosen))
        nothing = (-math.inf, 0, int(self.eos == 0))  # some word that does not end the sentence
        cells = [[*(c[:3] for c in row), *[nothing] * (columns - len(row))] for row in chosen]
        totals, origins, words = (
            torch.tensor([[cell[k] for cell in row] for row in cells], device=scores.device) for k in range(3)
        )
        return totals, origins, words


def _share(banks: Sequence[Sequence[_Candidate]], beam: int, eos: int) -> list[_Candidate]:
    """Turn by turn the best that goes on of each bank, until the beam is full. Those that end come beside them, if they
    are among the best twice as many of their bank."""
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
