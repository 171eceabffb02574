"""What holds of every system, whatever its equations: on small random models, context on and off."""

from __future__ import annotations

import pytest

from docnmt.systems import SYSTEMS
from tests.every_system import ALL, CASES
from tests.system_checks import checks_of


def test_no_system_is_left_out():
    named = {(case.base, case.context["kind"]) for case in CASES.values()}
    assert named == {(base, kind) for base, kind in SYSTEMS if kind != "none"}, "add a line to tests/every_system.py"


@pytest.mark.parametrize(
    ("check", "case"),
    [
        pytest.param(check, case, id=f"{check.__name__}-{name}")
        for name, case in ALL.items()
        for check in checks_of(case)
    ],
)
def test_of_every_system(check, case):
    check(case)
