"""The best continuations of hypotheses among all words of a large vocabulary, in few passes over it."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor

from docnmt.engine.native import accelerator

BLOCK = 64  # words


def best_continuations(logits: Tensor, scores: Tensor, count: int) -> tuple[Tensor, Tensor, Tensor]:
    """logits [sentences x beam, words] of the next word, scores [sentences, beam] of the hypotheses so far -> for each
    sentence, best first, the best log-probabilities, [sentences, count], the hypotheses they continue, and the words.
    """
    count = min(count, scores.shape[1] * logits.shape[1])
    plain = logits.device.type == "cpu" and logits.dtype == scores.dtype == torch.float32
    fast = accelerator() if plain else None
    return in_torch(logits, scores, count) if fast is None else fast.continuations(logits, scores, count)


def in_torch(logits: Tensor, scores: Tensor, count: int) -> tuple[Tensor, Tensor, Tensor]:
    """The best words lie in the blocks of words whose own best is best: all others are looked at once."""
    (sentences, beam), words = scores.shape, logits.shape[1]
    values = logits.log_softmax(dim=1)
    if words % BLOCK:
        values = F.pad(values, (0, -words % BLOCK), value=float("-inf"))
    blocks = values.unflatten(1, (-1, BLOCK))  # [rows, blocks, BLOCK]
    before = scores.flatten()[:, None]  # [rows, 1]
    best = (blocks.amax(dim=2) + before).view(sentences, -1)  # [sentences, beam x blocks]
    chosen = best.topk(min(count, best.shape[1]), dim=1).indices  # [sentences, blocks]
    chosen += chosen.new_tensor(range(sentences))[:, None] * best.shape[1]
    row = chosen // blocks.shape[1]
    totals = blocks.reshape(-1, BLOCK).index_select(0, chosen.flatten()).view(*chosen.shape, BLOCK)
    totals = (totals + before[row]).flatten(1)  # [sentences, blocks x BLOCK]
    found, places = totals.topk(count, dim=1)
    block = places // BLOCK
    word = chosen.gather(1, block) % blocks.shape[1] * BLOCK + places % BLOCK
    return found, row.gather(1, block) % beam, word.clamp_(max=words - 1)  # beyond lies what nothing comes of
