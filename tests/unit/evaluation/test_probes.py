"""Probes: what is taken from a corpus, what is left out, and what the sentence itself tells."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from docnmt.base.errors import DocnmtError
from docnmt.cli import main
from docnmt.document import ParallelDocument
from docnmt.evaluation.contrastive import decisive
from docnmt.evaluation.contrastive_items import Item
from docnmt.evaluation.probe_words import ProbeClass, chosen_classes, language, presets
from docnmt.evaluation.probes import ProbeMaker

SHARED = Path(os.environ.get("DOCNMT_SHARED") or Path(__file__).parents[4] / "shared")
NOVELS = SHARED / "data" / "discourse" / "novels.fr-en.bovary.tsv"
# Words in lower case, so that a capital at the beginning of a sentence is no name.
COMMON = (
    "– elle dit que son chapeau tomba, ses yeux, il a vu la lettre, puis en marchant, les mots lui manquaient.",
    "she said that his hat fell, her eyes, he saw the letter, then walking, words failed him, its roof.",
)


def items_of(*pairs: tuple[str, str], languages=("fr", "en"), classes=None, common=COMMON, **options) -> list[Item]:
    document = ParallelDocument("d", *zip(common, *pairs, strict=True))
    made = ProbeMaker([document], languages).make(classes or chosen_classes(languages), **options)
    return [item for item in made if item.position]


def one(*pairs: tuple[str, str], **options) -> Item:
    (item,) = items_of(*pairs, **options)
    return item


def test_the_others_stand_in_the_words_place_with_its_case_and_the_context_beside_it():
    before = ("Marie entra.", "Marie came in.")
    item = one(before, ("Son chapeau tomba.", "Her hat fell off."))
    assert item.right == ("Her hat fell off.",)
    assert item.wrong == (("His hat fell off.",), ("Its hat fell off.",))
    assert item.phenomenon == "possessive, no cue"
    assert (item.position, item.previous[-1], item.previous_target[-1]) == (2, *before)
    shouted = one(("SON CHAPEAU !", "HER HAT!"))
    assert shouted.wrong == (("HIS HAT!",), ("ITS HAT!",))


@pytest.mark.parametrize(
    ("source", "target"),
    [
        ("Son chapeau et ses gants.", "His hat and his gloves, and its box."),  # more than one
        ("Le chapeau tomba.", "His hat fell off."),  # the source does not leave it open
        ("Son chapeau tomba.", "The hat fell off."),  # nothing to swap
        ("On lui dit son nom.", "They gave her money."),  # whose money?
        ("On vit son sourire.", "They saw her smile."),  # a smile, or to smile
        ("C'était son chapeau.", "The hat was his."),  # "her" would have to be "hers"
        ("Son œil !", "This is a far longer sentence than the other one, and hardly his translation of it."),
    ],
)
def test_what_is_not_sure_is_left_out(source, target):
    assert not items_of((source, target), classes=chosen_classes(("fr", "en"))[:1])


def test_her_is_told_by_where_it_stands():
    english = language("en")
    for text, role in (
        ("I saw her hat.", ""),
        ("This is her hat.", "possessive"),
        ("I know her.", "object"),
        ("I spoke with her about it.", "object"),
        ("Her own hat.", "possessive"),
        ("They told her stories.", ""),
    ):
        begin = text.lower().index("her")
        assert english.role_at(text, begin, begin + 3) == role, text


CUES = {
    "nothing": ("Son chapeau tomba.", "Her hat fell.", False),
    "a pronoun of the source": ("Elle perdit son chapeau.", "Off went her hat.", True),
    "a pronoun of the reference": ("Son chapeau tomba.", "Her hat fell and she saw it.", True),
    "a noun": ("La reine perdit son chapeau.", "Her hat fell.", True),
    "a name": ("Puis Camille perdit son chapeau.", "Then her hat fell.", True),
    "a name that begins": ("Camille perdit son chapeau.", "Her hat fell.", True),
    "who does it for a living": ("Le chapelier perdit son chapeau.", "His hat fell.", True),
    "agreement": ("Étonnée, on vit ses yeux.", "There were her eyes.", True),
    "a thing": ("Son toit tomba.", "Its roof fell.", True),
}


@pytest.mark.parametrize("why", CUES)
def test_what_tells_is_found_in_either_language(why):
    source, target, told = CUES[why]
    item = one((source, target), classes=chosen_classes(("fr", "en"))[:1])
    assert item.phenomenon == f"possessive, {'with cue' if told else 'no cue'}"
    assert (item.distance == 0) == told


def test_the_distance_is_that_of_the_nearest_sentence_with_a_word_of_the_gender():
    far = [("Elle entra.", "She came in."), ("Le roi dormait.", "The king slept."), ("Tout dormait.", "All slept.")]
    for target, distance in (("Her eyes.", 3), ("His eyes.", 2)):
        item = next(item for item in items_of(*far, ("Ses yeux.", target)) if item.position == 4)
        assert item.distance == distance


def test_all_pronouns_of_a_person_change_at_once_each_in_its_role():
    gender = [one for one in chosen_classes(("fr", "en")) if one.is_gender]
    item = one(
        ("Ses mains lui disaient son nom.", "Her hands told her of herself, and her name was hers."), classes=gender
    )
    assert item.wrong == (("His hands told him of himself, and his name was his.",),)
    assert item.phenomenon == "gender, no cue"
    assert not items_of(("Ses mains lui disaient son nom.", "His hands told her his name."), classes=gender)


def test_gender_does_not_ask_again_what_another_class_asks():
    kinds = [
        item.phenomenon for item in items_of(("Ses yeux.", "Her eyes."), ("Ses yeux, sa voix.", "His eyes, his voice."))
    ]
    assert kinds == ["possessive, no cue", "gender, no cue"]


def test_who_does_something_to_a_person_tells_nothing_of_that_person():
    open_one = one(("Elle lui disait :", "She said to him —"), classes=chosen_classes(("fr", "en"))[1:2])
    assert open_one.phenomenon == "object, no cue" and open_one.wrong[0] == ("She said to her —",)
    same = one(
        ("Ce qu'elle aimait lui manquait.", "What she liked was lost to her."),
        classes=chosen_classes(("fr", "en"))[1:2],
    )
    assert same.phenomenon == "object, with cue"


def test_god_has_no_other_gender():
    assert not items_of(("On doit lui parler.", "One must speak to Him."))


def test_a_limit_holds_for_each_document_and_its_seed_draws():
    pairs = [(f"Ses yeux, {n}.", f"Her eyes, {n}.") for n in range(30)]
    drawn = [[item.position for item in items_of(*pairs, limit=5, seed=seed)] for seed in (1, 1, 2)]
    assert len(drawn[0]) == 5 and drawn[0] == sorted(drawn[0])
    assert drawn[0] == drawn[1] != drawn[2]


def test_words_of_ones_own_in_any_language():
    own = chosen_classes(("de", "nl"), [["dit", "dat"]], ["das"])
    item = one(("Ich sehe das Haus.", "Ik zie dat huis."), languages=("de", "nl"), classes=own)
    assert item.wrong == (("Ik zie dit huis.",),) and item.phenomenon == "dit/dat, no cue"
    assert not items_of(("Ich sehe ein Haus.", "Ik zie dat huis."), languages=("de", "nl"), classes=own)
    ready = chosen_classes(("fr", "en"), [["his", "her", "its"]], [])
    assert ready == chosen_classes(("fr", "en"))[:1]
    with pytest.raises(DocnmtError, match="only one word"):
        ProbeClass("x", ("his", "his"))
    with pytest.raises(DocnmtError, match="no ready-made word classes for 'nl-de'"):
        chosen_classes(("nl", "de"))


@pytest.mark.parametrize(
    ("languages", "source", "target", "wrong"),
    [
        (("en", "fr"), "It opened once more.", "Elle se rouvrit.", "Il se rouvrit."),
        (("en", "fr"), "They walked away.", "Ils marchaient au loin.", "Elles marchaient au loin."),
        (("en", "fr"), "Here is your hat.", "Voici tes gants.", "Voici vos gants."),
        (("zh", "en"), "声音很小。", "Her voice is faint.", "His voice is faint."),
        (("de", "en"), "Er war dort.", "It was there.", "He was there."),
    ],
)
def test_every_pair_has_ready_made_classes(languages, source, target, wrong):
    assert "-".join(languages) in presets()
    item = one((source, target), languages=languages, common=(source.lower(), target.lower()))
    assert item.phenomenon.endswith(", no cue") and item.wrong[0] == (wrong,)


def test_french_pronouns_that_stand_for_nothing_or_after_a_preposition_are_left_out():
    for target in ("Il y a de l'eau.", "Il faut partir.", "C'est pour elle.", "Oui, dit-elle."):
        assert not items_of(("It is there.", target), languages=("en", "fr"))


FRENCH = (
    "the lamp, it shone, they left, your hats.",
    "la lampe, elle brillait, ils partaient, tes chapeaux.",
)


@pytest.mark.parametrize(
    ("source", "target"),
    [
        ("It may be that the soup is cold.", "Il se peut que la soupe refroidisse."),
        ("It is about a lost lamp.", "Il s'agit d'une lampe perdue."),
        ("It so happened that we slept.", "Il se trouva que nous dormions."),
        ("I leave before it gets dark.", "Je pars avant qu'il fasse nuit."),
        ("There can be a gap, it does happen.", "Il peut toujours y avoir un trou, cela se voit."),
        ("It befits us to keep quiet.", "Il sied que nous gardions le silence."),
        ("It proves that we slept.", "Il s'avère que nous dormions."),
        ("It suited us to sleep.", "Il convenait que nous dormions."),
        ("It suffices that we sleep.", "Il suffît que nous dormions."),
        ("It had rained on us.", "Il avait plu sur nous."),
        ("It can get cold here.", "Il peut faire froid ici."),
        ("It starts to rain again.", "Il recommence à pleuvoir."),
        ("It took us a lamp to see.", "Il a fallu une lampe pour voir."),
        ("It may rain on us.", "Il peut pleuvoir sur nous."),
        ("It may happen to us to sleep.", "Il pourra nous arriver de dormir."),
        ("It happened at times that we slept.", "Il arrivait parfois que nous dormions."),
        ("It depends on luck whether we sleep.", "Il dépend du hasard que nous dormions."),
        ("It mattered so little to us.", "Il importait si peu que nous dormions."),
        ("We doubt it takes a lamp.", "Nous doutons qu'il faille une lampe."),
    ],
)
def test_french_il_that_stands_for_nothing_is_left_out_with_other_verbs_as_well(source, target):
    assert not items_of((source, target), languages=("en", "fr"), common=FRENCH)


@pytest.mark.parametrize(
    ("source", "target"),
    [
        ("It can be red.", "Elle peut être peinte."),
        ("It has been painted.", "Elle a été peinte."),
        ("Tired of the rain, it slept.", "Fatiguée de la pluie, elle dormait."),
        ("They left early.", "Ils sont partis tôt."),
        ("They have come home.", "Elles s'étaient levées tôt."),
        ("They shone, always alike.", "Elles brillaient, toujours pareilles."),
        ("They heard steps behind them.", "Ils entendirent des pas derrière eux."),
        ("They slept, one here, one there.", "Ils dormaient, l'un ici, l'autre là."),
        ("They climbed, grave, menacing.", "Ils montaient, graves, menaçants."),
        ("They sleep and think themselves eternal.", "Elles dorment et se croient aussi éternelles."),
        ("It looks pretty there.", "Elle a l'air jolie ici."),
        ("It got stuck behind a wall.", "Il se retrouve coincé derrière un mur."),
        ("It opened on the yard and stood ajar.", "Elle donnait sur la cour et était ouverte."),
        ("They felt bound to talk.", "Ils se croyaient tenus de parler."),
        ("It opened wide at once.", "Elle s'ouvrit vivement, toute grande."),
        ("They left, glad as children.", "Ils partaient, heureux comme des enfants."),
        ("It ceased to seem new.", "Elle cessait de paraître neuve."),
        ("It flowed along, swift and cold.", "Elle coulait sans bruit, rapide et froide."),
    ],
)
def test_what_agrees_with_a_french_pronoun_gives_it_away_so_it_is_left_out(source, target):
    assert not items_of((source, target), languages=("en", "fr"), common=FRENCH)


@pytest.mark.parametrize(
    ("source", "target"),
    [
        ("The baker won it from his friend.", "Il gagna contre son ami."),
        ("It was in a low voice.", "Elle parlait tout bas."),
        ("I shrugged it off as a dream.", "Je pensais qu'elle dormait."),
        ("Says it's a lamp.", "Il dit que c'en serait une."),
        ("Otto lost the page, it lay on a shelf.", "Otto perdit la page où il traçait un plan."),
        ("The baker lost the page, it lay on a shelf.", "Le boulanger perdit la page où il traçait un plan."),
        ("Thus it pleased them.", "La personne avait ce qu'elle voulait."),
        ("It would appear that we slept.", "Puis il parla de notre sommeil."),
        ("It amused them to listen.", "Il écoutait par distraction."),
        ("It does upset them to listen.", "Elle écoutait à regret."),
    ],
)
def test_il_and_elle_of_a_person_are_not_those_of_a_thing(source, target):
    assert not items_of((source, target), languages=("en", "fr"), common=FRENCH)


@pytest.mark.parametrize(
    ("source", "target", "told"),
    [
        ("They went home.", "Ils rentrèrent.", False),
        ("They went home, and she told him why.", "Ils rentrèrent, et on lui expliqua tout.", True),
        ("They went home, Otto leading the way.", "Ils rentrèrent, Otto marchant en avant.", True),
        ("They must hide hats somewhere.", "Ils cachent sûrement des chapeaux.", True),
        ("Here are your hats.", "Voici tes chapeaux.", False),
        ("I bring your hats.", "Je t'apporte tes chapeaux.", True),
        ("Fine, keep your hats.", "Bon, garde tes chapeaux.", True),
        ("Speak, she said, of your hats.", "Parle, dit-elle, de tes chapeaux.", True),
        ("Here are your hats, countess.", "Voici vos chapeaux.", True),
        ("Here are your hats, captain.", "Voici vos chapeaux.", True),
        ("Tell me about your hats.", "Parle-moi de tes chapeaux.", True),
        ("Only say one of your words.", "Dites un de vos mots.", True),
    ],
)
def test_people_of_the_sentence_tell_who_they_are_and_verbs_and_titles_how_one_is_addressed(source, target, told):
    item = one((source, target), languages=("en", "fr"), common=FRENCH)
    assert item.phenomenon.endswith("with cue" if told else "no cue")


def test_parents_may_be_those_of_several_and_hearts_are():
    for pair in (("Your parents slept.", "Tes parents dormaient."), ("Your hearts are cold.", "Tes cœurs gèlent.")):
        assert not items_of(pair, languages=("en", "fr"), common=FRENCH)


def test_how_one_is_addressed_is_told_by_the_nearest_sentence_that_does_so():
    item = ("Here are your hats.", "Voici tes chapeaux.")
    familiar, polite = ("You sleep.", "Tu dors."), ("You sleep.", "Vous dormez.")
    other, both = ("It rains.", "Il pleut."), ("You sleep, and so do you.", "Tu dors, et vous aussi.")

    def distances(*before: tuple[str, str]) -> list[int | None]:
        return [found.distance for found in items_of(*before, item, languages=("en", "fr"), common=("so.", "donc."))]

    assert distances(familiar, other) == [2]
    assert distances(polite, familiar) == [1]
    assert distances(familiar, polite) == distances(both) == distances(other) == []


def test_they_are_several_or_two_people_who_were_just_spoken_of():
    item = ("They slept.", "Ils dormaient.")
    for before, count in (
        ("Otto entra avec Anna.", 1),
        ("Le père vit la mère.", 1),
        ("Les chats mangeaient.", 1),
        ("Otto entra.", 0),  # people in general
        ("On vit des personnes.", 0),  # "elles" as well
    ):
        found = items_of(("So be it.", before), item, languages=("en", "fr"), common=("so.", "donc, vit."))
        assert len(found) == count, before


def test_what_something_is_like_tells_what_it_is():
    item = one(("It resembled a hoarse voice.", "Elle ressemblait à un cri."), languages=("en", "fr"), common=FRENCH)
    assert item.phenomenon == "it, with cue"


def test_words_without_gender_need_something_before_them_cue_or_not():
    for source, target in (("They met Otto.", "Ils virent Otto."), ("In the street a lamp, it shone.", "Elle brilla.")):
        opening = ParallelDocument("d", (source, "So."), (target, "Donc."))
        assert not ProbeMaker([opening], ("en", "fr")).make(chosen_classes(("en", "fr")))


def test_where_nothing_before_tells_there_is_nothing_to_ask():
    silent, telling = ("很晚了。", "it is late."), ("她走了。", "she left.")
    item = ("声音很小。", "Her voice is faint.")
    assert not items_of(item, languages=("zh", "en"), common=silent)
    assert one(item, languages=("zh", "en"), common=telling).phenomenon == "possessive, no cue"
    assert (
        one(
            ("声音很小。", "Her voice is faint."), languages=("zh", "en"), common=("很晚了。", "There is Anna.")
        ).distance
        is None
    )
    told = one(("她声音很小。", "Her voice is faint."), languages=("zh", "en"), common=silent)
    assert told.phenomenon == "possessive, with cue"
    cautious = ("没人的声音。", "Her voice, no one else's.")  # may tell who, but not a woman
    assert not items_of(cautious, languages=("zh", "en"), common=silent)
    assert one(cautious, languages=("zh", "en"), common=telling).phenomenon == "possessive, with cue"
    opening = ParallelDocument("d", ("they opened.",), ("ils s'ouvrirent.",))
    assert not ProbeMaker([opening], ("en", "fr")).make(chosen_classes(("en", "fr")))


def test_where_nothing_has_a_capital_names_are_not_seen_so_no_sentence_is_without_cue():
    open_one, told = ("声音很小。", "her voice is faint."), ("她声音很小。", "her voice is faint.")
    assert not items_of(open_one, languages=("zh", "en"), common=("她走了。", "she left."))
    assert one(told, languages=("zh", "en"), common=("她走了。", "she left.")).phenomenon == "possessive, with cue"
    assert one(open_one, languages=("zh", "en"), common=("她走了。", "She left.")).phenomenon == "possessive, no cue"


def test_a_reference_that_says_it_of_somebody_else_is_left_out():
    before = ("她走了，他也走了。", "she left, so did he.")
    for source, target, count in (
        ("我埋了东西。", "he buried something.", 0),
        ("你不接电话。", "so he kept away.", 0),
        ("埋了东西。", "he buried something.", 1),
        ("告诉你，埋了东西。", "i tell you, he buried something.", 1),
    ):
        assert len(items_of((source, target), languages=("zh", "en"), common=before)) == count


@pytest.mark.parametrize(
    "source", ["博波尼的帽子。", "强尼的帽子。", "Anna的帽子。", "子宫很好。", "龙的帽子。", "熟悉的身影。"]
)
def test_names_spelt_out_in_chinese_tell_and_so_do_the_body_animals_and_who_first_appears(source):
    item = one((source, "her hat and all."), languages=("zh", "en"), common=("她走了。", "she left."))
    assert item.phenomenon == "possessive, with cue"


@pytest.mark.parametrize(
    ("source", "target"),
    [
        ("只剩下两个了。", "its down to two now."),
        ("换了三十次。", "they swapped with her 30 times."),
        ("只是太晚了。", "it's just that the hour is late."),
        ("直到现在才明白。", "it's only now that things get clear."),
        ("该走了。", "and now it's time to leave."),
        ("更害怕了。", "noise can scare her further."),
        ("感觉到它的力量。", "feel it's power."),
    ],
)
def test_what_is_misspelt_or_can_be_nothing_else_is_left_out(source, target):
    assert not items_of((source, target), languages=("zh", "en"), common=("她走了。", "she left."))


def test_the_words_that_decide():
    item = Item("d", "p", ("s",), ("She took her hat.",), (("He took his hat.",),))
    assert decisive(item) == (("she", "her"), ("he", "his"))
    assert decisive(Item("d", "p", ("s",), ("她来了。",), (("他来了。",),))) == (("她",), ("他",))


def test_a_set_is_made_and_its_priors_are_printed(tmp_path, capsys):
    corpus, made, figures = (tmp_path / name for name in ("corpus.tsv", "set.jsonl", "figures.json"))
    pairs = [COMMON, ("Ses yeux.", "Her eyes."), ("Ses gants.", "His gloves."), ("Ses pieds.", "Her feet.")]
    corpus.write_text("".join(f"d\t{source}\t{target}\n" for source, target in pairs), encoding="utf-8")
    command = ["contrast", "make", str(corpus), "-o", str(made), "--languages", "fr-en", "--json", str(figures)]
    assert main(command) == 0
    assert "67" in capsys.readouterr().out
    (row,) = json.loads(figures.read_text())
    assert (
        row["items"] == 3 and row["right"]["her"] == pytest.approx(200 / 3) and row["chance"] == pytest.approx(100 / 3)
    )
    assert [json.loads(line)["right"] for line in made.open(encoding="utf-8")] == [
        "Her eyes.",
        "His gloves.",
        "Her feet.",
    ]
    assert main([*command, "--target-first"]) == 2
    assert "no sentence contains such a word" in capsys.readouterr().err
    assert main([*command, "--source", "ses"]) == 2
    assert "--source only goes with --swap" in capsys.readouterr().err


@pytest.mark.skipif(not NOVELS.exists(), reason="needs the novels beside the repository: ../shared/data/discourse")
def test_madame_bovary_has_sentences_that_leave_it_open(tmp_path):
    begun, made, figures = (tmp_path / name for name in ("begun.tsv", "set.jsonl", "figures.json"))
    begun.write_text("".join(NOVELS.open(encoding="utf-8").readlines()[:1500]), encoding="utf-8")
    assert main(["contrast", "make", str(begun), "-o", str(made), "--languages", "fr-en", "--json", str(figures)]) == 0
    counts = {row["class"]: row["items"] for row in json.loads(figures.read_text())}
    assert counts["possessive, no cue"] >= 8 and counts["possessive, with cue"] >= 120
    assert sum(count for name, count in counts.items() if name.endswith("no cue")) >= 15
    for line in made.open(encoding="utf-8"):
        item = json.loads(line)
        assert item["right"] not in item["wrong"] and len(item["right"].split()) == len(item["wrong"][0].split())


def test_names_of_a_script_without_capitals_are_learnt_from_the_other_language():
    before = [(f"静音在第{n}排。", f"There is Shizune in row {n}.") for n in "一二三四五"]
    common = ("声音很小，这里。", "her voice is faint, there, row.")
    for source, told in (("静音声音很小。", True), ("声音很小。", False)):
        item = one(*before, (source, "Her voice is faint."), languages=("zh", "en"), common=common)
        assert item.phenomenon == f"possessive, {'with cue' if told else 'no cue'}"
