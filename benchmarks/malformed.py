"""Requests that no good client sends, any number of them, each from its own seed."""

from __future__ import annotations

import json
import random
import string
from dataclasses import dataclass
from urllib.parse import quote

PATHS = (
    "/translate",
    "/detect",
    "/translate_file",
    "/languages",
    "/download_file/x.txt",
    "/frontend/settings",
    "/page/sentences",
    "/page/translate",
    "/page/explanation",
    "/page/alignment",
    "/page/file",
    "/page/tmx",
)
KINDS = (
    "application/json",
    "application/json; charset=utf-99",
    "application/x-www-form-urlencoded",
    "multipart/form-data; boundary=x",
    "multipart/form-data",
    "multipart/form-data; boundary=",
    "text/plain",
    "/;=",
    "",
)
ENDINGS = (".txt", ".md", ".html", ".epub", ".docx", ".odt", ".po", ".xliff", ".json", ".srt", ".vtt", ".x", "")
FIELDS = ("q", "source", "target", "format", "alternatives", "context", "api_key", "model", "documents", "pairs")
ODD = (
    "",
    "fr",
    "en",
    "auto",
    "\0",
    "\ud800",
    "\ufeff",
    "é" * 40,
    "a" * 300,
    "%s",
    "<b>",
    "../..",
    "true",
    "-1",
    "1e999",
)


@dataclass(frozen=True)
class Malformed:
    method: str
    path: str
    headers: dict[str, str]
    body: bytes

    def raw(self) -> bytes:
        """As it goes over the wire."""
        headers = {"Host": "localhost", "Content-Length": str(len(self.body)), **self.headers}
        head = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
        return f"{self.method} {self.path} HTTP/1.1\r\n{head}\r\n".encode("utf-8", "replace") + self.body


def malformed(seed: int) -> Malformed:
    chance = random.Random(seed)
    kind = chance.choice(KINDS)
    made = {"a": _json, "m": _multipart, "t": _bytes}.get(kind[:1], _bytes)
    if "urlencoded" in kind:
        made = _form
    body = (made if chance.random() < 0.85 else _bytes)(chance)
    if chance.random() < 0.25:
        body = _damaged(chance, body)
    headers = {"Content-Type": kind} if kind else {}
    if chance.random() < 0.1:
        name = chance.choice(("Authorization", "Origin", "Accept", "Cookie", "Range", "X-Forwarded-For"))
        headers[name] = chance.choice(("Basic !", "Bearer", "null", "x" * 2_000, "bytes=9-1", ";;", "http://localhost"))
    return Malformed(_method(chance), _path(chance), headers, body)


def _method(chance: random.Random) -> str:
    return "POST" if chance.random() < 0.9 else chance.choice(("GET", "PUT", "DELETE", "HEAD", "TRACE", "QUERY"))


def _path(chance: random.Random) -> str:
    path = chance.choice(PATHS)
    if chance.random() < 0.1:
        path = "/" + quote(_bytes(chance)[:40])
    if chance.random() < 0.1:
        path += "?" + quote(_bytes(chance)[:40], safe="=&%+")
    return path


def _value(chance: random.Random, depth: int = 0) -> object:
    if depth < 3 and chance.random() < 0.3:
        items = [_value(chance, depth + 1) for _ in range(chance.randrange(4))]
        return items if chance.random() < 0.6 else {chance.choice(FIELDS): item for item in items}
    plain = chance.choice(ODD), chance.randint(-2, 10), None, True, 1e300, 10**30
    return chance.choice(plain) if chance.random() < 0.6 else plain[0]


def _json(chance: random.Random) -> bytes:
    if chance.random() < 0.1:
        return chance.choice((b"[" * 50_000, b'{"q":' * 20_000, b"NaN", b"1" * 5_000, b'"\\ud800"', b""))
    good = {"q": "a", "source": "fr", "target": "en"} if chance.random() < 0.5 else {}
    found = good | {name: _value(chance) for name in chance.sample(FIELDS, chance.randrange(1, 5))}
    extra = {name: _value(chance) for name in ("sentences", "wanted", "position", "texts") if chance.random() < 0.2}
    return json.dumps(found | extra).encode()


def _form(chance: random.Random) -> bytes:
    fields = ((name, chance.choice(ODD)) for name in chance.choices(FIELDS, k=chance.randrange(6)))
    return "&".join(f"{name}={quote(value.encode('utf-8', 'surrogatepass'))}" for name, value in fields).encode()


def _multipart(chance: random.Random) -> bytes:
    parts = []
    for name in chance.choices(("file", "file", *FIELDS, "texts"), k=chance.randrange(1, 6)):
        told = f'form-data; name="{name}"'
        content = chance.choice(ODD).encode("utf-8", "replace")
        if name in ("file", "texts") and chance.random() < 0.9:
            stem = "".join(chance.choices(string.ascii_letters + "/\\.% ", k=chance.randrange(6)))
            told += f'; filename="{stem}{chance.choice(ENDINGS)}"'
            content = _file(chance)
        parts.append(f"--x\r\nContent-Disposition: {told}\r\n\r\n".encode() + content + b"\r\n")
    return b"".join([*parts, b"--x--\r\n"])


def _file(chance: random.Random) -> bytes:
    begins = (
        b"PK\x03\x04",
        b"<html><p>",
        b'<?xml version="1.0"?><!DOCTYPE x [<!ENTITY a "b">]><xliff>&a;',
        b'msgid "a\nmsgstr',
        b'{"a": [',
        b"WEBVTT\n\n00:00 --> x\n",
        b"1\n00:00:01,000 --> 00:00:00,000\n",
        b"\xff\xfe",
        b"\xef\xbb\xbf",
        b"a\0b",
    )
    return chance.choice(begins) + _bytes(chance)


def _bytes(chance: random.Random) -> bytes:
    if chance.random() < 0.5:
        return chance.randbytes(chance.randrange(200))
    return "".join(chance.choices(string.printable + "éß漢🙂", k=chance.randrange(200))).encode()


def _damaged(chance: random.Random, body: bytes) -> bytes:
    """Cut off, or with a byte changed."""
    at = chance.randrange(len(body) + 1)
    return body[:at] if chance.random() < 0.5 else body[:at] + chance.randbytes(1) + body[at + 1 :]
