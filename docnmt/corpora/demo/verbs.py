"""The verbs of the demo corpus, French infinitive and English forms.

English forms are "base past ing"; without the last, the verb has no progressive ("I prefer", not "I am preferring").
"""

from __future__ import annotations

from docnmt.corpora.demo.morphology import Verb, verb

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
