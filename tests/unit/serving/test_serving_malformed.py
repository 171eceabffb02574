"""Whatever is sent, no request makes the server fail: a few hundred at random, and more at the benchmark."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from benchmarks.malformed import malformed
from tests.serving_app import Server


@pytest.fixture(scope="module")
def client():
    return Server(characters=200, file_bytes=2_000).client


@settings(max_examples=400, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.integers(0, 2**32))
def test_no_request_makes_the_server_fail(client, seed):
    request = malformed(seed)
    assume(not request.path.startswith(("/page/explanation", "/page/alignment")))  # good ones need a real model
    try:
        answer = client.request(request.method, request.path, content=request.body, headers=request.headers)
    except (UnicodeEncodeError, ValueError):  # not even the client sends it
        return
    assert answer.status_code < 500, (request, answer.text)
