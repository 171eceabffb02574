"""Packages made by the tests, and an apt that has them."""

from __future__ import annotations

import hashlib
import shutil
import subprocess
from collections.abc import Iterable, Mapping
from pathlib import Path

import numpy as np

from docnmt.base.errors import DocnmtError
from tools.debian.packages import Package


def build(folder: Path, name: str, files: Mapping[str, bytes], version: str = "1.0") -> Path:
    """A .deb with these files, which a script of its own would betray if anybody ran it."""
    root = folder / f"{name}.root"
    for path, content in files.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_bytes(content)
    control = root / "DEBIAN"
    control.mkdir(parents=True)
    fields = {
        "Package": name,
        "Version": version,
        "Architecture": "all",
        "Maintainer": "T <t@t>",
        "Description": "test",
    }
    (control / "control").write_text("".join(f"{key}: {value}\n" for key, value in fields.items()))
    script = control / "postinst"
    script.write_text(f"#!/bin/sh\ntouch {folder}/was-run\n")
    script.chmod(0o755)
    path = folder / f"{name}_{version}_all.deb"
    subprocess.run(["dpkg-deb", "-b", "--root-owner-group", root, path], check=True, capture_output=True)
    shutil.rmtree(root)
    return path


def package(path: Path) -> Package:
    raw = path.read_bytes()
    return Package(path.name.split("_")[0], path.name, len(raw), "SHA256", hashlib.sha256(raw).hexdigest())


class FolderApt:
    """In the place of apt: the packages are files in a folder."""

    def __init__(self, folder: Path):
        self.packages = {path.name.split("_")[0]: path for path in sorted(folder.glob("*.deb"))}
        self.fetched: list[list[str]] = []
        self.fails_at = ""  # the name of a package at which the network is gone

    def find(self, names: Iterable[str]) -> dict[str, Package]:
        return {name: package(self.packages[name]) for name in names if name in self.packages}

    def fetch(self, packages: Iterable[Package], folder: Path) -> None:
        self.fetched.append([each.name for each in packages])
        for each in packages:
            if each.name == self.fails_at:
                (folder / each.file).write_bytes(b"half")
                raise DocnmtError("the network is gone\n  Try again.")
            shutil.copy(self.packages[each.name], folder / each.file)


def page(*blocks: str) -> bytes:
    return "".join(f'<p id="par_{n}">{text}</p>' for n, text in enumerate(blocks)).encode()


_SYLLABLES = ("ba", "ke", "di", "fo", "gu", "la", "me", "ni", "po", "ru", "sa", "te", "vi", "zo")
_ENDINGS = {"en": "n", "fr": "ux", "de": "sch"}


def sentence(number: int, language: str) -> str:
    """One of many that have hardly a word in common; languages spell the same words in other ways."""
    random = np.random.default_rng(number)
    words = ["".join(random.choice(_SYLLABLES, 3)) + _ENDINGS[language] for _ in range(9)]
    return " ".join(words).capitalize() + "."


def help_files(language: str, pages: int, blocks: int = 12, gaps: Iterable[tuple[int, int]] = ()) -> dict[str, bytes]:
    """LibreOffice's help in a language, some blocks of it not translated."""
    missing = set(gaps)
    folder = {"en": "en-US"}.get(language, language)
    texts = {
        number: [
            sentence(number * blocks + block, "en" if (number, block) in missing else language)
            for block in range(blocks)
        ]
        for number in range(pages)
    }
    return {f"usr/share/libreoffice/help/{folder}/text/p/{n:03}.html": page(*text) for n, text in texts.items()}
