"""Four ways to make step 2 look at the context: words that context decides count more, or have
a loss within their class; words of the source are hidden; sentences are split, the first half as
context of the second."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import accumulate
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from docnmt.base.errors import DocnmtError
from docnmt.config import DocumentStepConfig
from docnmt.data.context import ContextRule
from docnmt.data.packing import Choice
from docnmt.data.store import TokenStore
from docnmt.data.subwords import Subwords


class NamedWords:
    """Whole words that a recipe names, in any case and made of any pieces."""

    def __init__(self, words: Sequence[str], subwords: Subwords):
        self.words = re.compile(rf"(?<!\w)(?:{'|'.join(map(re.escape, words))})(?!\w)", re.IGNORECASE)
        # Bytes are not joined into characters: a word spelt with byte pieces is not found.
        self.written = [piece.decode("utf-8", "replace") for piece in subwords.written()]

    def are_in(self, sentence: Sequence[int]) -> bool:
        return self.words.search("".join(self.written[piece] for piece in sentence)) is not None

    def places(self, sentence: Sequence[int]) -> list[list[int]]:
        """Where the pieces of each word are, word by word."""
        written = [self.written[piece] for piece in sentence]
        ends = list(accumulate(map(len, written)))
        spans = [match.span() for match in self.words.finditer("".join(written))]
        return [
            [i for i, end in enumerate(ends) if begin < end and end - len(written[i]) < stop] for begin, stop in spans
        ]


# ---- Words that count more than others while step 2 is trained ----

# Words that context decides, such as his and her, are a few in a hundred: they hardly move a loss
# that counts all words alike.


class Focus:
    """The pieces of the named words have a weight of their own; all others have 1.

    `only`: sentences without such a word are in no batch, only in the contexts of others.
    """

    def __init__(self, words: Sequence[str], weight: float, only: bool, target: Subwords):
        self.words, self.weight, self.only = NamedWords(words, target), weight, only

    def weights(self, target: Sequence[int]) -> list[float]:
        """For each piece of a sentence."""
        weights = [1.0] * len(target)
        for word in self.words.places(target):
            for place in word:
                weights[place] = self.weight
        return weights

    def of(self, targets: Sequence[Sequence[int]]) -> Tensor:
        """For each piece of a batch, with the end mark of each sentence, [target tokens]"""
        return torch.tensor([weight for target in targets for weight in (*self.weights(target), 1.0)])


# ---- Choices between words of one class ----

# Besides its loss over the whole vocabulary, a word of a class such as his, her and its has one over
# its class only: -log p(her) / (p(his) + p(her) + p(its)). Unlike a weight on these words it does
# not teach the model to write more of them.

BALANCED = 3.0  # balancing changes a word's weight by at most this factor


class Choices:
    """`classes`: the words of each, separated by commas. A word may be in several ("her"): then its
    alternatives are the words of all of them. Words of more than one piece are left out, as are
    those without an alternative in the same spelling.

    `counts`: how often each piece of the vocabulary occurs in the training text. If given, all
    words of a class have the same weight in total: rare ones count more, frequent ones
    less. In novels three of four possessives are *his*; without balance, *his* is a good answer
    without looking at the context.
    """

    def __init__(
        self, classes: Sequence[str], weight: float, target: Subwords, counts: NDArray[np.int64] | None = None
    ):
        self.weight, self.counts = weight, counts
        named = [[word.strip() for word in words.split(",")] for words in classes]
        self.words = NamedWords([word for words in named for word in words], target)
        pieces = {text: piece for piece, text in reversed(list(enumerate(self.words.written)))}
        self.others: dict[int, list[int]] = {}  # by piece
        for words in named:
            for write in (str.lower, str.capitalize, str.upper):
                for before in ("", " "):
                    found = [pieces[text] for word in words if (text := before + write(word)) in pieces]
                    for piece in found:
                        known = self.others.setdefault(piece, [])
                        known += [other for other in found if other != piece and other not in known]

    def weight_of(self, piece: int) -> float:
        """The mean count in the piece's class over its own, within bounds, so that very rare words stay rare."""
        if self.counts is None:
            return self.weight
        known = np.maximum(self.counts[[piece, *self.others[piece]]], 1)
        return self.weight * float(np.clip(known.mean() / known[0], 1 / BALANCED, BALANCED))

    def of(self, targets: Sequence[Sequence[int]], device: torch.device | str = "cpu") -> Choice:
        """In a batch of sentences, each followed by an end mark."""
        rows, words, begin = [], [], 0
        for target in targets:
            for places in self.words.places(target):
                others = self.others.get(target[places[0]]) if len(places) == 1 else None
                if others:
                    rows.append(begin + places[0])
                    words.append([target[places[0]], *others])
            begin += len(target) + 1
        most = max(map(len, words), default=1)
        padded = torch.tensor([[*row, *[-1] * (most - len(row))] for row in words], dtype=torch.int64, device=device)
        padded = padded.view(-1, most)
        tokens = torch.tensor(rows, dtype=torch.int64, device=device)
        weights = torch.tensor([self.weight_of(row[0]) for row in words], device=device)
        return Choice(tokens, padded.clamp(min=0), padded >= 0, weights)


# ---- Words of the source hidden at random ----

# What a hidden word says has to be found in the context. Fernandes et al. (2021), "Measuring and
# Increasing Context Usage in Context-Aware Machine Translation", hide any word of the current
# sentence, none of its context. Ours can hide only named words, all in a sentence at once: where
# il and elle are hidden, only the context tells he from she. Each piece of a hidden word becomes
# the unknown word.


class WordDropout:
    """Draws from torch's generator, which the training loop seeds for each batch."""

    def __init__(self, rate: float, words: Sequence[str], source: Subwords):
        self.rate, self.unknown = rate, source.unk
        self.words = NamedWords(words, source) if words else None

    def __call__(self, sentence: Sequence[int]) -> list[int]:
        if self.words is None:
            places = set((torch.rand(len(sentence)) < self.rate).nonzero()[:, 0].tolist())
        else:
            named = [i for word in self.words.places(sentence) for i in word]
            places = set(named) if named and float(torch.rand(())) < self.rate else set()
        return [self.unknown if i in places else piece for i, piece in enumerate(sentence)]


# ---- Sentences split in two ----

# Lupo et al. (2022), "Divide and Rule: Effective Pre-Training for Context-Aware Multi-Encoder
# Translation Models": few words depend on the sentence before, many on an earlier part of their own
# sentence. Split in the middle, any sentence pair teaches where to look in a context: in *Elle prit
# | son chapeau* only the first half tells the gender of *son*.

SHORTEST = 4  # pieces of a half


class Halves(NamedTuple):
    source: tuple[list[int], list[int]]
    target: tuple[list[int], list[int]]


class SplitPairs:
    """Draws from torch's generator, as `WordDropout` does."""

    def __init__(self, rate: float, source: Subwords, target: Subwords):
        self.rate = rate
        self.begins = [[piece.startswith(b" ") for piece in side.written()] for side in (source, target)]

    def __call__(self, source: Sequence[int], target: Sequence[int]) -> Halves | None:
        """The halves, if this pair is drawn and can be split."""
        if float(torch.rand(())) >= self.rate:
            return None
        cuts = [_middle(side, begins) for side, begins in zip((source, target), self.begins, strict=True)]
        if 0 in cuts:
            return None
        parts = [(list(side[:cut]), list(side[cut:])) for side, cut in zip((source, target), cuts, strict=True)]
        return Halves(*parts)


def _middle(sentence: Sequence[int], begins: Sequence[bool]) -> int:
    """The beginning of a word nearest to the middle; 0 if a half would be too short."""
    places = [i for i in range(SHORTEST, len(sentence) - SHORTEST + 1) if begins[sentence[i]]]
    return min(places, key=lambda place: abs(2 * place - len(sentence)), default=0)


# ---- Those that a recipe chooses ----


class Lessons(NamedTuple):
    focus: Focus | None = None
    word_dropout: WordDropout | None = None
    choices: Choices | None = None
    split_pairs: SplitPairs | None = None

    @classmethod
    def of(
        cls,
        step: DocumentStepConfig,
        source: Subwords,
        target: Subwords,
        documents: TokenStore,
        rule: ContextRule | None,
    ) -> Lessons:
        """`documents`: those of the training; `rule`: what the model sees of them."""
        if step.split_pairs and rule is not None and rule.spec.following:
            raise DocnmtError(
                "document.split_pairs only makes context before a sentence, but this model also reads sentences after "
                "it\n  Set context.following = 0, or leave split_pairs out."
            )
        counts = None
        if step.choices and step.choice_balance:
            counts = np.bincount(documents.tokens["target"], minlength=len(target))
        return cls(
            Focus(step.focus, step.focus_weight, step.focus_only, target) if step.focus else None,
            WordDropout(step.word_dropout, step.word_dropout_of, source) if step.word_dropout else None,
            Choices(step.choices, step.choice_weight, target, counts) if step.choices else None,
            SplitPairs(step.split_pairs, source, target) if step.split_pairs and rule is not None else None,
        )


NO_LESSONS = Lessons()
