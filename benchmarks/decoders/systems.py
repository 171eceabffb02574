"""The systems: each decodes batches with beam 4 and forced lengths, and says how long its translations are.

Each imports what it needs when it is made: a process loads only what it runs.
"""

from __future__ import annotations

import multiprocessing
import os
from collections.abc import Callable, Sequence
from concurrent.futures import Executor, ProcessPoolExecutor, ThreadPoolExecutor
from dataclasses import dataclass
from multiprocessing.synchronize import Barrier
from pathlib import Path
from typing import Any, Protocol

from decoders.material import BOS, EOS, PAD, Batch

BEAM = 4
ALPHA = 0.6
CORES = len(os.sched_getaffinity(0))


@dataclass(frozen=True)
class System:
    name: str
    family: str  # a process each: "ctranslate2", "marian" (Marian itself), "transformers" or "docnmt"
    int8: bool = False
    shortlist: bool = False
    context: bool = False


SYSTEMS = {
    system.name: system
    for system in (
        System("CTranslate2 int8", "ctranslate2", int8=True),
        System("CTranslate2 float32", "ctranslate2"),
        System("CTranslate2 int8, shortlist", "ctranslate2", int8=True, shortlist=True),
        System("Marian int8", "marian", int8=True),
        System("Marian float32", "marian"),
        System("Hugging Face Marian", "transformers"),
        System("docnmt sentence int8", "docnmt", int8=True),
        System("docnmt sentence float32", "docnmt"),
        System("docnmt sentence int8, shortlist", "docnmt", int8=True, shortlist=True),
        System("docnmt document int8", "docnmt", int8=True, context=True),
        System("docnmt document float32", "docnmt", context=True),
        System("docnmt document int8, shortlist", "docnmt", int8=True, shortlist=True, context=True),
    )
}
REFERENCE = "CTranslate2 int8"


@dataclass(frozen=True)
class Layout:
    workers: int
    threads: int  # of each worker
    processes: bool = False  # workers are processes

    def __str__(self) -> str:
        return f"{self.workers} x {self.threads}{' processes' if self.processes else ''}"


ALL_CORES = Layout(CORES, 1)
LAYOUTS = {  # what is tried; in Python, threads of one process hold each other up now and then
    "ctranslate2": (ALL_CORES, Layout(1, CORES)),
    "marian": (ALL_CORES,),  # its threads work on batches of their own
    "transformers": (Layout(CORES, 1, processes=True), Layout(1, CORES)),
    "docnmt": (ALL_CORES, Layout(CORES, 1, processes=True), Layout(1, CORES)),
}

Translate = Callable[[Batch], list[int]]


class Decoder(Protocol):
    def run(self, batches: Sequence[Batch]) -> list[list[int]]:
        """Translates; how many words each translation has."""

    def close(self) -> None: ...


class CTranslate2:
    def __init__(self, system: System, folder: Path, layout: Layout):
        import ctranslate2

        kind = "int8" if system.int8 else "float32"
        self.translator = ctranslate2.Translator(
            str(folder / kind),
            compute_type=kind,
            inter_threads=layout.workers,
            intra_threads=layout.threads,
            max_queued_batches=-1,
        )
        self.pieces = _pieces(folder)
        self.shortlist = system.shortlist

    def run(self, batches: Sequence[Batch]) -> list[list[int]]:
        waiting = [
            self.translator.translate_batch(
                [[self.pieces[token] for token in sentence.source] for sentence in batch],  # it adds the end mark
                asynchronous=True,
                beam_size=BEAM,
                length_penalty=ALPHA,
                min_decoding_length=batch[0].length,
                max_decoding_length=batch[0].length,
                use_vmap=self.shortlist,
            )
            for batch in batches
        ]
        return [[len(result.result().hypotheses[0]) for result in results] for results in waiting]

    def close(self) -> None:
        del self.translator


class Marian:
    """Marian itself, of the package pymarian, which is no dependency: it is measured where it is installed.

    It can be given a longest translation, not a length. Random weights hardly ever write an end mark, so translations
    are as long as the longest source sentence of their batch; what is counted is what it wrote.
    """

    def __init__(self, system: System, folder: Path, layout: Layout):
        vocabularies = [str(folder / "marian" / f"{side}.vocab.yml") for side in ("source", "target")]
        self.options = {
            "models": [str(folder / "marian" / "model.npz")],
            "vocabs": vocabularies,
            "beam_size": BEAM,
            "normalize": ALPHA,
            "max_length_factor": 1,
            "maxi_batch": 100,
            "cpu_threads": layout.workers,
            "quiet": "",
        }
        if system.int8:
            self.options |= {"optimize": "", "gemm_type": "packed8"}
        self.pieces = _pieces(folder)
        self.translators: dict[int, Any] = {}  # by the size of batches, which Marian makes itself

    def run(self, batches: Sequence[Batch]) -> list[list[int]]:
        import pymarian

        size = max(map(len, batches))
        if size not in self.translators:
            self.translators = {size: pymarian.Translator(mini_batch=size, **self.options)}
        lines = [" ".join(self.pieces[token] for token in sentence.source) for batch in batches for sentence in batch]
        return [[len(line.split())] for line in self.translators[size].translate(lines)]

    def close(self) -> None:
        self.translators.clear()


def _pieces(folder: Path) -> list[str]:
    from docnmt.data.subwords import Subwords

    return Subwords.load(folder / "sentence" / "source.spm").all_pieces()


class InTorch:
    """Workers that are threads or processes take batches from a queue."""

    def __init__(self, system: System, folder: Path, layout: Layout):
        self.pool: Executor
        if layout.processes:
            spawned = multiprocessing.get_context("spawn")
            begin = (system, folder, layout.threads, spawned.Barrier(layout.workers))
            self.pool = ProcessPoolExecutor(layout.workers, spawned, initializer=_begin, initargs=begin)
            self.translate: Translate = _translate
        else:
            import torch

            # torch keeps the number for each thread that asks for work to be shared
            self.pool = ThreadPoolExecutor(layout.workers, "worker", torch.set_num_threads, (layout.threads,))
            self.translate = _make(system, folder)

    def run(self, batches: Sequence[Batch]) -> list[list[int]]:
        return list(self.pool.map(self.translate, batches))

    def close(self) -> None:
        self.pool.shutdown()


_here: Translate  # of a worker process


def _begin(system: System, folder: Path, threads: int, all_ready: Barrier) -> None:
    import torch

    global _here
    torch.set_num_threads(threads)
    _here = _make(system, folder)
    all_ready.wait()  # none takes the first batches while another still loads


def _translate(batch: Batch) -> list[int]:
    return _here(batch)


def _make(system: System, folder: Path) -> Translate:
    return Transformers(folder) if system.family == "transformers" else Docnmt(system, folder)


class Transformers:
    def __init__(self, folder: Path):
        import transformers
        from decoders.transformers_model import as_marian

        from docnmt.model_folder import load_model

        transformers.logging.set_verbosity_error()
        exported = folder / "huggingface"  # of a model as OPUS-MT has them
        if exported.exists():
            self.model = transformers.MarianMTModel.from_pretrained(exported).eval()
            self.model.generation_config.forced_eos_token_id = None  # the lengths are forced already
        else:
            loaded = load_model(folder / "sentence")
            self.model = as_marian(loaded.model, begin=BOS, end=EOS)  # type: ignore[arg-type]

    def __call__(self, batch: Batch) -> list[int]:
        import torch

        longest = max(len(sentence.source) for sentence in batch) + 1
        rows = [[*sentence.source, EOS] for sentence in batch]
        source = torch.tensor([[*row, *[PAD] * (longest - len(row))] for row in rows])
        with torch.inference_mode():
            found = self.model.generate(
                input_ids=source,
                attention_mask=source != PAD,
                num_beams=BEAM,
                do_sample=False,
                length_penalty=ALPHA,
                min_new_tokens=batch[0].length,
                max_new_tokens=batch[0].length,
            )
        return [(row[1:] != EOS).sum().item() for row in found]  # without the begin mark


class Docnmt:
    def __init__(self, system: System, folder: Path):
        from docnmt.engine import Engine
        from docnmt.engine.shortlist import Shortlist
        from docnmt.model_folder import load_model

        name = "document" if system.context else "sentence"
        loaded = load_model(folder / f"{name}-int8" if system.int8 else folder / name)
        shortlist = Shortlist.read(folder / "sentence", loaded.source, loaded.target) if system.shortlist else None
        self.engine = Engine(loaded.model, int8=system.int8, shortlist=shortlist)  # type: ignore[arg-type]
        self.context = system.context

    def __call__(self, batch: Batch) -> list[int]:
        from docnmt.data.packing import pack
        from docnmt.decoding.beam import beam_search
        from docnmt.engine import EngineState

        lengths = [sentence.length for sentence in batch]
        found = beam_search(
            self.engine,
            pack([[*sentence.source, EOS] for sentence in batch]),
            pack([sentence.context for sentence in batch]) if self.context else None,
            bos=BOS,
            eos=EOS,
            beam=BEAM,
            alpha=ALPHA,
            start=EngineState,
            lengths=lengths,
        )
        return [len(best[0].tokens) for best in found]
