"""The API: what LibreTranslate's clients send is understood, and what is wrong is said."""

from __future__ import annotations

import asyncio
import base64
import io
import json

import pytest

from docnmt.base.errors import DocnmtError
from docnmt.serving import web
from docnmt.serving.pool import TimedOut, WorkerDied
from docnmt.serving.queue import Overloaded
from docnmt.serving.uploads import Downloads
from docnmt.serving.web import Settings, read_keys
from docnmt.serving.worker import CallFailed, named
from tests.serving_app import Server
from tests.serving_fakes import expected

FRENCH = "le chat cherche la mer."


@pytest.fixture(scope="module")
def server():
    made = Server()
    yield made
    made.downloads.close()


def said(*sentences: str, **options) -> list[str]:
    return [expected(list(sentences), n, **options) for n in range(len(sentences))]


# ---- translating ----


def test_a_text_is_a_document_and_keeps_its_space(server):
    first, second, third = said("Un chat.", "Il dort.", "Bon.")
    answer = server.translate("  Un chat. Il dort.\n\n\tBon. \n")
    assert answer.status_code == 200
    assert answer.json() == {"translatedText": f"  {first} {second}\n\n\t{third} \n"}


def test_a_list_is_one_document(server):
    a, b, c = said("Un chat.", "Il dort.", "Bon.")
    assert server.translate(["Un chat. Il dort.", "", "Bon."]).json() == {"translatedText": [f"{a} {b}", "", c]}
    assert server.translate([]).json() == {"translatedText": []}
    assert server.translate("").json() == {"translatedText": ""}


def test_context_can_be_switched_off(server):
    assert server.translate(["Un chat.", "Bon."], context=False).json()["translatedText"] == said(
        "Un chat.", "Bon.", context=False
    )


def test_what_was_said_before_is_seen_and_not_translated(server):
    a, b, c = said("Un chat.", "Il dort.", "Bon.")
    assert server.translate("Bon.", previous="Un chat. Il dort.").json() == {"translatedText": c}
    assert server.translate(["Il dort.", "Bon."], previous=["Un chat."]).json() == {"translatedText": [b, c]}
    html = server.translate("<p>Bon.</p>", previous=["<p>Un chat.</p><p>Il dort.</p>"], format="html").json()
    assert html == {"translatedText": f"<p>{c}</p>"}
    alone = said("Bon.", context=False)[0]
    assert server.translate("Bon.", previous="Un chat.", context=False).json() == {"translatedText": alone}
    fields = {"q": "Bon.", "previous": ["Un chat.", "Il dort."], "source": "fr", "target": "en"}
    assert server.client.post("/translate", data=fields).json() == {"translatedText": c}
    assert server.translate("Un chat.", previous=[]).json() == {"translatedText": a}
    file = {"file": ("a.txt", io.BytesIO(b"Bon."))}
    answer = server.client.post("/translate_file", files=file, data={**fields, "previous": "Un chat. Il dort."})
    assert server.client.get(answer.json()["translatedFileUrl"]).text == c


def test_a_glossary(server):
    terms = {"chat": "tomcat", "mer": "ocean"}
    (plain,) = said("Un chat.")
    assert server.translate("Un chat.", glossary=terms).json() == {"translatedText": f"{plain} tomcat"}
    fields = {"q": "Un chat.", "source": "fr", "target": "en", "glossary": json.dumps(terms)}
    assert server.client.post("/translate", data=fields).json() == {"translatedText": f"{plain} tomcat"}
    assert server.translate("Un chat.", glossary={}).json() == {"translatedText": plain}
    file = {"file": ("a.txt", io.BytesIO(b"Un chat."))}
    url = server.client.post("/translate_file", files=file, data=fields).json()["translatedFileUrl"]
    assert server.client.get(url).text == f"{plain} tomcat"


def test_terms_that_were_not_met_are_told(server):
    how = {"glossary": {"chat": "tomcat", "mer": "ocean"}}
    unmet = [{"term": "chat", "translation": "tomcat", "sentence": "DEAF chat."}]
    assert server.translate("Une mer. DEAF chat.", **how).json()["unmetTerms"] == unmet
    assert server.translate(["Une mer.", "DEAF chat."], **how).json()["unmetTerms"] == [[], unmet]
    html = server.translate("<p>Une mer.</p><p>DEAF chat.</p>", format="html", **how).json()
    assert html["unmetTerms"] == unmet
    fields = {"source": "fr", "target": "en", "glossary": json.dumps(how["glossary"])}
    file = {"file": ("a.txt", io.BytesIO(b"Une mer. DEAF chat."))}
    assert server.client.post("/translate_file", files=file, data=fields).json()["unmetTerms"] == unmet
    body = {"documents": [{"sentences": ["Une mer.", "DEAF chat."]}], **how}
    lines = [json.loads(line) for line in server.client.post("/page/translate", json=body).text.splitlines()]
    assert {line["sentence"]: line.get("unmet") for line in lines} == {0: None, 1: [["chat", "tomcat"]]}


CUE = "1\n00:00:01,000 --> 00:00:02,000\nL'été à la mer.\n"


def test_the_encoding_of_a_file_is_told_and_can_be_named(server):
    def translated(name: str, data: bytes, **fields: str) -> tuple[dict, bytes]:
        told = {"source": "fr", "target": "en", **fields}
        answer = server.client.post("/translate_file", files={"file": (name, io.BytesIO(data))}, data=told).json()
        return answer, server.client.get(answer["translatedFileUrl"]).content if "translatedFileUrl" in answer else b""

    answer, old = translated("a.srt", CUE.encode("cp1252"))
    assert answer["encoding"] == {"name": "cp1252", "guessed": True} and "été".encode("cp1252") in old
    answer, utf8 = translated("a.srt", CUE.encode())
    assert "encoding" not in answer and utf8.decode() == old.decode("cp1252")
    answer, named = translated("a.txt", "L'été.".encode("utf-16-le"), encoding="utf-16-le")
    assert answer["encoding"] == {"name": "utf-16-le", "guessed": False} and "été" in named.decode("utf-16-le")
    assert "unknown encoding 'nonesuch'" in translated("a.txt", b"a b", encoding="nonesuch")[0]["error"]
    file = {"file": ("a.srt", io.BytesIO(CUE.encode("cp1252")))}
    assert server.client.post("/page/sentences", files=file).json()["encoding"] == {"name": "cp1252", "guessed": True}


def test_the_api_is_described_for_people(server):
    page = server.client.get("/docs")
    assert page.status_code == 200 and page.headers["content-type"].startswith("text/html")
    for told in ("POST /translate", "previous", "glossary", "at most 50,000 characters", "one of fr-en", "<b>429</b>"):
        assert told in page.text
    assert "<script" not in page.text and "://" not in page.text


def test_alternatives(server):
    texts = [expected(["Oui."], 0, rank=rank) for rank in range(3)]
    assert server.translate("Oui.", alternatives=2).json() == {"translatedText": texts[0], "alternatives": texts[1:]}
    found = server.translate(["Oui.", "12"], alternatives=1).json()
    assert found == {"translatedText": [texts[0], "12"], "alternatives": [[texts[1]], []]}


@pytest.mark.parametrize("encoding", ["form", "raw form", "multipart", "query"])
def test_forms_are_understood_like_json(server, encoding):
    fields = {"q": "Un été.", "source": "fr", "target": "en", "alternatives": "1", "context": "false"}
    client, form = server.client, {"Content-Type": "application/x-www-form-urlencoded"}
    match encoding:
        case "form":
            answer = client.post("/translate", data=fields)
        case "raw form":
            content = "&".join(f"{name}={value}" for name, value in fields.items()).encode()
            answer = client.post("/translate", content=content, headers=form)
        case "multipart":
            answer = client.post("/translate", files={name: (None, value) for name, value in fields.items()})
        case _:
            answer = client.post("/translate", params=fields)
    assert answer.json() == server.translate("Un été.", alternatives=1, context=False).json()


def test_several_texts_in_a_form_are_a_list(server):
    fields = {"q": ["Un chat.", "Bon."], "source": "fr", "target": "en"}
    answer = server.client.post("/translate", data=fields)
    assert answer.json() == {"translatedText": said("Un chat.", "Bon.")}


def test_html_keeps_its_tags_and_is_one_document_too(server):
    found = server.translate(["<p>Bon.</p>", "<div>Oui.</div><p>Non.</p>"], format="html", alternatives=1).json()
    a, b, c = said("Bon.", "Oui.", "Non.")
    assert found["translatedText"] == [f"<p>{a}</p>", f"<div>{b}</div><p>{c}</p>"]
    assert found["alternatives"] == [[f"<p>+{a}</p>"], [f"<div>+{b}</div><p>+{c}</p>"]]


def test_the_language_is_found(server):
    found = server.translate([FRENCH, FRENCH], source="auto").json()
    assert [each["language"] for each in found["detectedLanguage"]] == ["fr", "fr"]
    assert found["detectedLanguage"][0]["confidence"] > 90
    assert server.translate(FRENCH, source="auto").json()["detectedLanguage"]["language"] == "fr"
    listed = server.client.post("/detect", json={"q": FRENCH}).json()
    assert [each["language"] for each in listed] == ["fr", "en"]
    assert server.client.post("/detect", data={"q": FRENCH}).json() == listed


def test_names_tell_folders_apart(tmp_path):
    folders = [str(tmp_path / path) for path in ("a/document/model", "b/document/model", "sentence")]
    assert list(named(folders)) == ["a/document", "b/document", f"{tmp_path.name}/sentence"]
    assert list(named(folders[1:])) == ["document", "sentence"]
    assert list(named(folders).values()) == folders


def test_models_are_chosen_by_language_and_by_name():
    server = Server(("fr", "en"), ("en", "fr"), ("fr", "pt_BR"))
    assert server.client.get("/languages").json() == [
        {"code": "fr", "name": "French", "targets": ["en", "pt-BR"]},
        {"code": "en", "name": "English", "targets": ["fr"]},
        {"code": "pt-BR", "name": "Portuguese (BR)", "targets": []},
    ]
    for source, target in (("FR", "en"), ("fr", "pt"), ("fr_FR", "pt_br"), ("en", "fr")):
        assert server.translate("a", source, target).status_code == 200, (source, target)
    assert server.translate("a", "fr", "pt-PT").json() == {"error": "pt-PT is not supported. /languages lists what is."}
    assert server.translate("a", "en", "pt").status_code == 400
    assert server.translate("a", "fr", "en", model="fr-en").status_code == 200
    assert "not available" in server.translate("a", "fr", "en", model="en-fr").json()["error"]
    assert "unknown model. Known are fr-en" in server.translate("a", "fr", "en", model="x").json()["error"]


def test_the_language_of_a_packed_file_has_to_be_given():
    server = Server(("fr", "en"), ("de", "en"))
    for name, source, told in (("a.docx", "auto", "be detected"), ("a.docx", "fr", "a.docx"), ("a.txt", "auto", "")):
        file = {"file": (name, io.BytesIO(FRENCH.encode()))}
        answer = server.client.post("/translate_file", files=file, data={"source": source, "target": "en"})
        assert answer.status_code == (400 if told else 200)
        assert told in answer.text


def test_a_model_that_does_not_say_its_languages_has_codes_of_its_own():
    server = Server(("", ""))
    assert [each["code"] for each in server.client.get("/languages").json()] == ["x-source", "x-target"]
    assert server.translate("a", "x-source", "x-target").json() == {"translatedText": said("a")[0]}
    assert server.translate("a", "auto", "x-target").status_code == 200
    assert server.translate("a", "x-other", "x-target").status_code == 400


# ---- files ----


def test_a_file_is_translated_and_fetched(server):
    file = ("été.html", io.BytesIO(b"<p>Bon.</p><p>Oui.</p>"))
    answer = server.client.post("/translate_file", files={"file": file}, data={"source": "fr", "target": "en"})
    url = answer.json()["translatedFileUrl"]
    assert url.startswith("http://localhost/download_file/")
    fetched = server.client.get(url)
    a, b = said("Bon.", "Oui.")
    assert fetched.text == f"<p>{a}</p><p>{b}</p>"
    assert "attachment" in fetched.headers["content-disposition"]
    assert "%C3%A9t%C3%A9.en.html" in fetched.headers["content-disposition"]
    absent = server.client.get("/download_file/nothing.txt")
    assert absent.json() == {"error": "There is no such file, or it has been deleted."}


@pytest.mark.parametrize(
    ("name", "data", "told"),
    [
        ("x.exe", b"MZ", "file format not supported"),
        ("x.docx", b"PK no", "x.docx"),
        ("../../x.txt", b"a\0b", "x.txt: not plain text: it contains NUL bytes"),
        ("", b"", "missing file"),
    ],
)
def test_files_that_are_none_are_refused(server, name, data, told):
    fields = {"source": "fr", "target": "en"}
    answer = server.client.post("/translate_file", files={"file": (name, io.BytesIO(data))}, data=fields)
    assert answer.status_code == 400
    assert told in answer.json()["error"]
    assert ".." not in answer.json()["error"]


def test_downloads_do_not_pile_up(monkeypatch):
    from docnmt.serving import uploads as module

    downloads = Downloads()
    monkeypatch.setattr(module, "BYTES", 10)
    keys = [downloads.add(b"12345678", f"{n}.txt") for n in range(3)]
    assert [downloads.get(key) is not None for key in keys] == [False, False, True]
    found = downloads.get(keys[2])
    monkeypatch.setattr(module, "SECONDS", -1)
    assert downloads.get(keys[2]) is None and not found.path.exists()
    downloads.close()
    assert not found.path.parent.exists()


# ---- what is wrong is said ----


@pytest.mark.parametrize(
    ("body", "told"),
    [
        ({}, "missing q, source, target parameters"),
        ({"q": ""}, "missing source, target parameters"),
        ({"q": "a", "source": "fr"}, "missing target"),
        ({"q": "a", "target": "en"}, "missing source"),
        ({"q": 1}, "q is not a string"),
        ({"q": ["a", 1]}, "q is not a string"),
        ({"q": "\ud800"}, "lone surrogate"),
        ({"q": "a\0"}, "a NUL character"),
        ({"q": "a", "format": "pdf"}, "pdf format is not supported"),
        ({"q": "a", "alternatives": -1}, "alternatives"),
        ({"q": "a", "alternatives": "1"}, "alternatives"),
        ({"q": "a", "alternatives": True}, "alternatives"),
        ({"q": "a", "context": "false"}, "context is neither"),
        ({"q": "a", "previous": [1]}, "previous is not a string"),
        ({"q": "a", "glossary": ["b"]}, "glossary must be an object"),
        ({"q": "a", "glossary": {"b": 1}}, "a translation in the glossary is not a string"),
        ({"q": "a", "glossary": {"b": None}}, "a translation in the glossary is not a string"),
        ({"q": "a", "glossary": {"b": "c" * 201}}, "glossary, term 1: the translation has 201 characters"),
        ({"q": "a", "previous": "b" * 50_001}, "previous (50001) exceeds text limit"),
        ({"q": "a", "format": None}, "format is not a string"),
        ({"q": "a", "glossary": {"b": " "}}, "the translation is empty"),
        ({"q": "a", "glossary": {str(n): "b" for n in range(1001)}}, "more than 1,000 terms"),
        ({"q": "a", "source": "de", "target": "en"}, "de is not supported"),
        ({"q": "a", "source": "en", "target": "en"}, "English (en) is not available as a target"),
        ([], "not a JSON object"),
    ],
)
def test_bad_requests(server, body, told):
    if "missing" not in told and body:
        body = {"source": "fr", "target": "en"} | body
    headers = {"Content-Type": "application/json"}
    answer = server.client.post("/translate", content=json.dumps(body), headers=headers)
    assert answer.status_code == 400
    assert told in answer.json()["error"]


@pytest.mark.parametrize(
    ("kind", "content", "status"),
    [
        ("application/json", b"{", 400),
        ("application/json", b"[" * 100_000, 400),
        ("application/json", b'{"q": "\xff"}', 400),
        ("application/x-www-form-urlencoded", b"q=%ff&source=fr&target=en", 400),
        ("application/x-www-form-urlencoded", b"q=\xff", 400),
        ("application/x-www-form-urlencoded", b"a=&" * 3_000, 400),
        ("multipart/form-data", b"q", 400),
        ("multipart/form-data; boundary=x", b"--x\r\nContent-Disposition: nothing\r\n\r\n", 400),
        (
            "multipart/form-data; boundary=x; charset=no-such",
            b'--x\r\nContent-Disposition: form-data; name="q"\r\n\r\na\r\n--x--',
            400,
        ),
        ("text/xml", b"<q/>", 415),
    ],
)
def test_bodies_that_cannot_be_read(server, kind, content, status):
    answer = server.client.post("/translate", content=content, headers={"Content-Type": kind})
    assert answer.status_code == status
    assert answer.json()["error"]


def test_other_paths_and_methods_answer_in_the_same_shape(server):
    assert "/docs lists what there is" in server.client.get("/nowhere").json()["error"]
    assert "/docs lists what there is" in server.client.get("/translate").json()["error"]
    assert server.client.get("/docs").status_code == 200


def test_limits(monkeypatch):
    monkeypatch.setattr(web, "REST_SECONDS", 0.1)
    server = Server(characters=10, strings=3, file_bytes=100)
    assert server.translate("a" * 10).status_code == 200
    assert "request (11) exceeds text limit (10)" in server.translate("a" * 11).json()["error"]
    assert "exceeds text limit" in server.translate(["a" * 6] * 2).json()["error"]
    assert "request (4) exceeds batch limit (3)" in server.translate([""] * 4).json()["error"]
    for headers in ({}, {"Transfer-Encoding": "chunked"}):  # told beforehand, and found on the way
        big = b"q=" + b"a" * 70_000
        content = iter([big[:500], big[500:]]) if headers else big
        answer = server.client.post(
            "/translate", content=content, headers={"Content-Type": "application/x-www-form-urlencoded"}
        )
        assert answer.status_code == 413
        assert "bytes" in answer.json()["error"]


@pytest.mark.parametrize(
    ("error", "status", "told"),
    [
        (Overloaded(7), 429, "Try again in 7 s"),
        (TimedOut("The time limit is over."), 503, "time limit"),
        (WorkerDied("A process died with this work."), 503, "died"),
        (CallFailed("KeyError('secret')"), 500, "went wrong"),
        (KeyError("secret"), 500, "went wrong"),
    ],
)
def test_what_goes_wrong_inside_is_told_without_details(error, status, told):
    server = Server()

    def fail() -> None:
        raise error

    server.pool.before = fail
    answer = server.translate("a")
    assert answer.status_code == status
    assert told in answer.json()["error"] and "secret" not in answer.text
    assert ("retry-after" in answer.headers) == (status != 500)
    assert answer.headers["x-content-type-options"] == "nosniff"


def asked_by_hand(server: Server, *messages: dict, path: str = "/translate") -> list[dict]:
    """What is sent to a client that sends just this, and then nothing more."""
    sent: list[dict] = []
    waiting = list(messages)

    async def receive() -> dict:
        return waiting.pop(0) if waiting else await asyncio.Event().wait()

    async def send(message: dict) -> None:
        sent.append(message)

    headers = [(b"host", b"localhost"), (b"content-type", b"application/json")]
    scope = {"type": "http", "method": "POST", "path": path, "query_string": b"", "headers": headers}
    asyncio.run(asyncio.wait_for(server.app(scope, receive, send), 10))
    return sent


def test_a_client_that_has_gone_is_not_worked_for():
    server = Server()
    given_up = []

    async def work(*_, **__):
        try:
            await asyncio.Event().wait()
            yield
        except asyncio.CancelledError:
            given_up.append(True)
            raise

    server.pool.translate = work
    body = json.dumps({"q": "a", "source": "fr", "target": "en"}).encode()
    asked_by_hand(server, {"type": "http.request", "body": body}, {"type": "http.disconnect"})
    assert given_up
    assert 'status="499"} 1' in server.client.get("/metrics").text


def test_a_body_that_does_not_come_is_not_waited_for():
    server = Server(seconds=0.05)
    sent = asked_by_hand(server, {"type": "http.request", "body": b"{", "more_body": True})
    assert sent[0]["status"] == 408
    assert b"did not arrive in time" in sent[1]["body"]


# ---- who may ask ----


def test_keys():
    server = Server(keys=frozenset({"k1", "ключ"}))
    client = server.client
    assert server.translate("a").status_code == 403
    assert "api_key" in server.translate("a").json()["error"]
    assert server.translate("a", api_key="no").json() == {"error": "Invalid API key."}
    assert server.translate("a", api_key="\ud800").status_code == 400
    assert server.translate("a", api_key=["k1"]).status_code == 400
    for key in ("k1", "ключ"):
        assert server.translate("a", api_key=key).status_code == 200
        basic = {"Authorization": f"Basic {base64.b64encode(f'me:{key}'.encode()).decode()}"}
        assert client.get("/", headers=basic).status_code == 200
    assert client.post("/detect", data={"q": "a"}).status_code == 403
    assert client.post("/detect", data={"q": "a"}, headers={"Authorization": "Bearer k1"}).status_code == 200
    for path in ("/languages", "/health", "/openapi.json", "/frontend/settings", "/metrics"):
        assert client.get(path).status_code == 200
    for path in ("/", "/page/models"):
        answer = client.get(path)
        assert answer.status_code == 401 and answer.headers["www-authenticate"].startswith("Basic ")
    assert client.get("/", headers={"Authorization": "Basic !"}).status_code == 401
    assert client.get("/", headers={"Authorization": "Basic é".encode("latin-1")}).status_code == 401
    for path in ("/docs", "/static/style.css"):  # a page that all may read, and what it looks like
        assert client.get(path).status_code == 200


def test_keys_come_from_a_file_or_the_environment(tmp_path, monkeypatch):
    file = tmp_path / "keys"
    file.write_text("# ours\nk1\n\n  k2 \n", encoding="utf-8")
    assert read_keys(str(file)) == {"k1", "k2"}
    file.write_text("# none\n", encoding="utf-8")
    with pytest.raises(DocnmtError, match="contains no keys"):
        read_keys(str(file))
    monkeypatch.delenv("DOCNMT_API_KEYS", raising=False)
    assert read_keys("") == frozenset()
    monkeypatch.setenv("DOCNMT_API_KEYS", "k1 k3")
    assert read_keys("") == {"k1", "k3"}
    assert "k1" not in repr(Settings(keys=read_keys("")))


def test_headers_keep_pages_from_elsewhere_out(server):
    for answer in (server.client.get("/"), server.client.get("/nowhere"), server.translate("a")):
        assert answer.headers["content-security-policy"].startswith("default-src 'self'; frame-ancestors 'none'")
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert answer.headers["referrer-policy"] == "no-referrer"
        assert "access-control-allow-origin" not in answer.headers


@pytest.mark.parametrize(
    ("host", "fine"),
    [
        ("localhost", True),
        ("LOCALHOST:5000", True),
        ("127.0.0.1:5000", True),
        ("[::1]:5000", True),
        ("10.0.0.7", True),
        ("named.example", True),
        ("evil.example", False),
        ("localhost.evil.example:5000", False),
        ("", False),
    ],
)
def test_names_that_are_not_the_servers_are_refused(host, fine):
    answer = Server(names=["named.example"]).client.get("/health", headers={"Host": host})
    assert answer.status_code == (200 if fine else 421)


def test_pages_of_other_sites_may_not_ask_unless_they_are_let_in():
    friend = "https://friend.example"
    server = Server(origins=[friend])
    form = {"q": "a", "source": "fr", "target": "en"}
    for origin, status in (
        ("http://localhost", 200),
        ("http://evil.example", 403),
        ("null", 403),
        ("chrome-extension://abc", 200),
        (friend, 200),
    ):
        answer = server.client.post("/translate", data=form, headers={"Origin": origin})
        assert answer.status_code == status, origin
        assert answer.headers.get("access-control-allow-origin") == (friend if origin == friend else None)
    asked = {"Origin": friend, "Access-Control-Request-Method": "POST"}
    assert server.client.options("/translate", headers=asked).status_code == 200


# ---- figures ----


def test_metrics_count_what_was_asked():
    server = Server()
    server.translate("a")
    server.translate("a", source="xx")
    server.client.get("/secret/path")
    text = server.client.get("/metrics").text
    assert 'docnmt_requests_total{route="/translate",status="200"} 1' in text
    assert 'docnmt_requests_total{route="/translate",status="400"} 1' in text
    assert 'docnmt_requests_total{route="other",status="404"} 1' in text
    assert 'docnmt_request_seconds_count{route="/translate"} 2' in text
    assert 'docnmt_request_seconds_bucket{route="/translate",le="+Inf"} 2' in text
    assert "secret" not in text
    for line in text.splitlines():
        assert line.startswith("# ") or float(line.rpartition(" ")[2]) >= 0


def test_health_tells_if_no_process_is_up(server):
    assert server.client.get("/health").json() == {"status": "ok"}
    down = Server()
    down.pool.alive = 0
    assert down.client.get("/health").status_code == 503


def test_settings_for_pages(server):
    found = server.client.get("/frontend/settings").json()
    assert found["language"] == {
        "source": {"code": "fr", "name": "French"},
        "target": {"code": "en", "name": "English"},
    }
    assert ".docx" in found["supportedFilesFormat"] and not found["keyRequired"]


def test_a_file_whose_name_no_file_can_have_comes_back(server):
    for name in (b"\\ud800.txt", b"\\u00e9" * 300 + b".txt"):
        part = b'--x\r\nContent-Disposition: form-data; name="%s"%s\r\n\r\n%s\r\n'
        fields = [part % (each, b"", b"fr en".split()[each == b"target"]) for each in (b"source", b"target")]
        body = b"".join(fields) + part % (b"file", b'; filename="%s"' % name, b"Il pleut.") + b"--x--\r\n"
        kind = {"Content-Type": "multipart/form-data; boundary=x; charset=unicode_escape"}
        answer = server.client.post("/translate_file", content=body, headers=kind)
        assert answer.status_code == 200, answer.text
        assert server.client.get(answer.json()["translatedFileUrl"]).status_code == 200
