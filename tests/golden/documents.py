"""Every kind of document, under four translators that are functions of a sentence and under a real model."""

from __future__ import annotations

import hashlib
import io
import re
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.golden.doors import MODEL, command, translated, work_folder
from tests.golden.record import HERE, Exact, Found, golden

FILES = HERE / "files"  # a folder is what stands inside of a packed file
NAMES = tuple(sorted(path.name for path in FILES.iterdir()))

_CODE = re.compile(r"%\(?\w*\)?[sd]|\$?\{+\w+\}+|\$t\(\w+\)|https?://\S+|\$\w+\$")


def _identity(text: str) -> str:
    return text


def _reversed(text: str) -> str:
    return " ".join(reversed(text.split()))


def _codes_dropped(text: str) -> str:
    return " ".join(_CODE.sub("", text).upper().split())


TRANSLATORS: tuple[Callable[[str], str], ...] = (_identity, str.swapcase, _reversed, _codes_dropped)


def content(name: str) -> bytes:
    path = FILES / name
    if path.is_file():
        return path.read_bytes()
    out = io.BytesIO()
    parts = sorted((part for part in path.rglob("*") if part.is_file()), key=lambda part: part.name != "mimetype")
    with zipfile.ZipFile(out, "w") as archive:
        for part in [*parts[:1], *sorted(parts[1:])]:
            packed = zipfile.ZIP_STORED if part.name == "mimetype" else zipfile.ZIP_DEFLATED
            info = zipfile.ZipInfo(part.relative_to(path).as_posix(), (2020, 2, 2, 2, 2, 2))
            archive.writestr(info, part.read_bytes(), packed)
    return out.getvalue()


def opened(data: bytes) -> Any:
    """A packed file as its entries: how tightly they are packed is zlib's business."""
    if not data.startswith(b"PK"):
        return data
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        entries: dict[str, Any] = {
            info.filename: [info.compress_type, list(info.date_time), archive.read(info).decode()]
            for info in archive.infolist()
        }
    return {**entries, "bytes": Exact(hashlib.sha256(data).hexdigest())}


def _through_all(name: str) -> Found:
    """What the translators were asked is recorded, too: where sentences end, and what is left out."""
    data = content(name)
    for say in TRANSLATORS:
        asked: list[str] = []

        def noted(text: str, say: Callable[[str], str] = say, asked: list[str] = asked) -> str:
            asked.append(text)
            return say(text)

        yield say.__name__.strip("_"), opened(translated(data, name, noted))
        yield f"{say.__name__.strip('_')}-sentences", asked
    yield "model", _by_the_model(name, data)


def _by_the_model(name: str, data: bytes) -> Any:
    with work_folder() as folder:
        (folder / name).write_bytes(data)
        said = command("translate", MODEL, name, "-o", "out/" + name)
        assert said.code == 0, said.err
        assert sorted(path.name for path in Path("out").iterdir()) == [name]
        return opened(Path("out", name).read_bytes())


@golden(cases=NAMES)
def documents(name: str) -> Found:
    return _through_all(name)


BROKEN: dict[str, bytes] = {
    "a.docx": b"no archive",
    "b.docx": content("report.odt"),
    "c.odt": content("report.docx"),
    "d.epub": content("report.odt"),
    "e.xlf": b"<xliff><file>",
    "f.xlf": b'<!DOCTYPE x [<!ENTITY a "b">]><xliff version="1.2"/>',
    "g.json": b'{"a": "b"',
    "h.po": b'msgid "a"\nmsgstr "b',
    "i.srt": b"Un film sans heures\n",
    "j.vtt": b"Un film sans heures\n",
    "k.txt": b"caf\xe9\n",
    "l.html": b"<p>\xff\xfe</p>",
    "m.md": b"\x00\xff",
    "n.pdf": b"%PDF",
    "o.doc": b"",
    "p.txt": b"",
    "q.json": b"",
}


@golden()
def documents_refused() -> Found:
    """What is broken, as the command line tells it: one by one and among others."""
    with work_folder() as folder:
        for name, data in BROKEN.items():
            (folder / name).write_bytes(data)
            said = command("translate", MODEL, name, "-o", "out/")
            yield name, [said.code, said.err.replace(str(MODEL), "MODEL")]
        (folder / "good.txt").write_bytes(content("letter.txt"))
        said = command("translate", MODEL, "a.docx", "good.txt", "g.json", "-o", "all/")
        told = re.sub(r"\d\.\d(?= │)", "***", said.err)  # seconds
        told = re.sub(r"^translate: .*/s\)\n", "", told, flags=re.MULTILINE)  # told where it took a second
        yield "several", [said.code, told.replace(str(MODEL), "MODEL"), sorted(p.name for p in Path("all").iterdir())]
