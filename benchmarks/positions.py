"""What another table of positions does to a trained model: Vaswani's for Marian's, or the other way round.

    python benchmarks/positions.py MODEL TEST [--width 512] [--first 300]

The sinusoids of the two differ in how far apart their frequencies are, by less the wider the model is. Hugging Face
transformers computes Marian's models with Vaswani's table. With --width the model gets frequencies shifted by as
much as the tables of a model of that width are apart: every frequency of a model 256 wide is one of a model
512 wide, too, and is shifted there by half as much.
"""

from __future__ import annotations

import argparse
import itertools
import math

import torch

import docnmt
from docnmt.base.lines import CorpusFiles
from docnmt.corpus.read import read_corpus
from docnmt.model import layers


def shifted(width: int, as_wide: int, kind: str, length: int) -> torch.Tensor:
    """The table of a model `width` wide, with every frequency where a model `as_wide` wide has it."""
    if as_wide % width:
        raise SystemExit(f"--width must be a multiple of the model's width, {width}")
    span = as_wide if kind == "vaswani" else as_wide - 2
    rates = torch.exp(torch.arange(0, as_wide, 2 * as_wide // width) * (-math.log(10000.0) / span))
    angles = torch.arange(length, dtype=torch.float32)[:, None] * rates
    return torch.cat([angles.sin(), angles.cos()], dim=1)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model")
    parser.add_argument("test", help="parallel documents")
    parser.add_argument("--width", type=int, default=0, help="as in a model so wide (default: the model's own width)")
    parser.add_argument("--first", type=int, default=300, help="sentences (default 300)")
    options = parser.parse_args()
    pairs = [(s, t) for d in read_corpus(CorpusFiles(options.test)) for s, t in zip(d.source, d.target, strict=True)]
    source, target = (list(side) for side in zip(*itertools.islice(pairs, options.first), strict=True))
    document = docnmt.ParallelDocument("test", source, target)
    scores, texts = [], []
    for other in (False, True):
        layers._tables.clear()
        translator = docnmt.load(options.model, device="cpu")
        model = translator.model
        width = model.model_config.width
        if other:
            kind = "marian" if model.source_embedding.positions == "vaswani" else "vaswani"
            table = shifted(width, options.width or width, kind, 4096)
            layers._tables[width, torch.device("cpu"), model.source_embedding.positions] = table
        scores.append([sentence.total for sentence in next(iter(translator.score([document])))])
        texts.append(translator.translate(source, beam=1, context="off"))
    apart = [abs(a - b) for a, b in zip(*scores, strict=True)]
    same = sum(a == b for a, b in zip(*texts, strict=True))
    print(f"{len(apart)} sentences, {kind}'s table for the model's own, frequencies {options.width or width} wide")
    print(f"log-probability of a reference: {sum(apart) / len(apart):.3f} nats apart, at most {max(apart):.3f};")
    print(f"of all together {sum(scores[0]):,.1f} and {sum(scores[1]):,.1f}")
    print(f"greedy translations equal: {same} of {len(apart)}")


if __name__ == "__main__":
    main()
