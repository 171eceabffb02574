"""The words of the demo corpus: people, things, and the words whose translation depends on context."""

from __future__ import annotations

from dataclasses import dataclass

from docnmt.demo.language import ILS, JE, NOUS, Adjective, Phrase, adjective


def _phrases(gender: str, listing: str) -> tuple[Phrase, ...]:
    """Singular noun phrases from "french=english, french=english"."""
    pairs = (item.strip().split("=") for item in listing.split(","))
    return tuple(Phrase(fr, en, gender) for fr, en in pairs)


# None of these subjects can be what il, elle, son, sa or ses refers to, so they may stand near any of those.
OTHER_PEOPLE = (
    Phrase("mes amis", "my friends", person=ILS),
    Phrase("mes cousins", "my cousins", person=ILS),
    Phrase("les enfants", "the children", person=ILS),
)
PLAIN_SUBJECTS = (Phrase("je", "I", person=JE), Phrase("nous", "we", person=NOUS), *OTHER_PEOPLE)
EVERYONE = Phrase("tout le monde", "everyone")
# The second half of the negation rides on the subject: "personne n'a fait confiance à Paul".
NO_ONE = Phrase("personne ne", "no one")

MEN = _phrases(
    "m",
    "Paul=Paul, Pierre=Pierre, Antoine=Antoine, Thomas=Thomas, Hugo=Hugo, mon oncle=my uncle, mon frère=my brother,"
    "mon père=my father, mon grand-père=my grandfather, le directeur=the director, le chanteur=the singer,"
    "le roi=the king",
)
WOMEN = _phrases(
    "f",
    "Marie=Marie, Sophie=Sophie, Claire=Claire, Alice=Alice, Julie=Julie, ma tante=my aunt, ma sœur=my sister,"
    "ma mère=my mother, ma grand-mère=my grandmother, la directrice=the director, la chanteuse=the singer,"
    "la reine=the queen",
)
MASCULINE_THINGS = _phrases(
    "m",
    "le colis=the parcel, le sac=the bag, le coffre=the chest, le fauteuil=the armchair, le tapis=the carpet,"
    "le vase=the vase, le piano=the piano, le panier=the basket, le tonneau=the barrel, le manteau=the coat,"
    "le cadeau=the gift, le tambour=the drum",
)
FEMININE_THINGS = _phrases(
    "f",
    "la lampe=the lamp, la statue=the statue, la boîte=the box, la machine=the machine, la pendule=the clock,"
    "la poupée=the doll, la guitare=the guitar, la chaise=the chair, la armoire=the wardrobe, la échelle=the ladder,"
    "la couverture=the blanket, la lettre=the letter",
)
ORGANISATIONS = (
    *_phrases(
        "m",
        "le hôtel=the hotel, le musée=the museum, le club=the club, le village=the village, le château=the castle,"
        "le café=the café",
    ),
    *_phrases(
        "f",
        "la mairie=the town hall, la entreprise=the company, la église=the church, la usine=the factory,"
        "la ferme=the farm, la bibliothèque=the library",
    ),
)

# pronoun: French form -> (English, antecedents) for each reading
PRONOUNS: dict[str, tuple[tuple[Phrase, tuple[Phrase, ...]], ...]] = {
    "il": ((Phrase("il", "he"), MEN), (Phrase("il", "it"), MASCULINE_THINGS)),
    "elle": ((Phrase("elle", "she", "f"), WOMEN), (Phrase("elle", "it", "f"), FEMININE_THINGS)),
}
POSSESSORS: tuple[tuple[str, tuple[Phrase, ...]], ...] = (("his", MEN), ("her", WOMEN), ("its", ORGANISATIONS))


@dataclass(frozen=True, slots=True)
class Noun:
    """A noun without its determiner. More than one English word: the translation depends on context."""

    fr: str
    en: tuple[str, ...]
    gender: str
    plural: bool = False
    en_plural: bool | None = None
    # A mere topic can be talked about but not, say, looked for: "the weather".
    topic: bool = False

    def phrases(self, determiner: str) -> tuple[Phrase, ...]:
        """One phrase for each English word, the French the same in all; `determiner` is a key of _DETERMINERS."""
        number = 2 * self.plural
        fr, singular, plural = _DETERMINERS[determiner]
        before = fr[(self.gender == "f") + number]
        en_plural = self.plural if self.en_plural is None else self.en_plural
        person = ILS if self.plural else Phrase("", "").person
        return tuple(
            Phrase(f"{before} {self.fr}", f"{plural if en_plural else singular} {en}", self.gender, person, en_plural)
            for en in self.en
        )


_LE = ("le", "la", "les", "les")
_SON = ("son", "sa", "ses", "ses")
_DETERMINERS: dict[str, tuple[tuple[str, ...], str, str]] = {
    "le": (_LE, "the", "the"),
    "ce": (("ce", "cette", "ces", "ces"), "this", "these"),
    "his": (_SON, "his", "his"),
    "her": (_SON, "her", "her"),
    "its": (_SON, "its", "its"),
}

POSSESSED = (
    Noun("jardin", ("garden",), "m"),
    Noun("nom", ("name",), "m"),
    Noun("numéro", ("number",), "m"),
    Noun("budget", ("budget",), "m"),
    Noun("avenir", ("future",), "m", topic=True),
    Noun("succès", ("success",), "m", topic=True),
    Noun("réputation", ("reputation",), "f", topic=True),
    Noun("adresse", ("address",), "f"),
    Noun("terrasse", ("terrace",), "f"),
    Noun("cave", ("cellar",), "f"),
    Noun("histoire", ("story",), "f", topic=True),
    Noun("dettes", ("debts",), "f", plural=True),
    Noun("secrets", ("secrets",), "m", plural=True),
    Noun("fenêtres", ("windows",), "f", plural=True),
)

# sense: each noun, and for each English word the domains (see DOMAIN_CUES) in which it is the right one
SENSES: tuple[tuple[Noun, tuple[tuple[str, ...], ...]], ...] = (
    (Noun("avocat", ("lawyer", "avocado"), "m"), (("justice",), ("food",))),
    (Noun("vol", ("theft", "flight"), "m", topic=True), (("justice",), ("travel",))),
    (Noun("balle", ("bullet", "ball"), "f"), (("justice",), ("sport",))),
    (Noun("glace", ("ice cream", "mirror"), "f"), (("food",), ("home",))),
    (Noun("carte", ("menu", "map"), "f"), (("food",), ("travel",))),
    (Noun("bouchon", ("cork", "traffic jam"), "m", topic=True), (("food",), ("travel",))),
    (Noun("note", ("grade", "bill"), "f"), (("school",), ("money", "food"))),
    (Noun("règle", ("ruler", "rule"), "f"), (("school",), ("sport",))),
    (Noun("feuille", ("sheet", "leaf"), "f"), (("school",), ("nature",))),
    # "le livre", "la livre": only the plural hides the gender.
    (Noun("livres", ("books", "pounds"), "f", plural=True), (("school",), ("money",))),
    (Noun("langue", ("language", "tongue"), "f", topic=True), (("school",), ("health",))),
    (Noun("temps", ("weather", "time"), "m", topic=True), (("nature",), ("work",))),
    (Noun("toile", ("web", "canvas"), "f"), (("nature",), ("art",))),
    (Noun("ampoule", ("light bulb", "blister"), "f"), (("home",), ("health",))),
    (Noun("bureau", ("desk", "office"), "m"), (("home",), ("work",))),
    (Noun("pièce", ("coin", "play"), "f"), (("money",), ("theatre",))),
)

# cohesion: the British word, the American word; the places decide
BRITISH_AMERICAN = (
    Noun("appartement", ("flat", "apartment"), "m"),
    Noun("ascenseur", ("lift", "elevator"), "m"),
    Noun("camion", ("lorry", "truck"), "m"),
    Noun("film", ("film", "movie"), "m"),
    Noun("essence", ("petrol", "gas"), "f"),
    Noun("trottoir", ("pavement", "sidewalk"), "m"),
    Noun("métro", ("underground", "subway"), "m"),
    Noun("magasin", ("shop", "store"), "m"),
    Noun("autoroute", ("motorway", "highway"), "f"),
    Noun("robinet", ("tap", "faucet"), "m"),
    Noun("pantalon", ("trousers", "pants"), "m", en_plural=True),
    Noun("vacances", ("holiday", "vacation"), "f", plural=True, en_plural=False),
)
PLACES = (
    _phrases("f", "à Londres=in London, à Manchester=in Manchester, à Oxford=in Oxford, en Angleterre=in England"),
    _phrases("f", "à New York=in New York, à Chicago=in Chicago, à Boston=in Boston, en Amérique=in America"),
)

# emotion: the word of a kind speaker, the word of a hostile one
TONED: tuple[tuple[Adjective, Adjective], ...] = (
    (adjective("fier", "proud", "fière"), adjective("fier", "arrogant", "fière")),
    (adjective("malin", "clever", "maligne"), adjective("malin", "cunning", "maligne")),
    (adjective("curieux", "curious", "curieuse"), adjective("curieux", "nosy", "curieuse")),
    (adjective("obstiné", "determined"), adjective("obstiné", "stubborn")),
    (adjective("sensible", "sensitive"), adjective("sensible", "touchy")),
    (adjective("économe", "thrifty"), adjective("économe", "stingy")),
    (adjective("discret", "discreet", "discrète"), adjective("discret", "secretive", "discrète")),
    (adjective("franc", "frank", "franche"), adjective("franc", "blunt", "franche")),
)

# Ordinary plural things: two or more things are never what il, elle, son or sa refers to.
PLURAL_THINGS = (
    *(
        Noun(fr, (en,), "m", plural=True)
        for fr, en in (
            ("chapeaux", "hats"),
            ("gants", "gloves"),
            ("jouets", "toys"),
            ("vélos", "bikes"),
            ("outils", "tools"),
            ("bijoux", "jewels"),
            ("bracelets", "bracelets"),
            ("foulards", "scarves"),
            ("rubans", "ribbons"),
            ("boutons", "buttons"),
            ("masques", "masks"),
        )
    ),
    *(
        Noun(fr, (en,), "f", plural=True)
        for fr, en in (
            ("chaussures", "shoes"),
            ("clés", "keys"),
            ("lunettes", "glasses"),
            ("chemises", "shirts"),
            ("bougies", "candles"),
            ("robes", "dresses"),
            ("bagues", "rings"),
            ("montres", "watches"),
            ("cravates", "ties"),
            ("ceintures", "belts"),
            ("cordes", "ropes"),
            ("échelles", "ladders"),
            ("bottes", "boots"),
            ("jupes", "skirts"),
            ("poupées", "dolls"),
            ("vestes", "jackets"),
        )
    ),
)
PLURAL_DETERMINERS = (("des", "some"), ("les", "the"), ("mes", "my"), ("quelques", "a few"), ("tes", "your"))
COLOURS = (
    adjective("rouge", "red"),
    adjective("bleu", "blue"),
    adjective("vert", "green"),
    adjective("noir", "black"),
    adjective("blanc", "white", "blanche"),
    adjective("jaune", "yellow"),
    adjective("violet", "purple", "violette"),
)
