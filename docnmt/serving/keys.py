"""API keys: asked for where a server has any."""

from __future__ import annotations

import base64
import binascii
import hmac

from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.requests import HTTPConnection
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Receive, Scope, Send


class Keys:
    def __init__(self, keys: frozenset[str]):
        self._keys = [key.encode() for key in keys]

    def __bool__(self) -> bool:
        return bool(self._keys)

    def check(self, request: HTTPConnection, given: str = "") -> None:
        """The key is a parameter, as LibreTranslate has it, or in the header Authorization."""
        candidates = [*_authorization(request.headers), *([given] if given else [])]
        if not self._keys or any(self._known(key) for key in candidates):
            return
        raise HTTPException(403, "Invalid API key" if candidates else "This server asks for an API key: api_key.")

    def _known(self, key: str) -> bool:
        given = key.encode("utf-8", "replace")
        return any(hmac.compare_digest(given, each) for each in self._keys)  # as long for one that is nearly right


class KeysForPages:
    """Browsers ask their users for a password, which is the key; their scripts then need not know it."""

    def __init__(self, app: ASGIApp, keys: Keys, open_to_all: frozenset[str]):
        """Open to all, or checking for themselves, are the routes whose path has one of these as its first part."""
        self.app, self.keys, self.open_to_all = app, keys, open_to_all

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        first = scope.get("path", "").strip("/").partition("/")[0]
        if scope["type"] == "http" and self.keys and first not in self.open_to_all:
            try:
                self.keys.check(HTTPConnection(scope))
            except HTTPException as error:
                ask = {"WWW-Authenticate": 'Basic realm="docnmt: any name, and your API key as the password"'}
                await JSONResponse({"error": error.detail}, 401, ask)(scope, receive, send)
                return
        await self.app(scope, receive, send)


def _authorization(headers: Headers) -> list[str]:
    scheme, _, value = headers.get("authorization", "").partition(" ")
    if scheme.lower() == "bearer":
        return [value.strip()]
    if scheme.lower() == "basic":
        try:
            return [base64.b64decode(value).decode().partition(":")[2]]
        except (binascii.Error, UnicodeDecodeError):
            return []
    return []
