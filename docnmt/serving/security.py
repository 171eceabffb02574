"""What pages from elsewhere must not do with a server on this machine, and what browsers are told of its answers."""

from __future__ import annotations

import ipaddress
from collections.abc import Collection

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

HEADERS = {
    "Content-Security-Policy": "default-src 'self'; frame-ancestors 'none'; base-uri 'none'; form-action 'self'",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
}


class Security:
    """Sets headers, and refuses requests that other pages may have made.

    A name in the header Host has to be one of the server's: another one may be an attacker's that leads to this
    machine. Addresses in numbers are nobody's names. What changes or costs something has to come from a page of the
    server itself or of one of `origins`, or from no page at all.
    """

    def __init__(self, app: ASGIApp, names: Collection[str] = (), origins: Collection[str] = ()):
        self.app, self.origins = app, frozenset(origins)
        self.names = frozenset(name.lower() for name in ("localhost", *names))

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return

        async def with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in HEADERS.items():
                    headers.setdefault(name, value)
                if scope["method"] != "GET":
                    headers.setdefault("Cache-Control", "no-store")
            await send(message)

        headers = Headers(scope=scope)
        host, origin = headers.get("host", ""), headers.get("origin", "")
        if not self._is_ours(host):
            answer = _refusal(
                421, f"{host or 'no host'} is no name of this server. Start it with --name to make it one."
            )
        elif scope["method"] not in ("GET", "HEAD", "OPTIONS") and self._is_foreign(origin, host):
            answer = _refusal(403, f"Pages of {origin} may not use this server.")
        else:
            await self.app(scope, receive, with_headers)
            return
        await answer(scope, receive, with_headers)

    def _is_ours(self, host: str) -> bool:
        name = host.rpartition(":")[0] if host.rpartition(":")[2].isdecimal() else host
        try:
            ipaddress.ip_address(name.strip("[]"))
            return True
        except ValueError:
            return name.lower().rstrip(".") in self.names

    def _is_foreign(self, origin: str, host: str) -> bool:
        """Browsers name the origin; other programs do not, and extensions have schemes of their own."""
        if not origin.startswith(("http://", "https://")) and origin != "null":
            return False
        return origin.partition("://")[2].lower() != host.lower() and origin not in self.origins


def _refusal(status: int, message: str) -> JSONResponse:
    return JSONResponse({"error": message}, status)
