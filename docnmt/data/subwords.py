"""Subwords: SentencePiece BPE, trained here or an existing model.

Pieces have the ids of the SentencePiece model, or those of a vocabulary file beside it, as in
models of other programs, where one vocabulary may serve two SentencePiece models.
"""

from __future__ import annotations

import io
import json
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import sentencepiece

from docnmt.base.errors import DocnmtError
from docnmt.base.files import read_json, regular_file, write_atomically
from docnmt.config import SubwordConfig
from docnmt.document import check_characters
from docnmt.text.scripts import normalise

# The first ids of every vocabulary trained here. Other models may have other ids.
PAD, BOS, EOS, UNK = 0, 1, 2, 3
_CONTROLS = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029]+")


def _processor(model: bytes, name: str) -> sentencepiece.SentencePieceProcessor:
    try:
        return sentencepiece.SentencePieceProcessor(model_proto=model)
    except (RuntimeError, UnicodeDecodeError) as error:
        # SentencePiece's own words may quote bytes of the file that are no text.
        said = error.object.decode(errors="replace") if isinstance(error, UnicodeDecodeError) else str(error)
        raise DocnmtError(f"{name}: not a SentencePiece model ({said})\n  Give a .model or .spm file.") from None


class Subwords:
    """One language's pieces."""

    def __init__(self, model: bytes, name: str = "subword model"):
        self._processor = _processor(model, name)
        self.model = model
        self.eos = self._processor.eos_id()
        if self.eos < 0:
            raise DocnmtError(
                f"{name}: has no end-of-sentence piece\n  Train it with eos_id, or let docnmt prepare train a model."
            )
        self.unk = self._processor.unk_id()
        # Marian's models have no begin mark: the end of one sentence begins the next.
        self.bos = self._processor.bos_id() if self._processor.bos_id() >= 0 else self.eos

    @staticmethod
    def load(path: str | Path) -> Subwords:
        """A SentencePiece model, and its vocabulary if there is one beside it."""
        try:
            model, vocabulary = regular_file(Path(path)).read_bytes(), Vocabulary.beside(Path(path))
        except OSError as error:
            raise DocnmtError(
                f"{path}: cannot be read ({error.strerror or error})\n  Check subwords.source_model and target_model."
            ) from None
        return Subwords(model, str(path)) if vocabulary is None else NamedSubwords(model, vocabulary, str(path))

    def save(self, path: Path) -> None:
        with write_atomically(path, binary=True) as file:
            file.write(self.model)

    @property
    def content(self) -> bytes:
        """Everything that determines the ids of a text."""
        return self.model

    def ids(self, pieces: Iterable[str]) -> list[int]:
        """The ids of those pieces that are in the vocabulary."""
        found = ((piece, self._processor.piece_to_id(piece)) for piece in pieces)
        return [i for piece, i in found if self._processor.id_to_piece(i) == piece]

    def whole(self, sentence: Sequence[int]) -> list[int]:
        """A source sentence as the encoder reads it, with its marks."""
        return [*sentence, self.eos]

    def __len__(self) -> int:
        return self._processor.get_piece_size()

    def encode(self, sentences: Sequence[str], threads: int = 1) -> list[list[int]]:
        try:
            if threads > 1:
                return self._processor.encode(list(sentences), num_threads=threads)
            return [self._processor.encode(sentence) for sentence in sentences]  # a list would start threads each time
        except RuntimeError:  # which does not say what is wrong
            for sentence in sentences:
                check_characters(sentence)
            raise

    def encode_with_spans(self, sentence: str) -> tuple[list[int], list[tuple[int, int]]]:
        """Pieces, and the span of characters that each stands for, in order and without gaps."""
        found = self._processor.encode(sentence, return_type="offset_mapping")
        return found["ids"], found["offsets"]

    def decode(self, ids: Sequence[Sequence[int]]) -> list[str]:
        """Each sentence is one line: control characters that byte pieces spell become a space."""
        return [_CONTROLS.sub(" ", self._processor.decode(list(map(int, sentence)))) for sentence in ids]

    def pieces(self, ids: Iterable[int]) -> list[str]:
        return [self._processor.id_to_piece(int(i)) for i in ids]

    def ranks(self, sentence: str) -> list[int | None]:
        """Each piece's rank in the SentencePiece model, which has frequent ones first; None for
        bytes and unknown ones. A vocabulary file may be in another order, and of two languages."""
        ids = self._processor.encode(sentence)
        return [None if self._processor.id_to_piece(i).startswith("<") else i for i in ids]

    def all_pieces(self) -> list[str]:
        return self.pieces(range(len(self)))

    def written(self) -> list[bytes]:
        """What each piece of the vocabulary writes; nothing for marks. A sentence's first word has a space, too."""
        written = []
        for i, piece in enumerate(self._processor.id_to_piece(list(range(self._processor.get_piece_size())))):
            if self._processor.is_byte(i):
                written.append(bytes.fromhex(piece[3:5]))
            elif self._processor.is_control(i) or self._processor.is_unused(i):
                written.append(b"")
            else:
                text = " \u2047 " if self._processor.is_unknown(i) else piece.replace("\u2581", " ")
                written.append(text.encode())
        return written


@dataclass(frozen=True)
class Vocabulary:
    """Pieces in the order of their ids, and how a text is prepared before it is looked up."""

    pieces: tuple[str, ...]
    punctuation: str = ""  # "opus-mt": normalised as these models know it
    language: str = ""  # a piece before each source sentence that names the target language: >>fra<<

    @staticmethod
    def path(model: Path) -> Path:
        return model.with_suffix(".vocabulary.json")

    @classmethod
    def beside(cls, model: Path) -> Vocabulary | None:
        path = cls.path(model)
        if not path.exists():
            return None
        try:
            table = read_json(path)
            return cls(**table | {"pieces": tuple(table["pieces"])})
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise DocnmtError(f"{path}: not a vocabulary ({error})\n  Copy the model folder again.") from None

    @property
    def content(self) -> str:
        return json.dumps(asdict(self), ensure_ascii=False, indent=0) + "\n"


END, UNKNOWN, PADDING = "</s>", "<unk>", "<pad>"  # by these names, whatever their ids
_MARKS = (END, UNKNOWN, PADDING, "<s>")


class NamedSubwords(Subwords):
    """Pieces with the ids of a vocabulary file; a piece that is not in it is unknown."""

    def __init__(self, model: bytes, vocabulary: Vocabulary, name: str = "subword model"):
        self._processor = _processor(model, name)
        self.model, self.vocabulary = model, vocabulary
        self._ids = {piece: i for i, piece in enumerate(vocabulary.pieces)}
        for mark in (END, UNKNOWN):
            if mark not in self._ids:
                raise DocnmtError(
                    f"{name}: its vocabulary has no piece {mark}\n  Give the vocabulary that belongs to this model."
                )
        self.eos, self.unk = self._ids[END], self._ids[UNKNOWN]
        # Marian's models have no begin mark; transformers begins a translation with padding.
        self.bos = self._ids.get(PADDING, self.eos)
        own = range(self._processor.get_piece_size())
        self._of_own = [self._ids.get(piece, self.unk) for piece in self._processor.id_to_piece(list(own))]
        self._languages = {i for piece, i in self._ids.items() if piece.startswith(">>") and piece.endswith("<<")}
        self._language = self.ids([vocabulary.language])

    def save(self, path: Path) -> None:
        super().save(path)
        with write_atomically(Vocabulary.path(path)) as file:
            file.write(self.vocabulary.content)

    @property
    def content(self) -> bytes:
        return self.model + self.vocabulary.content.encode()

    def __len__(self) -> int:
        return len(self.vocabulary.pieces)

    def ids(self, pieces: Iterable[str]) -> list[int]:
        return [self._ids[piece] for piece in pieces if piece in self._ids]

    def pieces(self, ids: Iterable[int]) -> list[str]:
        return [self.vocabulary.pieces[int(i)] for i in ids]

    def whole(self, sentence: Sequence[int]) -> list[int]:
        """With the target language first, unless the sentence names its own."""
        named = len(sentence) > 0 and sentence[0] in self._languages
        return [*([] if named else self._language), *sentence, self.eos]

    def encode(self, sentences: Sequence[str], threads: int = 1) -> list[list[int]]:
        parts = [self._parts(sentence) for sentence in sentences]
        encoded = super().encode([text for _, text, _ in parts], threads)
        return [[*before, *self._look_up(own, text)] for (before, text, _), own in zip(parts, encoded, strict=True)]

    def encode_with_spans(self, sentence: str) -> tuple[list[int], list[tuple[int, int]]]:
        before, text, places = self._parts(sentence)
        own, spans = super().encode_with_spans(text)
        begin = places[0] if text else len(sentence)
        in_sentence = [(places[a], places[b]) for a, b in spans]
        return [*before, *self._look_up(own, text)], [*[(0, begin)] * len(before), *in_sentence]

    def _parts(self, sentence: str) -> tuple[list[int], str, list[int]]:
        """The target language if the sentence names one, its text, and where each character of the text comes from."""
        before: list[int] = []
        if self._languages and sentence.startswith(">>"):
            before = self.ids([sentence[: sentence.find("<<") + 2]])
        start = sentence.find("<<") + 2 if before else 0
        if not self.vocabulary.punctuation:
            return before, sentence[start:], list(range(start, len(sentence) + 1))
        text, places = normalise(sentence[start:])
        return before, text, [start + place for place in places]

    def _look_up(self, own: Sequence[int], text: str) -> list[int]:
        """What is unknown to SentencePiece may still be in the vocabulary: a piece of the other language's model."""
        if self._processor.unk_id() in own:
            return [self._ids.get(piece, self.unk) for piece in self._processor.encode(text, out_type=str)]
        return [self._of_own[i] for i in own]

    def decode(self, ids: Sequence[Sequence[int]]) -> list[str]:
        marks = set(self.ids(mark for mark in _MARKS if mark != UNKNOWN)) | self._languages
        written = (self.pieces(i for i in map(int, sentence) if i not in marks) for sentence in ids)
        # SentencePiece leaves the space marks of the other language's pieces.
        texts = (self._processor.decode_pieces(pieces).replace("\u2581", " ") for pieces in written)
        return [_CONTROLS.sub(" ", text).strip() for text in texts]

    def written(self) -> list[bytes]:
        own = dict(zip(self._processor.id_to_piece(list(range(len(self._of_own)))), super().written(), strict=True))
        marks = {END, PADDING, "<s>", *self.pieces(self._languages)}
        return [
            b"" if piece in marks else own.get(piece, piece.replace("\u2581", " ").encode())
            for piece in self.vocabulary.pieces
        ]


def train_subwords(lines: Callable[[], Iterable[str]], config: SubwordConfig, seed: int) -> Subwords:
    """BPE with byte fallback: unseen characters are spelt in bytes instead of being lost as unknown."""
    size = config.vocabulary + (_beside_merges(lines(), config, seed) if config.counts == "merges" else 0)
    model = io.BytesIO()
    try:
        _run_trainer(lines(), config, size, seed, model)
    except RuntimeError as error:
        needed = _REQUIRED.search(str(error))
        remedy = "Lower subwords.vocabulary, or give more text."
        if needed:  # characters, bytes and marks alone exceed it
            remedy = f"Raise subwords.vocabulary above {int(needed[1]):,}."
        raise DocnmtError(f"subwords: SentencePiece could not train {size} pieces: {error}\n  {remedy}") from None
    return Subwords(model.getvalue())


def _run_trainer(lines: Iterable[str], config: SubwordConfig, size: int, seed: int, model: io.BytesIO) -> None:
    # Options that are SentencePiece's defaults are not passed on: it would write them into the model.
    options: dict[str, Any] = {"normalization_rule_name": "nmt_nfkc_cf"} if config.lowercase else {}
    if config.tokenized:  # otherwise pieces also end between letters, digits and punctuation
        options |= {"split_by_unicode_script": False, "split_by_number": False}
    wrong: list[DocnmtError] = []  # errors in reading the lines, which the trainer would report as its own

    def noted() -> Iterator[str]:
        try:
            yield from lines
        except DocnmtError as error:
            wrong.append(error)
            raise

    sentencepiece.set_random_generator_seed(seed)
    try:
        sentencepiece.SentencePieceTrainer.train(
            sentence_iterator=noted(),
            model_writer=model,
            model_type="bpe",
            vocab_size=size,
            character_coverage=config.character_coverage,
            byte_fallback=True,
            input_sentence_size=config.sample,
            shuffle_input_sentence=True,
            train_extremely_large_corpus=False,
            hard_vocab_limit=False,
            pad_id=PAD,
            bos_id=BOS,
            eos_id=EOS,
            unk_id=UNK,
            minloglevel=2,
            **options,
        )
    except Exception:
        if wrong:
            raise wrong[0] from None
        raise


_FEWEST = 4 + 256  # marks and bytes
_REQUIRED = re.compile(r"required_chars\. \d+ vs (\d+)")


def _beside_merges(lines: Iterable[str], config: SubwordConfig, seed: int) -> int:
    """How many pieces are not merges: characters, bytes and marks. Only SentencePiece knows which
    characters it keeps; asked for too few pieces, it fails at once and says how many it needs."""
    try:
        _run_trainer(lines, config, _FEWEST, seed, io.BytesIO())
    except RuntimeError as error:
        found = _REQUIRED.search(str(error))
        if found:
            return int(found[1])
        raise DocnmtError(f"subwords: SentencePiece could not be trained: {error}\n  Give more text.") from None
    return _FEWEST  # text without a character
