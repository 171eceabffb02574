"""Whether a model's own translation has the right word; and ctxpro's sets, which ask for nothing else."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from docnmt.base.errors import DocnmtError
from docnmt.evaluation.contrastive import NEITHER, RIGHT, WITH, WITHOUT, WRONG, Written, outcome, write
from docnmt.evaluation.contrastive_items import Item, write_items
from docnmt.evaluation.contrastive_layouts import read_set
from docnmt.evaluation.contrastive_report import GENERATIVE, accuracy_table, as_json, groups
from tests.fake_translator import Fake

ITEM = Item("d", "possessive", ("Son chapeau.",), ("Her hat.",), (("His hat.",), ("Its hat.",)))


@pytest.mark.parametrize(
    ("translation", "said"),
    [
        ("Here is her hat.", RIGHT),
        ("HER HAT!", RIGHT),
        ("Her hat, and his.", WRONG),
        ("Its hat", WRONG),
        ("The hat.", NEITHER),
        ("Where is the hatter?", NEITHER),  # words, not letters
        ("", NEITHER),
    ],
)
def test_a_translation_is_right_with_the_right_word_and_without_the_wrong_ones(translation, said):
    assert outcome(ITEM, translation) == said


def test_all_pronouns_at_once_need_one_of_theirs_and_none_of_the_others():
    item = replace(ITEM, right=("She lost her hat.",), wrong=(("He lost his hat.",),))
    assert outcome(item, "Her hat was gone.") == RIGHT
    assert outcome(item, "She lost his hat.") == WRONG


def test_each_sentence_is_translated_in_its_own_context():
    fake = Fake(lambda text: f"[{text}]", previous=2, following=1)
    long = replace(ITEM, previous=("a", "b", "c"), following=("x", "y"))
    passage = replace(long, source=("s", "t"), right=("one", "her"), wrong=(("one", "his"),))
    written = write(fake, [long, ITEM, passage], None)
    assert [text.translation for text in written] == ["[Son chapeau.]", "[Son chapeau.]", "[s] [t]"]
    assert fake.asked == [
        ("Son chapeau.", ("b", "c", "x")),
        ("Son chapeau.", ()),
        ("s", ("b", "c", "t")),
        ("t", ("c", "s", "x")),
    ]


def test_the_sentence_model_sees_no_context():
    fake = Fake(lambda text: "her hat", previous=2)
    (written,) = write(fake, [replace(ITEM, previous=("a", "b"))], "off")
    assert written.right and fake.asked == [("Son chapeau.", ())]


def test_the_figures_count_what_has_neither():
    said = {WITH: [RIGHT] * 6 + [WRONG] * 2 + [NEITHER] * 2, WITHOUT: [RIGHT] * 4 + [WRONG] * 4 + [NEITHER] * 2}
    written = {use: [Written("", one) for one in verdicts] for use, verdicts in said.items()}
    found = groups([ITEM] * 10, written)
    assert found[0].accuracy[WITH].percent == 60
    assert found[0].of_decided(WITH).percent == 75
    (row, *_) = as_json(found, GENERATIVE)
    assert {kind: row["no_context"][kind] for kind in (RIGHT, WRONG, NEITHER)} == {RIGHT: 4, WRONG: 4, NEITHER: 2}
    table = accuracy_table("set", found, GENERATIVE)
    assert table.rows[0][2].startswith("60.0 [") and table.rows[0][3] == "75.0"


# ---- ctxpro ----

RECORDS = [
    {
        "expected": "it",
        "src pronoun": "la",
        "ante distance": 1,
        "src segment": "Tu la vois ?",
        "ref segment": "Do you see it?",
        "segment id": 3,
        "document id": "fr-en/1999/7_42",
        "rule": "ACC.FEM.SING",
    },
    {
        "src pronoun": "toi",
        "expected": "you",
        "ref segment": "For you.",
        "src segment": "Pour toi.",
        "segment id": 9,
        "document id": "fr-en/1999/7_42",
        "rule": "ACC.INFORM",
    },
]
INPUTS = "J'ai une lampe.<eos> Elle est là.<eos> Tu la vois ?\nPour toi.\n"


@pytest.fixture
def ctxpro(tmp_path):
    path, inputs = tmp_path / "animacy.json", tmp_path / "animacy"
    path.write_text(json.dumps(RECORDS, indent=2), encoding="utf-8")
    inputs.write_text(INPUTS, encoding="utf-8")
    return path, inputs


def test_a_ctxpro_set_is_known_by_its_content_and_has_its_contexts_in_the_inputs(ctxpro, tmp_path):
    path, inputs = ctxpro
    first, second = read_set(str(path), context_from=[str(inputs)])
    assert first.previous == ("J'ai une lampe.", "Elle est là.") and second.previous == ()
    assert (first.source, first.right, first.wrong) == (("Tu la vois ?",), ("Do you see it?",), ())
    assert (first.expected, first.phenomenon, first.distance) == ("it", "ACC.FEM.SING", 1)
    assert (second.expected, second.distance) == ("you", None)
    write_items(tmp_path / "set.jsonl", [first, second])
    assert read_set(str(tmp_path / "set.jsonl")) == [first, second]


def test_inputs_of_another_set_are_refused(ctxpro):
    path, inputs = ctxpro
    inputs.write_text(INPUTS * 2, encoding="utf-8")
    with pytest.raises(DocnmtError, match=r"4 lines, but .* has 2 items"):
        read_set(str(path), context_from=[str(inputs)])
    inputs.write_text(INPUTS.replace("vois", "veux"), encoding="utf-8")
    with pytest.raises(DocnmtError, match="line 1: does not end with the source sentence of item 1"):
        read_set(str(path), context_from=[str(inputs)])


def test_what_is_expected_is_told_by_the_sets_own_rule():
    item = replace(ITEM, wrong=(), expected="it")
    for translation, said in (("I see it!", RIGHT), ("IT.", RIGHT), ("It's there.", NEITHER), ("bit", NEITHER)):
        assert outcome(item, translation) == said
    assert outcome(replace(item, expected="de lui"), "Parle de lui.") == RIGHT
