"""Public contrastive sets in the layouts they come in; the sentences here are our own."""

from __future__ import annotations

import gzip
import json
import os
from pathlib import Path
from typing import Any

import pytest

from docnmt.base.errors import DocnmtError
from docnmt.base.lines import InputFile
from docnmt.evaluation.contrastive_items import KEPT, Item, read_items, write_items
from docnmt.evaluation.contrastive_layouts import read_set

SHARED = Path(os.environ.get("DOCNMT_SHARED") or Path(__file__).parents[4] / "shared")
SAMPLES = SHARED / "data" / "contrastive-layouts"


def save(path: Path, value: Any) -> str:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(value if isinstance(value, str) else json.dumps(value, indent=1), encoding="utf-8")
    return str(path)


def refused(path: str, **options: Any) -> str:
    with pytest.raises(DocnmtError) as error:
        read_set(path, **options)
    message = str(error.value)
    assert "\n  " in message  # every error says what to do
    return message


# ---- ContraPro ----

ENGLISH = ["I have a lamp.", "It's old.", "Do you like it ?", "Yes.", "It is red."]
GERMAN = ["Ich habe eine Lampe.", "Sie ist alt.", "Magst du sie?", "Ja.", "Sie ist rot."]


def contrapro_item(segment: int, line: int, **changes: Any) -> dict[str, Any]:
    right = GERMAN[line]
    return {
        "src segment": ENGLISH[line],
        "ref segment": right,
        "src pronoun": "It",
        "ref pronoun": "sie",
        "ante distance": line,
        "intrasegmental": line == 0,
        "document id": "1999_7_42.de",
        "segment id": segment,
        "errors": [
            {"contrastive": right.replace("Sie", "Er").replace("sie", "ihn"), "replacement": "er"},
            {"contrastive": right.replace("Sie", "Es").replace("sie", "es"), "replacement": "es"},
        ],
    } | changes


def documents(folder: Path, english: list[str] = ENGLISH, german: list[str] = GERMAN) -> str:
    save(folder / "1999" / "1999_7_42.en", "".join(f"{line}\n" for line in english))
    save(folder / "1999" / "1999_7_42.de", "".join(f"{line}\n" for line in german))
    save(folder / "2000" / "2000_1_1.en", "Unused.\n")
    return str(folder)


def contrapro(path: Path, first: int = 1, **changes: Any) -> str:
    return save(path, [contrapro_item(line + first, line, **changes) for line in (1, 2, 4)])


def test_contrapro_without_its_documents_has_no_contexts(tmp_path):
    found = read_set(contrapro(tmp_path / "contrapro.json"))
    assert found[1] == Item(
        document="1999_7_42.de",
        phenomenon="it:sie",
        source=("Do you like it ?",),
        right=("Magst du sie?",),
        wrong=(("Magst du ihn?",), ("Magst du es?",)),
        distance=2,
    )
    assert [item.distance for item in found] == [1, 2, 4]


@pytest.mark.parametrize("first", [1, 0])
def test_contrapro_takes_contexts_from_its_documents_whatever_they_count_from(tmp_path, first):
    path = contrapro(tmp_path / "contrapro.json", first)
    found = read_set(path, context_from=[documents(tmp_path / "docs")], languages=("en", "de"))
    assert [item.position for item in found] == [1, 2, 4]
    for item in found:
        at = item.position
        assert (*item.previous, *item.source, *item.following) == tuple(ENGLISH)
        assert (*item.previous_target, *item.right) == tuple(GERMAN[: at + 1])


def test_contrapro_takes_contexts_from_a_corpus_too(tmp_path):
    path = contrapro(tmp_path / "contrapro.json")
    by_folder = read_set(path, context_from=[documents(tmp_path / "docs")], languages=("en", "de"))
    rows = [f"1999_7_42\t{english}\t{german}\n" for english, german in zip(ENGLISH, GERMAN, strict=True)]
    tsv = save(tmp_path / "corpus.tsv", "other\ta\tb\n" + "".join(rows))
    assert read_set(path, context_from=[tsv]) == by_folder
    assert "1999_7_42.de was not found" in refused(path, context_from=[save(tmp_path / "x.tsv", "other\ta\tb\n")])
    assert "takes a folder, or a corpus" in refused(path, context_from=[tsv, tsv, tsv])


def test_the_english_french_sets_have_an_error_without_a_list_and_a_tokenised_reference(tmp_path):
    item = contrapro_item(
        2,
        2,
        errors={"contrastive": "Magst du ihn?", "replacement": "ihn"},
        **{"ref segment": "Magst du sie ?", "ante distance": -1, "document id": "1999_7_42"},
    )
    path = save(tmp_path / "testset.json", [item])
    (bare,) = read_set(path)
    (found,) = read_set(path, context_from=[documents(tmp_path / "docs")], languages=("en", "de"))
    assert (bare.right, bare.wrong, bare.distance) == (("Magst du sie?",), (("Magst du ihn?",),), None)
    assert (found.right, found.position) == (("Magst du sie?",), 2)


@pytest.mark.parametrize(
    ("tokenised", "wrong", "right"),
    [
        ("Qu' elle tombe , ici .", "Qu'il tombe, ici.", "Qu'elle tombe, ici."),
        ('Elles sont " là " !', 'Ils sont "là"!', 'Elles sont "là"!'),
        ("Je la vois .", "Je vois.", "Je la vois."),  # a word more
        ("Je vois .", "Je la vois.", "Je vois."),  # a word less
        ("C' est elle .", "C'est lui.", "C'est elle."),
        ("Elle s' est tue , et elle l' a vue .", "Il s'est tu, et il l'a vu.", "Elle s'est tue, et elle l'a vue."),
        ("Lorsqu' il s' est tu , il dort .", "Lorsqu'elle s'est tue, elle dort.", "Lorsqu'il s'est tu, il dort."),
        ("Elle l' a vu .", "Elle a vu.", "Elle l'a vu."),  # a word more, elided
        ("Elle a vu .", "Elle l'a vu.", "Elle a vu."),  # one less
        ("Dit -elle son avis ?", "Dit-il sa vision\u00a0?", "Dit-elle son avis\u00a0?"),
        ("Ah , elle dort .", "Elle dort.", "Ah , elle dort."),  # nothing tells
        ("Elle est rouge.", "Il est rouge.", "Elle est rouge."),  # was not tokenised
        ("Le même .", "Le même.", "Le même."),  # nothing tells them apart but spaces: a tie
        ("Tout autre chose , là .", "Rien !", "Tout autre chose , là ."),  # nothing in common
    ],
)
def test_a_tokenised_reference_is_spaced_as_its_wrong_ones_are(tmp_path, tokenised, wrong, right):
    item = contrapro_item(2, 2, errors=[{"contrastive": wrong}], **{"ref segment": tokenised})
    (found,) = read_set(save(tmp_path / "set.json", [item]))
    assert (found.right, found.wrong) == ((right,), ((wrong,),))


@pytest.mark.parametrize("german", [GERMAN[2], "Gefällt sie dir?", "magst du sie ?"])
def test_the_reference_stays_as_the_set_has_it_whatever_the_document_says(tmp_path, german):
    """Were it lower-cased or tokenised as the documents may be, and the wrong ones not, that would tell them apart."""
    path = save(tmp_path / "set.json", [contrapro_item(3, 2)])
    folder = documents(tmp_path / "docs", german=[*GERMAN[:2], german, *GERMAN[3:]])
    (found,) = read_set(path, context_from=[folder], languages=("en", "de"))
    assert (found.right, found.position) == ((GERMAN[2],), 2)


def test_of_long_documents_only_the_surroundings_are_kept(tmp_path):
    english, german = [f"Line {n}." for n in range(100)], [f"Zeile {n}." for n in range(100)]
    english[60], german[60] = ENGLISH[1], GERMAN[1]
    english[10] = "A bad\a line that nobody needs."
    path = save(tmp_path / "set.json", [contrapro_item(61, 1)])
    folder = documents(tmp_path / "docs", english, german)
    (found,) = read_set(path, context_from=[folder], languages=("en", "de"))
    assert found.previous == tuple(english[60 - KEPT : 60]) and found.following == tuple(english[61 : 61 + KEPT])
    assert found.previous_target == tuple(german[60 - KEPT : 60])


def test_control_characters_are_spaces_and_other_flaws_are_refused(tmp_path):
    english, german = [*ENGLISH], [*GERMAN]
    english[0], german[1] = english[0].replace(" ", "\x92"), german[1].replace(" ", "\x07 ")
    path = contrapro(tmp_path / "contrapro.json", **{"src segment": ENGLISH[1].replace(" ", "\x85")})
    path = save(tmp_path / "one.json", json.loads(Path(path).read_text(encoding="utf-8"))[:1])
    folder = documents(tmp_path / "docs", english, german)
    (found,) = read_set(path, context_from=[folder], languages=("en", "de"))
    assert found.source == (ENGLISH[1],) and found.previous == (ENGLISH[0],)
    assert found.right[0].split() == GERMAN[1].split()
    (Path(folder) / "1999" / "1999_7_42.en").write_bytes("\n".join(english).encode().replace(b"?", b"\xff") + b"\n")
    said = refused(path, context_from=[folder], languages=("en", "de"))
    assert "1999_7_42.en, line 3, document 1999_7_42.de: byte 0xFF" in said


def test_documents_that_do_not_fit_are_refused(tmp_path):
    path = contrapro(tmp_path / "contrapro.json")

    def said(*changed: list[str]) -> str:
        return refused(path, context_from=[documents(tmp_path / "docs", *changed)], languages=("en", "de"))

    assert "5 and 4 lines" in said(ENGLISH, GERMAN[:4])
    other = [*ENGLISH[:4], "Something else."]
    assert f"{path}: item 3: its source sentence is not segment 5 of document 1999_7_42.de" in said(other, GERMAN)
    (tmp_path / "docs" / "1999" / "1999_7_42.de").unlink()
    assert "no files 1999_7_42.en and .de" in refused(
        path, context_from=[str(tmp_path / "docs")], languages=("en", "de")
    )


def test_an_item_among_many_that_is_not_where_it_says_is_left_without_context(tmp_path):
    good, lost = contrapro_item(2, 1), contrapro_item(4, 1)
    path = save(tmp_path / "set.json", [*[good] * 20, lost, *[good] * 20])
    with pytest.warns(UserWarning, match=r"1 of 41 items .* the first is item 21: its source .* not segment 4 of"):
        found = read_set(path, context_from=[documents(tmp_path / "docs")], languages=("en", "de"))
    assert [item.previous for item in found] == [(ENGLISH[0],)] * 20 + [()] + [(ENGLISH[0],)] * 20
    assert found[20].source == found[0].source and found[20].position is None


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"errors": []}, "item 1: 'wrong' must be a list of one or more translations"),
        ({"errors": [{"replacement": "er"}]}, "item 1: does not have the expected structure (KeyError('contrastive'))"),
        ({"ref segment": None}, "item 1: does not have the expected structure"),
        ({"segment id": "1"}, "item 1: 'segment id' is not a number"),
        ({"src segment": "a\udcff"}, "item 1: byte 0xFF at character 2 is not valid UTF-8"),
    ],
)
def test_bad_contrapro_items(tmp_path, changes, said):
    path = save(tmp_path / "set.json", [contrapro_item(2, 1, **changes)])
    folder = documents(tmp_path / "docs")
    assert said in refused(path, context_from=[folder], languages=("en", "de"))


# ---- passages ----

ANAPHORA = {
    "1": {
        "inspired by": ["x", "y"],
        "src": ["The cars are here.", "They are blue."],
        "trg": [
            {
                "type": "f.pl",
                "correct": ["Les voitures sont là.", "Elles sont bleues."],
                "incorrect": ["Les voitures sont là.", "Ils sont bleus."],
            },
            {
                "type": "m.pl",
                "semi-correct": ["Les camions sont là.", "Ils sont bleus."],
                "incorrect": ["Les camions sont là.", "Elles sont bleues."],
            },
        ],
    }
}
LEXICAL = {
    "1": {
        "type": "disambig",
        "examples": [
            {
                "src": ["He fell into the river.", "He swam to the bank."],
                "trg": {
                    "correct": ["Il est tombé à l'eau.", "Il a nagé jusqu'à la rive."],
                    "incorrect": ["Il est tombé à l'eau.", "Il a nagé jusqu'à la banque."],
                },
            }
        ],
    },
    "2": {
        "examples": [
            {
                "src": ["Hello.", "Goodbye."],
                "trg": {"correct": ["Salut.", "Au revoir."], "incorrect": ["Bonjour.", "Adieu."]},
            }
        ]
    },
}


def test_bawden_anaphora(tmp_path):
    first, second = read_set(save(tmp_path / "anaphora.json", ANAPHORA))
    assert first == Item(
        document="1",
        phenomenon="f.pl",
        source=("They are blue.",),
        right=("Elles sont bleues.",),
        wrong=(("Ils sont bleus.",),),
        distance=1,
        previous=("The cars are here.",),
        previous_target=("Les voitures sont là.",),
    )
    assert (second.phenomenon, second.right) == ("m.pl, semi-correct", ("Ils sont bleus.",))


def test_bawden_lexical_choice_scores_both_sentences_where_both_differ(tmp_path):
    first, second = read_set(save(tmp_path / "lexical-choice.json", LEXICAL))
    assert (first.phenomenon, first.source, first.distance) == ("disambig", ("He swam to the bank.",), 1)
    assert (first.previous_target, first.right) == (("Il est tombé à l'eau.",), ("Il a nagé jusqu'à la rive.",))
    assert second.phenomenon == "lexical choice" and second.previous == second.previous_target == ()
    assert (second.source, second.right) == (("Hello.", "Goodbye."), ("Salut.", "Au revoir."))
    assert second.wrong == (("Bonjour.", "Adieu."),)


def test_bad_bawden_blocks(tmp_path):
    broken = {"1": ANAPHORA["1"], "2": {"src": ["a", "b"], "trg": [{"type": "m.sg", "correct": ["a", "b"]}]}}
    assert "block 2: does not have the expected structure (KeyError('incorrect'))" in refused(
        save(tmp_path / "a.json", broken)
    )
    short = {"1": {"examples": [{"src": ["a", "b"], "trg": {"correct": ["a"], "incorrect": ["a", "c"]}}]}}
    assert "item 1:" in refused(save(tmp_path / "b.json", short))
    assert "not an object of blocks" in refused(save(tmp_path / "c.json", []), layout="bawden")
    letters = {"1": {"src": "ab", "trg": [{"type": "m.sg", "correct": "ab", "incorrect": "ac"}]}}
    assert "'ab' instead of a list of sentences" in refused(save(tmp_path / "d.json", letters))


def voita_item(*candidates: str, true: Any = 0, source: str = "A . _eos B . _eos C .") -> dict[str, Any]:
    return {"dst": list(candidates), "true_ind": true, "src": source, "ctx_dist": 2}


def test_voita_passages_score_what_the_candidates_do_not_share(tmp_path):
    two = voita_item("a . _eos b . _eos c .", "a . _eos b . _eos d .", "a . _eos b . _eos e .", true=1)
    early = voita_item("a . _eos b . _eos c .", "a . _eos x . _eos c .")
    same = voita_item("a . _eos b . _eos c .", "a . _eos b . _eos c .")
    first, second, third = read_set(save(tmp_path / "deixis_test.json", [two, early, same]))
    assert first == Item(
        document="1",
        phenomenon="deixis",
        source=("C .",),
        right=("d .",),
        wrong=(("c .",), ("e .",)),
        distance=2,
        previous=("A .", "B ."),
        previous_target=("a .", "b ."),
    )
    assert (second.previous, second.source, second.right) == (("A .",), ("B .", "C ."), ("b .", "c ."))
    assert (third.source, third.right, third.wrong) == (("C .",), ("c .",), (("c .",),))


@pytest.mark.parametrize(
    ("item", "said"),
    [
        (voita_item("a . _eos b . _eos c .", true=0), "'wrong' must be a list of one or more translations"),
        (voita_item("a", "b", true=2, source="A"), "true_ind 2 of 2 candidates"),
        (voita_item("a", "b", true="0", source="A"), "does not have the expected structure"),
        (voita_item("a . _eos b .", "a . _eos c ."), "source sentences, but a translation has"),
        ({"true_ind": 0}, "KeyError('dst')"),
        ("true_ind", "does not have the expected structure"),
    ],
)
def test_bad_voita_items(tmp_path, item, said):
    path = save(tmp_path / "set.json", [voita_item("a", "b", source="A"), item])
    message = refused(path)
    assert message.startswith(f"{path}: item 2: ") and said in message


# ---- any of them ----


def test_every_layout_is_told_by_its_content_and_may_be_named(tmp_path):
    own = tmp_path / "own.txt"
    write_items(own, [Item("d", "p", ("a",), ("b",), (("c",),))])
    given = {
        "docnmt": str(own),
        "contrapro": contrapro(tmp_path / "1"),
        "bawden": save(tmp_path / "2", ANAPHORA),
        "voita": save(tmp_path / "3", [voita_item("a", "b", source="A")]),
    }
    for layout, path in given.items():
        assert read_set(path) == read_set(path, layout=layout)
        packed = tmp_path / f"{layout}.gz"
        packed.write_bytes(gzip.compress(b"\xef\xbb\xbf" + Path(path).read_bytes()))
        assert [item.right for item in read_set(str(packed))] == [item.right for item in read_set(path)]
    for layout in ("docnmt", "bawden", "voita"):
        assert "contain their contexts" in refused(given[layout], context_from=["x"])


@pytest.mark.parametrize(
    ("text", "options", "said"),
    [
        ("A sentence.\n", {}, "the layout of this contrastive set is not recognised"),
        ("", {}, "the layout of this contrastive set is not recognised"),
        ("[]", {}, "the layout of this contrastive set is not recognised"),
        ("[]", {"layout": "voita"}, "no items"),
        ("[]", {"layout": "vojta"}, "unknown layout 'vojta'"),
        ("[]", {"layout": "text"}, "unknown layout 'text'"),
        ("{}", {"layout": "contrapro"}, "not a list of items"),
        ('[\n{"true_ind": 0,\n1}]', {}, "line 3: not valid JSON"),
    ],
)
def test_what_is_no_set_is_refused(tmp_path, text, options, said):
    assert said in refused(save(tmp_path / "set", text), **options)


def test_a_file_that_is_not_there(tmp_path):
    assert "no such file" in refused(str(tmp_path / "b"))


@pytest.mark.parametrize(
    ("name", "count", "phenomena"),
    [
        ("bawden-anaphora", 8, {"m.pl", "f.pl", "m.pl, semi-correct", "f.pl, semi-correct"}),
        ("bawden-lexical-choice", 4, {"repet"}),
        ("voita-deixis", 2, {"voita-deixis.sample"}),
        ("voita-ellipsis-inflection", 2, {"voita-ellipsis-inflection.sample"}),
    ],
)
def test_samples_of_the_real_sets(tmp_path, name, count, phenomena):
    path = SAMPLES / f"{name}.sample.json"
    if not path.is_file():
        pytest.skip(f"{path} is not there; set DOCNMT_SHARED to the folder that holds data/")
    found = read_set(str(path))
    assert len(found) == count and {item.phenomenon for item in found} == phenomena
    for item in found:
        assert len(item.source) == 1 and item.right not in item.wrong
        assert len(item.previous) == len(item.previous_target) >= (item.distance or 0)
    written = tmp_path / "set.jsonl"
    write_items(written, found)
    with InputFile(str(written)) as file:
        assert read_items(file) == found
