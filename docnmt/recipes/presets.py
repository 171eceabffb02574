"""What `like = "paper"` and `like = "released"` stand for at the head of a recipe; its own keys come first.

`paper` has what the paper says. `released` adds what its authors' released code does where the paper is silent.
docs/recipes.md lists every value with its source, and a test holds the two together.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

Table = Mapping[str, Any]

_SCHEDULE = {"learning_rate": 1.0, "warmup": 4_000}  # "the policy described by Vaswani et al."

PAPER: Table = {
    "subwords": {"vocabulary": 32_000, "counts": "merges", "shared": False},
    "model": {
        "kind": "transformer",
        "width": 512,
        "filter_width": 2048,
        "heads": 8,
        "encoder_layers": 6,
        "decoder_layers": 6,
        "tie": "none",  # W_o is a parameter of its own
    },
    "context": {
        "kind": "attention",
        "previous": 2,
        "following": 0,
        "representation": "layers",
        "layers": 1,
        "integration": "both",
        "connection": "gate",
        "gate_opening": 0.5,  # the gate has no bias
        "start": "paper",
    },
    # About 24K words of either language in a batch; contexts, which count here, come on top.
    "sentence": {"batch_tokens": 48_000, "corpora": "all", **_SCHEDULE},
    "document": {"batch_tokens": 96_000, "freeze": True, **_SCHEDULE},
    "decoding": {"beam": 4, "length_penalty": 0.6},
    "evaluation": {"metric": "multi-bleu"},
}

_SILENT: Table = {
    "subwords": {"lowercase": True, "tokenized": True},
    "model": {
        "dropout": 0.1,
        "activation": "relu",
        "positions": "marian",  # of tensor2tensor, as Marian's
        "output_bias": False,
        "start": "zero",
    },
    "context": {"embedding_dropout": 0.0, "residual_dropout": 0.1},
    "sentence": {"updates": 100_000, "smoothing": 0.1, "clip": 0.0},
    "document": {"updates": 100_000, "smoothing": 0.1, "clip": 0.0, "learning_rate": 0.1},
    "evaluation": {"tokenized": True},
}


def over(below: Table, above: Table) -> dict[str, Any]:
    """Two tables of sections in one; where both have a key, the second's."""
    found = dict(below)
    for key, value in above.items():
        both = isinstance(value, Mapping) and isinstance(found.get(key), Mapping)
        found[key] = over(found[key], value) if both else value
    return found


PRESETS: dict[str, Table] = {"paper": PAPER, "released": over(PAPER, _SILENT)}
