"""The mutants of benchmarks/mutants.py."""

from __future__ import annotations

import ast

import pytest

from benchmarks.mutants import definitions, mutants, shape

SOURCE = '''
class Room:
    """Counts."""

    def fits(self, count: int = 0) -> bool:
        """Ä: more bytes than characters before what is changed"""
        if not count:
            raise ValueError(f"no {count + 1}")
        return self.left >= count and self.size == 3
'''.encode()


def functions(source: bytes) -> dict[str, ast.FunctionDef]:
    return dict(definitions(ast.parse(source)))


def test_each_changes_one_thing_and_nothing_that_no_test_could_notice():
    made = mutants("room.py", SOURCE, functions(SOURCE)["Room.fits"])
    changed = [(mutant.line, SOURCE[mutant.start : mutant.end].decode(), mutant.text) for mutant in made]
    assert changed == [
        (5, "0", "(1)"),
        (7, "not count", "(count)"),
        (9, "self.left >= count and self.size == 3", "(self.left >= count or self.size == 3)"),
        (9, "self.left >= count", "(self.left > count)"),
        (9, "self.size == 3", "(self.size != 3)"),
        (9, "3", "(4)"),
    ]
    for mutant in made:
        ast.parse(mutant.apply(SOURCE))


@pytest.mark.parametrize(
    ("old", "new", "same"), [(b"Counts", b"Ticks", True), (b"no {", b"none {", True), (b"3", b"4", False)]
)
def test_a_function_is_known_again_by_all_but_its_strings(old, new, same):
    one, other = (functions(source)["Room.fits"] for source in (SOURCE, SOURCE.replace(old, new)))
    assert (shape("Room.fits", one) == shape("Room.fits", other)) is same
