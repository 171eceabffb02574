"""The description of the API holds: requests made from it, good ones and bad ones, get the answers it names."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, settings

from tests.serving_app import Server

schemathesis = pytest.importorskip("schemathesis", reason="needs schemathesis: pip install 'docnmt[dev]'")

SERVER = Server(characters=2_000, strings=20, names=["testserver"])
schema = schemathesis.openapi.from_asgi("/openapi.json", SERVER.app)


@schema.parametrize()
@settings(max_examples=25, deadline=None, suppress_health_check=list(HealthCheck))
def test_answers_are_as_described(case):
    languages = {"source": "fr", "target": "en"}  # no others are served
    if isinstance(case.body, dict):
        case.body.update({name: code for name, code in languages.items() if isinstance(case.body.get(name), str)})
    # That the ending of a file's name matters cannot be described.
    checks = [schemathesis.checks.positive_data_acceptance] if "file" in case.path else []
    case.call_and_validate(excluded_checks=checks)
