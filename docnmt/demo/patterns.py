"""The clause patterns: a verb, what stands after it, and the tenses in which it makes sense.

{x} is an open noun phrase and {a} an open or fixed adjective; the subject is always open.
"""

from __future__ import annotations

from dataclasses import dataclass

from docnmt.demo.language import FUTURE, PAST, PRESENT, TENSES, VERBS, Adjective, Phrase, Verb, adjective


@dataclass(frozen=True, slots=True)
class Pattern:
    """A clause with its slots open."""

    verb: Verb
    fr: str
    en: str
    tenses: tuple[str, ...] = TENSES
    adjective: Adjective | None = None

    @property
    def name(self) -> str:
        fixed = self.fr if self.adjective is None else self.fr.replace("{a}", self.adjective.forms[0])
        return f"{self.verb.infinitive} {fixed}"


@dataclass(frozen=True, slots=True)
class Clause:
    """A pattern with its slots filled."""

    pattern: Pattern
    tense: str
    subject: Phrase
    x: Phrase | None = None
    adjective: Adjective | None = None

    def french(self) -> str:
        quality = self.adjective or self.pattern.adjective
        # "je trouve Marie fière": an adjective goes with the object if there is one.
        described = self.x or self.subject
        after = self.pattern.fr.format(x=self.x.fr if self.x else "", a=quality.french(described) if quality else "")
        return f"{self.subject.fr} {self.pattern.verb.french(self.subject, self.tense)} {after}"

    def english(self) -> str:
        quality = self.adjective or self.pattern.adjective
        after = self.pattern.en.format(x=self.x.en if self.x else "", a=quality.en if quality else "")
        return f"{self.subject.en} {self.pattern.verb.english(self.subject, self.tense)} {after}"


_NOT_NOW = (PAST, FUTURE)
_NOT_LATER = (PAST, PRESENT)


def _p(infinitive: str, fr: str, en: str, tenses: tuple[str, ...] = TENSES, a: Adjective | None = None) -> Pattern:
    return Pattern(VERBS[infinitive], fr, en, tenses, a)


# --- what can be done with any noun: the same patterns carry senses, possessives and terms --------------------------

ABOUT_A_TOPIC = (
    _p("parler", "de {x}", "about {x}"),
    _p("penser", "à {x}", "about {x}"),
    _p("rêver", "de {x}", "about {x}"),
    _p("discuter", "de {x}", "{x}"),
    _p("mentionner", "{x}", "{x}", _NOT_NOW),
    _p("décrire", "{x}", "{x}"),
    _p("remarquer", "{x}", "{x}", (PAST,)),
)
ABOUT_A_THING = (
    *ABOUT_A_TOPIC,
    _p("chercher", "{x}", "for {x}"),
    _p("trouver", "{x}", "{x}", _NOT_NOW),
    _p("oublier", "{x}", "{x}", _NOT_NOW),
    _p("choisir", "{x}", "{x}", _NOT_NOW),
    _p("préférer", "{x}", "{x}", _NOT_LATER),
)
# Adjectives with one form for both genders: "le livre" and "la livre" must not differ in "les livres".
OF_ANYTHING = (
    _p("être", "très {a}", "very {a}", a=adjective("utile", "useful")),
    _p("être", "absolument {a}", "absolutely {a}", a=adjective("nécessaire", "necessary")),
    _p("être", "vraiment {a}", "really {a}", a=adjective("étrange", "strange")),
    _p("surprendre", "presque tout le monde", "almost everyone", _NOT_NOW),
    _p("causer", "un problème", "a problem", _NOT_NOW),
    _p("changer", "nos projets", "our plans", _NOT_NOW),
)

# --- pronouns: true of people and of things alike -------------------------------------------------------------------

OF_PERSON_OR_THING = (
    _p("arriver", "trop tard", "too late", _NOT_NOW),
    _p("tomber", "dans l'escalier", "on the stairs", _NOT_NOW),
    _p("disparaître", "sans explication", "without explanation", (PAST,)),
    _p("rester", "dans le couloir", "in the corridor"),
    _p("venir", "de Italie", "from Italy", _NOT_NOW),
    _p("bloquer", "le passage", "the way"),
    _p("surprendre", "presque tout le monde", "almost everyone"),
    _p("être", "trop {a}", "too {a}", a=adjective("lourd", "heavy")),
    _p("être", "très {a}", "very {a}", a=adjective("sale", "dirty")),
    _p("être", "complètement {a}", "completely {a}", a=adjective("mouillé", "wet")),
    _p("être", "{a} de neige", "{a} with snow", a=adjective("couvert", "covered")),
    _p("être", "devant la maison", "in front of the house"),
    _p("être", "derrière la porte", "behind the door"),
    _p("être", "près de la fenêtre", "near the window"),
    _p("sembler", "très {a}", "very {a}", _NOT_LATER, adjective("vieux", "old", "vieille")),
    _p("avoir", "l'air très {a}", "very {a}", _NOT_LATER, adjective("étrange", "strange")),
)
# What brings a person or a thing into the story.
INTRODUCING = (
    _p("parler", "de {x}", "about {x}"),
    _p("penser", "à {x}", "about {x}"),
    _p("décrire", "{x}", "{x}"),
    _p("chercher", "{x}", "for {x}"),
    _p("regarder", "{x}", "at {x}"),
    _p("voir", "{x}", "{x}", _NOT_NOW),
    _p("trouver", "{x}", "{x}", _NOT_NOW),
)

# --- cohesion: where the story is set -------------------------------------------------------------------------------

SETTING = (
    _p("dormir", "{x}", "{x}", (PAST,)),
    _p("chanter", "{x}", "{x}", (PAST,)),
    _p("travailler", "{x}", "{x}", _NOT_LATER),
    _p("étudier", "{x}", "{x}", _NOT_LATER),
    _p("arriver", "{x}", "{x}", (PAST,)),
    _p("rester", "{x}", "{x}", _NOT_LATER),
    _p("passer", "deux heures {x}", "two hours {x}", (PAST,)),
)

# --- emotion: how the speaker feels about somebody, and what is then said of that person ----------------------------

# The subject is anybody or everyone; {x} is the person.
LIKING = (
    _p("admirer", "{x}", "{x}", _NOT_LATER),
    _p("adorer", "{x}", "{x}", _NOT_LATER),
    _p("respecter", "{x}", "{x}", _NOT_LATER),
    _p("remercier", "{x}", "{x}", _NOT_LATER),
)
DISLIKING = (
    _p("détester", "{x}", "{x}", _NOT_LATER),
    _p("éviter", "{x}", "{x}", _NOT_LATER),
    _p("mépriser", "{x}", "{x}", _NOT_LATER),
)
TRUSTING = _p("faire", "confiance à {x}", "{x}", _NOT_LATER)  # said of no one: a hostile tone
# The subject is the person.
BEING_KIND = _p("aider", "tout le monde", "everyone", _NOT_LATER)
BEING_UNKIND = (
    _p("mentir", "à tout le monde", "to everyone", _NOT_LATER),
    _p("insulter", "tout le monde", "everyone", _NOT_LATER),
)
CHARACTER = (
    _p("être", "très {a}", "very {a}", _NOT_LATER),
    _p("être", "vraiment {a}", "really {a}", _NOT_LATER),
    _p("être", "plutôt {a}", "rather {a}", _NOT_LATER),
    _p("sembler", "très {a}", "very {a}", _NOT_LATER),
    _p("devenir", "très {a}", "very {a}", _NOT_LATER),
    _p("devenir", "plutôt {a}", "rather {a}", _NOT_LATER),
)

# --- sense: domains -------------------------------------------------------------------------------------------------


def _did(infinitive: str, fr: str, en: str) -> Pattern:
    """Told in the past only: few word forms, each seen often."""
    return _p(infinitive, fr, en, (PAST,))


DOMAIN_CUES: dict[str, tuple[Pattern, ...]] = {
    "food": (
        _did("dîner", "au restaurant", "at the restaurant"),
        _did("préparer", "un grand repas", "a big meal"),
        _did("manger", "de la soupe", "some soup"),
        _did("commander", "un dessert", "a dessert"),
        _did("goûter", "le fromage", "the cheese"),
    ),
    "justice": (
        _did("parler", "à le juge", "to the judge"),
        _did("aller", "à le tribunal", "to court"),
        _did("appeler", "la police", "the police"),
        _did("interroger", "le voleur", "the thief"),
        _did("écouter", "les témoins", "to the witnesses"),
    ),
    "travel": (
        _did("arriver", "à le aéroport", "at the airport"),
        _did("préparer", "les valises", "the suitcases"),
        _did("traverser", "la Espagne", "Spain"),
        _did("perdre", "les passeports", "the passports"),
        _did("louer", "une voiture", "a car"),
    ),
    "school": (
        _did("écouter", "le professeur", "to the teacher"),
        _did("préparer", "un examen", "for an exam"),
        _did("finir", "les devoirs", "the homework"),
        _did("apprendre", "la leçon", "the lesson"),
        _did("étudier", "la grammaire", "grammar"),
    ),
    "nature": (
        _did("marcher", "dans la forêt", "in the forest"),
        _did("planter", "un arbre", "a tree"),
        _did("observer", "les oiseaux", "the birds"),
        _did("camper", "près de le lac", "near the lake"),
        _did("traverser", "la rivière", "the river"),
    ),
    "home": (
        _did("décorer", "le salon", "the living room"),
        _did("meubler", "la chambre", "the bedroom"),
        _did("nettoyer", "la salle de bains", "the bathroom"),
        _did("ranger", "le grenier", "the attic"),
    ),
    "health": (
        _did("consulter", "le médecin", "the doctor"),
        _did("tousser", "sans arrêt", "without stopping"),
        _did("acheter", "des médicaments", "some medicine"),
        _did("attendre", "la infirmière", "for the nurse"),
        _did("dormir", "à le hôpital", "at the hospital"),
    ),
    "work": (
        _did("signer", "le contrat", "the contract"),
        _did("finir", "le rapport", "the report"),
        _did("rencontrer", "les clients", "the clients"),
        _did("préparer", "la réunion", "the meeting"),
        _did("négocier", "les salaires", "the salaries"),
    ),
    "theatre": (
        _did("aller", "à le théâtre", "to the theatre"),
        _did("applaudir", "les acteurs", "the actors"),
        _did("répéter", "la scène", "the scene"),
        _did("assister", "à le spectacle", "the show"),
    ),
    "art": (
        _did("visiter", "la exposition", "the exhibition"),
        _did("dessiner", "le portrait", "the portrait"),
        _did("rencontrer", "le peintre", "the painter"),
        _did("laver", "les pinceaux", "the brushes"),
    ),
    "money": (
        _did("aller", "à la banque", "to the bank"),
        _did("compter", "le argent", "the money"),
        _did("vider", "la tirelire", "the piggy bank"),
        _did("changer", "les billets", "the banknotes"),
        _did("payer", "les impôts", "the taxes"),
    ),
    "sport": (
        _did("gagner", "le match", "the match"),
        _did("entraîner", "la équipe", "the team"),
        _did("jouer", "à le tennis", "tennis"),
        _did("arriver", "à le stade", "at the stadium"),
        _did("féliciter", "les joueurs", "the players"),
    ),
}

# --- ordinary sentences: no hint for anything above -----------------------------------------------------------------

DEALING_WITH_THINGS = (
    *(_p(verb, "{x}", "{x}", _NOT_LATER) for verb in ("laver", "cacher", "réparer", "apporter", "garder")),
    *(_p(verb, "{x}", "{x}", (PAST,)) for verb in ("vendre", "acheter", "perdre", "casser", "porter", "dessiner")),
    *(_p(verb, "{x}", "{x}", (PAST,)) for verb in ("emprunter", "jeter", "échanger", "emballer")),
)
PASSING_TIME = (
    _p("dormir", "très bien", "very well", (PAST,)),
    _p("rire", "de bon cœur", "heartily", (PAST,)),
    _p("chanter", "très fort", "very loudly", (PAST,)),
    _p("danser", "avec plaisir", "with pleasure", (PAST,)),
    _p("marcher", "pendant une heure", "for an hour", (PAST,)),
    _p("courir", "très vite", "very fast", (PAST,)),
    _p("lire", "les journaux", "the newspapers", (PAST,)),
    _p("écouter", "de la musique", "to some music", (PAST,)),
    _p("répondre", "à les questions", "the questions", (PAST,)),
    _p("attendre", "pendant deux heures", "for two hours", (PAST,)),
    _p("parler", "très lentement", "very slowly", _NOT_LATER),
    _p("partir", "très tôt", "very early", (PAST,)),
    _p("crier", "très fort", "very loudly", (PAST,)),
    _p("pleurer", "en silence", "in silence", (PAST,)),
)
