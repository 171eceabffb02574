"""What the page asks of the server, and what the server never tells a judge."""

from __future__ import annotations

import itertools
import json
import sqlite3
from concurrent.futures import ThreadPoolExecutor

import pytest
from hypothesis import given
from hypothesis import strategies as st
from starlette.testclient import TestClient

from docnmt.judging.app import differences, judging_app
from docnmt.judging.store import Store
from tests.judging_samples import NAMES, make_sample

LENGTHS = (4, 3, 5, 1)
QUESTIONS = 3 + 2 + 4 + 1


@pytest.fixture
def store(tmp_path):
    made = Store(tmp_path / "kept.sqlite", make_sample(LENGTHS))
    yield made
    made.close()


@pytest.fixture
def client(store):
    return TestClient(judging_app(store), base_url="http://localhost:5001")


def enter(client: TestClient, name: str) -> dict:
    answer = client.post("/api/judges", json={"name": name})
    assert answer.status_code == 200, answer.text
    told = answer.json()
    assert told.pop("link").startswith("as/")
    return told


def judge(client: TestClient, name: str, number: int, choice: str) -> dict:
    answer = client.post(f"/api/questions/{number}", json={"judge": name, "choice": choice})
    assert answer.status_code == 200, answer.text
    return answer.json()


def question(client: TestClient, name: str, number: int) -> dict:
    answer = client.get(f"/api/questions/{number}", params={"judge": name})
    assert answer.status_code == 200, answer.text
    return answer.json()


def whole(parts: list) -> str:
    return "".join(text for text, _ in parts)


# ---- judging ----


def test_a_judge_is_led_through_all_questions(client, store):
    assert enter(client, "Anna") == {"judge": "Anna", "questions": QUESTIONS, "judged": 0, "next": 1}
    for number in range(1, QUESTIONS + 1):
        assert question(client, "Anna", number)["choice"] is None
        told = judge(client, "Anna", number, "equal")
        assert told["judged"] == number
        assert told["next"] == (number + 1 if number < QUESTIONS else None)
    assert list(store.choices("Anna").values()) == ["equal"] * QUESTIONS


def test_who_comes_again_goes_on_where_he_stopped(client):
    enter(client, "Anna")
    for number in (1, 2, 3):
        judge(client, "Anna", number, "first")
    assert enter(client, " anna ") == {"judge": "Anna", "questions": QUESTIONS, "judged": 3, "next": 4}
    assert enter(client, "Ben")["next"] == 1


def test_a_name_is_its_judges_who_has_a_link_to_go_on_elsewhere(client, store):
    link = client.post("/api/judges", json={"name": "Anna"}).json()["link"]
    judge(client, "Anna", 1, "first")
    other = TestClient(judging_app(store), base_url="http://localhost:5001")
    assert other.post("/api/judges", json={"name": "anna "}).status_code == 403
    assert other.get("/api/questions/1", params={"judge": "Anna"}).status_code == 403
    answer = other.post("/api/questions/1", json={"judge": "Anna", "choice": "second"})
    assert answer.status_code == 403 and "own link" in answer.json()["error"]
    assert other.get("/as/guess").status_code == 404
    there = other.get(f"/{link}", follow_redirects=False)
    assert there.status_code == 303 and there.headers["location"] == "/#Anna"
    assert (
        "httponly" in there.headers["set-cookie"].lower() and "samesite=strict" in there.headers["set-cookie"].lower()
    )
    assert enter(other, "Anna")["judged"] == 1
    assert judge(other, "Anna", 1, "second")["judged"] == 1


def test_of_two_who_give_a_name_at_once_one_gets_it(client):
    apart = [TestClient(client.app, base_url="http://localhost:5001") for _ in range(16)]  # cookies of their own
    for attempt in range(5):
        with ThreadPoolExecutor(16) as pool:
            name = {"name": f"Judge {attempt}"}
            statuses = list(pool.map(lambda one, name=name: one.post("/api/judges", json=name).status_code, apart))
        assert sorted(statuses) == [200] + [403] * 15


def test_judges_of_an_earlier_version_get_their_links(store, tmp_path):
    path = tmp_path / "earlier"
    Store(path, store.sample).close()
    with sqlite3.connect(path) as database:
        database.execute("ALTER TABLE judge DROP COLUMN secret")
        database.execute("INSERT INTO judge VALUES ('anna', 'Anna', 'then')")
    again = Store(path, store.sample)
    client = TestClient(judging_app(again), base_url="http://localhost:5001")
    assert again.secrets() == {}
    assert enter(client, "Anna")["judge"] == "Anna"
    assert list(again.secrets()) == ["Anna"]


def test_an_answer_can_be_changed_later(client, store):
    enter(client, "Anna")
    judge(client, "Anna", 1, "first")
    judge(client, "Anna", 2, "first")
    assert question(client, "Anna", 1)["choice"] == "first"
    assert judge(client, "Anna", 1, "second") == {"questions": QUESTIONS, "judged": 2, "next": 3}
    assert question(client, "Anna", 1)["choice"] == "second"
    assert [judgement.revisions for judgement in store.judgements()] == [1, 0]


def test_no_question_is_passed_over(client):
    enter(client, "Anna")
    for number in (0, 2, QUESTIONS + 1, 10**30):
        assert client.get(f"/api/questions/{number}", params={"judge": "Anna"}).status_code == 404
        answer = client.post(f"/api/questions/{number}", json={"judge": "Anna", "choice": "equal"})
        assert answer.status_code == 404


def test_a_question_shows_the_document_around_the_sentence(client, store):
    enter(client, "Anna")
    firsts = store.first_systems("Anna")
    for number, place in enumerate(store.sample.questions, 1):
        shown = question(client, "Anna", number)
        document, here = store.sample.documents[place.document], place.position
        source = shown["source"]
        assert [*source["before"], source["sentence"], *source["after"]] == list(document.source)
        assert source["sentence"] == document.source[here]
        first = firsts[place.document]
        for side, system in (("first", first), ("second", 1 - first)):
            said = [*shown[side]["before"], shown[side]["sentence"]]
            assert [whole(parts) for parts in said] == list(document.outputs[system][: here + 1])
        assert (shown["document"], shown["documents"]) == (place.document + 1, len(LENGTHS))
        assert (shown["sentence"], shown["sentences"]) == (here + 1, LENGTHS[place.document])
        assert any(differs for _, differs in shown["first"]["sentence"] + shown["second"]["sentence"])
        judge(client, "Anna", number, "equal")


def test_many_judges_at_once_each_have_their_own_verdicts(client, store):
    def work(number: int) -> None:
        name = f"Judge {number}"
        enter(client, name)
        for k in range(QUESTIONS):
            judge(client, name, k + 1, ("first", "equal", "second")[(number + k) % 3])

    with ThreadPoolExecutor(6) as pool:
        list(pool.map(work, range(6)))
    for number in range(6):
        said = [("first", "equal", "second")[(number + k) % 3] for k in range(QUESTIONS)]
        assert list(store.choices(f"Judge {number}").values()) == said


# ---- blindness ----


def test_nothing_that_is_sent_tells_the_systems_apart(client, store, tmp_path):
    """Names, files, ids and the order of the command line stay in the server."""
    secrets = {*NAMES, "kept.sqlite", str(tmp_path), *(document.id for document in store.sample.documents)}
    sent = [client.get(path) for path in ("/", "/static/judge.js", "/static/judge.css", "/nothing")]
    keys: set[str] = set()

    def note(value) -> None:
        if isinstance(value, dict):
            keys.update(value)
            for inner in value.values():
                note(inner)

    for name in ("Anna", "Ben"):
        sent.append(client.post("/api/judges", json={"name": name}))
        for number in range(1, QUESTIONS + 1):
            sent.append(client.get(f"/api/questions/{number}", params={"judge": name}))
            note(sent[-1].json())
            sent.append(client.post(f"/api/questions/{number}", json={"judge": name, "choice": "second"}))
            note(sent[-1].json())
        sent.append(client.post("/api/questions/1", json={"judge": name, "choice": "?"}))
        sent.append(client.get("/api/questions/99", params={"judge": name}))
    for answer in sent:
        told = answer.text + json.dumps(dict(answer.headers))
        assert not [secret for secret in secrets if secret in told], answer.url
    assert keys == {
        *("questions", "judged", "next", "question", "document", "documents", "sentence", "sentences", "choice"),
        *("source", "before", "after", "first", "second"),
    }


def test_two_judges_see_sides_of_their_own_and_each_half_of_them(store):
    sides = {name: store.first_systems(name) for name in ("Anna", "Ben", "Cleo", "Dan", "Eve")}
    assert all(sum(firsts) == len(LENGTHS) / 2 for firsts in sides.values())
    assert len(set(sides.values())) > 1


# ---- what is refused ----


def test_requests_that_are_none(client):
    enter(client, "Anna")
    url = "/api/questions/1"
    assert client.post(url, json={"judge": "Anna", "choice": "better"}).status_code == 400
    assert client.post(url, json={"judge": "Anna"}).status_code == 400
    assert client.post(url, json={"judge": 1, "choice": "first"}).status_code == 400
    assert client.post(url, json=["Anna"]).status_code == 400
    headers = {"Content-Type": "application/json"}
    assert client.post(url, content=b"{", headers=headers).status_code == 400
    assert client.post(url, content=b"[" * 4000, headers=headers).status_code == 400
    assert client.post(url, content=b"\xff\xfe", headers=headers).status_code == 400
    assert client.post(url, content=b" " * 5000, headers=headers).status_code == 413
    assert client.post(url, data={"judge": "Anna", "choice": "first"}).status_code == 415  # another site's form
    assert client.put(url, json={}).status_code == 405
    for number in ("x", "9" * 5_000, "²", "-1"):
        assert client.get(f"/api/questions/{number}", params={"judge": "Anna"}).status_code == 404
    assert client.get("/static/../store.py").status_code == 404


def test_names_that_cannot_be_entered_are_explained(client):
    for name in ("", "=cmd()", "x" * 100, "\ud800"):
        answer = client.post(
            "/api/judges", content=json.dumps({"name": name}), headers={"Content-Type": "application/json"}
        )
        assert answer.status_code == 400
        assert "cannot be a judge's name" in answer.json()["error"]
    for name in ("Stranger", "", "\x00"):
        assert client.get("/api/questions/1", params={"judge": name}).status_code in (400, 404)
        answer = client.post("/api/questions/1", json={"judge": name, "choice": "first"})
        assert answer.status_code in (400, 404)


def test_what_cannot_be_stored_is_not_taken_for_stored(client, store, monkeypatch):
    enter(client, "Anna")

    def full(*arguments):
        raise sqlite3.OperationalError("database or disk is full")

    monkeypatch.setattr(store, "judge", full)
    answer = client.post("/api/questions/1", json={"judge": "Anna", "choice": "first"})
    assert answer.status_code == 503 and "disk is full" in answer.json()["error"]
    monkeypatch.undo()
    assert enter(client, "Anna")["judged"] == 0
    judge(client, "Anna", 1, "first")


def test_the_page_is_safe_from_others(client, store):
    answer = client.get("/")
    assert answer.status_code == 200
    assert "default-src 'self'" in answer.headers["content-security-policy"]
    page = answer.text
    assert "style=" not in page and "onclick" not in page and "http" not in page.replace("http-equiv", "")
    foreign = {"Origin": "http://elsewhere.example"}
    assert client.post("/api/judges", json={"name": "Anna"}, headers=foreign).status_code == 403
    rebound = TestClient(judging_app(store), base_url="http://elsewhere.example")
    assert rebound.get("/").status_code == 421
    named = TestClient(judging_app(store, ["lab.example"]), base_url="http://lab.example")
    assert named.get("/").status_code == 200
    assert client.get("/api/questions/1", params={"judge": "Anna"}).status_code == 404
    assert enter(client, "Anna") and client.get("/api/questions/1?judge=Anna").headers["cache-control"] == "no-store"


@pytest.mark.parametrize("path", ["style.css", "judge.css", "judge.js", "icon.svg"])
def test_the_files_of_the_page_are_there(client, path):
    assert f'"static/{path}"' in client.get("/").text
    assert client.get(f"/static/{path}").status_code == 200


# ---- marks of what differs between two translations ----


def marked(one: str, other: str) -> tuple[list[str], list[str]]:
    left, right = ([text for text, differs in parts if differs] for parts in differences(one, other))
    return left, right


@pytest.mark.parametrize(
    ("one", "other", "expected"),
    [
        ("He took it away.", "He took her away.", (["it"], ["her"])),
        ("The lawyer came.", "lawyer came.", (["The"], [])),
        ("It sleeps", "It sleeps.", ([], ["."])),
        ("a b c d", "a x y d", (["b c"], ["x y"])),
        ("", "Something.", ([], ["Something."])),
        ("他走了。", "她走了。", (["他"], ["她"])),
        ("वह गया", "वे गया", (["वह"], ["वे"])),
        ("un homme , ici", "un homme, ici", ([","], [","])),  # a space is a difference, too
        ("The same.", "The  same.", ([], [])),
    ],
)
def test_words_that_the_other_lacks_are_marked(one, other, expected):
    assert marked(one, other) == expected


TEXT = st.text(st.sampled_from("ab é.,'  他क्\u0301_"), max_size=30)


@given(TEXT, TEXT)
def test_no_letter_is_lost_and_what_is_left_is_common(one, other):
    left, right = differences(one, other)
    for text, parts in ((one, left), (other, right)):
        assert "".join(part for part, _ in parts) == text.strip()
        assert all(before[1] != after[1] for before, after in itertools.pairwise(parts))
    common = [" ".join("".join(part for part, differs in parts if not differs).split()) for parts in (left, right)]
    assert common[0].replace(" ", "") == common[1].replace(" ", "")


@given(TEXT)
def test_nothing_differs_from_itself(text):
    assert marked(text, text) == ([], [])
