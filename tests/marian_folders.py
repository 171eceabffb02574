"""Tiny models in the layouts of Marian and of Hugging Face, written here by other code than docnmt's."""

from __future__ import annotations

import functools
import io
import json
from pathlib import Path
from typing import Any

import numpy as np
import sentencepiece
import torch

from tests.builders import in_target_language, lines

WORDS = ("no", "on", "1", "y", ": #", "'", '"', "\\", "- ")  # pieces that YAML takes for something else


SIZES = {
    "d_model": 32,
    "encoder_layers": 2,
    "decoder_layers": 1,
    "encoder_attention_heads": 4,
    "decoder_attention_heads": 4,
    "encoder_ffn_dim": 48,
    "decoder_ffn_dim": 48,
    "max_position_embeddings": 64,
}
OPUS = {  # OPUS-MT's own
    "d_model": 512,
    "encoder_layers": 6,
    "decoder_layers": 6,
    "encoder_attention_heads": 8,
    "decoder_attention_heads": 8,
    "encoder_ffn_dim": 2048,
    "decoder_ffn_dim": 2048,
    "max_position_embeddings": 512,
}


@functools.cache
def sentencepiece_model(side: str) -> bytes:
    text = lines(300, seed=1)
    text = text if side == "source" else list(in_target_language(text))
    model = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter([*text, "no on 1 y"]),
        model_writer=model,
        model_type="unigram",
        vocab_size=60,
        hard_vocab_limit=False,
        minloglevel=2,
    )
    return model.getvalue()


def pieces_of(side: str) -> list[str]:
    processor = sentencepiece.SentencePieceProcessor(model_proto=sentencepiece_model(side))
    return [processor.id_to_piece(i) for i in range(processor.get_piece_size())]


def joint_vocabulary(*more: str) -> list[str]:
    """Both sides' pieces sorted, so that no SentencePiece model numbers them so; the marks are somewhere in it."""
    found = {*pieces_of("source"), *pieces_of("target"), *WORDS, *more}
    return sorted(found)


def vocabularies(tie: str, *more: str) -> tuple[list[str], list[str]]:
    """Two of one size, as transformers needs them: its `<pad>` has one number on both sides."""
    if tie == "all":
        return (joint_vocabulary(*more),) * 2
    source, target = pieces_of("source"), pieces_of("target")
    return source[: len(target)], target[: len(source)]


def huggingface_model(
    tie: str = "all", activation: str = "swish", more: tuple[str, ...] = (), noise: float = 0.15, **sizes: int
) -> Any:
    """A random MarianMTModel whose every parameter matters, `<pad>` all zeros as the converter leaves it."""
    from transformers import MarianConfig, MarianMTModel

    source, target = vocabularies(tie, *more)
    config = MarianConfig(
        vocab_size=len(source) + 1,
        decoder_vocab_size=len(target) + 1,
        share_encoder_decoder_embeddings=tie == "all",
        tie_word_embeddings=tie != "none",
        **(SIZES | sizes),
        activation_function=activation,
        scale_embedding=True,
        pad_token_id=len(target),
        decoder_start_token_id=len(target),
        eos_token_id=target.index("</s>"),
        forced_eos_token_id=None,
        bad_words_ids=None,
    )
    torch.manual_seed(0)
    model = MarianMTModel(config)
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if "embed_positions" not in name:
                parameter += noise * torch.randn_like(parameter)
        model.final_logits_bias.copy_(torch.randn_like(model.final_logits_bias))
        model.final_logits_bias[0, -1] = 0
        model.final_logits_bias[0, target.index("</s>")] += 4.0  # so that translations end
        for table in {*(model.model.encoder.embed_tokens.weight, model.model.decoder.embed_tokens.weight)}:
            table[-1] = 0
        model.lm_head.weight[-1] = 0
    return model.eval()


def write_huggingface(
    folder: Path, tie: str = "all", activation: str = "swish", more: tuple[str, ...] = (), **options: Any
) -> Any:
    """The folder as transformers writes it; returns the model."""
    model = huggingface_model(tie, activation, more, **options)
    model.generation_config.num_beams, model.generation_config.bad_words_ids = 6, [[model.config.pad_token_id]]
    model.save_pretrained(folder)
    names = ("vocab.json", "target_vocab.json")
    for name, pieces in list(zip(names, vocabularies(tie, *more), strict=True))[: 1 if tie == "all" else 2]:
        table = {piece: i for i, piece in enumerate([*pieces, "<pad>"])}
        (folder / name).write_text(json.dumps(table), encoding="utf-8")
    for side in ("source", "target"):
        (folder / f"{side}.spm").write_bytes(sentencepiece_model(side))
    languages = {"source_lang": "fr", "target_lang": "en", "separate_vocabs": tie != "all"}
    (folder / "tokenizer_config.json").write_text(json.dumps(languages), encoding="utf-8")
    return model


def write_marian(
    folder: Path,
    model: Any,
    tie: str = "all",
    vocabulary: str = ".vocab.yml",
    more: tuple[str, ...] = (),
    changes: dict[str, str] | None = None,
) -> Path:
    """The same model as Marian writes it, `<pad>` left out; `changes` of its settings. Returns the .npz."""
    folder.mkdir(parents=True, exist_ok=True)
    config, state = model.config, {name: value.numpy() for name, value in model.state_dict().items()}
    arrays = {"decoder_ff_logit_out_b": state["final_logits_bias"][:, :-1]}
    if tie == "all":
        arrays["Wemb"] = state["model.shared.weight"][:-1]
    else:
        arrays["encoder_Wemb"] = state["model.encoder.embed_tokens.weight"][:-1]
        arrays["decoder_Wemb"] = state["model.decoder.embed_tokens.weight"][:-1]
    if tie == "none":
        arrays["decoder_ff_logit_out_Wt"] = state["lm_head.weight"][:-1]
    attentions = {"self": "self_attn", "context": "encoder_attn"}
    for side, depth in (("encoder", config.encoder_layers), ("decoder", config.decoder_layers)):
        for n in range(depth):
            here, there = f"{side}_l{n + 1}", f"model.{side}.layers.{n}"
            for name, theirs in list(attentions.items())[: 1 if side == "encoder" else 2]:
                for letter, projection in zip("qkvo", ("q_proj", "k_proj", "v_proj", "out_proj"), strict=True):
                    arrays[f"{here}_{name}_W{letter}"] = state[f"{there}.{theirs}.{projection}.weight"].T
                    arrays[f"{here}_{name}_b{letter}"] = state[f"{there}.{theirs}.{projection}.bias"][None]
                arrays[f"{here}_{name}_Wo_ln_scale"] = state[f"{there}.{theirs}_layer_norm.weight"][None]
                arrays[f"{here}_{name}_Wo_ln_bias"] = state[f"{there}.{theirs}_layer_norm.bias"][None]
            for number in "12":
                arrays[f"{here}_ffn_W{number}"] = state[f"{there}.fc{number}.weight"].T
                arrays[f"{here}_ffn_b{number}"] = state[f"{there}.fc{number}.bias"][None]
            arrays[f"{here}_ffn_ffn_ln_scale"] = state[f"{there}.final_layer_norm.weight"][None]
            arrays[f"{here}_ffn_ffn_ln_bias"] = state[f"{there}.final_layer_norm.bias"][None]
    settings = {
        "dim-emb": config.d_model,
        "dec-depth": config.decoder_layers,
        "enc-depth": config.encoder_layers,
        "dim-vocabs": f"\n  - {config.vocab_size - 1}\n  - {config.decoder_vocab_size - 1}",
        "input-types": "\n  []",
        "tied-embeddings": str(tie == "target").lower(),
        "tied-embeddings-all": str(tie == "all").lower(),
        "transformer-decoder-autoreg": "self-attention",
        "transformer-dim-ffn": config.encoder_ffn_dim,
        "transformer-ffn-activation": config.activation_function,
        "transformer-ffn-depth": 2,
        "transformer-heads": config.encoder_attention_heads,
        "transformer-postprocess": "dan",
        "transformer-preprocess": '""',
        "transformer-train-position-embeddings": "true",  # without the parameter it means nothing
        "type": "transformer",
    } | (changes or {})
    text = "\n".join(f"{key}: {value}" for key, value in settings.items())
    arrays["special:model.yml"] = np.frombuffer(text.encode() + b"\0" * 7, np.int8)
    file = folder / "model.npz"
    np.savez(file, **arrays)
    names = _write_vocabularies(folder, tie, vocabulary, more)
    for side in ("source", "target"):
        (folder / f"{side}.spm").write_bytes(sentencepiece_model(side))
    decoder = f"relative-paths: true\nmodels:\n  - model.npz\nvocabs:\n  - {names[0]}\n  - {names[1]}\n"
    (folder / "decoder.yml").write_text(f"{decoder}beam-size: 3\nnormalize: 0.8\nword-penalty: 0\n")
    return file


def _write_vocabularies(folder: Path, tie: str, kind: str, more: tuple[str, ...]) -> list[str]:
    names = ["joint" + kind] * 2 if tie == "all" else [f"{side}{kind}" for side in ("src", "trg")]
    for name, pieces in zip(names, vocabularies(tie, *more), strict=True):
        if kind == ".vocab":
            text = "".join(f"{piece}\n" for piece in pieces)
        else:
            quoted = {piece: json.dumps(piece) if set(piece) & set(":#'\"\\- ") else piece for piece in pieces}
            text = "".join(f"{quoted[piece]}: {i}\n" for i, piece in enumerate(pieces))
        (folder / name).write_text(text, encoding="utf-8")
    return names
