"""The page "Translate" in a real browser, against `docnmt serve`: everything that a reader can do with it."""

from __future__ import annotations

import json
import re
import xml.etree.ElementTree
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from docnmt.decoding.files import translate_bytes
from docnmt.decoding.translator import Translator, load
from docnmt.serving.explain import explain
from tests.browser import open_browser
from tests.office_files import docx, part_of
from tests.system.conftest import Tiny, first_documents, start_docnmt

PHONE, DESKTOP = (390, 844), (1200, 900)


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with open_browser() as opened:
        yield opened


@pytest.fixture(scope="module")
def address(browser: Any, models: dict[str, Path]) -> Iterator[str]:
    process = start_docnmt("serve", models["document"], models["sentence"], "--port", 0, "--workers", 1)
    try:
        assert process.stdout is not None and process.stderr is not None
        said = ""
        for line in process.stdout:
            said += line
            if found := re.match(r"http://\S+", line):
                yield found[0]
                break
        else:
            pytest.fail(f"no address was told: {said}{process.stderr.read()}")
    finally:
        process.terminate()
        process.communicate(timeout=60)


@pytest.fixture(scope="module")
def translator(models: dict[str, Path]) -> Translator:
    return load(models["document"])


@pytest.fixture(scope="module")
def sentences(tiny: Tiny) -> list[str]:
    """A document: the first paragraph is three of them, the second one the others."""
    return [line.split("\t")[1] for line in first_documents(tiny.folder / "corpus" / "test.tsv", 2)][:7]


@pytest.fixture(scope="module")
def text(sentences: list[str]) -> str:
    return " ".join(sentences[:3]) + "\n\n" + " ".join(sentences[3:])


class Reader:
    """Somebody with the page open. Whatever goes wrong in it, and whatever it asks of others, is kept."""

    def __init__(self, browser: Any, address: str, size: tuple[int, int] = DESKTOP, **options: Any):
        self.context = browser.new_context(viewport={"width": size[0], "height": size[1]}, **options)
        self.context.set_default_timeout(20_000)
        self.page = self.context.new_page()
        self.problems: list[str] = []
        self.asked: list[str] = []
        self.page.on("pageerror", lambda error: self.problems.append(str(error)))
        self.page.on("console", lambda said: said.type == "error" and self.problems.append(said.text))
        self.page.on("request", lambda sent: self.note(sent.url, address))
        self.page.goto(address)
        self.page.wait_for_selector("#languages:not(:empty)")

    def note(self, url: str, address: str) -> None:
        self.asked.append(url.rpartition("/")[2])
        if not url.startswith((address, f"blob:{address}")):
            self.problems.append(url)

    def translate(self, text: str) -> None:
        self.page.fill("#text", text)
        self.page.click("#translate")
        self.wait()

    def wait(self) -> None:
        """Until nothing is under way."""
        self.page.wait_for_selector("#result:not([hidden])")
        self.page.wait_for_selector("#work", state="hidden")

    def compare(self) -> str:
        """Switches on what is without context, and waits for it."""
        self.page.locator("#without-switch").click()
        self.page.wait_for_selector("#summary:not(:empty)")
        self.wait()
        return self.page.inner_text("#summary")

    def texts(self, side: str) -> list[str]:
        return self.page.locator(f".{side} > p").all_inner_texts()

    def row(self, number: int) -> Any:
        return self.page.locator(".sentence").nth(number)

    def download(self, button: str) -> tuple[str, bytes]:
        with self.page.expect_download() as found:
            self.page.click(button)
        return found.value.suggested_filename, Path(found.value.path()).read_bytes()

    def choose(self, name: str, data: bytes) -> None:
        self.page.set_input_files("#file", {"name": name, "mimeType": "", "buffer": data})

    def focused(self) -> str:
        return self.page.evaluate("document.activeElement.id || document.activeElement.className")


@pytest.fixture
def reader(browser: Any, address: str) -> Iterator[Reader]:
    opened = Reader(browser, address)
    yield opened
    opened.context.close()
    assert opened.problems == []


def said(translator: Translator, sentences: list[str], **changes: Any) -> list[str]:
    """What the page shows: a sentence for which the model has no words stays as it is."""
    found = translator.translate(sentences, **changes)
    return [text.strip() or sentence for text, sentence in zip(found, sentences, strict=True)]


# ---- translating ----


def test_a_text_is_translated_sentence_by_sentence_beside_its_source(reader, translator, sentences, text):
    reader.translate(text)
    assert reader.texts("source") == sentences
    assert reader.texts("target") == said(translator, sentences)
    begins = reader.page.locator(".sentence").evaluate_all("rows => rows.map(r => r.classList.contains('begins'))")
    assert [at for at, begin in enumerate(begins) if begin] == [0, 3]
    assert reader.page.inner_text("#live") == "Done: 7 sentences"
    given, made = (reader.page.locator(pane).bounding_box() for pane in ("#form", "#result"))
    assert made["x"] >= given["x"] + given["width"] and made["y"] < given["y"] + given["height"]
    sides = [reader.page.locator(f".{side} > p").evaluate_all(TOPS) for side in ("source", "target")]
    assert all(below > above for above, below in zip(*sides, strict=True))


SMALL_TARGETS = """[...document.querySelectorAll("a, button, summary, select, .switch")].filter(each => {
  const box = each.getBoundingClientRect();
  return each.checkVisibility() && Math.min(box.width, box.height) < 44;
}).map(each => each.outerHTML)"""
TOPS = "lines => lines.map(line => Math.round(line.getBoundingClientRect().top))"


def test_a_text_that_goes_on_with_terms_or_without_context(reader, translator, sentences):
    reader.page.click("summary")
    reader.page.fill("#previous", " ".join(sentences[:2]))
    reader.translate(" ".join(sentences[2:4]))
    assert reader.texts("source") == sentences[2:4]
    assert reader.texts("target") == said(translator, sentences[:4])[2:]
    reader.row(0).locator(".target .word").first.click()
    reader.row(0).locator(".panel .seen").first.wait_for()  # what was said before is seen there, too
    reader.page.fill("#glossary", "no term")
    reader.page.click("#translate")
    reader.page.get_by_text("Write a term, an equals sign and its translation.").wait_for()
    reader.page.fill("#glossary", f"{sentences[2].split()[0]} = Zzz")
    reader.translate(sentences[2])
    assert "Zzz" in reader.texts("target")[0]
    reader.page.fill("#glossary", "")
    reader.page.locator("#context-switch").click()
    reader.translate(" ".join(sentences[2:4]))
    assert reader.texts("target") == said(translator, sentences[2:4], context="off")
    assert not reader.page.is_visible("#without-switch")


def test_an_example_is_a_click_away(reader):
    reader.page.click("#example")
    reader.wait()
    assert len(reader.texts("target")) >= 2
    assert "Word, OpenDocument" in reader.page.inner_text("#kinds")


def test_the_same_text_without_context(reader, translator, sentences, text):
    with_, without = said(translator, sentences), said(translator, sentences, context="off")
    changed = [at for at in range(7) if with_[at] != without[at]]
    reader.translate(text)
    assert reader.compare() == f"Context changed {len(changed)} of 7 sentences." and changed
    for at in range(7):
        row = reader.row(at)
        assert row.locator(".without").count() == (at in changed)
        if at in changed:
            assert row.locator(".without p").inner_text() == without[at]
            lines = [row.locator(where) for where in (".target > p", ".without p")]
            assert sum(line.locator(".other").count() for line in lines) > 0
            same = [line.locator(".word:not(.other)").all_inner_texts() for line in lines]
            assert same[0] == same[1], "what is not marked is the same"
    asked = len(reader.asked)
    for _ in range(2):  # off, and on again: it is there already
        reader.page.locator("#without-switch").click()
    assert reader.page.locator(".without").count() == len(changed)
    assert len(reader.asked) == asked


def test_a_switch_that_is_on_before(reader, text):
    reader.translate(text)
    reader.compare()
    before = reader.page.locator(".without").count()
    reader.page.click("#translate")
    reader.page.wait_for_selector("#summary:empty", state="attached")
    reader.page.wait_for_selector("#summary:not(:empty)")
    reader.wait()
    assert reader.page.locator(".without").count() == before > 0


def test_a_model_without_context(reader, models, sentences, text):
    reader.page.select_option("#model", "sentence")
    reader.translate(text)
    assert reader.texts("target") == said(load(models["sentence"]), sentences)
    assert not reader.page.is_visible("#without-switch")
    assert reader.page.locator(".word[role]").count() == 0


# ---- words ----


def test_a_word_tells_what_context_did_for_it(reader, translator, sentences, text):
    reader.translate(text)
    row, shown = reader.row(3), reader.texts("target")
    word = row.locator(".target > p .word[role]").last
    word.click()
    panel = row.locator(".panel")
    panel.locator("h3").wait_for()
    assert panel.locator("h3").inner_text().startswith(f"“{word.inner_text()}”")
    found = explain(translator, sentences, shown, 3)
    values = [round(found["log"][name][place_of(word, shown[3], found)], 2) for name in ("true", "none")]
    told = re.findall(r"log.p (\S+)", panel.locator(".bars").inner_text())
    assert [float(value.replace("\u2212", "-")) for value in told] == pytest.approx(values, abs=0.011)
    context = panel.locator(".seen").all_inner_texts()
    assert [line.partition("before")[2].strip() for line in context] == sentences[1:3]
    assert panel.locator(".layers button").count() == 1 and "gate" in panel.locator(".layers").inner_text()
    assert word.evaluate("word => word.classList.contains('chosen')")
    asked = len(reader.asked)
    row.locator(".source .word[role]").first.click()  # the same question, about another word
    panel.get_by_text("(encoder)").wait_for()
    assert "explanation" not in reader.asked[asked:]
    reader.page.keyboard.press("Escape")
    assert row.locator(".panel").count() == 0


def place_of(word: Any, text: str, found: dict) -> int:
    """Of the last word that is a button among the explained ones."""
    begin = text.rindex(word.inner_text())
    return next(at for at, (first, last) in enumerate(found["target"]) if first < begin + 1 and begin < last)


def test_the_first_sentence_has_no_context(reader, text):
    reader.translate(text)
    reader.row(0).locator(".target > p .word[role]").first.click()
    reader.page.get_by_text("There is nothing before this sentence").wait_for()
    assert "context hardly matters" in reader.page.inner_text(".panel h3")


def test_words_that_belong_together_are_shown_on_hover_and_on_focus(reader, text):
    reader.translate(text)
    row = reader.row(1)
    word = row.locator(".source .word[role]").nth(1)
    word.hover()
    row.locator(".target .linked").first.wait_for()
    assert word.evaluate("word => word.classList.contains('linked')")
    reader.row(5).locator(".source").hover()
    assert row.locator(".linked").count() == 0
    row.locator(".target > p .word[tabindex='0']").focus()
    row.locator(".source .linked").first.wait_for()


# ---- other translations ----


def test_another_translation_is_chosen(reader, translator, sentences, text):
    reader.translate(text)
    first = reader.texts("target")[2]
    reader.row(2).get_by_label("Other translations").click()
    choices = reader.row(2).locator(".alternatives button")
    offered = choices.all_inner_texts()
    assert len(offered) == len(set(offered)) > 1 and offered[0] == first
    assert choices.first.get_attribute("aria-pressed") == "true"
    choices.nth(1).click()
    assert reader.texts("target")[2] == offered[1] and reader.row(2).locator(".alternatives").count() == 0
    assert offered[1] in reader.download("#download")[1].decode()


def test_a_translation_is_edited_in_place(reader, text, translator, sentences):
    reader.translate(text)
    before = reader.texts("target")
    reader.row(1).get_by_label("Edit").click()
    reader.page.keyboard.press("Control+a")
    reader.page.keyboard.type("Something else.")
    reader.page.keyboard.press("Escape")
    assert reader.texts("target") == before
    reader.row(1).get_by_label("Edit").click()
    reader.page.get_by_label("Translation", exact=True).get_by_role("textbox").fill("Mine,\nin two lines <b>.")
    reader.page.keyboard.press("Enter")
    assert reader.texts("target")[1] == "Mine, in two lines <b>."
    assert reader.row(1).locator(".note").inner_text() == "edited"
    name, data = reader.download("#download")
    after = [*before[:1], "Mine, in two lines <b>.", *before[2:]]
    assert name == "text.en.txt"
    assert data.decode() == " ".join(after[:3]) + "\n\n" + " ".join(after[3:])
    name, data = reader.download("#tmx")
    assert name == "text.en.tmx"
    units = xml.etree.ElementTree.fromstring(data).iter("tu")
    assert [[segment.text for segment in unit.iter("seg")] for unit in units] == [
        list(pair) for pair in zip(sentences, after, strict=True)
    ]
    reader.row(1).get_by_label("Edit").click()  # nothing is no translation: back to the model's
    reader.page.get_by_label("Translation", exact=True).get_by_role("textbox").fill(" ")
    reader.page.get_by_role("button", name="Save").click()
    assert reader.texts("target") == before and reader.row(1).locator(".note").count() == 0


def test_a_text_is_copied(browser, address, text):
    reader = Reader(browser, address, permissions=["clipboard-read", "clipboard-write"])
    reader.translate(text)
    reader.page.click("#copy")
    reader.page.get_by_role("button", name="Copied").wait_for()
    assert reader.page.evaluate("navigator.clipboard.readText()") == reader.download("#download")[1].decode()
    reader.context.close()


# ---- files ----


def paragraph(before: str, bold: str) -> str:
    plain, marked = f"<w:r><w:t>{before} </w:t></w:r>", f"<w:r><w:rPr><w:b/></w:rPr><w:t>{bold}</w:t></w:r>"
    return f"<w:p>{plain}{marked}</w:p>"


def test_a_word_document_goes_in_and_comes_out(reader, translator, sentences):
    data = docx(paragraph(sentences[0], sentences[1]) + paragraph(sentences[2], "12"))
    reader.choose("letter.docx", data)
    assert "letter.docx" in reader.page.inner_text("#chosen") and reader.focused() == "translate"
    assert not reader.page.is_visible("#text")
    reader.page.keyboard.press("Enter")
    reader.wait()
    assert reader.page.inner_text("#download") == "Download letter.en.docx" and not reader.page.is_visible("#copy")
    name, written = reader.download("#download")
    assert name == "letter.en.docx"
    body = part_of(written, "word/document.xml")
    assert body == part_of(translate_bytes(translator, data, "letter.docx"), "word/document.xml")
    reader.row(0).get_by_label("Edit").click()
    reader.page.keyboard.press("Control+a")
    reader.page.keyboard.type("My own words.")
    reader.page.keyboard.press("Enter")
    edited = part_of(reader.download("#download")[1], "word/document.xml")
    assert "My own words." in re.sub("<[^>]*>", "", edited.decode()) and b"<w:b/>" in edited
    reader.page.click("#remove")
    assert reader.focused() == "text"


CATALOGUE = 'msgid ""\nmsgstr "Content-Type: text/plain; charset=UTF-8\\n"\n\n#: a.c\nmsgid "{}"\nmsgstr "{}"\n'


def test_a_file_is_dropped_and_what_has_a_translation_stays(reader, sentences):
    drop = """([name, text]) => {
        const transfer = new DataTransfer();
        transfer.items.add(new File([text], name));
        for (const kind of ["dragover", "drop"]) {
            document.body.dispatchEvent(new DragEvent(kind, {dataTransfer: transfer, bubbles: true, cancelable: true}));
        }
    }"""
    catalogue = CATALOGUE.format(sentences[0], "Known.") + f'\nmsgid "{sentences[1]}"\nmsgstr ""\n'
    reader.page.evaluate(drop, ["menu.po", catalogue])
    reader.page.wait_for_selector("#chosen-name:text('menu.po')")
    reader.page.click("#translate")
    reader.wait()
    assert reader.texts("source") == sentences[:2]
    assert reader.texts("target")[0] == sentences[0] and reader.row(0).get_by_label("Edit").count() == 0
    assert reader.row(1).get_by_label("Edit").count() == 1
    name, data = reader.download("#download")
    assert name == "menu.en.po" and b'msgstr "Known."' in data and reader.texts("target")[1] in data.decode()


def test_lines_of_several_documents(reader, translator, sentences):
    lines = [*sentences[:2], "", *sentences[2:4]]
    reader.choose("a.fr", ("\n".join(lines) + "\n").encode())
    reader.page.click("#translate")
    reader.wait()
    assert reader.page.locator("h2.document").all_inner_texts() == ["a:1", "a:2"]
    expected = [*said(translator, sentences[:2]), *said(translator, sentences[2:4])]
    assert reader.texts("target") == expected
    name, data = reader.download("#download")
    assert name == "a.en" and data.decode().splitlines() == [*expected[:2], "", *expected[2:]]


def test_headings_and_cells_of_a_file_are_named(reader, sentences):
    a, b, c, d = sentences[:4]
    reader.choose("a.md", f"# {a}\n\n{b}\n\n| {c} |\n|---|\n| {d} |\n".encode())
    reader.page.click("#translate")
    reader.wait()
    named = reader.page.locator(".sentence").evaluate_all("rows => rows.map(r => r.querySelector('.role')?.innerText)")
    assert named == ["Heading", None, "Cell", "Cell"]
    weights = reader.page.locator(".target > p").evaluate_all("rows => rows.map(r => +getComputedStyle(r).fontWeight)")
    assert weights[0] > weights[1] == weights[2]
    assert not reader.page.is_visible(".role >> text=Note")


def test_the_encoding_of_subtitles_is_told_and_can_be_changed(reader):
    reader.choose("a.srt", "1\n00:00:01,000 --> 00:00:02,000\nL'été à la mer.\n".encode("cp1252"))
    reader.page.click("#translate")
    reader.wait()
    assert "read as cp1252, which is a guess" in reader.page.inner_text("#hint")
    assert reader.texts("source") == ["L'été à la mer."]
    reader.page.fill("#encoding", "cp1251")
    reader.page.click("#translate")
    reader.page.locator("#hint", has_text="cp1251.").wait_for()
    reader.wait()
    assert reader.texts("source") == ["L'йtй а la mer."]
    assert b"00:00:01,000" in reader.download("#download")[1]
    reader.page.click("#remove")
    reader.choose("a.html", b"<p>a b</p>")
    assert not reader.page.is_visible("#encoding")


# ---- when things go wrong ----


def test_what_is_wrong_is_told_in_the_page(reader):
    error = reader.page.locator("#error")
    reader.page.click("#translate")
    assert "There is no text" in error.inner_text()
    reader.choose("broken.docx", b"no archive")
    reader.page.click("#translate")
    reader.page.wait_for_selector("#error:has-text('broken.docx')")
    assert error.get_attribute("role") == "alert"
    assert reader.problems.pop().startswith("Failed to load resource")  # 400, which the browser notes, too
    reader.page.click("#remove")
    reader.translate("Le chat dort.")
    assert not error.is_visible()


def test_cancelled_and_gone_on(reader, translator, sentences, text):
    held: list[Any] = []
    reader.page.route("**/page/translate", lambda route: held.append(route))  # no answer comes
    reader.page.fill("#text", text)
    reader.page.click("#translate")
    reader.page.get_by_text("0 of 7 sentences").wait_for()
    assert reader.page.locator(".waiting").count() == 7 and reader.page.is_disabled("#download")
    reader.page.click("#cancel")
    reader.page.wait_for_selector("#work", state="hidden")
    assert reader.page.locator(".waiting").count() == 0 and not reader.page.is_visible("#error")
    assert reader.page.inner_text("#summary") == "7 sentences not translated"
    reader.page.unroute("**/page/translate")
    part = {"document": 0, "sentence": 2, "texts": ["The third."]}
    broken = "\n".join([json.dumps(part), json.dumps({"error": "The time limit is over."})])
    reader.page.route("**/page/translate", lambda route: route.fulfill(body=broken))
    reader.page.click("#go-on")
    reader.page.get_by_text("The time limit is over.").wait_for()
    assert reader.texts("target") == ["", "", "The third.", "", "", "", ""]
    reader.page.unroute("**/page/translate")
    reader.page.click("#go-on")
    reader.wait()
    expected = said(translator, sentences)
    assert reader.texts("target") == [*expected[:2], "The third.", *expected[3:]]
    assert not reader.page.is_visible("#go-on") and not reader.page.is_visible("#error")


def test_a_server_that_is_gone(reader, text):
    reader.page.route("**/page/**", lambda route: route.abort())
    reader.page.fill("#text", text)
    reader.page.click("#translate")
    reader.page.get_by_text("The server does not answer").wait_for()
    assert reader.problems.pop().startswith("Failed to load resource")


# ---- by keyboard, on a phone, in the dark ----


def test_by_keyboard_alone(reader, sentences):
    keyboard = reader.page.keyboard

    def tab_to(wanted: str) -> None:
        for _ in range(12):
            keyboard.press("Tab")
            if wanted in reader.focused():
                outline = reader.page.evaluate("getComputedStyle(document.activeElement).outlineStyle")
                assert outline != "none", "the focus is to be seen"
                return
        pytest.fail(f"no {wanted} within reach")

    tab_to("text")
    keyboard.type(" ".join(sentences[:3]))
    keyboard.press("Control+Enter")
    reader.wait()
    tab_to("without")
    keyboard.press("Space")
    reader.page.wait_for_selector("#summary:not(:empty)")
    reader.wait()
    tab_to("tmx")
    tab_to("word")  # the first source sentence
    tab_to("word")
    first = reader.page.evaluate("document.activeElement.textContent")
    keyboard.press("ArrowRight")
    keyboard.press("ArrowLeft")
    assert reader.page.evaluate("document.activeElement.textContent") == first
    keyboard.press("ArrowDown")
    assert reader.row(1).locator(".target > p .word:focus").count() == 1
    keyboard.press("Enter")
    reader.row(1).locator(".panel h3").wait_for()
    assert reader.row(1).locator(".panel h3").inner_text() == reader.page.inner_text("#live")
    keyboard.press("Escape")
    assert reader.row(1).locator(".panel").count() == 0
    assert reader.row(1).locator(".word:focus").count() == 1
    for _ in range(2):
        keyboard.press("Tab")
    assert reader.page.evaluate("document.activeElement.ariaLabel") == "Edit"
    keyboard.press("Enter")
    keyboard.press("Control+a")
    keyboard.type("By hand.")
    keyboard.press("Enter")
    assert reader.texts("target")[1] == "By hand."
    assert reader.page.evaluate("document.activeElement.ariaLabel") == "Edit"
    keyboard.press("Shift+Tab")
    keyboard.press("Enter")
    assert reader.row(1).locator(".alternatives button:focus").count() == 1
    keyboard.press("Enter")
    assert reader.texts("target")[1] != "By hand."


CONTRASTS = """() => {
  const channel = c => (c /= 255) <= 0.03928 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4;
  const light = ([r, g, b]) => 0.2126 * channel(r) + 0.7152 * channel(g) + 0.0722 * channel(b);
  const numbers = colour => colour.match(/[\\d.]+/g).map(Number).map((part, at) =>
    at < 3 && colour.startsWith("color(srgb") ? 255 * part : part);
  const under = node => {
    for (; node; node = node.parentElement) {
      const colour = numbers(getComputedStyle(node).backgroundColor);
      if (colour.length === 3 || colour[3] === 1) return colour;
    }
    return [255, 255, 255];
  };
  const hasText = node => [...node.childNodes].some(child => child.nodeType === 3 && child.data.trim());
  const shown = [...document.querySelectorAll("main *")].filter(node => node.checkVisibility() && !node.disabled);
  return shown.filter(hasText).map(node => {
    const [a, b] = [numbers(getComputedStyle(node).color), under(node)].map(light).sort((x, y) => y - x);
    return [(a + 0.05) / (b + 0.05), node.outerHTML.slice(0, 80)];
  });
}"""


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("size", [PHONE, DESKTOP], ids=["phone", "desktop"])
def test_readable_at_both_widths_in_light_and_dark(browser, address, text, size, scheme):
    reader = Reader(browser, address, size, color_scheme=scheme)
    page = reader.page

    def check() -> None:
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), "something sticks out"
        assert [poor for poor in page.evaluate(CONTRASTS) if poor[0] < 4.5] == []

    check()
    page.click("#translate")  # an error
    check()
    reader.translate(text)
    reader.compare()
    check()
    page.locator(".target > p .word[role]").last.click()
    page.locator(".panel h3").wait_for()
    check()
    reader.row(1).get_by_label("Other translations").click()
    reader.row(2).get_by_label("Edit").click()
    check()
    paper = page.evaluate("getComputedStyle(document.body).backgroundColor")
    assert (paper == "rgb(255, 255, 255)") == (scheme == "light")
    given, made = (page.locator(pane).bounding_box() for pane in ("#form", "#result"))
    assert (made["x"] > given["x"]) == (size == DESKTOP)  # side by side, or one below the other
    if size != DESKTOP:
        assert page.evaluate(SMALL_TARGETS) == []
    reader.context.close()
    assert reader.problems == []
