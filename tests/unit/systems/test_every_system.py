"""What holds of every system, whatever its equations: on small random models, context on and off."""

from __future__ import annotations

import pytest

from docnmt.base.errors import DocnmtError
from docnmt.systems import SYSTEMS, system_of
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


@pytest.mark.parametrize(
    ("kinds", "said"),
    [
        (("transformer", "attentoin"), "context.kind: unknown value 'attentoin'\n  Did you mean 'attention'?"),
        (("rnn", "none"), "model.kind: unknown value 'rnn'"),
        (("rnnsearch", "attention"), "is not available for rnnsearch\n  Use none, hierarchical, cache."),
    ],
)
def test_a_system_that_is_not_there_is_refused(kinds, said):
    with pytest.raises(DocnmtError) as refused:
        system_of(*kinds)
    assert said in str(refused.value)
