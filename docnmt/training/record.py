"""The record of a run.

metrics.jsonl   what the run determines: losses, scores, learning rates; the same, to the byte, however often it was
                killed and resumed
speed.jsonl     what the machine adds: rates and times
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from docnmt.base.files import write_atomically


class Record:
    def __init__(self, folder: Path, update: int):
        """Opens the record at `update`: lines beyond it were written by a run that was killed and will come again."""
        self.folder = folder
        for name in ("metrics.jsonl", "speed.jsonl"):
            _cut(folder / name, update)
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
        with open(self.folder / name, "a", encoding="utf-8") as file:
            file.write(json.dumps(line, ensure_ascii=False) + "\n")


def read_record(path: Path) -> list[dict[str, Any]]:
    """The whole lines of a record; one cut short by a kill is left out."""
    lines = []
    if path.exists():
        for line in path.read_bytes().split(b"\n"):
            try:
                lines.append(json.loads(line))
            except ValueError:
                break
    return lines


def _cut(path: Path, update: int) -> None:
    lines = read_record(path)
    kept = [line for line in lines if line["update"] <= update]
    if path.exists():
        with write_atomically(path) as file:
            file.writelines(json.dumps(line, ensure_ascii=False) + "\n" for line in kept)


def _tensorboard(folder: Path, update: int) -> Any:
    try:
        from torch.utils.tensorboard import SummaryWriter
    except ImportError:  # an extra: pip install "docnmt[tensorboard]"
        return None
    return SummaryWriter(str(folder / "tensorboard"), purge_step=update + 1)
