"""Nothing that users can see has changed. `tests.golden` says what the records are, and how they are rewritten."""

from __future__ import annotations

import pytest

from tests.golden import corpora, documents, exchanges, models, verbs  # noqa: F401
from tests.golden.record import RECORDS, SOURCES, known, machine, told


def cases() -> list[object]:
    return [
        pytest.param(source.name, case, marks=[pytest.mark.slow] * source.slow, id=f"{source.name}-{case}".strip("-"))
        for source in SOURCES.values()
        for case in source.cases or ("",)
    ]


@pytest.mark.parametrize(("name", "case"), cases())
def test_golden(name: str, case: str) -> None:
    said = told(SOURCES[name], case)
    assert not said, said


def test_no_record_is_without_a_source() -> None:
    assert {path.stem for path in RECORDS.glob("*.json")} == set(SOURCES)


def test_last_digits_are_compared() -> None:
    """Elsewhere texts are the same and numbers nearly so."""
    others = {name for name in SOURCES if known(name)["machine"] != machine()}
    if others:
        pytest.skip(
            f"records of another kind of machine: {', '.join(sorted(others))}; numbers are compared to a hundredth"
        )
