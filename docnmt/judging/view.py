"""What a judge is shown of a sentence. Of the systems it tells nothing but their words: no names, no order, no ids."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from docnmt.judging.differences import Part, differences
from docnmt.judging.sampling import Place, Sample


def progress(sample: Sample, choices: Mapping[Place, str]) -> dict[str, Any]:
    """How far a judge is; `next` is the number, from 1, of the first question still to be answered."""
    numbers = (number for number, place in enumerate(sample.questions, 1) if place not in choices)
    return {"questions": len(sample.questions), "judged": len(choices), "next": next(numbers, None)}


def question(
    sample: Sample, number: int, first_systems: tuple[int, ...], choices: Mapping[Place, str]
) -> dict[str, Any]:
    """One sentence with its document around it: of the translations, what stands before it."""
    place = sample.questions[number - 1]
    document = sample.documents[place.document]
    here, first = place.position, first_systems[place.document]
    one, other = document.outputs[first], document.outputs[1 - first]
    pairs = [differences(*pair) for pair in zip(one[: here + 1], other[: here + 1], strict=True)]
    return {
        **progress(sample, choices),
        "question": number,
        "document": place.document + 1,
        "documents": len(sample.documents),
        "sentence": here + 1,
        "sentences": len(document.source),
        "source": {
            "before": document.source[:here],
            "sentence": document.source[here],
            "after": document.source[here + 1 :],
        },
        "first": _translation([pair[0] for pair in pairs]),
        "second": _translation([pair[1] for pair in pairs]),
        "choice": choices.get(place),
    }


def _translation(sentences: list[tuple[Part, ...]]) -> dict[str, Any]:
    return {"before": sentences[:-1], "sentence": sentences[-1]}
