"""Checkpoints (folders of safetensors and JSON that are complete or absent), and the record of a run."""

from __future__ import annotations

import json
import os
import re
import shutil
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file
from torch import Tensor, nn

from docnmt.base.errors import DocnmtError
from docnmt.base.files import (
    NoRoom,
    check_card,
    folder_atomically,
    is_full,
    read_json,
    write_atomically,
    write_card,
)
from docnmt.base.progress import Progress
from docnmt.data.batches import Position
from docnmt.model_folder import save_weights

#     checkpoints/update-00001000/
#         weights.safetensors     what is trained (frozen weights stay in the model folder they came from)
#         optimizer.safetensors   Adam's two moments of each of them
#         state.json              update, data position, best validations, running sums, hashes of all three
#
# Random numbers need no room: they are a function of the seed and the update (see loop.py).

KEEP = 2  # if the last one is damaged, there is one before it
DAMAGED = (OSError, ValueError, KeyError, TypeError, SafetensorError)  # what reading a damaged one may raise
ASIDE = "damaged-"  # before the name of a checkpoint that could not be read


@dataclass
class Disk:
    """Writes, and waits while the disk is full. Nothing is lost meanwhile: the run is in memory."""

    RETRY = 5.0  # seconds
    REMIND = 600.0

    progress: Progress
    stopped: Callable[[], bool]

    def write(self, write: Callable[[], object]) -> bool:
        """False if the run was told to stop while it waited."""
        told = float("-inf")
        while True:
            try:
                write()
            except NoRoom as full:
                if self.stopped():
                    self.progress.say(f"{full.path}: the disk is full")
                    return False
                if time.monotonic() - told >= self.REMIND:
                    told = time.monotonic()
                    self.progress.say(
                        f"{full.path}: the disk is full. Waiting; training continues when there is space."
                    )
                time.sleep(self.RETRY)
                continue
            if told > float("-inf"):
                self.progress.say("the disk has space again")
            return True


@dataclass
class State:
    """Where training is; together with the weights and the optimiser, all that the rest of the run depends on."""

    update: int = 0
    position: Position = field(default_factory=Position)
    best: list[tuple[float, int]] = field(default_factory=list)  # (lower is better, update), best first
    without_gain: int = 0  # validations since the best one
    running_loss: float = 0.0  # since the last line of the record
    running_tokens: int = 0
    settings: dict[str, Any] = field(default_factory=dict)  # what the run was started with

    @classmethod
    def from_json(cls, table: dict[str, Any]) -> State:
        best = [(score, update) for score, update in table["best"]]
        return cls(**(table | {"position": Position(**table["position"]), "best": best}))


@dataclass
class Checkpoints:
    folder: Path
    progress: Progress
    disk: Disk

    def save(self, state: State, trained: dict[str, nn.Parameter], optimizer: torch.optim.Optimizer) -> bool:
        """Writes a checkpoint; False if that failed: then the previous one stays and the run can continue."""

        def write() -> None:
            with folder_atomically(self.folder / f"update-{state.update:08d}") as folder:
                save_weights(folder / "weights.safetensors", trained)
                save_weights(folder / "optimizer.safetensors", _moments(trained, optimizer))
                write_card(folder / "state.json", asdict(state))

        try:
            if not self.disk.write(write):
                return False
        except (OSError, SafetensorError) as error:
            last = updates_in(self.folder)
            kept = f"the one of {last[-1].name} is still usable" if last else "there is no earlier one"
            self.progress.say(f"{self.folder}: could not save a checkpoint ({error}); {kept}.")
            return False
        for old in updates_in(self.folder)[:-KEEP]:
            shutil.rmtree(old)
        return True

    def load(
        self,
        trained: dict[str, nn.Parameter],
        optimizer: torch.optim.Optimizer,
        check: Callable[[State], None],
        clean: bool,
    ) -> State | None:
        """Loads the newest intact checkpoint; None if there is none.

        `check` may refuse its state before any weight is touched; `clean` moves damaged ones out of the way of those
        to come. If there are checkpoints but none can be read, training does not start over, now or the next time.
        """
        folders = updates_in(self.folder)
        for folder in reversed(folders):
            try:
                state = _read_state(folder, check=True)
                weights = load_file(folder / "weights.safetensors")
                moments = load_file(folder / "optimizer.safetensors")
            except DAMAGED as error:
                back = "; going back to the previous checkpoint" if folder != folders[0] else ""
                self.progress.say(f"{folder} is damaged ({error}){back}")
                if clean:
                    _set_aside(folder)
                continue
            check(state)
            with torch.no_grad():
                for name, parameter in trained.items():
                    parameter.copy_(weights[name])
            _restore(trained, optimizer, moments, state.update)
            return state
        damaged = sorted(self.folder.glob(f"{ASIDE}*"))
        if folders or damaged:
            raise DocnmtError(
                f"{self.folder}: no checkpoint can be read; {len(damaged or folders)} are damaged\n"
                "  Restore a copy of one if you have it; --from-scratch starts the training again."
            )
        return None


def read_states(folder: Path) -> list[State]:
    """The states of the checkpoints in a folder that can be read, oldest first."""
    found = []
    for checkpoint in updates_in(folder):
        with suppress(*DAMAGED):
            found.append(_read_state(checkpoint))
    return found


def updates_in(folder: Path) -> list[Path]:
    """The folders of updates in a folder, oldest first; whatever else somebody put there is left alone."""
    return sorted(path for path in folder.glob("update-*") if path.is_dir() and re.fullmatch(r"update-\d+", path.name))


def start_over(folder: Path) -> None:
    """Deletes all that a step's training wrote."""
    for name in ("checkpoints", "best", "model"):
        shutil.rmtree(folder / name, ignore_errors=True)
    for name in RECORDS:
        (folder / name).unlink(missing_ok=True)


def _set_aside(folder: Path) -> None:
    aside = folder.with_name(f"{ASIDE}{folder.name}")
    shutil.rmtree(aside, ignore_errors=True)
    os.rename(folder, aside)


def _read_state(folder: Path, check: bool = False) -> State:
    """The state of a checkpoint; `check` makes sure that its files are those that were written."""
    table = read_json(folder / "state.json")
    if check:
        sizes = {name: size for name, size in table["files"].items() if isinstance(size, int)}
        for name, size in sizes.items():
            if (folder / name).stat().st_size != size:
                raise OSError(f"{name} has {(folder / name).stat().st_size:,} bytes instead of {size:,}")
        if not sizes:  # older versions wrote no hashes
            check_card(folder / "state.json", table)
    del table["files"]
    return State.from_json(table)


def _moments(trained: dict[str, nn.Parameter], optimizer: torch.optim.Optimizer) -> dict[str, Tensor]:
    return {
        f"{kind}.{name}": optimizer.state[parameter][kind]
        for name, parameter in trained.items()
        if parameter in optimizer.state
        for kind in ("exp_avg", "exp_avg_sq")
    }


def _restore(
    trained: dict[str, nn.Parameter], optimizer: torch.optim.Optimizer, moments: dict[str, Tensor], update: int
) -> None:
    for name, parameter in trained.items():
        if f"exp_avg.{name}" not in moments:
            continue
        optimizer.state[parameter] = {
            "step": torch.tensor(float(update), device=parameter.device),
            "exp_avg": moments[f"exp_avg.{name}"].to(parameter.device),
            "exp_avg_sq": moments[f"exp_avg_sq.{name}"].to(parameter.device),
        }


# ---- the record of a run ----

# metrics.jsonl   what the run determines: losses, scores, learning rates; the same, to the byte, however often it was
#                 killed and resumed
# speed.jsonl     what the machine adds: rates and times

RECORDS = ("metrics.jsonl", "speed.jsonl")


class Record:
    def __init__(self, folder: Path, update: int, disk: Disk):
        """Opens the record at `update`. Lines beyond it, of a run that was killed, are cut: they will come again."""
        self.folder, self.disk = folder, disk
        for name in RECORDS:
            disk.write(partial(_cut, folder / name, update))
        self._board = _tensorboard(folder, update)

    def metrics(self, kind: str, update: int, **values: Any) -> None:
        self._append("metrics.jsonl", {"kind": kind, "update": update, **values})
        if self._board is not None:
            for name, value in values.items():
                if isinstance(value, int | float):
                    self._board.add_scalar(f"{kind}/{name}", value, update)

    def speed(self, update: int, **values: Any) -> None:
        self._append("speed.jsonl", {"update": update, **values})

    def _append(self, name: str, line: dict[str, Any]) -> None:
        self.disk.write(partial(_append, self.folder / name, json.dumps(line, ensure_ascii=False) + "\n"))


def _append(path: Path, line: str) -> None:
    """A whole line, or nothing."""
    size = path.stat().st_size if path.exists() else 0
    try:
        with open(path, "a", encoding="utf-8") as file:
            file.write(line)
    except OSError as error:
        if not is_full(error):
            raise
        if path.exists():
            os.truncate(path, size)
        raise NoRoom(path) from error


def read_record(path: Path) -> list[dict[str, Any]]:
    """The lines of a record, up to the first that is cut short by a kill or was not written by a run."""
    lines = []
    if path.is_file():
        for line in path.read_bytes().split(b"\n"):
            try:
                found = json.loads(line)
            except (ValueError, RecursionError):
                break
            if not isinstance(found, dict) or not isinstance(found.get("update"), int):
                break
            lines.append(found)
    return lines


def _cut(path: Path, update: int) -> None:
    if path.exists():
        kept = [line for line in read_record(path) if line["update"] <= update]
        with write_atomically(path) as file:
            file.writelines(json.dumps(line, ensure_ascii=False) + "\n" for line in kept)


def _tensorboard(folder: Path, update: int) -> Any:
    try:
        from torch.utils.tensorboard import SummaryWriter
    except ImportError:  # an extra: pip install "docnmt[tensorboard]"
        return None
    return SummaryWriter(str(folder / "tensorboard"), purge_step=update + 1)
