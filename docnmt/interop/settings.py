"""Marian's settings: the flat YAML that it writes, and what they mean for our model."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping

from docnmt.base.errors import BadInput, DocnmtError
from docnmt.config import ModelConfig

# ---- The YAML that Marian writes: one level of keys, each with a text or a list of texts ----

# Read without types on purpose: a vocabulary has pieces such as `no`, `on` and `1`, which YAML takes for other
# things.

_ESCAPES = {"0": "\0", "a": "\a", "b": "\b", "t": "\t", "n": "\n", "v": "\v", "f": "\f", "r": "\r", "e": "\x1b"}
_ESCAPES |= {"N": "\x85", "_": "\xa0", "L": "\u2028", "P": "\u2029"}
_ESCAPE = re.compile(r"\\(x[0-9a-fA-F]{2}|u[0-9a-fA-F]{4}|U[0-9a-fA-F]{8}|.)")
_PAIR = re.compile(r"([\w.-]+)\s*:(?:\s+(.*))?")

Value = str | list[str]


def read_settings(text: str, file: str) -> dict[str, Value]:
    """`key: value`, or `key:` and lines `- value` below it."""
    found: dict[str, Value] = {}
    key = ""
    for number, line in enumerate(text.split("\n"), 1):
        content = line.strip()
        if not content or content.startswith("#"):
            continue
        if key and (content.startswith("- ") or content == "[]"):
            items = found[key] if isinstance(found[key], list) else []
            assert isinstance(items, list)
            found[key] = items if content == "[]" else [*items, _text(content[2:])]
            continue
        pair = _PAIR.fullmatch(content)
        if pair is None or line[:1].isspace():
            raise _bad(file, number, f"{content[:40]!r} is no setting")
        key = pair[1]
        value = (pair[2] or "").strip()
        if value.startswith("[") and value.endswith("]"):
            found[key] = [_text(item) for item in value[1:-1].split(",") if item.strip()]
        else:
            found[key] = _text(value)
    return found


def read_vocabulary(text: str, file: str) -> list[str]:
    """`piece: id` a line, or `? piece` and `: id` below it -> the pieces in the order of their ids."""
    ids: dict[str, int] = {}
    before = ""
    for number, line in enumerate(text.split("\n"), 1):
        if not line.strip():
            continue
        if line.startswith("? "):
            before = line[2:]
            continue
        line, before = before + line, ""
        key, separator, value = line.rpartition(":")
        if not separator or not value.strip().isdecimal():
            raise _bad(file, number, f"{line[:40]!r} is no piece with its id")
        piece = _text(key)
        if piece in ids:
            raise _bad(file, number, f"the piece {piece!r} is there twice")
        ids[piece] = int(value)
    return by_id(ids, file)


def by_id(ids: dict[str, int], file: str) -> list[str]:
    pieces = sorted(ids, key=ids.__getitem__)
    if [ids[piece] for piece in pieces] != list(range(len(pieces))):
        strange = next((n for n, piece in enumerate(pieces) if ids[piece] != n), 0)
        raise BadInput(
            "vocabulary", f"the ids are not 0, 1, 2 and so on ({strange} is missing or there twice)", _AGAIN, file=file
        )
    return pieces


_AGAIN = "Copy the file again."


def _bad(file: str, line: int, problem: str) -> BadInput:
    return BadInput("YAML", problem, _AGAIN, file=file, line=line)


def _text(scalar: str) -> str:
    """What a scalar stands for, quoted or not."""
    scalar = scalar.strip(" \t")
    if len(scalar) > 1 and scalar[0] == scalar[-1] == '"':
        return _ESCAPE.sub(_unescaped, scalar[1:-1])
    if len(scalar) > 1 and scalar[0] == scalar[-1] == "'":
        return scalar[1:-1].replace("''", "'")
    return scalar


def _unescaped(match: re.Match[str]) -> str:
    found = match[1]
    return chr(int(found[1:], 16)) if len(found) > 1 else _ESCAPES.get(found, found)


# ---- Marian's settings of a model as ours. What ours cannot be is refused with what was found ----

EPSILON = 1e-6  # of Marian's layer norms
FORBIDDEN = ("<unk>",)  # Marian writes it only if it is asked to
LONGEST = 512  # pieces of a sentence; OPUS-MT trained on sentences up to 500

# Settings that change what is computed, and what they have to be; one that is not there has the first value.
_SUPPORTED: dict[str, tuple[str, ...]] = {
    "type": ("transformer",),
    "transformer-preprocess": ("",),
    "transformer-postprocess": ("dan", "an"),
    "transformer-postprocess-emb": ("d", ""),
    "transformer-postprocess-top": ("",),
    "transformer-decoder-autoreg": ("self-attention",),
    "transformer-ffn-depth": ("2",),
    "transformer-decoder-ffn-depth": ("0", "2"),
    "transformer-attention-mask": ("default",),
    "factors-dim-emb": ("0",),
    "lemma-dim-emb": ("0",),
}
_OFF = (
    "right-left",
    "transformer-disable-position-embeddings",
    "transformer-no-affine",
    "transformer-no-bias",
    "transformer-no-projection",
    "transformer-pool",
    "ulr",
)
_EMPTY = ("input-types", "transformer-tied-layers")
_SUMMARY = (
    "Supported are transformers with self-attention in the decoder, norms after each sub-layer (postprocess dan),\n"
    "  two-layer feed-forward networks of one width, relu, swish or gelu, and sinusoidal positions."
)


def model_of(settings: Mapping[str, Value], parameters: Collection[str], where: str) -> ModelConfig:
    """`parameters`: the names of those that the model has."""
    strange = [
        f"{key}: {settings[key]}" for key, known in _SUPPORTED.items() if settings.get(key, known[0]) not in known
    ]
    strange += [f"{key}: true" for key in _OFF if _on(settings, key)]
    strange += [f"{key}: {settings[key]}" for key in _EMPTY if settings.get(key) not in (None, [], "")]
    if "Wpos" in parameters:  # without it the flag for trained positions does nothing
        strange.append("trained position embeddings (Wpos)")
    if len(settings.get("dim-vocabs", [])) != 2:
        strange.append(f"{len(settings.get('dim-vocabs', []))} vocabularies")
    filters = {_setting(settings, "transformer-dim-ffn", where), *_other_filter(settings)}
    if len(filters) > 1:
        strange.append(f"feed-forward networks {' and '.join(sorted(filters))} wide")
    activation = _setting(settings, "transformer-ffn-activation", where)
    if activation not in ("relu", "swish", "gelu"):
        strange.append(f"transformer-ffn-activation: {activation}")
    all_tied = _on(settings, "tied-embeddings-all")
    both_sides, output = _on(settings, "tied-embeddings-src"), _on(settings, "tied-embeddings")
    if both_sides and not output and not all_tied:
        strange.append("tied-embeddings-src without tied-embeddings")
    if strange:
        refuse(where, strange)
    return ModelConfig(
        width=_number(settings, "dim-emb", where),
        filter_width=_number(settings, "transformer-dim-ffn", where),
        heads=_number(settings, "transformer-heads", where),
        encoder_layers=_number(settings, "enc-depth", where),
        decoder_layers=_number(settings, "dec-depth", where),
        tie="all" if all_tied or both_sides else "target" if output else "none",
        max_length=LONGEST,
        activation=activation,
        positions="marian",
        norm_epsilon=EPSILON,
        output_bias=not _on(settings, "output-omit-bias"),
        start="zero",
        search="marian",
        forbidden=FORBIDDEN,
    )


def refuse(where: str, strange: Collection[str]) -> None:
    raise DocnmtError(f"{where}: a model of a kind that cannot be imported ({'; '.join(strange)})\n  {_SUMMARY}")


def settings_of(model: ModelConfig, source_words: int, target_words: int) -> str:
    """What Marian has to know of a model of ours, as the YAML in its file."""
    flags = {
        "output-omit-bias": not model.output_bias,
        "right-left": False,
        "skip": False,
        "tied-embeddings": model.tie == "target",
        "tied-embeddings-all": model.tie == "all",
        "tied-embeddings-src": False,
        "transformer-no-projection": False,
        "transformer-train-position-embeddings": False,
        "layer-normalization": False,
        "ulr": False,
    }
    table: dict[str, object] = {
        "dec-depth": model.decoder_layers,
        "dim-emb": model.width,
        "enc-depth": model.encoder_layers,
        "transformer-decoder-autoreg": "self-attention",
        "transformer-dim-ffn": model.filter_width,
        "transformer-ffn-activation": model.activation,
        "transformer-ffn-depth": 2,
        "transformer-guided-alignment-layer": "last",
        "transformer-heads": model.heads,
        "transformer-postprocess": "dan",
        "transformer-postprocess-emb": "d",
        "transformer-preprocess": '""',
        "transformer-postprocess-top": '""',
        "type": "transformer",
        "version": "v1.12.0",
    }
    table |= {key: str(value).lower() for key, value in flags.items()}
    lines = [f"{key}: {value}" for key, value in table.items()]
    lists = [
        f"dim-vocabs:\n  - {source_words}\n  - {target_words}",
        "input-types:\n  []",
        "transformer-tied-layers:\n  []",
    ]
    return "\n".join(sorted([*lines, *lists]))


def _other_filter(settings: Mapping[str, Value]) -> list[str]:
    """The decoder's, where it is not the encoder's."""
    found = settings.get("transformer-decoder-dim-ffn", "0")
    return [] if found in ("0", []) else [str(found)]


def _on(settings: Mapping[str, Value], key: str) -> bool:
    return settings.get(key) == "true"


def _setting(settings: Mapping[str, Value], key: str, where: str) -> str:
    value = settings.get(key)
    if not isinstance(value, str):
        raise DocnmtError(f"{where}: its settings lack {key}\n  Give a model that Marian wrote.")
    return value


def _number(settings: Mapping[str, Value], key: str, where: str) -> int:
    value = _setting(settings, key, where)
    if not value.isdecimal():
        raise DocnmtError(f"{where}: {key} is {value!r}, which is no number\n  Copy the model again.")
    return int(value)
