"""What the demo corpus is made of: documents, and the words in them that need context."""

from __future__ import annotations

from dataclasses import dataclass

from docnmt.document import ParallelDocument

PHENOMENA = ("sense", "pronoun", "possessive", "cohesion", "emotion")


@dataclass(frozen=True, slots=True)
class ContextWord:
    """One context-dependent word of one target sentence."""

    position: int  # of the sentence in its document
    phenomenon: str  # one of PHENOMENA
    distance: int  # how many sentences back the cue is: 1 or 2
    right: str  # as it stands in the target: "lawyer", "He"
    wrong: tuple[str, ...]  # what would fit as well without context: ("avocado",)


@dataclass(frozen=True, slots=True)
class DemoDocument:
    """A document with its context-dependent words."""

    document: ParallelDocument
    words: tuple[ContextWord, ...]
    # For each word, the whole target sentence with each wrong word in its place.
    wrong_targets: tuple[tuple[str, ...], ...]
    # For each sentence, the id of its frame.
    frames: tuple[str, ...]
