"""Bodies that are too large or take too long to come are not waited for."""

from __future__ import annotations

import asyncio
import time

from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from docnmt.serving.settings import Settings

TEXT_ROUTES = ("/translate", "/detect")
FORM_BYTES = 64 * 1024  # of an upload, beside the file


class BodyLimits:
    def __init__(self, app: ASGIApp, settings: Settings):
        self.app, self.settings = app, settings

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        text = scope["path"] in TEXT_ROUTES
        limit = self.settings.text_bytes if text else self.settings.file_bytes + FORM_BYTES
        told = f"Invalid request: the body has more than {limit:,} bytes"
        announced = Headers(scope=scope).get("content-length", "")
        if announced.isdecimal() and int(announced[:20]) > limit:
            await JSONResponse({"error": told}, 413)(scope, receive, send)
            return
        until = time.monotonic() + self.settings.seconds
        size, whole = 0, False

        async def counted() -> Message:
            nonlocal size, whole
            if whole:  # what is waited for now is that the client hangs up
                return await receive()
            try:
                async with asyncio.timeout(max(0.1, until - time.monotonic())):
                    message = await receive()
            except TimeoutError:
                raise HTTPException(408, "The request did not arrive in time.") from None
            size += len(message.get("body", b""))
            whole = not message.get("more_body", False)
            if size > limit:
                raise HTTPException(413, told)
            return message

        await self.app(scope, counted, send)
