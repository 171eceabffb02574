"""The judging page in a real browser, by its keys: judge, reload, go on, go back, finish."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

import pytest

from docnmt.judging.store import Store, read_sample
from tests.browser import open_browser
from tests.judging_samples import write_files
from tests.system.conftest import command
from tests.system.test_judge import LENGTHS, judging

DOCUMENTS = 3
KEYS = {"1": "first", "2": "equal", "3": "second"}


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with open_browser() as opened:
        yield opened


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory, browser: Any) -> Iterator[tuple[str, Any]]:
    folder = tmp_path_factory.mktemp("judge")
    with judging(folder, "--documents", DOCUMENTS) as (address, _):
        yield address, folder


class Judge:
    """Somebody at a browser. Whatever goes wrong in it, and whatever it asks of others, is kept."""

    def __init__(
        self, browser: Any, address: str, name: str = "", width: int = 1100, height: int = 800, **options: Any
    ):
        self.context = browser.new_context(viewport={"width": width, "height": height}, **options)
        self.page = self.context.new_page()
        self.problems: list[str] = []
        self.page.on("pageerror", lambda error: self.problems.append(str(error)))
        self.page.on("console", lambda said: said.type == "error" and self.problems.append(said.text))
        self.page.on(
            "request", lambda sent: sent.url.startswith(address.partition("as/")[0]) or self.problems.append(sent.url)
        )
        self.page.goto(address)
        if name:
            self.page.wait_for_selector("#welcome:not([hidden])")
            self.page.keyboard.type(name)  # the field has the focus
            self.page.keyboard.press("Enter")
            self.wait()

    def wait(self) -> None:
        """Until an answer has come and something is shown."""
        self.page.wait_for_selector("body:not([aria-busy]) section:not([hidden])")

    def press(self, *keys: str) -> None:
        for key in keys:
            self.page.keyboard.press(key)
            self.wait()

    @property
    def number(self) -> int:
        return int(self.page.inner_text("#where b").split()[0])

    def now(self, panel: str) -> str:
        return self.page.inner_text(f"{panel} .now")

    @property
    def pressed(self) -> list[str]:
        return self.page.eval_on_selector_all(
            "[data-choice][aria-pressed=true]", "found => found.map(button => button.dataset.choice)"
        )


def choices(store_path: Any, name: str) -> list[str]:
    store = Store(store_path)
    try:
        return [store.choices(name)[place] for place in store.sample.questions if place in store.choices(name)]
    finally:
        store.close()


def test_ten_sentences_by_keyboard_reload_go_on_go_back_finish(browser, site):
    address, folder = site
    kept = folder / "j.sqlite"
    sample = read_sample(str(folder / "source.tsv"), tuple(map(str, write_files(folder, LENGTHS)[1:])), DOCUMENTS)
    total = len(sample.questions)
    assert total > 10
    anna = Judge(browser, address, "Anna")
    said = "1323112332"
    for number, key in enumerate(said, 1):
        assert anna.number == number
        place = sample.questions[number - 1]
        document = sample.documents[place.document]
        assert anna.now("#source") == document.source[place.position]
        shown = [anna.now(f"#pair article:nth-child({side})") for side in (1, 2)]
        assert sorted(shown) == sorted(output[place.position] for output in document.outputs)
        assert anna.page.locator("#pair .now mark").count()
        anna.press(key)
    assert choices(kept, "Anna") == [KEYS[key] for key in said]

    # The page is loaded again: it knows who judges, and where.
    anna.page.reload()
    anna.wait()
    assert anna.number == 11 and anna.pressed == []
    assert anna.page.inner_text("#name") == "Anna"

    # Another browser: the name alone is refused, the judge's own link is not; back to two answers, one is changed.
    stranger = Judge(browser, address, "anna")
    assert "open your own link" in stranger.page.inner_text("#error")
    stranger.context.close()
    other = Judge(browser, address + anna.page.get_attribute("#link", "href"))
    other.wait()
    other.press("ArrowLeft", "ArrowLeft")
    assert other.number == 9 and other.pressed == [KEYS[said[8]]]
    other.press("2")
    assert other.number == 10 and other.pressed == [KEYS[said[9]]]
    other.press("ArrowRight")
    rest = "3" * (total - 10)
    other.press(*rest)
    assert "Thank you" in other.page.inner_text("#thanks")
    assert f"all {total} sentences" in other.page.inner_text("#thanks")
    final = [KEYS[key] for key in said[:8] + "2" + said[9:] + rest]
    assert choices(kept, "Anna") == final

    # Back from the end, and to the end once more.
    other.press("ArrowLeft")
    assert other.number == total and other.pressed == [final[-1]]
    other.press("ArrowRight")
    assert other.page.is_visible("#thanks")
    assert anna.problems == other.problems == []

    done = command("judgements", kept, "--judges", "Anna", "--json", folder / "figures.json")
    assert done.code == 0, done.err
    (row,) = json.loads((folder / "figures.json").read_text(encoding="utf-8"))["judges"]
    store = Store(kept)
    firsts = store.first_systems("Anna")
    store.close()
    better = {"first": 0, "second": 1}
    won = [
        None if choice == "equal" else firsts[place.document] ^ better[choice]
        for place, choice in zip(sample.questions, final, strict=True)
    ]
    same = len(sample.sentences) - total
    assert (row["better"], row["equal"], row["worse"]) == (won.count(0), won.count(None) + same, won.count(1))
    anna.context.close()
    other.context.close()


def test_judging_by_buttons_with_the_tab_key(browser, site):
    address, folder = site
    judge = Judge(browser, address, "Tab Only")
    seen = []
    for _ in range(12):
        judge.page.keyboard.press("Tab")
        seen.append(judge.page.evaluate("document.activeElement.dataset.choice || document.activeElement.id"))
        if seen[-1] == "second":
            break
    assert seen[-3:] == ["first", "equal", "second"]
    judge.press("Enter")
    assert judge.number == 2
    judge.press("Shift+Tab", "Space")  # the focus has stayed where it was
    assert judge.number == 3
    assert choices(folder / "j.sqlite", "Tab Only") == ["second", "equal"]
    assert judge.problems == []
    judge.context.close()


def test_a_key_held_down_judges_once_and_keys_of_the_browser_never(browser, site):
    address, folder = site
    judge = Judge(browser, address, "Heavy Hand")
    for _ in range(5):
        judge.page.keyboard.down("3")
    judge.page.keyboard.up("3")
    judge.wait()
    judge.press("Control+1")
    assert choices(folder / "j.sqlite", "Heavy Hand") == ["second"]
    judge.context.close()


def test_several_judges_at_once_and_one_after_another_in_a_browser(browser, site):
    address, folder = site
    judges = [Judge(browser, address, name) for name in ("Ben", "Cleo")]
    for keys in (("1", "3"), ("2", "1"), ("3", "2")):
        for judge, key in zip(judges, keys, strict=True):
            judge.press(key)
    assert choices(folder / "j.sqlite", "Ben") == ["first", "equal", "second"]
    assert choices(folder / "j.sqlite", "Cleo") == ["second", "first", "equal"]
    judges[0].page.click("#leave")
    judges[0].page.keyboard.type("Dan")
    judges[0].press("Enter")
    assert judges[0].number == 1 and judges[0].page.inner_text("#name") == "Dan"
    for judge in judges:
        judge.context.close()


def test_the_whole_text_is_there_on_demand(browser, site):
    address, folder = site
    judge = Judge(browser, address, "Reader")
    source, one, other = write_files(folder, LENGTHS)
    sample = read_sample(str(source), (str(one), str(other)), DOCUMENTS)
    far = next(k for k, place in enumerate(sample.questions) if place.position == 7)  # seven sentences before it
    judge.press(*["2"] * far)
    assert judge.page.locator("#source p").count() < 8
    judge.press("d")
    document = sample.documents[sample.questions[far].document]
    assert judge.page.locator("#source p").all_inner_texts() == list(document.source)
    for side in (1, 2):
        assert judge.page.locator(f"#pair article:nth-child({side}) p").count() == 8
    judge.context.close()


def test_in_a_low_window_the_translations_are_scrolled_to_and_not_under_the_buttons(browser, site):
    address, _ = site
    judge = Judge(browser, address, "Low Window", height=420)
    judge.press("2")
    below = judge.page.locator("#pair article:nth-child(2) .now").bounding_box()
    assert below["y"] + below["height"] <= judge.page.locator("#verdict").bounding_box()["y"]
    assert judge.page.evaluate("scrollY") > 0
    judge.context.close()


def test_a_server_that_is_gone_loses_nothing_and_says_so(browser, tmp_path):
    with judging(tmp_path) as (address, process):
        judge = Judge(browser, address, "Anna")
        judge.press("1")
        process.kill()
        process.wait()
        judge.press("2")
        assert "does not answer" in judge.page.inner_text("#error")
        assert judge.number == 2
    port = int(re.search(r":(\d+)/", address)[1])
    with judging(tmp_path, "--port", port):
        judge.press("2")
        assert judge.number == 3 and not judge.page.is_visible("#error")
        judge.context.close()
    assert choices(tmp_path / "j.sqlite", "Anna") == ["first", "equal"]


def test_names_that_are_refused_are_explained(browser, site):
    address, _ = site
    judge = Judge(browser, address, "=formula")
    assert "cannot be a judge's name" in judge.page.inner_text("#error")
    assert judge.page.is_visible("#welcome")
    judge.context.close()


@pytest.mark.parametrize("width", [360, 768, 1400])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_page_fits_its_window(browser, site, width, scheme):
    address, _ = site
    judge = Judge(browser, address, f"Viewer {width} {scheme}", width=width, color_scheme=scheme)
    assert judge.page.evaluate("document.documentElement.scrollWidth") <= width
    bar = judge.page.locator("#verdict").bounding_box()
    lower = bar["y"] + bar["height"]
    sides = [judge.page.locator(f"#pair article:nth-child({k})").bounding_box() for k in (1, 2)]
    if width < 640:
        assert sides[1]["y"] >= sides[0]["y"] + sides[0]["height"]
        assert lower == pytest.approx(800, abs=1)  # always at the lower edge
    else:
        assert bar["y"] - max(side["y"] + side["height"] for side in sides) < 40 and lower < 800  # near the texts
        assert sides[0]["y"] == sides[1]["y"] and sides[1]["x"] >= sides[0]["x"] + sides[0]["width"]
    paper = judge.page.evaluate("getComputedStyle(document.body).backgroundColor")
    assert (sum(map(int, re.findall(r"\d+", paper)[:3])) < 200) == (scheme == "dark")
    judge.context.close()
