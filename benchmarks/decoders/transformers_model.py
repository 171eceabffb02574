"""A sentence model as one of Hugging Face transformers, in memory."""

from __future__ import annotations

from typing import Any

from docnmt.data.subwords import PAD
from docnmt.interop.found import HUGGING_FACE, to_theirs
from docnmt.interop.huggingface import config_of
from docnmt.model.transformer import DocumentTransformer
from docnmt.model_folder import weights_of


def as_marian(model: DocumentTransformer, *, begin: int, end: int, pad: int = PAD) -> Any:
    """A MarianMTModel with the same weights, in eval mode; the marks are ids of both vocabularies."""
    from transformers import MarianConfig, MarianMTModel  # slow to import

    words = len(model.source_embedding.weight), len(model.softmax.weight)
    marks = {"bos_token_id": begin, "eos_token_id": end, "forced_eos_token_id": None}
    marks |= {"pad_token_id": pad, "decoder_start_token_id": begin}
    marian = MarianMTModel(MarianConfig(**config_of(model.model_config, *words, marks)))
    marian.load_state_dict(to_theirs(HUGGING_FACE, model.model_config, weights_of(model)), strict=False)
    marian.tie_weights()
    return marian.eval()
