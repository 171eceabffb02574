"""`benchmarks/probes.py`: systems side by side on the same probes."""

from __future__ import annotations

import json

import pytest

from benchmarks import probes


def items(right, generative, uses=("with_context", "shuffled_context")) -> list[dict]:
    """Two items a document, the first without a cue; `right` and `generative` by use."""
    made = []
    for number in range(8):
        said = {use: {"preferred": right(use, number), **generative(use, number)} for use in uses}
        made.append(
            {
                "document": f"chapter-{number // 2}",
                "position": number,
                "phenomenon": "possessive, no cue" if number % 2 == 0 else "possessive, with cue",
                "distance": 1 if number % 2 == 0 else 0,
                "previous": ["Elle entra.", f"Elle {number}."],
                "source": [f"Son chapeau {number}."],
                "right": [f"Her hat {number}."],
                **said,
            }
        )
    return made


def verdict(word: str, number: int) -> dict:
    return {"generative": word, "translation": f"{word} {number}"}


@pytest.fixture
def files(tmp_path):
    sentence = items(
        lambda _, n: n % 2 == 1, lambda _, n: verdict("wrong" if n < 6 else "right", n), ("sentence_model",)
    )
    document = items(
        lambda use, n: use == "with_context" or n % 2 == 1, lambda use, n: verdict("right" if n < 6 else "wrong", n)
    )
    for name, rows in (("sentence", sentence), ("document", document)):
        (tmp_path / name).write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return tmp_path


def accuracy_table(systems):
    return probes.accuracy_table(systems, "contrastive", "percent right", probes.groups(systems[0].items))


def test_a_row_has_what_each_use_gets_and_what_the_main_one_gains(files):
    systems = [probes.read_system(f"{name}={files / name}") for name in ("sentence", "document")]
    table = accuracy_table(systems)
    assert [column.name for column in table.columns] == [
        "",
        "items",
        "sentence",
        "document, true",
        "document, shuffled",
    ]
    rows = {row[0]: row[1:] for row in table.rows}
    assert rows["all without a cue"][:2] == ["4", "0.0"]
    assert rows["all without a cue"][2].startswith("100.0 (+100.0, +100.0 … +100.0, p ")
    assert rows["all without a cue"][3] == "0.0"
    assert rows["possessive, all"][0] == "8" and rows["possessive, all"][1] == "50.0"


def test_several_trainings_of_a_system_are_averaged(files):
    twice = probes.read_system(f"twice={files / 'sentence'},{files / 'sentence'}")
    never = items(lambda _, n: False, lambda _, n: verdict("wrong", n), ("sentence_model",))
    (files / "never").write_text("".join(json.dumps(row) + "\n" for row in never), encoding="utf-8")
    half = probes.read_system(f"half={files / 'sentence'},{files / 'never'}")
    rows = {row[0]: row[1:] for row in accuracy_table([twice, half]).rows}
    assert rows["possessive, with cue"][1] == "100.0 ± 0.0"
    assert rows["possessive, with cue"][2].startswith("50.0 ± 70.7 (-50.0, -50.0 … -50.0, p ")


def test_examples_are_the_first_that_changed_and_losers_are_counted_too(files):
    systems = [probes.read_system(f"{name}={files / name}") for name in ("sentence", "document")]
    shown = "\n".join(probes.examples(*systems, count=2))
    assert "right with context: 3 of 4" in shown and "wrong with context: 1 of 4" in shown
    assert "Son chapeau 0." in shown and "Son chapeau 2." in shown and "Son chapeau 4." not in shown
    assert "Son chapeau 6." in shown


def test_other_items_are_refused(files, monkeypatch, capsys):
    rows = (files / "document").read_text(encoding="utf-8").splitlines()
    (files / "document").write_text("\n".join(rows[1:]), encoding="utf-8")
    monkeypatch.setattr("sys.argv", ["probes.py", f"a={files / 'sentence'}", f"b={files / 'document'}"])
    with pytest.raises(SystemExit):
        probes.main()
    assert "not asked the same items" in capsys.readouterr().err


def test_plots_are_drawn(files):
    pytest.importorskip("matplotlib")
    probes.draw([probes.read_system(f"{name}={files / name}") for name in ("sentence", "document")], files)
    assert {path.name for path in files.glob("*.svg")} == {"probes-by-class.svg", "probes-by-distance.svg"}


def test_items_are_told_apart_by_the_last_word_before_that_tells_a_gender():
    def item(*previous, right="Her hat.", wrong="His hat."):
        return {"phenomenon": "possessive, no cue", "previous": previous, "right": right, "wrong": [wrong]}

    with_cue = item("Elle entra.") | {"phenomenon": "possessive, with cue"}
    asked = [
        item("Elle entra."),
        item("Il entra, puis elle sortit.", "La pluie tombait."),  # the nearer one that tells
        item("Elle entra, puis il sortit."),
        item("Elle entra.", "La pluie tombait.", "Le vent aussi."),  # too far back
        item("Elle entra.", right="Its colour.", wrong="His colour."),  # a thing
        item("Madame entra.", right="Then his hat.", wrong="Then her hat."),
        with_cue,
    ]
    found = probes.by_last_told(asked, "fr-en")
    assert {name: members.nonzero()[0].tolist() for name, members in found.items()} == {
        "all without a cue: the right gender": [0, 1],
        "all without a cue: the other one": [2, 5],
        "all without a cue: none": [3],
        "possessive: the right gender": [0, 1, 6],
        "possessive: the other one": [2, 5],
        "possessive: none": [3],
    }


def test_balanced_is_half_right_for_whoever_always_says_the_same(tmp_path):
    """Six of the eight that have a gender are feminine: to say *her* is right in 75 %, and in 50 % when balanced."""
    made = items(lambda _, n: n < 6, lambda _, n: {}, ("sentence_model",))
    made += items(lambda _, n: False, lambda _, n: {}, ("sentence_model",))[:1]
    for number, item in enumerate(made):
        hers, his, its = (f"{word} hat." for word in ("Her", "His", "Its"))
        right, wrong = (hers, his) if number < 6 else (his, hers) if number < 8 else (its, hers)
        item |= {"right": [right], "wrong": [[wrong]], "phenomenon": "possessive, no cue"}
    (tmp_path / "her").write_text("".join(json.dumps(row) + "\n" for row in made), encoding="utf-8")
    system = probes.read_system(f"her={tmp_path / 'her'}")
    (plain,) = accuracy_table([system]).rows[:1]
    balanced, _ = probes.gendered_tables([system], "contrastive", "fr-en")
    assert plain == ["all without a cue", "9", "66.7"]
    assert balanced.rows[0] == ["all without a cue", "8", "50.0"]
