"""`docnmt tables --only systems`: every system trained and judged by one command."""

from __future__ import annotations

import json

import pytest

from docnmt.evaluation.metrics import make_metric
from docnmt.systems import SYSTEMS
from tests.system.test_tables import Toy, few_trials  # noqa: F401 (a fixture)

METRIC = make_metric("chrf", language="en").name  # the toy recipe's
FEWEST = ("sentence.updates=10", "document.updates=2", "document.validate_every=2")


@pytest.fixture(scope="module")
def toy(tmp_path_factory) -> Toy:
    made = Toy(tmp_path_factory.mktemp("systems"))
    rows = made.rows("test")
    items = []
    for number, (document, source, target) in enumerate(rows[1:], 1):
        before = [row for row in rows[:number] if row[0] == document]
        if before:
            items.append(
                {
                    "document": document,
                    "phenomenon": ("order", "sense")[number % 2],
                    "distance": 1,
                    "previous": [row[1] for row in before],
                    "previous_target": [row[2] for row in before],
                    "source": source,
                    "right": target,
                    "wrong": [" ".join(reversed(target.split())) + " s"],
                }
            )
    text = "".join(json.dumps(item) + "\n" for item in items)
    (made.folder / "contrastive.jsonl").write_text(text, encoding="utf-8")
    return made


@pytest.fixture(scope="module")
def table(toy: Toy) -> dict:
    contrastive = f"evaluation.contrastive={json.dumps(str(toy.folder / 'contrastive.jsonl'))}"
    (found,) = toy.figures(toy.folder / "run", "--only", "systems", settings=(*FEWEST, contrastive))
    return found


def test_every_system_has_a_row_and_every_row_its_figures(table):
    assert len(table["rows"]) == len(SYSTEMS) + 5  # concat comes in five kinds, the paper's beside ours
    for row in table["rows"]:
        base = row["Context"] == "none"
        for name, cell in row.items():
            only_systems = name in ("gain", "95 %", "p", "added") or "shuffled" in name
            assert bool(cell) == (not base or not only_systems), (row["System"], name)
        assert 0 <= float(row["context words"]) <= 100
        assert {"order", "sense", "1 back"} <= set(row)


def test_the_last_rows_are_this_work_and_ours_and_gains_are_over_their_own_base(table):
    (last, ours), transformer = table["rows"][-2:], table["rows"][3]
    assert (last["System"], transformer["System"]) == ("this work", "Vaswani et al. (2017)")
    assert ours["System"].startswith("ours") and ours["p"] != ""
    assert float(last["gain"]) == pytest.approx(float(last[METRIC]) - float(transformer[METRIC]), abs=0.011)


def test_parameters_are_those_of_the_base_and_what_is_added(table):
    rows = {row["System"]: row for row in table["rows"]}
    count = {name: [int(row[k].replace(",", "") or 0) for k in ("parameters", "added")] for name, row in rows.items()}
    base = count["Vaswani et al. (2017)"][0]
    for name, row in rows.items():
        if row["Model"] == "Transformer":
            assert count[name][0] == base
    assert count["Tiedemann and Scherrer (2017), 2-to-1"][1] == 0 < count["Voita et al. (2018)"][1]


def test_notes_say_what_systems_that_see_translations_were_shown(table):
    text = " ".join(table["notes"])
    assert "gold" in text and "Updates: of step 1 for a base" in text and "contrastive.jsonl" in text


def test_a_recipe_without_a_contrastive_set_has_the_rest(toy, table):
    (found,) = toy.figures(toy.folder / "run", "--only", "systems", settings=FEWEST)
    assert "context words" not in found["rows"][0] and found["rows"][-1][METRIC] == table["rows"][-1][METRIC]
