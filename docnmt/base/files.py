"""Files and folders that are either complete or absent, checked by their hashes, with one writer at a time."""

from __future__ import annotations

import errno
import fcntl
import hashlib
import json
import os
import shlex
import shutil
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from datetime import datetime
from pathlib import Path
from typing import IO, Any

from docnmt.base.errors import DocnmtError

HOST = os.uname().nodename.partition(".")[0]


# ---- complete or absent ----


def _temporary(path: Path, ending: str) -> Path:
    """A name that no other process uses: on a shared disk two machines may have processes of the same number."""
    return path.with_name(f".{path.name}.{HOST}.{os.getpid()}.{ending}")


class NoRoom(DocnmtError):
    """The disk is full. The new file was not written; an older file of the same name is still there."""

    def __init__(self, path: Path):
        super().__init__(f"{path}: cannot be written: the disk is full\n  Free some space and run the command again.")
        self.path = path


def is_full(error: BaseException) -> bool:
    """Whether the cause is a full disk: by error number, or by the text that safetensors quotes."""
    return getattr(error, "errno", None) in (errno.ENOSPC, errno.EDQUOT) or "No space left on device" in str(error)


@contextmanager
def _needs_room(path: Path) -> Iterator[None]:
    try:
        yield
    except Exception as error:
        if isinstance(error, NoRoom) or is_full(error):  # of a file within a folder: the folder has the name
            raise NoRoom(path) from error
        raise


@contextmanager
def write_atomically(path: str | Path, binary: bool = False) -> Iterator[IO[Any]]:
    """A file that gets its name only when it is complete and on disk. Devices and pipes are written to directly."""
    path = Path(path)
    if path.exists() and not path.is_file() and not path.is_dir():
        with _open(path, binary) as f:
            yield f
        return
    temporary = _temporary(path, "part")
    try:
        with _needs_room(path):
            with _open(temporary, binary) as f:
                yield f
                f.flush()
                os.fsync(f.fileno())
            os.replace(temporary, path)
            sync_folder(path.parent)
    finally:
        temporary.unlink(missing_ok=True)


def _open(path: Path, binary: bool) -> IO[Any]:
    return open(path, "wb") if binary else open(path, "w", encoding="utf-8", newline="\n")


def sync_folder(folder: Path) -> None:
    """Without this a power cut may lose a file's new name, even if the file itself is on disk."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    except OSError:  # file systems that cannot do it
        pass
    finally:
        os.close(handle)


def write_json(path: str | Path, value: Any) -> None:
    with write_atomically(path) as file:
        json.dump(value, file, indent=2, ensure_ascii=False)
        file.write("\n")


def write_json_lines(path: str | Path, rows: Iterable[Any]) -> None:
    with write_atomically(path) as file:
        file.writelines(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)


@contextmanager
def folder_atomically(path: str | Path) -> Iterator[Path]:
    """A folder that gets its name only when everything in it is complete; an older one of that name is replaced."""
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = _temporary(path, "part")
    shutil.rmtree(temporary, ignore_errors=True)
    temporary.mkdir()
    try:
        with _needs_room(path):
            yield temporary
            for file in temporary.rglob("*"):
                if file.is_file():
                    with open(file, "rb") as handle:
                        os.fsync(handle.fileno())
            sync_folder(temporary)
            if path.exists():  # a folder cannot be replaced by another in one call
                old = _temporary(path, "old")
                os.rename(path, old)
                try:
                    os.rename(temporary, path)
                except OSError:
                    os.rename(old, path)
                    raise
                shutil.rmtree(old)
            else:
                os.rename(temporary, path)
            sync_folder(path.parent)
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


def remove_unfinished(folder: Path) -> None:
    """Removes what processes left behind when they were killed while writing. Only the folder's owner may call it."""
    for pattern in (".*.part", ".*.old"):
        for left in folder.glob(pattern):
            shutil.rmtree(left) if left.is_dir() else left.unlink()


# ---- hashes: a byte that has changed on disk is noticed when its folder is read ----


def hashes(folder: Path) -> dict[str, str]:
    """The SHA-256 of each file in a folder, for its card."""
    return {path.name: file_hash(path) for path in sorted(folder.iterdir()) if path.is_file()}


def check_hashes(folder: Path, known: Mapping[str, str]) -> None:
    """OSError if a file is not the one that the folder's card describes."""
    for name, digest in known.items():
        if name != os.path.basename(name):
            raise OSError(f"{name} is not the name of a file in this folder")
        if file_hash(regular_file(folder / name)) != digest:
            raise OSError(f"{name} has changed since it was written: its SHA-256 differs")


def write_card(path: Path, table: Mapping[str, Any]) -> None:
    """A folder's card, with the hashes of all files in the folder and of the card itself."""
    table = {**table, "files": hashes(path.parent)}
    write_json(path, {**table, "files": {**table["files"], path.name: json_hash(table)}})


def check_card(path: Path, table: Mapping[str, Any]) -> None:
    """OSError if the card, or a file that it describes, is not as it was written. Older cards have fewer hashes."""
    known = dict(table.get("files", {}))
    own = known.pop(path.name, None)
    if own is not None and own != json_hash({**table, "files": known}):
        raise OSError(f"{path.name} has changed since it was written: its SHA-256 differs")
    check_hashes(path.parent, known)


def json_hash(value: Any) -> str:
    """The SHA-256 of anything that JSON can say."""
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()


def file_hash(path: str | Path) -> str:
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def regular_file(path: Path) -> Path:
    """OSError if the path is a pipe or a device, from which reading might never end."""
    if path.exists() and not path.is_file():
        raise OSError(f"{path.name} is not a regular file but a pipe, a device or a folder")
    return path


LARGEST_JSON = 64 << 20  # bytes of a card


def read_json(path: Path) -> Any:
    """A small file that docnmt wrote. Anything else raises an OSError or a ValueError."""
    with open(regular_file(path), "rb") as file:
        data = file.read(LARGEST_JSON + 1)
    if len(data) > LARGEST_JSON:
        raise ValueError(f"larger than {LARGEST_JSON >> 20} MB")
    try:
        return json.loads(data.decode())
    except RecursionError:
        raise ValueError("nested too deeply") from None


# ---- one owner at a time ----

# flock(2): the system releases the lock when its holder ends, whatever the reason. The lock is a
# file beside the folder that names the owner. It stays, empty, when nobody has it: a file that is
# deleted might be locked twice.

PATIENCE = 1.0  # seconds: a killed process may take a moment to end, and testing a lock holds it briefly
LOOK_AGAIN = 0.2
LOCAL_LOCKS = {"nolock", "local_lock=all", "local_lock=flock", "localflock"}  # mount options of NFS and Lustre


@dataclass(frozen=True)
class Owner:
    """The process that is using a folder."""

    host: str
    pid: int
    command: str
    since: str

    @classmethod
    def this_process(cls) -> Owner:
        command = shlex.join([Path(sys.argv[0]).name, *sys.argv[1:]])
        return cls(HOST, os.getpid(), command, datetime.now().astimezone().isoformat(" ", "seconds"))

    def __str__(self) -> str:
        return f"process {self.pid} on {self.host} since {self.since} ({self.command})"


class InUse(DocnmtError):
    """Another process owns the folder."""

    def __init__(self, folder: Path, owner: Owner | None):
        self.owner = owner
        super().__init__(
            f"{folder}: in use by {owner or 'another process'}\n"
            "  Wait until it has finished, or stop it: the next run continues from what it has saved."
        )


@contextmanager
def owned(folder: str | Path, wait: Callable[[str], None] | None = None) -> Iterator[None]:
    """No other process can own the folder until the block or the process ends.

    If another process owns it, this raises `InUse`; with `wait` it waits instead, and tells `wait` for whom.
    """
    folder = Path(folder)
    folder.parent.mkdir(parents=True, exist_ok=True)
    path = _lock_of(folder)
    refused_at = time.monotonic() + PATIENCE
    told = False
    while True:
        with open(path, "a+", encoding="utf-8") as file:
            held = _try_lock(file, folder)
            if held and _is_still(file, path):
                with _needs_room(path):
                    _fill(file, json.dumps(asdict(Owner.this_process())))
                try:
                    yield
                finally:
                    _fill(file, "")
                return
        if held:
            continue  # the file was deleted in the meantime, and another process may have locked a new one
        if time.monotonic() > refused_at:
            if wait is None:
                raise InUse(folder, _written(path))
            if not told:
                wait(f"{folder}: waiting for {_written(path) or 'another process'}")
                told = True
        time.sleep(LOOK_AGAIN)


def owner_of(folder: str | Path) -> Owner | None:
    """The process, on any machine, that is using the folder; None if there is none."""
    path = _lock_of(Path(folder))
    try:
        with open(path, encoding="utf-8") as file:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return _written(path) or Owner("?", 0, "?", "?")
    except OSError:  # no lock file, or no locks on this file system
        pass
    return None


def lock_trouble(folder: Path) -> str:
    """Why locks do not keep other processes out of this folder; "" where they do, as far as one machine can tell."""
    with tempfile.NamedTemporaryFile(dir=folder, prefix=".lock-trial-") as first, open(first.name) as second:
        try:
            fcntl.flock(first, fcntl.LOCK_EX | fcntl.LOCK_NB)
            fcntl.flock(second, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            local = LOCAL_LOCKS.intersection(_mount_options(folder))
            return f"mounted with {local.pop()}: its locks are not seen by other machines" if local else ""
        except OSError as error:
            return f"this file system refuses locks ({error.strerror})"
    return "this file system gives the same lock to two processes"


def _lock_of(folder: Path) -> Path:
    return folder.with_name(f"{folder.name}.lock")


def _try_lock(file: IO[str], folder: Path) -> bool:
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:  # a file system without locks: better no lock than no work
        pass
    _warn_of_trouble(folder.parent)
    return True


_TRIED: set[int] = set()  # file systems whose locks have been tried


def _warn_of_trouble(folder: Path) -> None:
    device = os.stat(folder).st_dev
    if device in _TRIED:
        return
    _TRIED.add(device)
    if trouble := lock_trouble(folder):
        warnings.warn(f"{folder}: {trouble}. Make sure that no two processes use it at once.", stacklevel=2)


def _is_still(file: IO[str], path: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(file.fileno()), os.stat(path))
    except FileNotFoundError:
        return False


def _fill(file: IO[str], text: str) -> None:
    file.truncate(0)
    os.write(file.fileno(), text.encode())  # not through the buffer, which on a full disk would be written once more


def _written(path: Path) -> Owner | None:
    try:
        return Owner(**json.loads(path.read_text(encoding="utf-8")))
    except (OSError, ValueError, TypeError):
        return None  # not written yet


def _mount_options(folder: Path) -> list[str]:
    """The mount options of the folder's file system; empty if the operating system does not tell."""
    try:
        mounts = [line.split() for line in Path("/proc/self/mounts").read_text(encoding="utf-8").splitlines()]
    except OSError:
        return []
    around = [mount for mount in mounts if folder.resolve().is_relative_to(mount[1])]
    return max(around, key=lambda mount: len(mount[1]))[3].split(",") if around else []
