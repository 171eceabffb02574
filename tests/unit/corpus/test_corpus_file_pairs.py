"""The same file in two languages as a parallel document, where the two are built alike."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from docnmt.base.errors import DocnmtError, SkipBad
from docnmt.base.lines import CorpusFiles
from docnmt.corpus.read import detect_format, read_corpus
from docnmt.document import GAP, ParallelDocument

Cues = list[tuple[float, float, str]]


def pair(folder: Path, suffix: str, source: str, target: str) -> CorpusFiles:
    (folder / f"x.fr{suffix}").write_text(source, encoding="utf-8")
    (folder / f"x.en{suffix}").write_text(target, encoding="utf-8")
    return CorpusFiles(source=str(folder / f"x.fr{suffix}"), target=str(folder / f"x.en{suffix}"))


def read(files: CorpusFiles, on_bad: SkipBad | None = None) -> list[ParallelDocument]:
    options = {"on_bad": on_bad} if on_bad else {}
    return list(read_corpus(files, languages=("fr", "en"), **options))  # type: ignore[arg-type]


def srt(cues: Cues) -> str:
    def clock(seconds: float) -> str:
        return f"00:{int(seconds) // 60:02}:{int(seconds) % 60:02},{round(seconds % 1 * 1000):03}"

    return "".join(f"{n}\n{clock(a)} --> {clock(b)}\n{text}\n\n" for n, (a, b, text) in enumerate(cues, 1))


FRENCH: Cues = [
    (1, 3, "Quand le train est arrivé,"),
    (3, 5, "il faisait nuit. Personne"),
    (5, 7, "ne nous attendait."),
    (8, 10, "- Oui ?\n- Non."),
    (11, 12, "<i>Un panneau.</i>"),
    (20, 23, "Je ne sais pas. Et toi ?"),
]
ENGLISH: Cues = [
    (1.1, 4, "When the train came in, it was dark."),
    (4.2, 7, "Nobody was waiting for us."),
    (8, 10, "- Yes?\n- No."),
    (20, 21.4, "I don't know."),
    (21.5, 23, "And you?"),
    (30, 31, "The end."),
]


def test_subtitles_are_aligned_by_time(tmp_path: Path) -> None:
    files = pair(tmp_path, ".srt", srt(FRENCH), srt(ENGLISH))
    assert detect_format(files) == "files"
    assert read(files) == [
        ParallelDocument(
            "x.fr",
            (
                "Quand le train est arrivé, il faisait nuit.",
                "Personne ne nous attendait.",
                "Oui ?",
                "Non.",
                GAP,
                "Je ne sais pas.",
                "Et toi ?",
                GAP,
            ),
            (
                "When the train came in, it was dark.",
                "Nobody was waiting for us.",
                "Yes?",
                "No.",
                GAP,
                "I don't know.",
                "And you?",
                GAP,
            ),
        )
    ]


def test_subtitles_of_another_film_are_refused(tmp_path: Path) -> None:
    late = [(a + 100, b + 100, text) for a, b, text in ENGLISH]
    files = pair(tmp_path, ".srt", srt(FRENCH), srt(late))
    with pytest.raises(
        DocnmtError, match=r"line 2: 5 of 5 sentences have no counterpart in .*x\.en\.srt.* 00:00:01: 'Quand"
    ):
        read(files)
    skipped = SkipBad()
    with pytest.raises(DocnmtError, match="no documents"):
        read(files, skipped)
    assert skipped.counts == {"unequal sides": 1}


def test_json_of_strings(tmp_path: Path) -> None:
    files = pair(
        tmp_path,
        ".json",
        json.dumps({"a": "Bonjour. Entrez !", "b": ["Un", 2], "c": "Un, deux. Trois."}),
        json.dumps({"a": "Hello. Come in!", "b": ["One", 2], "c": "One. Two. Three."}),
    )
    assert read(files) == [
        ParallelDocument(
            "x.fr",
            ("Bonjour.", "Entrez !", "Un", "Un, deux. Trois."),
            ("Hello.", "Come in!", "One", "One. Two. Three."),
        )
    ]


def test_where_files_part_is_named(tmp_path: Path) -> None:
    left = ["Un mot", "Le chapitre 2 commence", "Deux mots", "Trois mots"]
    right = ["A word", "Two words", "Three words"]
    files = pair(tmp_path, ".json", json.dumps(left), json.dumps(right))
    with pytest.raises(
        DocnmtError, match=r"4 segments, but 3 in .* before segment 2: 'Le chapitre 2 .*' and 'Two words'"
    ):
        read(files)


MARKDOWN = (
    "# Le titre\n\nUn *mot*. Deux mots.\n\n- un point\n- deux points\n\n```\ncode\n```\n",
    "# The title\n\nA *word*. Two words.\n\n* one point\n* two points\n\n```\ncode\n```\n",
)
HTML = (
    "<html lang=fr><title>Le titre</title><body><h1>Le <b>titre</b></h1><p>Un mot. Deux mots.</p></html>",
    "<html lang=en><title>The title</title><body><h1><i>The title</i></h1><p>A word. Two words.</p></html>",
)


@pytest.mark.parametrize(("suffix", "sides"), [(".md", MARKDOWN), (".html", HTML)])
def test_pages(suffix: str, sides: tuple[str, str], tmp_path: Path) -> None:
    (document,) = read(pair(tmp_path, suffix, *sides))
    assert ("Un mot.", "A word.") in zip(document.source, document.target, strict=True)
    assert ("Deux mots.", "Two words.") in zip(document.source, document.target, strict=True)
    assert "code" not in " ".join(document.source)


@pytest.mark.parametrize(
    ("suffix", "sides"),
    [
        (".md", (MARKDOWN[0], MARKDOWN[1].replace("* one point\n*", "One point.\n\n*"))),
        (".html", (HTML[0], HTML[1].replace("<p>", "<h2>").replace("</p>", "</h2>"))),
    ],
)
def test_segments_of_another_nature_are_refused(suffix: str, sides: tuple[str, str], tmp_path: Path) -> None:
    with pytest.raises(DocnmtError, match=r"segments, the same number in .* they differ at or before segment 3"):
        read(pair(tmp_path, suffix, *sides))


def test_plain_text_is_still_read_by_lines(tmp_path: Path) -> None:
    assert detect_format(pair(tmp_path, ".txt", "Un.\n", "One.\n")) == "text"
