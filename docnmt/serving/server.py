"""Listening: a socket, uvicorn on it, and a stop that lets requests finish."""

from __future__ import annotations

import ipaddress
import logging
import signal
import socket

import uvicorn
from starlette.types import ASGIApp

from docnmt.base.errors import DocnmtError

CONNECTIONS = 1000


def listen(host: str, port: int) -> socket.socket:
    try:
        family = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0][0]
        found = socket.create_server((host, port), family=family, backlog=512)
    except (OSError, OverflowError) as error:
        raise DocnmtError(
            f"cannot listen at {host}, port {port} ({error})\n  Give another --port, or --host."
        ) from None
    found.set_inheritable(False)  # the model processes have no business with it
    return found


def address(bound: socket.socket) -> str:
    host, port = bound.getsockname()[:2]
    return f"http://[{host}]:{port}/" if ":" in host else f"http://{host}:{port}/"


def is_loopback(bound: socket.socket) -> bool:
    return ipaddress.ip_address(bound.getsockname()[0]).is_loopback


async def serve(app: ASGIApp, bound: socket.socket, seconds: float) -> None:
    """Until it is told to stop; then requests that have come in have so many seconds to be answered."""
    config = uvicorn.Config(
        app,
        lifespan="off",
        log_level="error",  # a client that speaks no HTTP is none of ours
        access_log=False,
        server_header=False,
        limit_concurrency=CONNECTIONS,
        timeout_graceful_shutdown=int(seconds) + 1,
        timeout_keep_alive=30,
    )
    logging.getLogger("python_multipart").setLevel(logging.ERROR)  # forms that are none are told to those who sent them
    for number in (signal.SIGINT, signal.SIGTERM):  # raised once more when all is done, and then it is just the end
        signal.signal(number, lambda *_: None)
    await uvicorn.Server(config).serve(sockets=[bound])
