from __future__ import annotations

import os

# Where Ray is not installed nothing here is even looked at; pytest says so in a line.
try:
    import ray
except ImportError:
    collect_ignore_glob = ["test_*.py"]

    def pytest_report_header() -> str:
        return 'tests/cluster is skipped: Ray is not installed (make test-ray, or pip install "docnmt[ray]")'
else:
    os.environ.setdefault("RAY_DEDUP_LOGS", "0")
    assert ray
