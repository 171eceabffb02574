"""What the page's script asks the server: files, translations in stretches that change nothing; bad questions."""

from __future__ import annotations

import asyncio
import functools
import json
import re
from contextlib import aclosing
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from starlette.testclient import TestClient

from docnmt.decoding.excerpts import Excerpt
from docnmt.documents import KINDS
from docnmt.serving import page as pages
from docnmt.serving import uploads
from docnmt.serving.page import portions, translations
from docnmt.serving.pool import TimedOut
from docnmt.serving.queue import Mode, Overloaded
from docnmt.serving.requests import Detector
from docnmt.serving.server import make_app
from docnmt.serving.uploads import Downloads
from docnmt.serving.web import Settings
from tests.serving_fakes import PoolHere, expected

SENTENCES = [f"Phrase {number}." for number in range(20)]


@pytest.fixture
def pool() -> PoolHere:
    return PoolHere(("fr", "en"), ("de", "en"))


@pytest.fixture
def client(pool) -> TestClient:
    return client_of(pool)


def client_of(pool: PoolHere, **options: object) -> TestClient:
    app = make_app(pool, Settings(**options), Detector({}), Downloads())  # type: ignore[arg-type]
    return TestClient(app, base_url="http://localhost", raise_server_exceptions=False)


def lines(response) -> list[dict]:
    assert response.status_code == 200, response.text
    return [json.loads(line) for line in response.text.splitlines()]


def ask(client: TestClient, *documents: dict, **more: object) -> dict[tuple[int, int], str]:
    """The best translations, by document and position."""
    found = lines(client.post("/page/translate", json={"documents": documents, **more}))
    by_place = {(line["document"], line["sentence"]): line["texts"][0] for line in found}
    assert len(by_place) == len(found), "a sentence came twice"
    return by_place


# ---- the page ----


def test_the_page_and_its_files_need_nothing_else(client):
    html = client.get("/")
    assert html.status_code == 200 and "default-src 'self'" in html.headers["content-security-policy"]
    for file in pages.STATIC.iterdir():
        answer = client.get(f"/static/{file.name}")
        assert answer.status_code == 200 and answer.content == file.read_bytes()
        assert answer.headers["cache-control"] == "no-cache"
        assert "http://" not in answer.text.replace("http://www.w3.org/2000/svg", "") and "https://" not in answer.text
    assert client.get("/static/../pages.py").status_code == 404


def test_scripts_make_no_html_of_strings():
    """So nothing in a text, a file or an answer can become a part of the page."""
    scripts = [*pages.STATIC.glob("*.js"), *(pages.STATIC.parents[1] / "judging" / "static").glob("*.js")]
    assert len(scripts) >= 2
    for script in scripts:
        used = r"innerHTML|outerHTML|AdjacentHTML|HTMLUnsafe|srcdoc|DOMParser|\beval\b|\.write\("
        assert not re.search(used, script.read_text()), script


def test_models_are_told_with_their_languages_and_contexts(client, pool):
    pool.models["de-en"] = replace(pool.models["de-en"], uses_context=False)
    told = client.get("/page/models").json()
    assert told["default"] == "fr-en" and told["kinds"] == list(pages.KIND_NAMES)
    assert sorted(ending for endings in pages.KIND_NAMES.values() for ending in endings) == sorted(KINDS)
    assert told["models"] == [
        {"name": "fr-en", "languages": ["fr", "en"], "names": ["French", "English"], "context": [2, 0], "demo": False},
        {"name": "de-en", "languages": ["de", "en"], "names": ["German", "English"], "context": None, "demo": False},
    ]


# ---- translating ----


@pytest.mark.parametrize("length", [1, 3, 64])
def test_stretches_of_a_document_have_the_contexts_of_the_whole(client, monkeypatch, length):
    monkeypatch.setattr(pages, "LENGTH", length)
    found = ask(client, {"sentences": SENTENCES})
    assert found == {(0, place): expected(SENTENCES, place) for place in range(20)}
    without = ask(client, {"sentences": SENTENCES}, context=False)
    assert without == {(0, place): expected(SENTENCES, place, context=False) for place in range(20)}


def test_only_what_is_wanted_comes_and_documents_stay_apart(client, monkeypatch):
    monkeypatch.setattr(pages, "LENGTH", 2)
    other = ["Autre.", "Encore.", "Fin."]
    documents = {"sentences": SENTENCES, "wanted": [7, 3, 19, 3]}, {"sentences": other}, {"sentences": []}
    found = ask(client, *documents)
    assert found == {
        **{(0, place): expected(SENTENCES, place) for place in (3, 7, 19)},
        **{(1, place): expected(other, place) for place in range(3)},
    }


def test_a_system_that_goes_in_order_gets_a_document_whole(monkeypatch):
    monkeypatch.setattr(pages, "LENGTH", 2)
    document = Excerpt.of_texts(SENTENCES, [0, 5, 6, 19])
    assert [list(portion.wanted) for portion in portions(document, False)] == [[0, 5], [6, 19]]
    assert list(portions(document, True)) == [document]
    assert list(portions(Excerpt.of_texts(SENTENCES, []), True)) == []


def test_alternatives_are_all_different(client):
    (line,) = lines(client.post("/page/translate", json={"documents": [{"sentences": ["Oui."]}]}))
    assert len(line["texts"]) == len(set(line["texts"])) == pages.ALTERNATIVES
    (line,) = lines(client.post("/page/translate", json={"documents": [{"sentences": ["12."]}]}))
    assert line["texts"] == ["12."]


def test_a_full_queue_is_waited_for(client, pool):
    refusals = iter([Overloaded(0), Overloaded(0)])

    def refuse_twice() -> None:
        if error := next(refusals, None):
            raise error

    pool.before = refuse_twice
    assert len(ask(client, {"sentences": SENTENCES})) == 20


def test_what_goes_wrong_on_the_way_is_the_last_line(client, pool):
    def refuse(error: Exception):
        def before() -> None:
            raise error

        return before

    for error, told in (
        (TimedOut("Time is over."), "Time is over."),
        (Overloaded(0), "is overloaded"),
        (ValueError(), "log"),
    ):
        pool.before = refuse(error)
        (line,) = lines(client.post("/page/translate", json={"documents": [{"sentences": SENTENCES}]}))
        assert told in line["error"]


def test_who_hangs_up_leaves_the_queue():
    class Waiting(PoolHere):
        left = 0

        async def translate(self, document, mode):
            try:
                yield 0, next(iter([await self._first(document.sentences[0])]))
                await asyncio.sleep(60)
            finally:
                self.left += 1

        async def _first(self, sentence):
            async for _, result in super().translate(Excerpt.of_texts([sentence]), Mode("fr-en")):
                return result

    async def hang_up() -> int:
        pool = Waiting(("fr", "en"))
        documents = [Excerpt.of_texts(SENTENCES) for _ in range(3)]
        async with aclosing(translations(pool, documents, Mode("fr-en"))) as results:  # type: ignore
            await anext(results)
        return pool.left

    assert asyncio.run(hang_up()) == 3


# ---- files ----


def test_a_text_goes_in_and_comes_out_with_what_stands_on_the_page(client):
    text = "Le chat dort. Il rêve.\n\n- Non !\n"
    cut = client.post("/page/sentences", files={"file": ("text.txt", text)}, data={"model": "fr-en"}).json()
    assert cut["name"] == "text.en.txt"
    (document,) = cut["documents"]
    assert [sentence["text"] for sentence in document["sentences"]] == ["Le chat dort.", "Il rêve.", "Non !"]
    said = json.dumps(["The cat sleeps.", None, "No!"])
    written = client.post("/page/file", files={"file": ("text.txt", text)}, data={"texts": said})
    assert written.text == "The cat sleeps. Il rêve.\n\n- No!\n"


def test_files_that_are_refused(client):
    for name, data, told in (
        ("a.docx", b"no archive", "a.docx"),
        ("a.txt", b"12", "nothing to translate"),
        ("a.txt", b"\xff\xfe\xff", "a.txt"),
    ):
        answer = client.post("/page/sentences", files={"file": (name, data)})
        assert answer.status_code == 400 and told in answer.json()["error"]
    answer = client.post("/page/file", files={"file": ("a.txt", "Un. Deux.")}, data={"texts": '["x"]'})
    assert answer.status_code == 400 and "2 sentences, but 1 translations" in answer.json()["error"]


def test_few_files_at_a_time(client, monkeypatch):
    for _ in range(uploads.FILES + 1):  # those that are refused leave room for others
        assert client.post("/page/sentences", files={"file": ("a.docx", b"no archive")}).status_code == 400
    assert client.post("/page/sentences", files={"file": ("a.txt", "Oui.")}).status_code == 200
    monkeypatch.setattr(uploads, "FILES", 0)
    answer = client.post("/page/sentences", files={"file": ("a.txt", "Oui.")})
    assert answer.status_code == 429 and answer.headers["retry-after"]


def test_a_translation_memory(client):
    answer = client.post("/page/tmx", json={"model": "de-en", "pairs": [["a", "Ja.", "Yes."]]})
    assert 'xml:lang="de"><seg>Ja.</seg>' in answer.text and 'xml:lang="en"><seg>Yes.</seg>' in answer.text


# ---- questions that nobody should ask ----

BAD = [
    ("translate", {}),
    ("translate", {"documents": "a"}),
    ("translate", {"documents": ["a"]}),
    ("translate", {"documents": [{"sentences": [1]}]}),
    ("translate", {"documents": [{"sentences": ["\ud800"]}]}),
    ("translate", {"documents": [{"sentences": ["a"], "wanted": [1]}]}),
    ("translate", {"documents": [{"sentences": ["a"], "wanted": [True]}]}),
    ("translate", {"documents": [], "context": "no"}),
    ("translate", {"documents": [], "model": "none"}),
    ("explanation", {"source": ["a"], "target": [], "position": 0}),
    ("explanation", {"source": ["a"], "target": ["b"], "position": 1}),
    ("explanation", {"source": ["a"], "target": ["b"], "position": "0"}),
    ("explanation", {"source": [""], "target": ["b"], "position": 0}),
    ("explanation", {"source": ["a" * 6000], "target": ["b"], "position": 0}),
    ("alignment", {"source": "a"}),
    ("alignment", {"source": "a", "target": "b" * 6000}),
    ("tmx", {"model": "fr-en", "pairs": [["a", "b"]]}),
    ("tmx", {"model": "fr-en", "pairs": {}}),
    ("sentences", {"file": "a"}),
    ("file", {"file": "a", "texts": "[]"}),
]


@pytest.mark.parametrize(("path", "question"), BAD)
def test_bad_questions_are_told(client, path, question):
    answer = client.post(f"/page/{path}", content=json.dumps(question), headers={"Content-Type": "application/json"})
    assert answer.status_code == 400 and answer.json()["error"].startswith("Invalid request")


ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["sentences", "wanted", "a"]), inner),
    max_leaves=8,
)
NAMES = ["documents", "context", "model", "source", "target", "position", "pairs", "file", "texts"]


@settings(max_examples=100, deadline=None)
@given(
    st.sampled_from(["translate", "alignment", "explanation", "tmx", "sentences", "file"]),
    st.dictionaries(st.sampled_from(NAMES), ANYTHING),
)
def test_no_question_breaks_the_server(path, question):
    assert client_without_models().post(f"/page/{path}", json=question).status_code in (200, 400)


@functools.cache
def client_without_models() -> TestClient:
    class Silent(PoolHere):
        async def call(self, function, *arguments, **named):  # what is asked of a model is another test's
            return b""

    return client_of(Silent(("fr", "en")))


def test_pages_of_others_and_strangers(pool):
    foreign = {"Origin": "http://elsewhere.example"}
    assert client_of(pool).post("/page/alignment", json={}, headers=foreign).status_code == 403
    closed = client_of(pool, keys=frozenset({"secret"}))
    assert closed.get("/").status_code == 401
    assert closed.post("/page/translate", json={"documents": []}).status_code == 401
    assert closed.get("/", auth=("me", "secret")).status_code == 200
