"""French and English of the demo corpus: verbs, and the forms of words."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache

# ---- Word forms ----

# Word forms: French conjugation, agreement, elision and contraction, and the little that English needs.

PAST, PRESENT, FUTURE = "past", "present", "future"
TENSES = (PAST, PRESENT, FUTURE)

# The persons that occur, in the order in which every table of forms below is written.
JE, NOUS, IL, ILS = range(4)

_PRESENT_ER = ("e", "ons", "e", "ent")
_IMPERFECT = ("ais", "ions", "ait", "aient")
_FUTURE = ("ai", "ons", "a", "ont")
_AVOIR = ("ai", "avons", "a", "ont")
_ETRE = ("suis", "sommes", "est", "sont")


@dataclass(frozen=True, slots=True)
class Phrase:
    """A noun phrase (or pronoun) in both languages, with what its verb and adjectives must agree with."""

    fr: str
    en: str
    gender: str = "m"
    person: int = IL
    # English may differ in number: "les vacances" but "the holiday".
    en_plural: bool | None = None

    @property
    def plural(self) -> bool:
        return self.person in (NOUS, ILS)

    @property
    def english_plural(self) -> bool:
        return self.plural if self.en_plural is None else self.en_plural


@dataclass(frozen=True, slots=True)
class Adjective:
    """French forms in the order masculine, feminine, masculine plural, feminine plural; one English form."""

    forms: tuple[str, str, str, str]
    en: str

    def french(self, noun: Phrase) -> str:
        return self.forms[(noun.gender == "f") + 2 * noun.plural]


def adjective(masculine: str, en: str, feminine: str = "") -> Adjective:
    """An adjective with regular plurals, and a regular feminine unless one is given."""
    if not feminine:
        feminine = masculine if masculine.endswith("e") else masculine + "e"
    plural = masculine if masculine[-1] in "sx" else masculine + "s"
    return Adjective((masculine, feminine, plural, feminine + "s"), en)


@dataclass(frozen=True, slots=True)
class Verb:
    """A verb pair. The French past is the passé composé, or the imparfait for verbs of state."""

    infinitive: str
    present: tuple[str, ...]
    past: tuple[str, ...]
    future: tuple[str, ...]
    agreeing_participle: str  # for verbs with être: agrees with the subject; empty otherwise
    en: str
    en_past: str
    en_ing: str  # empty for verbs of state, which have no progressive

    def french(self, subject: Phrase, tense: str) -> str:
        if tense == PRESENT:
            return self.present[subject.person]
        if tense == FUTURE:
            return self.future[subject.person]
        form = self.past[subject.person]
        if not self.agreeing_participle:
            return form
        ending = ("e" if subject.gender == "f" else "") + ("s" if subject.plural else "")
        return f"{form} {self.agreeing_participle}{ending}"

    def english(self, subject: Phrase, tense: str) -> str:
        if tense == FUTURE:
            return f"will {self.en}"
        if self.en == "be":
            return _be(subject, tense)
        if tense == PAST:
            return self.en_past
        if self.en_ing:
            return f"{_be(subject, PRESENT)} {self.en_ing}"
        singular_third = subject.person in (IL, ILS) and not subject.english_plural
        return _third_person(self.en) if singular_third else self.en


def verb(
    infinitive: str,
    english: str,
    *,
    present: str = "",
    participle: str = "",
    future: str = "",
    state: bool = False,
    with_etre: bool = False,
) -> Verb:
    """A verb from its principal parts; what is left out follows the regular verbs in -er.

    `english` is "base past" or "base past ing". `future` is the stem. `state` verbs put their past in the imparfait.
    """
    stem = infinitive[:-2]
    # "manger": the g stays soft in "mangeons".
    regular = tuple(stem + ("e" if stem[-1] == "g" and e[0] == "o" else "") + e for e in _PRESENT_ER)
    forms = tuple(present.split()) or regular
    future_stem = future or (infinitive if infinitive.endswith("r") else infinitive[:-1])
    if state:
        imperfect_stem = "ét" if infinitive == "être" else forms[NOUS].removesuffix("ons")
        past = tuple(imperfect_stem + e for e in _IMPERFECT)
    elif with_etre:
        past = _ETRE
    else:
        past = tuple(f"{auxiliary} {participle or stem + 'é'}" for auxiliary in _AVOIR)
    base, en_past, *ing = english.split()
    return Verb(
        infinitive,
        forms,
        past,
        tuple(future_stem + e for e in _FUTURE),
        (participle or stem + "é") if with_etre else "",
        base,
        en_past,
        ing[0] if ing else "",
    )


def _be(subject: Phrase, tense: str) -> str:
    plural = subject.english_plural
    if tense == PAST:
        return "were" if plural else "was"
    return "am" if subject.person == JE else "are" if plural else "is"


def _third_person(base: str) -> str:
    if base.endswith(("s", "sh", "ch", "x", "o")):
        return base + "es"
    if base.endswith("y") and base[-2] not in "aeiou":
        return base[:-1] + "ies"
    return base + "s"


# The lexicon has no word with an aspirated h, so every h elides.
_VOWEL = "(?=[aeiouâàéèêëîïôûœhAEIOUÉH])"
_ELISION = re.compile(rf"\b(je|le|la|de|que|ne) {_VOWEL}")
_BEFORE_VOWEL = re.compile(rf"\b(ce|ma|sa) {_VOWEL}")
_BEFORE_VOWEL_FORMS = {"ce": "cet", "ma": "mon", "sa": "son"}
# Elision comes first: "de le avocat" is "de l'avocat", never "du avocat".
_CONTRACTION = re.compile(r"\b(de|à) (les?)\b(?!')")
_CONTRACTED = {("de", "le"): "du", ("de", "les"): "des", ("à", "le"): "au", ("à", "les"): "aux"}


@lru_cache(maxsize=64)  # the readings of an ambiguous sentence share their French, one right after the other
def french_surface(words: str) -> str:
    """Words in their full forms to running French: "je ai parlé de le vol" to "J'ai parlé du vol."."""
    words = _BEFORE_VOWEL.sub(lambda m: _BEFORE_VOWEL_FORMS[m[1]] + " ", words)
    words = _ELISION.sub(lambda m: m[1][:-1] + "'", words)
    words = _CONTRACTION.sub(lambda m: _CONTRACTED[m[1], m[2]], words)
    return sentence_case(words)


def sentence_case(words: str) -> str:
    return words[0].upper() + words[1:] + "."


# ---- The verbs of the demo corpus, French infinitive and English forms ----

# English forms are "base past ing"; without the last, the verb has no progressive ("I prefer", not "I am
# preferring").

BE = verb("être", "be was", present="suis sommes est sont", future="ser", state=True)


def _re(infinitive: str, english: str) -> Verb:
    """A regular verb in -re, conjugated as "vendre"."""
    stem = infinitive[:-2]
    present = " ".join(stem + ending for ending in ("s", "ons", "", "ent"))
    return verb(infinitive, english, present=present, participle=stem + "u")


def _ir(infinitive: str, english: str) -> Verb:
    """A regular verb in -ir, conjugated as "finir"."""
    stem = infinitive[:-1]
    present = " ".join(stem + ending for ending in ("s", "ssons", "t", "ssent"))
    return verb(infinitive, english, present=present, participle=stem)


_LISTED = (
    # talking and thinking about anything
    verb("parler", "talk talked talking"),
    verb("penser", "think thought thinking"),
    verb("rêver", "dream dreamed dreaming"),
    verb("discuter", "discuss discussed discussing"),
    verb("mentionner", "mention mentioned mentioning"),
    verb("chercher", "look looked looking"),
    verb("trouver", "find found"),
    verb("oublier", "forget forgot"),
    verb("remarquer", "notice noticed"),
    verb("préférer", "prefer preferred", present="préfère préférons préfère préfèrent"),
    _ir("choisir", "choose chose choosing"),
    verb(
        "décrire",
        "describe described describing",
        present="décris décrivons décrit décrivent",
        participle="décrit",
    ),
    _re("attendre", "wait waited waiting"),
    verb("voir", "see saw", present="vois voyons voit voient", participle="vu", future="verr"),
    verb("regarder", "look looked looking"),
    # what things and people do
    verb("arriver", "arrive arrived arriving", with_etre=True),
    verb("tomber", "fall fell falling", with_etre=True),
    verb("rester", "stay stayed staying", with_etre=True),
    verb("sembler", "seem seemed", state=True),
    verb("avoir", "look looked", present="ai avons a ont", future="aur", state=True),
    verb(
        "venir",
        "come came",
        present="viens venons vient viennent",
        participle="venu",
        future="viendr",
        with_etre=True,
    ),
    verb(
        "devenir",
        "become became becoming",
        present="deviens devenons devient deviennent",
        participle="devenu",
        future="deviendr",
        with_etre=True,
    ),
    verb(
        "disparaître",
        "disappear disappeared disappearing",
        present="disparais disparaissons disparaît disparaissent",
        participle="disparu",
    ),
    verb(
        "surprendre",
        "surprise surprised surprising",
        present="surprends surprenons surprend surprennent",
        participle="surpris",
    ),
    verb("bloquer", "block blocked blocking"),
    verb("causer", "cause caused causing"),
    verb("changer", "change changed changing"),
    # tone
    verb("admirer", "admire admired"),
    verb("adorer", "love loved"),
    verb("respecter", "respect respected"),
    verb("remercier", "thank thanked thanking"),
    verb("aider", "help helped helping"),
    verb("détester", "hate hated"),
    verb("éviter", "avoid avoided avoiding"),
    verb("mépriser", "despise despised"),
    verb("insulter", "insult insulted insulting"),
    verb("faire", "trust trusted", present="fais faisons fait font", participle="fait", future="fer"),
    verb("mentir", "lie lied lying", present="mens mentons ment mentent", participle="menti"),
    # places
    verb("travailler", "work worked working"),
    verb("étudier", "study studied studying"),
    verb("passer", "spend spent spending"),
    verb("aller", "go went going", present="vais allons va vont", future="ir", with_etre=True),
    # the domains that decide a word's sense
    verb("dîner", "dine dined dining"),
    verb("préparer", "prepare prepared preparing"),
    verb("manger", "eat ate eating"),
    verb("commander", "order ordered ordering"),
    verb("goûter", "taste tasted tasting"),
    verb("appeler", "call called calling", present="appelle appelons appelle appellent", future="appeller"),
    verb("interroger", "question questioned questioning"),
    verb("écouter", "listen listened listening"),
    verb("traverser", "cross crossed crossing"),
    verb("louer", "rent rented renting"),
    _re("perdre", "lose lost losing"),
    verb(
        "apprendre",
        "learn learned learning",
        present="apprends apprenons apprend apprennent",
        participle="appris",
    ),
    verb("marcher", "walk walked walking"),
    verb("planter", "plant planted planting"),
    verb("observer", "watch watched watching"),
    verb("camper", "camp camped camping"),
    verb("décorer", "decorate decorated decorating"),
    verb("meubler", "furnish furnished furnishing"),
    verb(
        "nettoyer",
        "clean cleaned cleaning",
        present="nettoie nettoyons nettoie nettoient",
        future="nettoier",
    ),
    verb("ranger", "tidy tidied tidying"),
    verb("consulter", "see saw seeing"),
    verb("tousser", "cough coughed coughing"),
    verb("assister", "attend attended attending"),
    verb("acheter", "buy bought buying", present="achète achetons achète achètent", future="achèter"),
    verb("signer", "sign signed signing"),
    _ir("finir", "finish finished finishing"),
    verb("rencontrer", "meet met meeting"),
    verb("négocier", "negotiate negotiated negotiating"),
    _ir("applaudir", "applaud applauded applauding"),
    verb("répéter", "rehearse rehearsed rehearsing", present="répète répétons répète répètent"),
    verb("visiter", "visit visited visiting"),
    verb("dessiner", "draw drew drawing"),
    verb("compter", "count counted counting"),
    verb("vider", "empty emptied emptying"),
    verb("payer", "pay paid paying", present="paie payons paie paient", future="paier"),
    verb("gagner", "win won winning"),
    verb("entraîner", "train trained training"),
    verb("jouer", "play played playing"),
    verb("féliciter", "congratulate congratulated congratulating"),
    # ordinary life
    verb("laver", "wash washed washing"),
    _re("vendre", "sell sold selling"),
    verb("cacher", "hide hid hiding"),
    verb("porter", "carry carried carrying"),
    verb("réparer", "repair repaired repairing"),
    verb("casser", "break broke breaking"),
    verb("apporter", "bring brought bringing"),
    verb("garder", "keep kept keeping"),
    verb("emprunter", "borrow borrowed borrowing"),
    verb("jeter", "discard discarded discarding"),
    verb("échanger", "swap swapped swapping"),
    verb("emballer", "wrap wrapped wrapping"),
    verb("crier", "shout shouted shouting"),
    verb("pleurer", "cry cried crying"),
    verb("dormir", "sleep slept sleeping", present="dors dormons dort dorment", participle="dormi"),
    verb("rire", "laugh laughed laughing", present="ris rions rit rient", participle="ri"),
    verb("chanter", "sing sang singing"),
    verb("danser", "dance danced dancing"),
    verb("courir", "run ran running", present="cours courons court courent", participle="couru", future="courr"),
    verb("lire", "read read reading", present="lis lisons lit lisent", participle="lu"),
    _re("répondre", "answer answered answering"),
    verb(
        "partir",
        "leave left leaving",
        present="pars partons part partent",
        participle="parti",
        with_etre=True,
    ),
)

VERBS: dict[str, Verb] = {v.infinitive: v for v in (BE, *_LISTED)}
