"""Conversations with a server that has the model folder and its int8 twin: what is asked, what comes back."""

from __future__ import annotations

import json
import re
from typing import Any

from tests.golden.documents import content, opened
from tests.golden.doors import MODEL, Answer, Server, done, work_folder
from tests.golden.record import Found, golden

TEXT = "Mes amis ont détesté Thomas. Comme tu le sais, Thomas semble très curieux ce soir.\n\n  Oui & %s.\n"
LEFT_OUT = {"date", "content-length", "etag", "last-modified"}
JSON, FORM = "application/json", "application/x-www-form-urlencoded"


def _plain(answer: Answer, host: str) -> list[Any]:
    """Status, headers and body, without ports, times and random names."""
    headers = {name: value for name, value in sorted(answer.headers.items()) if name not in LEFT_OUT}
    body: Any = answer.body.decode("utf-8", "backslashreplace").replace(host, "HOST")
    body = re.sub(r"/download_file/[^\"]*", "/download_file/KEY", body)
    if answer.headers.get("content-type", "").startswith(JSON):
        body = json.loads(body)
    return [answer.status, {name: value.replace(host, "HOST") for name, value in headers.items()}, body]


def _multipart(fields: dict[str, str], name: str, data: bytes) -> bytes:
    parts = [f'--b\r\nContent-Disposition: form-data; name="{k}"\r\n\r\n{v}\r\n'.encode() for k, v in fields.items()]
    head = f'--b\r\nContent-Disposition: form-data; name="file"; filename="{name}"\r\n\r\n'.encode()
    return b"".join([*parts, head, data, b"\r\n--b--\r\n"])


ASKED: dict[str, dict[str, Any]] = {
    "text": {"q": TEXT},
    "list": {"q": ["Mes amis ont détesté Thomas.", "", "Oui."]},
    "off": {"q": TEXT, "context": False},
    "alternatives": {"q": TEXT, "alternatives": 2},
    "html": {"q": "<p>Mes <b>amis</b> ont détesté Thomas.</p><pre>x</pre>", "format": "html"},
    "auto": {"q": TEXT, "source": "auto"},
    "int8": {"q": TEXT, "model": "int8"},
    "empty": {"q": ""},
    "regions": {"q": "Oui.", "source": "fr_FR", "target": "EN-gb"},
    "other-language": {"q": "Oui.", "target": "de"},
    "reversed": {"q": "Yes.", "source": "en", "target": "fr"},
    "no-text": {},
    "number": {"q": 7},
    "format": {"q": "Oui.", "format": "pdf"},
    "model": {"q": "Oui.", "model": "absent"},
    "too-many": {"q": "Oui.", "alternatives": 99},
    "long": {"q": "Oui. " * 2000},
}
PATHS = ["/", "/languages", "/frontend/settings", "/health", "/openapi.json", "/page/models", "/nothing", "/translate"]
FILES = ["letter.txt", "page.html", "report.docx", "film.srt", "strings.json", "shop.po"]


@golden()
def exchanges() -> Found:
    with work_folder():
        done("quantize", MODEL, "-o", "int8")
        server = Server(MODEL, "int8", "--max-characters", 5000, "--max-file", 0.05)
        try:
            yield "said", [line.replace(server.host, "HOST") for line in server.said]
            for path in PATHS:
                yield f"GET {path}", _plain(server.ask("GET", path), server.host)
            for name, fields in ASKED.items():
                body = json.dumps({"source": "fr", "target": "en"} | fields).encode()
                yield (
                    f"translate/{name}",
                    _plain(server.ask("POST", "/translate", body, Content_Type=JSON), server.host),
                )
            form = b"q=Oui.&source=fr&target=en&alternatives=1"
            yield "translate/form", _plain(server.ask("POST", "/translate", form, Content_Type=FORM), server.host)
            yield "translate/broken", _plain(server.ask("POST", "/translate", b"{", Content_Type=JSON), server.host)
            asked = json.dumps({"q": TEXT}).encode()
            yield "detect", _plain(server.ask("POST", "/detect", asked, Content_Type=JSON), server.host)
            foreign = server.ask("POST", "/translate", form, Content_Type=FORM, Origin="http://elsewhere.example")
            yield "foreign-origin", _plain(foreign, server.host)
            yield from _files(server)
            yield from _page(server)
            told = server.ask("GET", "/metrics").body.decode().splitlines()
            yield "metrics", sorted(line.rpartition(" ")[0] for line in told if "_bucket" not in line)
        finally:
            code = server.stop()
        yield "stopped", code


def _files(server: Server) -> Found:
    kind = "multipart/form-data; boundary=b"
    cases = {name: content(name) for name in FILES}
    cases |= {"a.docx": b"broken", "b.pdf": b"%PDF", "c.txt": b"x" * 200_000, "été.txt": "Un été.".encode()}
    for name, data in cases.items():
        body = _multipart({"source": "fr", "target": "en"}, name, data)
        answer = server.ask("POST", "/translate_file", body, Content_Type=kind)
        yield f"file/{name}", _plain(answer, server.host)
        if answer.status == 200:
            fetched = server.ask("GET", "/" + json.loads(answer.body)["translatedFileUrl"].split("/", 3)[3])
            yield f"file/{name}/head", _plain(Answer(fetched.status, fetched.headers, b""), server.host)
            yield f"file/{name}/data", opened(fetched.body)


def _page(server: Server) -> Found:
    """What the page asks for; its scripts and styles as they are served."""
    sentences = ["Mes amis ont détesté Thomas.", "Comme tu le sais, Thomas semble très curieux ce soir."]
    pair = {"source": sentences[0], "target": "My friends hated Thomas."}
    for name, asked in {
        "translate": {"documents": [{"sentences": sentences}, {"sentences": ["12.", "Oui."], "context": False}]},
        "alignment": pair,
        "explanation": {"source": sentences, "target": ["My friends hated Thomas.", "Thomas is nosy."], "position": 1},
        "tmx": {"pairs": [["a", "Oui & non.", "Yes."], ["b", "Bon.", "Good."]]},
        "nonsense": {"documents": 7},
    }.items():
        path = f"/page/{'translate' if name == 'nonsense' else name}"
        answer = server.ask("POST", path, json.dumps(asked).encode(), Content_Type=JSON)
        status, headers, body = _plain(answer, server.host)
        if "ndjson" in headers.get("content-type", ""):  # in the order in which they were done
            body = sorted((json.loads(line) for line in body.splitlines()), key=json.dumps)
        yield f"page/{name}", [status, headers, body]
    text = _multipart({}, "text.txt", "Le chat dort. Il rêve.\n\n- Non !\n".encode())
    answer = server.ask("POST", "/page/sentences", text, Content_Type="multipart/form-data; boundary=b")
    yield "page/sentences", _plain(answer, server.host)
    page = server.ask("GET", "/").body.decode()
    for path in sorted(set(re.findall(r'(?:src|href)="/?(static/[^"]+)"', page))):
        yield f"page/{path}", server.ask("GET", f"/{path}").body
