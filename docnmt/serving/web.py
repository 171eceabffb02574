"""What surrounds our servers: settings, API keys, protection from other sites, limits on request bodies."""

from __future__ import annotations

import asyncio
import base64
import hmac
import ipaddress
import os
import time
from collections.abc import Callable, Collection, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from starlette.datastructures import Headers, MutableHeaders
from starlette.exceptions import HTTPException
from starlette.requests import HTTPConnection
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from docnmt.base.errors import DocnmtError

# ---- Settings: how much a server accepts, and from whom ----

KEYS = "DOCNMT_API_KEYS"
TEXT_ROUTES = ("/translate", "/detect", "/page/explanation", "/page/alignment")
FORM_BYTES = 64 * 1024  # of an upload besides the file


@dataclass(frozen=True)
class Settings:
    characters: int = 50_000  # of a text
    strings: int = 1_000  # in a list
    file_bytes: int = 10 << 20
    seconds: float = 60  # for a request
    alternatives: int = 10
    keys: frozenset[str] = field(default=frozenset(), repr=False)  # none: no key is asked for
    names: Sequence[str] = ()  # host names of the server
    origins: Sequence[str] = ()  # other sites whose pages may use it

    @property
    def text_bytes(self) -> int:
        """Of a request with a text: JSON may need 12 bytes for a character."""
        return 12 * self.characters + 64 * 1024

    def body_bytes(self, path: str) -> int:
        """Of a request to this path."""
        return self.text_bytes if path in TEXT_ROUTES else self.file_bytes + FORM_BYTES


def read_keys(path: str) -> frozenset[str]:
    """API keys from a file, one a line, or from the environment, separated by spaces."""
    if not path:
        return frozenset(os.environ.get(KEYS, "").split())
    try:
        lines = Path(path).read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise DocnmtError(f"{path}: cannot be read ({error})\n  Give a text file with one key per line.") from None
    keys = frozenset(line.strip() for line in lines if line.strip() and not line.startswith("#"))
    if not keys:
        raise DocnmtError(f"{path}: contains no keys\n  Write one per line, or leave --keys out to allow everyone.")
    return keys


# ---- Messages ----


FAILED = "Something went wrong in the server. See its log."
GONE = 499, "The client has gone."  # nobody reads it, but the metrics count it


def in_sentences(message: str) -> str:
    """The lines of a message joined into one line of sentences."""
    lines = [" ".join(line.split()) for line in message.splitlines() if line.strip()]
    return " ".join(line if line.endswith((".", "!", "?", ":", "…")) else f"{line}." for line in lines)


# ---- Protection from pages of other sites, and security headers ----

HEADERS = {
    "Content-Security-Policy": "default-src 'self'; frame-ancestors 'none'; base-uri 'none'; form-action 'self'",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
}


class Middleware:
    """What stands around an application and looks at HTTP alone."""

    app: ASGIApp

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await (self.http if scope["type"] == "http" else self.app)(scope, receive, send)

    async def http(self, scope: Scope, receive: Receive, send: Send) -> None:
        raise NotImplementedError


class Security(Middleware):
    """Sets headers, and refuses requests that pages of other sites may have made.

    A host name in the header Host must be one of the server's: an attacker can make a name of his own point to this
    machine (DNS rebinding); IP addresses are safe. Requests other than GET must come from a page of the server itself
    or of one of `origins`, or from no page at all.
    """

    def __init__(self, app: ASGIApp, names: Collection[str] = (), origins: Collection[str] = ()):
        self.app, self.origins = app, frozenset(origins)
        self.names = frozenset(name.lower() for name in ("localhost", *names))

    async def http(self, scope: Scope, receive: Receive, send: Send) -> None:
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
            told = f"{host or 'no host'} is not a name of this server. To allow it, start the server with --name."
            answer = JSONResponse({"error": told}, 421)
        elif scope["method"] not in ("GET", "HEAD", "OPTIONS") and self._is_foreign(origin, host):
            answer = JSONResponse({"error": f"Pages of {origin} may not use this server."}, 403)
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
        """Browsers send the origin, other programs do not; extensions have their own schemes."""
        if not origin.startswith(("http://", "https://")) and origin != "null":
            return False
        return origin.partition("://")[2].lower() != host.lower() and origin not in self.origins


# ---- API keys, if the server has any ----


class Keys:
    def __init__(self, keys: frozenset[str]):
        self._keys = [key.encode() for key in keys]

    def __bool__(self) -> bool:
        return bool(self._keys)

    def check(self, request: HTTPConnection, given: str = "") -> None:
        """The key is a parameter, as in LibreTranslate, or in the header Authorization."""
        candidates = [*_authorization(request.headers), *([given] if given else [])]
        if not self._keys or any(self._known(key) for key in candidates):
            return
        raise HTTPException(403, "Invalid API key" if candidates else "This server needs an API key: api_key.")

    def _known(self, key: str) -> bool:
        given = key.encode("utf-8", "replace")
        return any(hmac.compare_digest(given, each) for each in self._keys)  # as slow for a key nearly right


class KeysForPages(Middleware):
    """For pages the key is a password that the browser asks for, so scripts need not know it."""

    def __init__(self, app: ASGIApp, keys: Keys, open_to_all: frozenset[str]):
        """`open_to_all`: first parts of paths that are open, or that check keys themselves."""
        self.app, self.keys, self.open_to_all = app, keys, open_to_all

    async def http(self, scope: Scope, receive: Receive, send: Send) -> None:
        first = scope["path"].strip("/").partition("/")[0]
        if self.keys and first not in self.open_to_all:
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
        except ValueError:  # neither is anything but ASCII base64, nor need its bytes be UTF-8
            return []
    return []


# ---- Limits on the size of request bodies, and on the time they take to arrive ----


HELD = 256 << 20  # bytes of the bodies of all requests at a time
REST_SECONDS, REST_BYTES = 2, 32 << 20  # how much of a body is let go before its connection is closed


class BodyLimits(Middleware):
    """A request that is answered before all of it has arrived ends its connection. Some of the rest is still taken,
    and let go: to a client that is busy sending, a connection closed at once would look broken."""

    _held = 0  # bytes, of all requests

    def __init__(self, app: ASGIApp, limit: Callable[[str], int], seconds: float):
        """The limit of a path in bytes, and the seconds in which a body must arrive."""
        self.app, self.limit, self.seconds = app, limit, seconds

    async def http(self, scope: Scope, receive: Receive, send: Send) -> None:
        limit, headers = self.limit(scope["path"]), Headers(scope=scope)
        told = f"Invalid request: the body has more than {limit:,} bytes."
        announced = headers.get("content-length", "")
        until = time.monotonic() + self.seconds
        has_body = announced not in ("", "0") or "transfer-encoding" in headers
        size, whole = 0, False

        async def counted() -> Message:
            nonlocal size, whole
            if whole:  # now it only waits for the client to disconnect
                return await receive()
            try:
                async with asyncio.timeout(max(0.1, until - time.monotonic())):
                    message = await receive()
            except TimeoutError:
                raise HTTPException(408, "The request did not arrive in time.") from None
            size += len(message.get("body", b""))
            self._held += len(message.get("body", b""))
            whole = not message.get("more_body", False)
            if size > limit:
                whole = False
                raise HTTPException(413, told)
            if self._held > HELD:
                self._held, size, whole = self._held - size, 0, False
                raise HTTPException(429, "Too much is being sent at a time. Try again later.", {"Retry-After": "10"})
            return message

        async def closing(message: Message) -> None:
            early = has_body and not whole
            if early and message["type"] == "http.response.start":
                MutableHeaders(scope=message)["Connection"] = "close"
            elif early and not message.get("more_body", False):
                await send({**message, "more_body": True})
                await _let_go(receive)
                message = {"type": message["type"], "body": b""}
            await send(message)

        if announced.isdecimal() and int(announced[:20]) > limit:
            await JSONResponse({"error": told}, 413)(scope, receive, closing)
            return
        try:
            await self.app(scope, counted, closing)
        finally:
            self._held -= size


async def _let_go(receive: Receive) -> None:
    """Takes the rest of a body, as long as it is not too much."""
    room = REST_BYTES
    with suppress(TimeoutError):
        async with asyncio.timeout(REST_SECONDS):
            while room > 0 and (message := await receive()).get("more_body", False):
                room -= len(message["body"])
