"""How much memory and time it takes to read a document of each kind, such as people write and such as are made to hurt.

    python benchmarks/reading.py [--size 2] [--only docx md] [--hostile] [--json FILE]

Memory is the peak of a process of its own while it reads, less what it took with everything imported and the file in
hand, by the byte of the document: of archives, of what they unpack to. "MB a MB more" is what the second half of the
size adds to it, which tells what grows with the size from what any document takes. Time is by the megabyte, at half the
size and at the whole: where the two differ much, it does not grow with the size alone.
"""

from __future__ import annotations

import argparse
import io
import json
import subprocess
import sys
import tempfile
import time
import zipfile
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from rich.console import Console

from docnmt.base.errors import DocnmtError
from docnmt.base.files import write_json
from docnmt.base.report import Column, Table
from docnmt.documents.translate import FileSentences
from tests.heavy_files import HOSTILE, ORDINARY

MOST = 12  # times its size, and
FIXED = 64  # megabytes for any document
MB = 1 << 20


def unpacked(data: bytes) -> int:
    if not data.startswith(b"PK"):
        return len(data)
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        return sum(entry.file_size for entry in archive.infolist())


def peak() -> int:
    """Of this process alone: what getrusage says begins with that of the one that started it."""
    status = Path("/proc/self/status").read_text()
    return next(int(line.split()[1]) for line in status.splitlines() if line.startswith("VmHWM:")) * 1024


def measure(kind: str, path: str) -> dict[str, Any]:
    """In this process, which does nothing else: making the file would take memory that is free again."""
    FileSentences(ORDINARY[kind](1000), f"a.{kind}", ("fr", "en"))  # all that is imported and cached
    data = Path(path).read_bytes()
    before, started = peak(), time.process_time()
    refused, sentences = "", 0
    try:
        sentences = len(FileSentences(data, f"a.{kind}", ("fr", "en")))
    except DocnmtError as error:
        refused = str(error).partition("\n")[0]
    seconds = time.process_time() - started
    return {
        "bytes": unpacked(data),
        "packed": len(data),
        "sentences": sentences,
        "memory": peak() - before,
        "seconds": seconds,
        "refused": refused,
    }


def apart(kind: str, shape: str, size: int) -> dict[str, Any]:
    make = HOSTILE[kind][shape] if shape else ORDINARY[kind]
    with tempfile.NamedTemporaryFile() as file:
        file.write(make(size))
        file.flush()
        command = [sys.executable, __file__, "--one", kind, file.name]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
    return {"kind": kind, "shape": shape or "ordinary", **json.loads(done.stdout)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--size", type=float, default=2, help="megabytes of a document")
    parser.add_argument("--only", nargs="+", default=list(ORDINARY), choices=list(ORDINARY))
    parser.add_argument("--shapes", nargs="+", help="of hostile files, such as: dense wide")
    parser.add_argument("--hostile", action="store_true", help="also what is made to take time and memory")
    parser.add_argument("--json", default="")
    parser.add_argument("--one", nargs=2, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.one:
        print(json.dumps(measure(*options.one)))
        return
    columns = ("sentences", "MB", "times its size", "MB a MB more", "s a MB at half", "s a MB")
    table = Table("Reading", (Column("file", text=True), *map(Column, columns), Column("refused", text=True)))
    size = int(options.size * MB)
    rows = []
    for kind in options.only:
        shapes = ("", *(HOSTILE[kind] if options.hostile else ()))
        for shape in (shape for shape in shapes if not options.shapes or shape in options.shapes):
            half, whole = apart(kind, shape, size // 2), apart(kind, shape, size)
            rows.append(whole)
            if options.json:
                write_json(options.json, rows)  # each time: all of them take long
            times = whole["memory"] / whole["bytes"]
            more = (whole["memory"] - half["memory"]) / max(1, whole["bytes"] - half["bytes"])
            over = more > MOST or whole["memory"] > MOST * whole["bytes"] + FIXED * MB
            speeds = (f"{row['seconds'] / row['bytes'] * MB:.2f}" for row in (half, whole))
            memory = (f"{whole['memory'] / MB:.0f}", f"{times:.1f}", f"{more:.1f}{' !' * over}")
            figures = (f"{whole['sentences']:,}", *memory, *speeds)
            table.add(f"{kind} {shape}".strip(), *figures, whole["refused"].partition(": ")[2])
    table.print(Console())


if __name__ == "__main__":
    main()
