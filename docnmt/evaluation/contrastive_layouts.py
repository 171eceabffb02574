"""The layouts public contrastive sets come in, told apart by their content, turned into docnmt's own fields.

docnmt     JSON lines (contrastive_items.py)
contrapro  ContraPro (Müller et al. 2018) and the English-French sets of Lopes et al. (2020): a JSON list; the contexts
           are in the documents
bawden     Bawden et al. (2018), anaphora and lexical choice: a JSON object of blocks
voita      Voita et al. (2019), consistency: a JSON list of passages
ctxpro     ctxpro (Wicks and Post 2023): a JSON list that names the word a translation must have (contrastive_ctxpro.py)
"""

from __future__ import annotations

import json
import re
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from difflib import SequenceMatcher
from functools import partial
from typing import Any

from docnmt.base.errors import BadInput, DocnmtError
from docnmt.base.lines import InputFile
from docnmt.evaluation.contrastive_ctxpro import ctxpro_fields, with_contexts
from docnmt.evaluation.contrastive_items import (
    KEPT,
    Excerpt,
    Item,
    Place,
    at_least_one,
    excerpts,
    item_from,
    read_items,
)
from docnmt.text.words import letters

LAYOUTS = ("docnmt", "contrapro", "bawden", "voita", "ctxpro")

_SENTENCE_END = re.compile(r"\s*(?<!\S)_eos(?!\S)\s*")  # between the sentences of a passage
_CONTROLS = re.compile(r"[\x00-\x1f\x7f-\x9f]+")  # line ends and tabs among them; subtitles have others, too
_SPACED = re.compile(r"(\s*)(\S)")  # a letter with the space before it
_ELIDED = re.compile(r"(?<=\w['’])\s(?=\w)")  # the space that a tokenizer puts after an elided word

_COPY = "Copy the file again, or name its layout."

_STRAYED = 0.05  # the share of items that may not stand in the documents where they say: more are other documents

Fields = dict[str, Any]
_Example = tuple[str, str, list[str], list[str], list[str]]  # block, phenomenon, source, right, wrong


def read_set(
    path: str,
    *,
    layout: str = "",
    context_from: Sequence[str] = (),
    languages: tuple[str, str] = ("", ""),
) -> list[Item]:
    """The items of a set.

    `context_from` names what holds the contexts where the set does not: for contrapro a folder or corpus of documents,
    for ctxpro the file of inputs. `languages` are the endings of the files in such a folder.
    """
    with InputFile(path) as file:
        layout = layout or _layout_of(file)
        if layout not in LAYOUTS:
            raise DocnmtError(f"unknown layout {layout!r}\n  Use one of {', '.join(LAYOUTS)}.")
        if context_from and layout not in ("contrapro", "ctxpro"):
            raise DocnmtError(
                f"{path}: the layout {layout} has its contexts in the set itself\n  Leave out --context-from."
            )
        if layout == "docnmt":
            return read_items(file)
        data = _json(file)
        if layout == "contrapro":
            return _contrapro(_list(data, file.name), file.name, context_from, languages)
        if layout == "ctxpro":
            return with_contexts(_items(_list(data, file.name), file.name, ctxpro_fields), file.name, context_from)
        if layout == "voita":
            phenomenon = re.sub(r"_(test|dev)$", "", file.stem)
            return _items(_list(data, file.name), file.name, partial(_voita_fields, phenomenon))
        return _items(_bawden_examples(data, file.name), file.name, _bawden_fields)


def _layout_of(file: InputFile) -> str:
    head = file.head().lstrip("\ufeff \t\r\n")
    if head.startswith("[") and '"expected"' in head:
        return "ctxpro"
    if head.startswith("[") and '"src segment"' in head:
        return "contrapro"
    if head.startswith("[") and '"true_ind"' in head:
        return "voita"
    if head.startswith("{") and '"trg"' in head:
        return "bawden"
    if head.startswith("{"):
        return "docnmt"
    raise DocnmtError(
        f"{file.name}: cannot tell what contrastive set this is\n  Name its layout, one of {', '.join(LAYOUTS)}."
    )


def _json(file: InputFile) -> Any:
    try:
        return json.loads("".join(file.chunks()))
    except (ValueError, RecursionError) as error:
        line = getattr(error, "lineno", None)
        raise BadInput("bad JSON", f"not JSON: {error}", "Copy the file again.", file=file.name, line=line) from None


def _list(data: Any, name: str) -> list[Any]:
    if not isinstance(data, list):
        raise BadInput("bad JSON", "not a list of items", "Name the layout the set has.", file=name)
    return data


def _items(records: Sequence[Any], name: str, fields: Callable[[Any, int], Fields]) -> list[Item]:
    items = []
    for number, record in enumerate(records, 1):
        place = Place(name, item=number)
        try:
            found = fields(record, number)
        except (LookupError, TypeError, AttributeError) as error:
            raise place.bad(f"not as the layout has it ({error!r})", _COPY) from None
        items.append(item_from(found, place))
    return at_least_one(items, name)


# ---- passages: Bawden, Voita ----


def _passages(source: list[str], right: list[str], wrong: list[list[str]]) -> Fields:
    """What all candidates begin with is context; scored is the rest, the last sentence at least.

    For a model that does not see the target side of the context this changes no decision: sentences that are the same
    in all candidates add the same to each.
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


def _bawden_examples(data: Any, name: str) -> list[_Example]:
    if not isinstance(data, dict):
        raise BadInput("bad JSON", "not an object of blocks", "Name the layout the set has.", file=name)
    examples: list[_Example] = []
    for block, content in data.items():
        try:
            examples += _block(block, content)
        except (LookupError, TypeError, AttributeError) as error:
            raise Place(name).bad(f"block {block}: not as the layout has it ({error!r})", _COPY) from None
    return examples


def _block(block: str, content: Mapping[str, Any]) -> Iterator[_Example]:
    """A block of the anaphora set has one source and several translations of it, a block of the lexical choice set
    several examples with a source each.

    "Semi-correct" is the set's word for a pronoun that agrees with an antecedent which is not the best translation
    itself; the set's own script counts it as right, under a heading of its own.
    """
    if "examples" in content:
        for example in content["examples"]:
            target = example["trg"]
            kind = content.get("type") or "lexical choice"
            yield block, kind, example["src"], target["correct"], target["incorrect"]
    else:
        for target in content["trg"]:
            degree = "correct" if "correct" in target else "semi-correct"
            kind = target["type"] if degree == "correct" else f"{target['type']}, {degree}"
            yield block, kind, content["src"], target[degree], target["incorrect"]


def _bawden_fields(example: _Example, _: int) -> Fields:
    block, kind, source, right, wrong = example
    passages = _passages(_lines(source), _lines(right), [_lines(wrong)])
    return {"document": block, "phenomenon": kind, "distance": 1, **passages}


def _voita_fields(phenomenon: str, record: Mapping[str, Any], number: int) -> Fields:
    candidates = [_SENTENCE_END.split(_line(text)) for text in record["dst"]]
    true = record["true_ind"]
    if not 0 <= true < len(candidates):
        raise IndexError(f"true_ind {true} of {len(candidates)} candidates")
    right = candidates.pop(true)
    return {
        "document": str(number),
        "phenomenon": phenomenon,
        "distance": record.get("ctx_dist"),
        **_passages(_SENTENCE_END.split(_line(record["src"])), right, candidates),
    }


# ---- ContraPro ----


def _contrapro(records: list[Any], name: str, context_from: Sequence[str], languages: tuple[str, str]) -> list[Item]:
    items = _items(records, name, _contrapro_fields)
    if not context_from:
        return items
    segments = [_segment(record, Place(name, item=number)) for number, record in enumerate(records, 1)]
    wanted: dict[str, list[int]] = {}
    for item, segment in zip(items, segments, strict=True):
        wanted.setdefault(item.document, []).append(segment)
    found = excerpts(context_from, wanted, languages)
    around = [found[item.document, segment] for item, segment in zip(items, segments, strict=True)]
    # ContraPro counts the segments of a document from 1, Lopes et al. from 0: the source sentences tell.
    triples = list(zip(items, segments, around, strict=True))
    fits = {base: [_stands_at(item, number - base, text) for item, number, text in triples] for base in (1, 0)}
    base = max(fits, key=lambda base: sum(fits[base]))
    strayed = [number for number, fit in enumerate(fits[base]) if not fit]
    if strayed:
        first = items[strayed[0]]
        problem = f"its source sentence is not segment {segments[strayed[0]]} of document {first.document}"
        if len(strayed) > _STRAYED * len(items):
            remedy = "Take the documents the set was made from (its README names their release)."
            raise Place(name, item=strayed[0] + 1).bad(problem, remedy)
        warnings.warn(
            f"{name}: {len(strayed):,} of {len(items):,} items are not where they say they are and have no context; "
            f"the first is item {strayed[0] + 1}: {problem}",
            stacklevel=2,
        )
    return [
        _in_context(item, number - base, text) if fit else item
        for (item, number, text), fit in zip(triples, fits[base], strict=True)
    ]


def _contrapro_fields(record: Mapping[str, Any], _: int) -> Fields:
    errors = record["errors"]
    distance = record.get("ante distance")
    wrong = [_line(error["contrastive"]) for error in ([errors] if isinstance(errors, dict) else errors)]
    right = _line(record["ref segment"])
    return {
        "document": record["document id"],
        "phenomenon": f"{record['src pronoun'].lower()}:{record['ref pronoun'].lower()}",
        "distance": None if distance is None or distance < 0 else distance,
        "source": _line(record["src segment"]),
        # Lopes et al. have the reference tokenised, the wrong ones not: spaces alone would tell them apart.
        "right": _spaced_like(wrong[0], right) if wrong else right,
        "wrong": wrong,
    }


def _spaced_like(model: str, text: str) -> str:
    """A tokenised sentence with another one's spaces, or none, beside its marks of punctuation. Between words a
    tokenizer changes nothing."""
    theirs, ours = _SPACED.findall(model), _SPACED.findall(text)
    alike = SequenceMatcher(None, [letter for _, letter in ours], [letter for _, letter in theirs], autojunk=False)
    for kind, here, end, there, _ in alike.get_opcodes():
        # Of what stands in the place of something else, the first letter comes after the same space.
        for k in range(end - here if kind == "equal" else kind == "replace"):
            (space, letter), before = ours[here + k], ours[here + k - 1][1]
            if space and here + k and there + k and not (before + letter).isalnum():
                ours[here + k] = theirs[there + k][0], letter
    spaced = "".join(space + letter for space, letter in ours).strip()
    return spaced if _ELIDED.search(model) else _ELIDED.sub("", spaced)


def _segment(record: Mapping[str, Any], place: Place) -> int:
    segment = record.get("segment id")
    if not isinstance(segment, int) or segment < 0:
        raise place.bad("no number under 'segment id'", _COPY)
    return segment


def _stands_at(item: Item, position: int, text: Excerpt) -> bool:
    at = position - text.first
    return 0 <= at < len(text.source) and letters(text.source[at]) == letters(item.source[0])


def _in_context(item: Item, position: int, text: Excerpt) -> Item:
    at = position - text.first
    first = max(0, at - KEPT)
    return replace(
        item,
        position=position,
        previous=text.source[first:at],
        following=text.source[at + 1 : at + 1 + KEPT],
        previous_target=text.target[first:at],
    )


def _line(text: str) -> str:
    return _CONTROLS.sub(" ", text).strip()


def _lines(texts: Sequence[str]) -> list[str]:
    if isinstance(texts, str):
        raise TypeError(f"{texts!r} where a list of sentences should be")
    return [_line(text) for text in texts]
