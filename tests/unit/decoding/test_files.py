"""Corpora to translate, as they are read from files."""

from __future__ import annotations

import tracemalloc

from docnmt.decoding.files import placed_documents


def test_empty_lines_between_documents_are_counted_not_kept(tmp_path):
    path, lines = tmp_path / "gaps.txt", 200_000
    path.write_text("Un.\n" + "\n" * lines + "Deux.\n\n\n", encoding="utf-8")
    tracemalloc.start()
    try:
        found = [
            (tuple(placed.document.sentences), placed.blank_lines) for placed in placed_documents(str(path), "text")
        ]
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert found == [(("Un.",), 0), (("Deux.",), lines), ((), 2)]
    assert peak < 10_000_000  # kept, they would take 160 bytes each
