"""The models that are served: what is known of each, and which of them a process holds in memory."""

from __future__ import annotations

import errno
import gc
import resource
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from docnmt.document import NO_CONTEXT, ContextSpec

if TYPE_CHECKING:
    from docnmt.data.context import ContextRule
    from docnmt.decoding.translator import Translator

MEMORY = 4 << 30  # bytes that a process may use beyond what it has before it loads a model
WEIGHTS = 3  # times its file that a model takes in memory: weights, packed for a CPU, and what loading takes
WEIGHTS_INT8 = 9  # the same of a file of int8, which are float32 for a while


class OutOfMemory(Exception):
    """A process needs more memory than it may use."""


@dataclass(frozen=True)
class ModelInfo:
    name: str
    folder: str
    source_language: str  # a code: "fr", "pt-BR"; "x-source" where the model does not say
    target_language: str
    uses_context: bool
    context: ContextSpec  # what a sentence sees of its document
    in_order: bool  # it needs its own translations of the sentences before: a document is translated in order
    most: int  # translations that a sentence can have


def info_of(name: str, folder: str, languages: tuple[str, str], rule: ContextRule | None, beam: int) -> ModelInfo:
    return ModelInfo(
        name=name,
        folder=folder,
        source_language=code(languages[0]) or "x-source",
        target_language=code(languages[1]) or "x-target",
        uses_context=rule is not None,
        context=rule.spec if rule else NO_CONTEXT,
        in_order=rule is not None and rule.remembers,
        most=2 * beam if beam > 1 else 1,
    )


def code(language: str) -> str:
    """As APIs write it: pt-BR, not pt_BR."""
    return language.strip().replace("_", "-")


def named(folders: Sequence[str]) -> dict[str, str]:
    """Folders by names that tell them apart: the last part of a path that is not just `model`, and as many before it as
    it takes."""
    paths = {folder: [part for part in Path(folder).resolve().parts if part != "model"] for folder in folders}
    names = {folder: folder for folder in folders}
    for length in range(max(map(len, paths.values())), 0, -1):
        shorter = {"/".join(parts[-length:]): folder for folder, parts in paths.items()}
        if len(shorter) == len(paths):
            names = shorter
    return names


class Models(Protocol):
    """Where models come from. It goes to other processes."""

    def prepare(self) -> None:
        """What takes memory with any model."""
        ...

    def describe(self, name: str, folder: str) -> ModelInfo:
        """What a model is, without loading it."""
        ...

    def load(self, folder: str) -> Translator: ...

    def size(self, folder: str) -> int:
        """Bytes of memory that it will take, about."""
        ...


class ModelFolders:
    def prepare(self) -> None:
        import torch

        import docnmt.decoding.translator  # noqa: F401

        torch.set_num_threads(1)  # there is a process for every core

    def describe(self, name: str, folder: str) -> ModelInfo:
        from docnmt.data.subwords import Subwords
        from docnmt.model_folder import load_card

        card = load_card(folder)
        source, target = (Subwords.load(Path(folder) / f"{side}.spm") for side in ("source", "target"))
        rule = card.rule(source, None, target) if card.context.active else None
        return info_of(name, folder, (card.source_language, card.target_language), rule, card.decoding.beam)

    def load(self, folder: str) -> Translator:
        from docnmt.decoding.translator import load

        return load(folder)

    def size(self, folder: str) -> int:
        from docnmt.model_folder import is_int8

        times = WEIGHTS_INT8 if is_int8(folder) else WEIGHTS
        return times * (Path(folder) / "weights.safetensors").stat().st_size


FOLDERS = ModelFolders()


class Shelf:
    """The models that a process holds: each loaded when it is first asked for; where they take more than `room` bytes,
    those that were not asked for the longest go."""

    def __init__(self, folders: Mapping[str, str], models: Models, room: int):
        self.folders, self.models, self.room = folders, models, room
        self._held: OrderedDict[str, tuple[Translator, int]] = OrderedDict()  # the last asked for is the last

    def __contains__(self, name: str) -> bool:
        return name in self._held

    def get(self, name: str) -> Translator:
        if name not in self._held:
            size = self.models.size(self.folders[name])
            self._make_room(size)
            self._held[name] = self.models.load(self.folders[name]), size
        self._held.move_to_end(name)
        return self._held[name][0]

    def _make_room(self, size: int) -> None:
        while self._held and sum(held for _, held in self._held.values()) + size > self.room:
            self._held.popitem(last=False)
            gc.collect()  # what a model is made of knows each other


def limit_memory(size: int) -> None:
    """Lets this process have so many bytes more than it has now. Beyond that it gets none, and says so: it does not
    wait for the system to choose a process to kill."""
    has = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    _, most = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (has + size if most == resource.RLIM_INFINITY else most, most))


def is_out_of_memory(error: BaseException) -> bool:
    """As Python, the system and torch put it."""
    return (
        isinstance(error, MemoryError)
        or (isinstance(error, OSError) and error.errno == errno.ENOMEM)
        or (isinstance(error, RuntimeError) and "can't allocate memory" in str(error))
    )
