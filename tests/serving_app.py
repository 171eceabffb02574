"""The server's application without processes and network, for tests."""

from __future__ import annotations

import json
from typing import Any

from starlette.testclient import TestClient

from docnmt.serving.requests import Detector
from docnmt.serving.server import make_app
from docnmt.serving.uploads import Downloads
from docnmt.serving.web import Settings
from tests.builders import subwords
from tests.serving_fakes import PoolHere


class Server:
    def __init__(self, *models: tuple[str, str], **settings: Any):
        self.pool = PoolHere(*(models or [("fr", "en")]))
        self.downloads = Downloads()
        detector = Detector({"fr": subwords("source"), "en": subwords("target")})
        self.app = make_app(self.pool, Settings(**settings), detector, self.downloads)  # type: ignore[arg-type]
        self.client = TestClient(self.app, base_url="http://localhost", raise_server_exceptions=False)

    def translate(self, q: Any, source: str = "fr", target: str = "en", **more: Any) -> Any:
        body = json.dumps({"q": q, "source": source, "target": target, **more})  # spells all but ASCII as \u...
        return self.client.post("/translate", content=body, headers={"Content-Type": "application/json"})
