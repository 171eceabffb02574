"""What packages call a language: in their names, in folders, in file names."""

from __future__ import annotations

import re
from dataclasses import dataclass

from docnmt.base.errors import DocnmtError

# The variety that is meant by a code alone, where packages name one.
_USUAL = {"zh": "cn", "en": "us"}
ENGLISH = "en"


@dataclass(frozen=True)
class Language:
    code: str  # as asked for, in lower case: "fr", "zh", "pt_br"

    @property
    def package(self) -> str:
        """How names of packages end: libreoffice-help-fr, -zh-cn, -pt-br."""
        base, _, region = self.code.partition("_")
        region = region or (_USUAL.get(base, "") if base != ENGLISH else "")
        return f"{base}-{region}" if region else base

    def is_called(self, name: str) -> bool:
        """Whether a folder or a part of a file name is this language's: fr, fr_FR, fr-FR; C for English."""
        base, _, region = self.code.partition("_")
        plain = re.split("[.@]", name.lower().replace("-", "_"))[0]
        if base == ENGLISH and plain == "c":
            return True
        if region:
            return plain == self.code
        return plain in (base, f"{base}_{_USUAL.get(base, base)}")


def parse_pair(text: str) -> tuple[Language, Language]:
    """`fr-en`, `en-de`, `pt_BR-en`"""
    codes = text.lower().split("-")
    if len(codes) != 2 or not all(re.fullmatch(r"[a-z]{2,3}(_[a-z]{2,4})?", code) for code in codes):
        raise DocnmtError(
            f"--languages {text}: not a pair of languages\n"
            "  Write source and target with a hyphen between them, a region with an underscore: fr-en, en-zh, pt_BR-en."
        )
    if codes[0] == codes[1]:
        raise DocnmtError(f"--languages {text}: the same language twice\n  Name two.")
    return Language(codes[0]), Language(codes[1])
