"""The layouts of public contrastive sets, recognised by their content and turned into docnmt's
own fields.

docnmt     JSON lines (contrastive_items.py)
contrapro  ContraPro (Müller et al. 2018) and the English-French sets of Lopes et al. (2020): a JSON list; the contexts
           are in the documents that it was made from
bawden     Bawden et al. (2018), anaphora and lexical choice: a JSON object of blocks
voita      Voita et al. (2019), consistency: a JSON list of passages
ctxpro     Wicks and Post (2023), "Identifying Context-Dependent Translations for Evaluation Set Production": a JSON
           list of sentences, each with the word that its translation must have (`expected`) and no wrong candidates, so
           that a model can only be asked to translate; the contexts are in a text file beside it
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from difflib import SequenceMatcher
from typing import Any

from docnmt.base.errors import BadInput, DocnmtError
from docnmt.base.lines import InputFile
from docnmt.evaluation.contrastive_items import (
    Item,
    ItemPlace,
    at_least_one,
    in_documents,
    in_inputs,
    item_from,
    read_items,
)

# What the beginning of a file has: its first character, and a key. The first that fits counts.
_MARKS = {
    "ctxpro": ("[", '"expected"'),
    "contrapro": ("[", '"src segment"'),
    "voita": ("[", '"true_ind"'),
    "bawden": ("{", '"trg"'),
    "docnmt": ("{", ""),
}
LAYOUTS = ("docnmt", "contrapro", "bawden", "voita", "ctxpro")

_SENTENCE_END = re.compile(r"\s*(?<!\S)_eos(?!\S)\s*")  # what stands between the sentences of a passage
_CONTROLS = re.compile(r"[\x00-\x1f\x7f-\x9f]+")  # line ends and tabs among them; subtitles have others, too
_SPACED = re.compile(r"(\s*)(\S)")  # a letter with the space before it
_ELIDED = re.compile(r"(?<=\w['’])\s(?=\w)")  # the space that a tokenizer puts after an elided word

_COPY = "Copy the file again, or name its layout with --layout."

Fields = dict[str, Any]


def read_set(
    path: str,
    *,
    layout: str = "",
    context_from: Sequence[str] = (),
    languages: tuple[str, str] = ("", ""),
) -> list[Item]:
    """The items of a set.

    `context_from` names what holds the contexts where the set does not: for contrapro a folder or
    corpus of documents, for ctxpro the file of inputs. `languages` are the endings of the files in
    such a folder.
    """
    with InputFile(path) as file:
        layout = layout or _layout_of(file)
        if layout not in LAYOUTS:
            raise DocnmtError(f"unknown layout {layout!r}\n  Use one of {', '.join(LAYOUTS)}.")
        if context_from and layout not in ("contrapro", "ctxpro"):
            raise DocnmtError(
                f"{path}: sets with the layout {layout} contain their contexts\n  Leave out --context-from."
            )
        if layout == "docnmt":
            return read_items(file)
        name, records = file.name, _records(file, layout)
        phenomenon = re.sub(r"_(test|dev)$", "", file.stem)
    if layout == "bawden":
        return _items(_bawden_examples(records, name), name, lambda example, _: example)
    if layout == "voita":
        return _items(records, name, lambda record, number: _voita(record, number, phenomenon))
    items = _items(records, name, _contrapro if layout == "contrapro" else _ctxpro)
    if not context_from:
        return items
    if layout == "ctxpro":
        return in_inputs(items, name, context_from)
    segments = [_segment(record, ItemPlace(name, item=number)) for number, record in enumerate(records, 1)]
    return in_documents(items, segments, name, context_from, languages)


def _layout_of(file: InputFile) -> str:
    head = file.head().lstrip("\ufeff \t\r\n")
    for layout, (first, key) in _MARKS.items():
        if head.startswith(first) and key in head:
            return layout
    raise DocnmtError(
        f"{file.name}: the layout of this contrastive set is not recognised\n"
        f"  Give it with --layout, one of {', '.join(LAYOUTS)}."
    )


def _records(file: InputFile, layout: str) -> Any:
    try:
        data = json.loads("".join(file.chunks()))
    except (ValueError, RecursionError) as error:
        line = getattr(error, "lineno", None)
        raise BadInput(
            "bad JSON", f"not valid JSON: {error}", "Copy the file again.", file=file.name, line=line
        ) from None
    kind, words = (dict, "an object of blocks") if layout == "bawden" else (list, "a list of items")
    if not isinstance(data, kind):
        raise BadInput("bad JSON", f"not {words}", "Give its layout with --layout.", file=file.name)
    return data


def _items(records: Sequence[Any], name: str, fields: Callable[[Any, int], Fields]) -> list[Item]:
    items = []
    for number, record in enumerate(records, 1):
        place = ItemPlace(name, item=number)
        with _laid_out(place):
            found = fields(record, number)
        items.append(item_from(found, place))
    return at_least_one(items, name)


@contextmanager
def _laid_out(place: ItemPlace, block: str = "") -> Iterator[None]:
    try:
        yield
    except (LookupError, TypeError, AttributeError) as error:
        raise place.bad(f"{block}does not have the expected structure ({error!r})", _COPY) from None


# ---- passages: Bawden, Voita ----


def _passages(source: list[str], right: list[str], wrong: list[list[str]]) -> Fields:
    """What all candidates begin with is context; scored is the rest, the last sentence at least.

    For a model that does not see the target side of the context this changes no decision: sentences
    that are the same in all candidates add the same to each.
    """
    shared = 0
    while shared < len(source) - 1 and all(other[shared : shared + 1] == right[shared : shared + 1] for other in wrong):
        shared += 1
    return {
        "previous": source[:shared],
        "source": source[shared:],
        "previous_target": right[:shared],
        "right": right[shared:],
        "wrong": [other[shared:] for other in wrong],
    }


def _bawden_examples(blocks: Mapping[str, Any], name: str) -> list[Fields]:
    examples = []
    for block, content in blocks.items():
        with _laid_out(ItemPlace(name), f"block {block}: "):
            for kind, source, right, wrong in _bawden_block(content):
                passages = _passages(_lines(source), _lines(right), [_lines(wrong)])
                examples.append({"document": block, "phenomenon": kind, "distance": 1, **passages})
    return examples


def _bawden_block(content: Mapping[str, Any]) -> Iterator[tuple[str, list[str], list[str], list[str]]]:
    """Phenomenon, source, right and wrong translation. A block of the anaphora set has one source
    and several translations of it, a block of the lexical choice set several examples with a source
    each.

    "Semi-correct" is the set's word for a pronoun that agrees with an antecedent which is not the
    best translation itself; the set's own script counts it as right, under a heading of its own.
    """
    if "examples" in content:
        kind = content.get("type") or "lexical choice"
        for example in content["examples"]:
            yield kind, example["src"], example["trg"]["correct"], example["trg"]["incorrect"]
    else:
        for target in content["trg"]:
            degree = "correct" if "correct" in target else "semi-correct"
            kind = target["type"] if degree == "correct" else f"{target['type']}, {degree}"
            yield kind, content["src"], target[degree], target["incorrect"]


def _lines(texts: Sequence[str]) -> list[str]:
    if isinstance(texts, str):
        raise TypeError(f"{texts!r} instead of a list of sentences")
    return [_line(text) for text in texts]


def _line(text: str) -> str:
    return _CONTROLS.sub(" ", text).strip()


def _voita(record: Mapping[str, Any], number: int, phenomenon: str) -> Fields:
    *candidates, source = (_SENTENCE_END.split(_line(text)) for text in (*record["dst"], record["src"]))
    true = record["true_ind"]
    if not 0 <= true < len(candidates):
        raise IndexError(f"true_ind {true} of {len(candidates)} candidates")
    right = candidates.pop(true)
    return {
        "document": str(number),
        "phenomenon": phenomenon,
        "distance": record.get("ctx_dist"),
        **_passages(source, right, candidates),
    }


# ---- single sentences: ContraPro, ctxpro ----


def _contrapro(record: Mapping[str, Any], _: int) -> Fields:
    errors = record["errors"]
    wrong = [_line(error["contrastive"]) for error in ([errors] if isinstance(errors, dict) else errors)]
    right = _line(record["ref segment"])
    return {
        "document": record["document id"],
        "phenomenon": f"{record['src pronoun'].lower()}:{record['ref pronoun'].lower()}",
        "distance": _distance(record),
        "source": _line(record["src segment"]),
        # Lopes et al. have the reference tokenised, the wrong ones not: spaces alone would tell
        # them apart.
        "right": _spaced_like(wrong[0], right) if wrong else right,
        "wrong": wrong,
    }


def _ctxpro(record: Mapping[str, Any], _: int) -> Fields:
    return {
        "document": record["document id"],
        "phenomenon": record["rule"],
        "distance": _distance(record),
        "source": " ".join(record["src segment"].split()),
        "right": " ".join(record["ref segment"].split()),
        "wrong": [],
        "expected": record["expected"],
    }


def _distance(record: Mapping[str, Any]) -> int | None:
    distance = record.get("ante distance")
    return None if distance is None or distance < 0 else distance


def _spaced_like(model: str, text: str) -> str:
    """A tokenised sentence with another one's spaces, or none, beside its marks of punctuation.
    Between words a tokenizer changes nothing."""
    theirs, ours = _SPACED.findall(model), _SPACED.findall(text)
    alike = SequenceMatcher(None, [letter for _, letter in ours], [letter for _, letter in theirs], autojunk=False)
    for kind, here, end, there, _ in alike.get_opcodes():
        # Of what stands in the place of something else, the first letter comes after the same
        # space.
        for k in range(end - here if kind == "equal" else kind == "replace"):
            (space, letter), before = ours[here + k], ours[here + k - 1][1]
            if space and here + k and there + k and not (before + letter).isalnum():
                ours[here + k] = theirs[there + k][0], letter
    spaced = "".join(space + letter for space, letter in ours).strip()
    return spaced if _ELIDED.search(model) else _ELIDED.sub("", spaced)


def _segment(record: Mapping[str, Any], place: ItemPlace) -> int:
    segment = record.get("segment id")
    if not isinstance(segment, int) or segment < 0:
        raise place.bad("'segment id' is not a number", _COPY)
    return segment
