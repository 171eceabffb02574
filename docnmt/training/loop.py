"""The training loop of one step: one update after another, validated, saved, and resumed exactly where it was."""

from __future__ import annotations

import ctypes
import shutil
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import Any, cast

import numpy as np
import torch
from safetensors import SafetensorError
from torch import Tensor

from docnmt.base.errors import DocnmtError, Interrupted
from docnmt.base.files import check_hashes, folder_atomically, hashes, read_json, remove_unfinished, write_json
from docnmt.base.progress import Progress
from docnmt.config import Recipe, StepConfig
from docnmt.data.batches import Examples, Stream
from docnmt.data.prepare import Prepared
from docnmt.model.base import TranslationModel
from docnmt.model_folder import load_weights, save_weights, weights_of
from docnmt.training.checkpoint import Checkpoints, Disk, Record, State, read_record, read_states, updates_in
from docnmt.training.identity import changed
from docnmt.training.parallel import Group
from docnmt.training.validation import Validation


@dataclass(frozen=True)
class Session:
    """What the steps of one training share."""

    recipe: Recipe
    prepared: Prepared
    output: Path
    device: torch.device
    group: Group
    progress: Progress
    from_scratch: bool = False

    def folder(self, step: str) -> Path:
        return self.output / step


# ---- the learning rate of Vaswani et al. (2017): a linear warm-up, then the inverse square root; and how it ends ----

# The inverse square root never reaches zero: a step with an end gains much from a rate that falls to zero there
# (Hägele et al., 2024). Until then the end need not be known, so a run may be given more updates.


def learning_rate(update: int, width: int, warmup: int, factor: float) -> float:
    """The rate for update 1, 2, ..."""
    return factor * width**-0.5 * min(update**-0.5, update * warmup**-1.5)


def cooled(update: int, cooling: list[int] | None) -> float:
    """What is left of the rate at an update, between the two of `cooling`."""
    if cooling is None:
        return 1.0
    first, last = cooling
    return (last + 1 - update) / (last + 1 - first)


# ---- keeping memory between updates ----

M_TRIM_THRESHOLD, M_MMAP_MAX = -1, -4  # from malloc.h


def keep_freed_memory() -> None:
    """Asks the C library to keep what is freed instead of handing it back to the system.

    Training frees and allocates large tensors all the time; each new one costs a page fault and clearing
    for every 4 KB of it. Does nothing if the C library is not glibc.
    """
    try:
        libc = ctypes.CDLL("libc.so.6")
        libc.mallopt(M_MMAP_MAX, 0)
        libc.mallopt(M_TRIM_THRESHOLD, 2**31 - 1)
    except (OSError, AttributeError):
        pass


# ---- the loop ----

# Everything random in an update is a function of (seed, update, batch): which batches it takes, and its dropout. So
# an update is the same whether the run before it was one piece or many, and however many processes share it.


class Trainer:
    """One step. `settings` says what determines its numbers up to an update (training/identity.py)."""

    def __init__(
        self,
        session: Session,
        step: str,
        model: TranslationModel,
        examples: Examples,
        stream: Stream,
        settings: Callable[[int], dict[str, Any]],
        validate: Callable[[], Validation] | None,
    ):
        self.folder, self.config = session.folder(step), cast(StepConfig, getattr(session.recipe, step))
        self.model, self.examples, self.stream = model, examples, stream
        self.settings, self.validate = settings, validate
        self.seed, self.metric = session.recipe.seed, session.recipe.validation.metric
        self.group, self.progress, self.device = session.group, session.progress, session.device
        hardware = session.recipe.hardware
        if hardware.bf16 and self.device.type == "cuda" and not torch.cuda.is_bf16_supported():
            raise DocnmtError("hardware.bf16: this GPU does not support it\n  Set hardware.bf16 = false.")
        self.autocast = torch.autocast(self.device.type, torch.bfloat16, enabled=hardware.bf16)
        if hardware.compile:
            model.forward = torch.compile(model.forward, dynamic=True)
        self.trained = {name: p for name, p in model.named_parameters() if p.requires_grad}
        self.optimizer = torch.optim.Adam(self.trained.values(), lr=0.0, betas=(0.9, 0.98), eps=1e-9, fused=True)
        self.stop_signal: signal.Signals | None = None
        self.disk = Disk(self.progress, lambda: self.stop_signal is not None)
        self.checkpoints = Checkpoints(self.folder / "checkpoints", self.progress, self.disk)

    def run(self) -> State:
        """Trains to the end, from where the folder is; returns the last state."""
        keep_freed_memory()
        self.folder.mkdir(parents=True, exist_ok=True)
        if self.group.first:
            for inside in (self.folder, self.folder / "checkpoints", self.folder / "best"):
                remove_unfinished(inside)
        state = self._resume()
        if not self._finished(state):
            record = Record(self.folder, state.update, self.disk) if self.group.first else None
            bar = self.progress.bar("train", self.config.updates, "updates", start=state.update)
            with self._signals(), bar as advance:
                self.model.train()
                self._train(state, record, advance)
            if state.update < self.config.updates:
                self.progress.say(f"stopped early: no improvement for {state.without_gain} validations")
        return state

    def final_weights(self, state: State) -> dict[str, Tensor]:
        """The weights of the best validation, or the mean of the best few; the last ones if nothing was validated."""
        weights = weights_of(self.model)
        chosen = [self._best_folder(update) for _, update in state.best[: self.config.average]]
        if chosen:
            found = [self._best_weights(folder) for folder in chosen]
            weights |= {name: torch.stack([w[name] for w in found]).mean(0) for name in found[0]}
        return weights

    # ---- one update after another ----

    def _train(self, state: State, record: Record | None, advance: Callable[..., None]) -> None:
        config = self.config
        clock, words_since = time.monotonic(), 0
        while not self._finished(state):
            loss, tokens, norm = self._update(state)
            state.running_loss += loss
            state.running_tokens += tokens
            words_since += tokens
            seconds = time.monotonic() - clock
            mean, speed = state.running_loss / state.running_tokens, words_since / max(seconds, 1e-9)
            logged = state.update % config.log_every == 0
            advance(1, note=f"loss {mean:.3f}  {speed:,.0f} tok/s", log=logged)
            if logged:
                if record is not None:
                    values = {"epoch": state.position.epoch, "loss": mean, "gradient_norm": norm}
                    record.metrics("train", state.update, **values, learning_rate=self._rate(state.update))
                    record.speed(state.update, target_tokens_per_second=speed, seconds=seconds)
                state.running_loss, state.running_tokens = 0.0, 0
                clock, words_since = time.monotonic(), 0
            validated = self._due(state, config.validate_every) and self.validate is not None
            if validated:
                self._validate(state, record)
                clock, words_since = time.monotonic(), 0
            stop = self.group.any(self.stop_signal is not None, self.device)
            if validated or stop or self._due(state, config.checkpoint_every):
                saved = self._save(state)
            if stop:
                raise Interrupted(state.update if saved else None, self.stop_signal or signal.SIGTERM)

    def _rate(self, update: int) -> float:
        config = self.config
        rate = learning_rate(update, self.model.model_config.width, config.warmup, config.learning_rate)
        return rate * cooled(update, config.cooling(update))

    def _due(self, state: State, every: int) -> bool:
        return state.update % every == 0 or state.update >= self.config.updates

    def _finished(self, state: State) -> bool:
        patient = not self.config.patience or state.without_gain < self.config.patience
        return state.update >= self.config.updates or not patient

    def _update(self, state: State) -> tuple[float, int, float]:
        """One update; returns summed smoothed loss, target tokens and the gradient's norm."""
        batches, position = self.stream.take(state.position, self.config.accumulation * self.group.size)
        tokens = int(sum(self.examples.target_lengths[batch].sum() for batch in batches))
        total = torch.zeros((), dtype=torch.float64, device=self.device)
        for number, rows in self.group.share(list(enumerate(batches))):
            torch.manual_seed(int(np.random.SeedSequence([self.seed, state.update, number]).generate_state(1)[0]))
            with self.autocast:
                loss, _ = self.model.loss(self.examples.batch(rows, self.device), self.config.smoothing)
            (loss / tokens).backward()
            total += loss.detach()
        self.group.sum_gradients(self.trained.values())
        limit = self.config.clip or float("inf")
        norm = float(torch.nn.utils.clip_grad_norm_(self.trained.values(), limit))
        if not np.isfinite(norm):
            raise DocnmtError(
                f"the gradient is infinite or NaN at update {state.update + 1}\n"
                "  Lower the learning rate, or set clip = 1.0 in the step's section of the recipe."
            )
        for group in self.optimizer.param_groups:
            group["lr"] = self._rate(state.update + 1)
        self.optimizer.step()
        self.optimizer.zero_grad(set_to_none=True)
        state.update += 1
        state.position = position
        return float(self.group.sum(total)), tokens, norm

    # ---- validation, the best weights ----

    def _validate(self, state: State, record: Record | None) -> None:
        assert self.validate is not None
        result = self.validate()
        score = -result.bleu if self.metric == "bleu" and result.bleu is not None else result.loss
        better = not state.best or score < state.best[0][0]
        state.without_gain = 0 if better else state.without_gain + 1
        state.best = sorted([*state.best, (score, state.update)])[: self.config.average]
        if record is not None:
            record.metrics("validation", state.update, **result.as_dict())
        self.progress.say(f"update {state.update:,}: {result}{'  best' if better else ''}")
        among_best = any(update == state.update for _, update in state.best)
        lost = among_best and self.group.first and not self._keep(state.update)
        if self.group.any(lost, self.device):  # all processes must agree on what is best
            state.best = [(score, update) for score, update in state.best if update != state.update]

    def _keep(self, update: int) -> bool:
        """Keeps these weights as among the best; False if that failed."""

        def write() -> None:
            with folder_atomically(self._best_folder(update)) as folder:
                save_weights(folder / "weights.safetensors", self.trained)
                write_json(folder / "files.json", hashes(folder))

        try:
            return self.disk.write(write)
        except (OSError, SafetensorError) as error:
            self.progress.say(f"{self._best_folder(update)}: could not be written ({error})")
            return False

    def _best_weights(self, folder: Path) -> dict[str, Tensor]:
        try:
            if (folder / "files.json").exists():
                check_hashes(folder, read_json(folder / "files.json"))
        except (OSError, ValueError, AttributeError) as error:
            raise DocnmtError(
                f"{folder}: damaged ({error})\n  Restore a copy if you have one; --from-scratch starts again."
            ) from None
        return load_weights(folder / "weights.safetensors")

    def _best_folder(self, update: int) -> Path:
        return self.folder / "best" / f"update-{update:08d}"

    # ---- checkpoints ----

    def _save(self, state: State) -> bool:
        """Writes a checkpoint; False if that failed, in which case the one before it stays."""
        state.settings = self.settings(state.update)
        saved = self.group.first and self.checkpoints.save(state, self.trained, self.optimizer)
        if saved:
            wanted = {update for kept in read_states(self.checkpoints.folder) for _, update in kept.best}
            for folder in updates_in(self.folder / "best"):
                if int(folder.name.removeprefix("update-")) not in wanted:
                    shutil.rmtree(folder)
        return self.group.any(saved, self.device)

    def _resume(self) -> State:
        state = self.checkpoints.load(self.trained, self.optimizer, self._check_settings, clean=self.group.first)
        self.group.wait()
        if state is None:
            self._check_nothing_was_lost()
            return State(settings=self.settings(0))
        for _, update in state.best:
            self._best_weights(self._best_folder(update))  # damage is told now, not when all is trained
        self.progress.say(f"continuing from update {state.update:,}")
        return state

    def _check_nothing_was_lost(self) -> None:
        """Without checkpoints, training starts over: not in a folder that must have had some."""
        done = max((line["update"] for line in read_record(self.folder / "metrics.jsonl")), default=0)
        if (self.folder / "model").exists() or done > self.config.checkpoint_every:
            raise DocnmtError(
                f"{self.folder}: its checkpoints are gone, though {done:,} updates were made\n"
                "  Restore a copy of one if you have it; --from-scratch starts the training again."
            )

    def _check_settings(self, state: State) -> None:
        before, now = state.settings, self.settings(state.update)
        unknown = [key for key in now if key not in before]
        if unknown:
            raise DocnmtError(
                f"{self.folder}: this run was started by an older docnmt, which had no {', '.join(unknown)}\n"
                "  Delete the folder to start again. Finished models of older versions still load."
            )
        if others := changed(before, now):
            problem = f"{self.folder}: this run was started with other settings: {', '.join(others)}\n"
            if fall := before["step.cooldown"]:
                problem += f"  Its learning rate falls from update {fall[0]:,} to {fall[1]:,}: keep `updates`, too.\n"
            raise DocnmtError(
                f"{problem}  Restore them, choose another `output` in the recipe, or delete the folder to start again."
            )

    @contextmanager
    def _signals(self) -> Iterator[None]:
        """SIGINT and SIGTERM wait for the end of the update, so that the state can be saved."""

        def note(number: int, _: FrameType | None) -> None:
            self.stop_signal = signal.Signals(number)

        try:
            before = {number: signal.signal(number, note) for number in (signal.SIGINT, signal.SIGTERM)}
        except ValueError:  # not the main thread, so it cannot handle signals
            before = {}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)
