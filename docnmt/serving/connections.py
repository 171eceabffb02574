"""Connections as uvicorn has them, with limits that it has not: headers come in time, and one address has not all."""

from __future__ import annotations

import asyncio

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

CONNECTIONS = 1000  # in all; beyond that everybody is told to come again
PER_ADDRESS = 200  # a proxy is one address, too
HEADER_SECONDS = 20

_TOO_MANY = b"HTTP/1.1 429 Too Many Requests\r\nConnection: close\r\nRetry-After: 10\r\nContent-Length: 0\r\n\r\n"


class PatientProtocol(H11Protocol):
    """It waits for a request's headers, but not for ever."""

    _late: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        clients = [getattr(each, "client", None) for each in self.connections]
        if sum(client[0] == self.client[0] for client in clients if client and self.client) > PER_ADDRESS:
            transport.write(_TOO_MANY)
            transport.close()
        self._watch()

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        self._watch()

    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(exc)
        self._stop()

    def _watch(self) -> None:
        """Between requests, once something of the next has come, uvicorn's own time limit is off."""
        if self.conn.their_state is not h11.IDLE:
            self._stop()
        elif self._late is None:
            self._late = self.loop.call_later(HEADER_SECONDS, self.transport.close)

    def _stop(self) -> None:
        if self._late is not None:
            self._late.cancel()
            self._late = None
