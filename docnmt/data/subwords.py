"""Sub-words: SentencePiece BPE, trained here or brought along."""

from __future__ import annotations

import io
import re
from collections.abc import Iterable, Sequence
from pathlib import Path

import sentencepiece

from docnmt.base.errors import DocnmtError
from docnmt.base.files import write_atomically

# The first ids of every vocabulary trained here. A model brought along may number them otherwise.
PAD, BOS, EOS, UNK = 0, 1, 2, 3
_CONTROLS = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029]+")


class Subwords:
    """One language's pieces."""

    def __init__(self, model: bytes, name: str = "sub-word model"):
        try:
            self._processor = sentencepiece.SentencePieceProcessor(model_proto=model)
        except RuntimeError as error:
            raise DocnmtError(f"{name}: not a SentencePiece model ({error})\n  Give a .model or .spm file.") from None
        self.model = model
        self.eos = self._processor.eos_id()
        if self.eos < 0:
            raise DocnmtError(f"{name}: has no end of sentence piece\n  Train it with eos_id, or let prepare do it.")
        # Marian's models have no begin mark: there the end of one sentence begins the next.
        self.bos = self._processor.bos_id() if self._processor.bos_id() >= 0 else self.eos

    @classmethod
    def load(cls, path: str | Path) -> Subwords:
        try:
            return cls(Path(path).read_bytes(), str(path))
        except OSError as error:
            raise DocnmtError(f"{path}: cannot be read ({error.strerror})\n  Check subwords.*_model.") from None

    def save(self, path: Path) -> None:
        with write_atomically(path, binary=True) as file:
            file.write(self.model)

    def __len__(self) -> int:
        return self._processor.get_piece_size()

    def encode(self, sentences: Sequence[str], threads: int = 1) -> list[list[int]]:
        if threads > 1:
            return self._processor.encode(list(sentences), num_threads=threads)
        return [self._processor.encode(sentence) for sentence in sentences]  # given a list, it starts threads each time

    def encode_with_spans(self, sentence: str) -> tuple[list[int], list[tuple[int, int]]]:
        """Pieces, and the characters of the sentence that each stands for, in order and without gaps."""
        found = self._processor.encode(sentence, return_type="offset_mapping")
        return found["ids"], found["offsets"]

    def decode(self, ids: Sequence[Sequence[int]]) -> list[str]:
        """Each sentence on one line: bytes that spell a line end, a tab or another control become a space."""
        return [_CONTROLS.sub(" ", self._processor.decode(list(map(int, sentence)))) for sentence in ids]

    def pieces(self, ids: Iterable[int]) -> list[str]:
        return [self._processor.id_to_piece(int(i)) for i in ids]

    def written(self) -> list[bytes]:
        """What each piece of the vocabulary writes; nothing for marks, and a space before the first word, too."""
        written = []
        for i, piece in enumerate(self.pieces(range(len(self)))):
            if self._processor.is_byte(i):
                written.append(bytes.fromhex(piece[3:5]))
            elif self._processor.is_control(i) or self._processor.is_unused(i):
                written.append(b"")
            else:
                text = " \u2047 " if self._processor.is_unknown(i) else piece.replace("\u2581", " ")
                written.append(text.encode())
        return written


def train_subwords(
    lines: Iterable[str], vocabulary: int, sample: int, character_coverage: float, seed: int
) -> Subwords:
    """BPE with byte fallback: what was never seen is spelt in bytes instead of being lost as an unknown word."""
    model = io.BytesIO()
    sentencepiece.set_random_generator_seed(seed)
    try:
        sentencepiece.SentencePieceTrainer.train(
            sentence_iterator=iter(lines),
            model_writer=model,
            model_type="bpe",
            vocab_size=vocabulary,
            character_coverage=character_coverage,
            byte_fallback=True,
            input_sentence_size=sample,
            shuffle_input_sentence=True,
            train_extremely_large_corpus=False,
            hard_vocab_limit=False,
            pad_id=PAD,
            bos_id=BOS,
            eos_id=EOS,
            unk_id=UNK,
            minloglevel=2,
        )
    except RuntimeError as error:
        raise DocnmtError(
            f"sub-words: SentencePiece could not train {vocabulary} pieces: {error}\n"
            "  Lower subwords.vocabulary, or give more text."
        ) from None
    return Subwords(model.getvalue())
