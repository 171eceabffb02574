"""Measures of what context does."""

from pathlib import Path


def static(name: str) -> str:
    """A style or script that goes into a page."""
    return "\n" + (Path(__file__).parent / "static" / name).read_text(encoding="utf-8")
