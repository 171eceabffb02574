"""The C extension: packed matrices, the structures that C reads, checked calls with tensors."""

from __future__ import annotations

import ctypes
import functools
import importlib.util
from collections.abc import Collection, Mapping
from ctypes import byref, c_float, c_long, c_void_p
from pathlib import Path
from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor

from docnmt.base.errors import DocnmtError, install_again

# ---- Matrices in eight bits ----

# Whole numbers from -127 to 127, and for each row a float32 scale. A row computes one output, or is
# the embedding of one word. A scale has 17 significant bits and a number 7: their product has 24,
# which float32 holds exactly. So a dequantized matrix is quantized to the same numbers and
# scales again.

LARGEST = 127
SCALE = ".scale"  # follows a matrix's name in a file
_NOTHING = 1e-30  # a row with nothing larger becomes zeros: smaller scales would run out of bits


def quantize(matrix: Tensor) -> tuple[Tensor, Tensor]:
    """[rows, inputs] in float32 -> numbers [rows, inputs] in int8, and scales [rows]"""
    largest = matrix.abs().amax(dim=1)
    scales = _to_17_bits(largest / LARGEST).masked_fill_(largest <= _NOTHING, 1.0)
    return (matrix / scales[:, None]).round_().to(torch.int8), scales


def dequantize(numbers: Tensor, scales: Tensor) -> Tensor:
    return numbers.float().mul_(scales[:, None])


def _to_17_bits(scales: Tensor) -> Tensor:
    """Rounds positive numbers to 17 significant bits."""
    return ((scales.view(torch.int32) + 64) & -128).view(torch.float32)


def with_scales(weights: Mapping[str, Tensor], matrices: Collection[str]) -> dict[str, Tensor]:
    """The content of a file: the named matrices in int8, each with its scales, the others unchanged."""
    held = dict(weights)
    for name in matrices:
        held[name], held[name + SCALE] = quantize(weights[name])
    return held


def take_scales(held: dict[str, Tensor]) -> dict[str, Tensor]:
    """Removes the scales from what a file held, and returns them by the names of their matrices."""
    scales = {}
    for name in [name for name, tensor in held.items() if tensor.dtype == torch.int8]:
        rows, scale = held[name], held.pop(name + SCALE, None)
        if rows.ndim != 2 or scale is None or scale.dtype != torch.float32 or scale.shape != rows.shape[:1]:
            raise DocnmtError(f"{name}: the scales of its int8 rows are missing\n  Copy the model folder again.")
        scales[name] = scale
    return scales


# ---- The structures of accelerator.h ----

COLUMNS, DEPTH = 16, 8  # outputs in a panel, inputs at a time


def _fields(kind: type, *names: str) -> list[tuple[str, type]]:
    return [(name, kind) for name in names]


class CMatrix(ctypes.Structure):
    _fields_ = _fields(c_void_p, "panels", "scales", "bias", "sums") + _fields(c_long, "inputs", "outputs")


class CNorm(ctypes.Structure):
    _fields_ = [*_fields(c_void_p, "weight", "bias"), ("epsilon", c_float)]


class CMemory(ctypes.Structure):
    _fields_ = [
        *_fields(c_void_p, "keys", "values", "slots", "counts", "places"),
        *_fields(c_long, "all_slots", "longest", "room"),
    ]


NO_CONTEXT, GATED, RESIDUAL = range(3)


class CLayer(ctypes.Structure):
    _fields_ = [
        *_fields(CMatrix, "query_key_value", "words_output"),
        ("after_words", CNorm),
        *_fields(CMatrix, "context_query", "context_output"),
        ("after_context", CNorm),
        *_fields(CMatrix, "source_query", "source_output"),
        ("after_source", CNorm),
        *_fields(CMatrix, "inner", "outer"),
        ("after_feed_forward", CNorm),
        *_fields(c_long, "context", "activation"),
    ]


class PackedMatrix(NamedTuple):
    """A matrix in the order that products.h reads it."""

    panels: Tensor
    scales: Tensor | None  # only of int8, like the sums of each output's weights
    bias: Tensor
    sums: Tensor | None
    inputs: int
    outputs: int

    @property
    def structure(self) -> CMatrix:
        return CMatrix(*map(at, self[:4]), self.inputs, self.outputs)


def at(tensor: Tensor | None) -> int | None:
    return None if tensor is None else tensor.data_ptr()


# ---- Calls of the C functions, with tensors ----

LANES = 8  # numbers at a time: heads whose size is not a multiple cannot use the accelerator
ACTIVATIONS = {"": 0, "relu": 1, "swish": 2}  # SET, SET_POSITIVE, SET_SWISH
TYPES = (torch.float32, torch.int64, torch.int32, torch.int8, torch.uint8)
MOST_OF_FOUR = 258  # weights of one sign: 127 times as much fits into sixteen bits
LONG_FUNCTIONS = ("product_room", "step_room")  # which return a long
FUNCTIONS = ("attend", "attend_words", "put", "continuations", "most_of_four", "pack_rows", "product",
             "decoder_step", "has_products", *LONG_FUNCTIONS)  # fmt: skip


class Keys(NamedTuple):
    """What hypotheses attend to, in every layer."""

    keys: Tensor  # [layers, slots, heads, room, size]
    values: Tensor
    slots: Tensor  # of each sentence
    counts: Tensor  # of each sentence
    places: Tensor | None = None  # [hypotheses, longest], which of them each sees; None: the first ones

    @property
    def structure(self) -> CMemory:
        longest = 0 if self.places is None else self.places.shape[1]
        _, slots, _, room, _ = self.keys.shape
        return CMemory(*map(at, self), slots, longest, room)


class Accelerator:
    """The functions of one level: what the processor has (csrc/module.c)."""

    def __init__(self, library: ctypes.CDLL, level: str):
        self.library, self.level = library, level
        self.functions = {name: getattr(library, f"{name}_{level}") for name in FUNCTIONS}
        for name in LONG_FUNCTIONS:
            self.functions[name].restype = c_long
        for name, structure in (("matrix", CMatrix), ("memory", CMemory), ("layer", CLayer)):
            assert getattr(library, f"size_of_{name}")() == ctypes.sizeof(structure), name
        self.has_products = bool(self._call("has_products"))

    def _call(self, name: str, *arguments: Tensor | ctypes.Structure | ctypes.Array | int | None) -> int:
        return self.functions[name](*map(_as_c, arguments))

    def put(self, projected: Tensor, keys: Tensor, values: Tensor, slots: Tensor, place: int, beam: int) -> None:
        _, heads, room, size = keys.shape
        self._call("put", projected, keys, values, slots, place, len(slots), beam, heads, size, room)

    def attend(
        self, query: Tensor, keys: Tensor, values: Tensor, slots: Tensor, counts: Tensor, places: Tensor | None = None
    ) -> Tensor:
        """query [rows, width], or the first part of wider rows; keys, values [slots, heads, room,
        size]; slots, counts [sentences]; places [rows, longest] -> [rows, width]"""
        _, heads, room, size = keys.shape
        beam = len(query) // len(slots)
        out, weights = query.new_empty(len(query), heads * size), query.new_empty(room + LANES)
        longest = 0 if places is None else places.shape[1]
        seen = keys, values, slots, counts, places, longest
        self._call("attend", query, query.stride(0), *seen, len(slots), beam, heads, size, room, weights, out)
        return out

    def attend_words(
        self, query: Tensor, lengths: Tensor, keys: Tensor, values: Tensor, key_lengths: Tensor, heads: int
    ) -> Tensor:
        """Sentences one after the other: query [words, width] and keys, values [words of a memory,
        width], or parts of wider rows; words of each sentence -> [words, width]"""
        words, width = query.shape
        assert keys.stride(0) == values.stride(0)
        out, weights = query.new_empty(words, width), query.new_empty(int(key_lengths.max()) + LANES)
        seen = keys, values, keys.stride(0), key_lengths
        sizes = len(lengths), heads, width // heads
        self._call("attend_words", query, query.stride(0), lengths, *seen, *sizes, weights, out)
        return out

    def continuations(self, logits: Tensor, scores: Tensor, count: int) -> tuple[Tensor, Tensor, Tensor]:
        logits, scores = logits.contiguous(), scores.contiguous()
        sentences, beam = scores.shape
        words = logits.shape[1]
        totals = logits.new_empty(sentences, count)
        origins, found = (torch.empty(sentences, count, dtype=torch.int64) for _ in range(2))
        blocks = logits.new_empty(words // 64 + 1)
        sizes = sentences, beam, words, count
        self._call("continuations", logits, scores, *sizes, blocks, totals, origins, found)
        return totals, origins, found

    def in_16_bits(self, values: Tensor, scales: Tensor) -> tuple[Tensor, Tensor]:
        """The same int8 matrix, such that sixteen bits hold the sum of four products that
        products.h adds there, whatever the input. Rows that need it become coarser, by less than
        one bit."""
        values, scales = values.contiguous(), scales.contiguous()
        assert values.shape[1] % DEPTH == 0
        most = torch.empty(len(values), dtype=torch.int32)
        self._call("most_of_four", values, *values.shape, most)
        over = most > MOST_OF_FOUR
        if not over.any():
            return values, scales
        shrink = (MOST_OF_FOUR - 2) / most[over]  # less two: four halves that are rounded up
        values, scales = values.clone(), scales.clone()
        values[over] = (values[over] * shrink[:, None]).round_().to(torch.int8)
        scales[over] /= shrink
        return values, scales

    def pack(
        self, values: Tensor, scales: Tensor | None, bias: Tensor | None, chosen: Tensor | None = None
    ) -> PackedMatrix:
        """values [outputs, inputs]: float32, or int8 as in_16_bits leaves them, with their scales; all rows or the
        chosen; bias: of those"""
        values, chosen = values.contiguous(), None if chosen is None else chosen.long().contiguous()
        if chosen is not None and len(chosen) and not 0 <= int(chosen.min()) <= int(chosen.max()) < len(values):
            raise IndexError(f"rows {int(chosen.min())} to {int(chosen.max())} of a matrix with {len(values)}")
        inputs, outputs = values.shape[1], len(values if chosen is None else chosen)
        room = -outputs % (2 * COLUMNS)  # of the last panels, of which tiles may take two at once
        across = inputs * values.element_size() // 4  # cells of four bytes in a row
        panels = torch.zeros((outputs + room) * across, dtype=torch.int32)
        sums = None if scales is None else torch.zeros(outputs + room, dtype=torch.int32)
        self._call("pack_rows", values, chosen, outputs, across, panels, sums)
        if scales is not None:
            scales = F.pad(scales if chosen is None else scales[chosen], (0, room))
        bias = torch.zeros(outputs + room, dtype=torch.float32) if bias is None else F.pad(bias, (0, room))
        return PackedMatrix(panels, scales, bias, sums, inputs, outputs)

    def product(self, by: PackedMatrix, x: Tensor, activation: str = "", out: Tensor | None = None) -> Tensor:
        """[rows, inputs] -> [rows, outputs], written into `out` if that is given"""
        x = x.contiguous()
        rows, out = len(x), x.new_empty(len(x), by.outputs) if out is None else out
        if out.shape != (rows, by.outputs) or not out.is_contiguous():
            raise ValueError(f"no room for {rows} x {by.outputs} numbers: {tuple(out.shape)}")
        room = torch.empty(self._call("product_room", rows, by.inputs), dtype=torch.uint8)
        self._call("product", by.structure, x, by.inputs, rows, ACTIVATIONS[activation], room, out)
        return out

    def decoder_step(
        self,
        layers: ctypes.Array[CLayer],
        t: Tensor,
        filter_width: int,
        words: Keys,
        place: int,
        source: Keys,
        context: Keys | None,
    ) -> None:
        """t [rows, width] becomes what the softmax reads."""
        (rows, width), heads, sentences = t.shape, words.keys.shape[2], len(words.slots)
        longest = max(keys.keys.shape[3] for keys in (words, source, context) if keys is not None)
        room = t.new_empty(self._call("step_room", rows, width, filter_width, longest))
        bytes_ = torch.empty(self._call("product_room", rows, max(width, filter_width)), dtype=torch.uint8)
        sizes = sentences, rows // sentences, width, heads, filter_width
        seen = words.structure, place, source.structure, None if context is None else context.structure
        self._call("decoder_step", layers, len(layers), t, *sizes, *seen, room, bytes_)


def _as_c(value: Tensor | ctypes.Structure | ctypes.Array | int | None) -> object:
    """Arguments of C functions are checked here: C would read and write anything."""
    if isinstance(value, Tensor):
        if value.dtype not in TYPES or value.device.type != "cpu" or value.stride(-1) != 1:
            raise TypeError(f"the accelerator cannot take {value.dtype} on {value.device}, strides {value.stride()}")
        return c_void_p(value.data_ptr())
    if isinstance(value, ctypes.Structure):
        return byref(value)
    return c_long(value) if isinstance(value, int) else value


EXTENSION = "docnmt.engine._accelerator"
AGAIN = f"\n  Build it again: {install_again()}"
MISSING = (
    "docnmt is installed without its C extension: translation is slower, and int8 models compute in float32\n"
    f"  Install GCC or Clang, then docnmt again: {install_again()}"
)


@functools.cache
def accelerators() -> dict[str, Accelerator]:
    """The accelerators that this processor can run, by level, best first; none if the extension was not built."""
    found = importlib.util.find_spec(EXTENSION)
    if found is not None and found.origin and not _is_whole(Path(found.origin)):  # loading it would crash the process
        raise DocnmtError(f"{found.origin}: the C extension is incomplete (the file is cut short){AGAIN}")
    try:
        module = importlib.import_module(EXTENSION)
    except ImportError:
        return {}
    library = ctypes.CDLL(module.__file__)
    try:
        return {level: Accelerator(library, level) for level in module.levels}
    except (AttributeError, AssertionError):
        problem = "the C extension was built for another version of docnmt"
        raise DocnmtError(f"{module.__file__}: {problem}{AGAIN}") from None


def _is_whole(library: Path) -> bool:
    """Whether it is as long as its header says; systems other than Linux check this themselves."""
    with open(library, "rb") as file:
        header = file.read(64)
    if not header.startswith(b"\x7fELF\x02"):
        return True
    sections, size, count = int.from_bytes(header[40:48], "little"), header[58:60], header[60:62]
    end = sections + int.from_bytes(size, "little") * int.from_bytes(count, "little")  # what a linker writes last
    return len(header) == 64 and end <= library.stat().st_size


def accelerator() -> Accelerator | None:
    """The best one."""
    return next(iter(accelerators().values()), None)
