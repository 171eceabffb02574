"""RNNsearch of Bahdanau et al. (2015), and the context of Wang et al. (2017) for it, in NumPy: a sentence, a word, a
gate at a time. States are rows; weights are read from a model by name."""

from __future__ import annotations

import numpy as np
from torch import nn

Array = np.ndarray


def sigmoid(x: Array) -> Array:
    return 1 / (1 + np.exp(-x))


def softmax(x: Array) -> Array:
    e = np.exp(x - x.max())
    return e / e.sum()


class Transcription:
    def __init__(self, model: nn.Module):
        self.weights = {name: p.detach().numpy() for name, p in model.named_parameters()}
        self.width = len(self.weights["energy"])

    def linear(self, name: str, x: Array) -> Array:
        return x @ self.weights[f"{name}.weight"].T + self.weights.get(f"{name}.bias", 0.0)

    def embed(self, name: str, words: list[int]) -> Array:
        return self.weights[f"{name}.weight"][words] * np.sqrt(self.width)

    # ---- a GRU ----

    def unit(self, s: Array, of_input: Array, of_state: Array) -> Array:
        """of_input: W x + b and of_state: U s + b, for the reset gate, the update gate and the new state"""
        (w_r, w_z, w_n), (u_r, u_z, u_n) = np.split(of_input, 3), np.split(of_state, 3)
        r, z = sigmoid(w_r + u_r), sigmoid(w_z + u_z)
        return (1 - z) * np.tanh(w_n + r * u_n) + z * s

    def run(self, name: str, inputs: Array, first: Array | None = None, backward: bool = False) -> Array:
        """The state at every input, [inputs, width]"""
        end = "_l0_reverse" if backward else "_l0"
        w, u, b_w, b_u = (
            self.weights[f"{name}.{part}{end}"] for part in ("weight_ih", "weight_hh", "bias_ih", "bias_hh")
        )
        s, states = np.zeros(self.width) if first is None else first, []
        for x in inputs[::-1] if backward else inputs:
            s = self.unit(s, w @ x + b_w, u @ s + b_u)
            states.append(s)
        return np.stack(states[::-1] if backward else states)

    # ---- the model ----

    def summary(self, before: list[list[int]]) -> Array:
        """D"""
        last = [self.run("context_words", self.embed("source_embedding", words))[-1] for words in before]  # S_k
        return self.run("context_sentences", np.stack(last))[-1]

    def states(self, source: list[int], target: list[int], before: list[list[int]] | None = None) -> Array:
        """t_1 ... t_J, with the target from its begin mark on"""
        d = None if before is None else self.summary(before)
        x = self.embed("source_embedding", source)
        firsts: list[Array | None] = [None, None]
        if d is not None:
            firsts = list(np.split(np.tanh(self.linear("context_encoder_start", d)), 2))
        forward, backward = (self.run("encoder", x, firsts[i], backward=i == 1) for i in range(2))
        h = np.concatenate([forward, backward], axis=1)
        s = self.linear("start", backward[0])
        s = np.tanh(s if d is None else s + self.linear("context_decoder_start", d))  # s_0
        found = []
        for e in self.embed("target_embedding", target):
            energies = [
                self.weights["energy"] @ np.tanh(self.linear("query", s) + self.linear("key", h_j)) for h_j in h
            ]
            c = softmax(np.array(energies)) @ h
            inputs = self.linear("word_gates", e) + self.linear("source_gates", c)
            if d is not None:
                # Wang et al.: the gate reads the state before, the last word and the source; in their code D, too.
                of_word, of_document = (
                    self.linear(f"context_gate_of_{what}", x) for what, x in (("word", e), ("document", d))
                )
                z = sigmoid(self.linear("context_gate", np.concatenate([s, c])) + of_word + of_document)
                inputs = inputs + self.linear("context_gates", z * d)
            s = self.unit(s, inputs, self.linear("state_gates", s))
            found.append(np.maximum(*np.split(self.linear("readout", np.concatenate([s, e, c])), 2)))
        return np.stack(found)
