"""Words before whose full stop a sentence need not end, by language, and words that a sentence begins with.

They are written without their last full stop, in lower case. What one language lacks, `ANY` has for all.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Words:
    always: frozenset[str]  # something always follows: titles, "e.g."
    often: frozenset[str]  # only a word that begins sentences shows that one ended: "etc.", "Ltd."
    numbered: frozenset[str]  # a number may follow: "p. 12"; else a word like any other
    starters: frozenset[str]
    ordinals: bool = False  # "3. Mai": a full stop after a number says "third"


def _words(always: str = "", often: str = "", numbered: str = "", starters: str = "", ordinals: bool = False) -> Words:
    sets = [frozenset(text.split()) for text in (always, often, numbered, starters)]
    return Words(sets[0], sets[1], sets[2], sets[3], ordinals)


ANY = _words(
    always="mr mrs ms dr prof st i.e e.g cf vs viz approx ca resp",
    often="etc al inc ltd co corp jr sr ph.d a.m p.m op.cit",
    numbered="p pp no nos nr n vol vols fig figs art ch chap sec sect tab eq ed s ss v vv jan feb mar apr jun jul "
    "aug sep sept oct nov dec",
)

LANGUAGES: dict[str, Words] = {
    "en": _words(
        always="messrs mmes rev hon gen col maj capt lt sgt cpl gov sen rep pres supt esq mt ft",
        often="u.s u.k u.n u.s.a e.u d.c b.c a.d est dept univ assn bros b.sc m.sc m.d d.phil ave blvd rd approx",
        numbered="para pt pts app ref refs",
        starters="the a an this that these those he she it we they you i his her its our their there here in on at "
        "for from with by as if when while after before since although but and so then however what who where why "
        "how no not all some many most one two both each every another such",
    ),
    "fr": _words(
        always="m mm mme mmes mlle mlles me mgr drs pr prs ste sts stes vve c.-à-d p.ex c-à-d adr boul bld av éd "
        "env tél rte gén col cap lt sgt cie intro dép",
        often="j.-c av.j.-c apr.j.-c s.a s.a.r.l ibid id op loc hab max min h.t t.t.c ndlr n.b",
        numbered="n° pl t liv par janv févr fév avr juil déc réf ex add al coll suppl annexe",
        starters="le la les l un une des de du ce cet cette ces c il elle ils elles on nous vous je tu j son sa ses "
        "leur leurs mon ma mes notre nos votre vos en dans à au aux pour par sur sous avec sans mais et or donc "
        "car si quand lorsque puis alors ensuite ainsi cependant toutefois pourtant après avant depuis tout tous "
        "toute toutes chaque aucun qui que quoi où comment pourquoi voici voilà d s n qu y ne",
    ),
    "de": _words(
        always="z.b d.h u.a u.u i.d.r i.a o.ä s.o s.u v.a z.t bzw hr hrn fr frl dipl ing mag bspw dgl evtl ggf inkl "
        "exkl insb insbes sog vgl zzgl geb gest hrsg bes ehem jhd zw einschl entspr vorm nachm lt hl",
        often="usw u.v.m u.s.w o.g a.d v.chr n.chr jh std min sek str tel gmbh ca mio mrd tsd",
        numbered="nr abb bd kap abs ziff s art tel jan feb mär apr jun jul aug sept okt nov dez",
        starters="der die das ein eine einen einem einer dieser diese dieses diesem er sie es wir ihr ich man in im "
        "am an auf aus bei mit nach seit von vom zu zum zur für durch über unter doch aber und oder denn so wenn "
        "als weil da dann danach dort hier heute auch nun nur noch was wer wie wo warum jeder jede jedes alle kein "
        "keine sein seine",
        ordinals=True,
    ),
    "es": _words(
        always="sr sra sres sras srta d dª dña dn dra dres drs ing lic arq gral cnel cap tte pbro mons fr p.ej ud "
        "uds vd vds excmo excma ilmo ilma av avda ee",
        often="ee.uu uu s.a s.l d.c a.c etc aprox máx mín tel cía hnos izq der ctra",
        numbered="núm págs pág cap art núms t ene abr ago dic",
        starters="el la los las un una unos unas este esta estos estas ese esa eso esto él ella ellos ellas "
        "nosotros yo tú su sus mi mis nuestro nuestra en con por para de del desde hasta sobre sin pero y o si "
        "cuando donde como porque aunque entonces luego después antes también no todo todos toda todas cada qué "
        "quién cómo dónde al a se hay",
    ),
    "it": _words(
        always="sig sigg sigra sig.ra dott dott.ssa prof.ssa avv ing arch geom rag on sen gen col cap ten mons p.es "
        "ad.es spett egr gent s.p c.d v.le p.zza c.so",
        often="s.p.a s.r.l ecc a.c d.c tel max min ca",
        numbered="pag pagg cap art artt par sez tab genn febb magg giu lug ago sett ott dic",
        starters="il lo la i gli le l un uno una questo questa questi queste quello quella egli lui lei loro essi "
        "noi voi io tu suo sua in nel nella con per da dal dalla di del della su sul sulla ma e o se quando dove "
        "come perché allora poi dopo prima anche non tutto tutti tutta tutte ogni chi che cosa al alla c è ci si",
    ),
    "pt": _words(
        always="sr sra srs sras srta d dª dra drs dras profa eng engº enga arq adv exmo exma ilmo ilma cap ten cel "
        "gen p.ex av pe",
        often="s.a ltda cia e.u.a eua d.c a.c etc aprox máx mín tel",
        numbered="núm pág págs art cap inc fls fev abr mai ago set out dez",
        starters="o a os as um uma uns umas este esta estes estas esse essa isso isto ele ela eles elas nós eu você "
        "vocês seu sua seus suas meu minha em no na nos nas com por para de do da dos das desde até sobre sem mas "
        "e ou se quando onde como porque embora então depois antes também não todo todos toda todas cada que quem "
        "ao à há",
    ),
    "nl": _words(
        always="dhr mevr mw drs ir ing mr ds pastoor bijv bv d.w.z m.a.w o.a t.o.v i.p.v m.b.t z.g zgn incl excl "
        "resp vgl jhr jkvr kol gen kapt wed ca t.g.v i.v.m m.b.v",
        often="enz e.d e.a n.v b.v v.chr n.chr tel max min jl p.j",
        numbered="nr nrs blz pag art afb hfdst hst deel bldz jan feb mrt apr jun jul aug okt dec",
        starters="de het een dit dat deze die hij zij ze wij we jullie ik je u in op aan bij met naar van voor door "
        "over onder uit na sinds maar en of want dus als toen omdat dan daarna daar hier nu ook nog wat wie waar "
        "waarom hoe alle alles elke geen zijn haar hun er",
    ),
    "ru": _words(
        always="т.е т.к т.н т.о г-н г-жа гг им ул пр просп пер пл наб кв корп стр обл р-н дер пос о-в см ср напр "
        "проф акад доц канд док инж ген полк кап св тов гр яп англ нем фр лат греч рус исп ит",
        often="т.д т.п др пр г в вв н.э руб коп тыс млн млрд чел час мин сек кг км м см га шт экз р долл",
        numbered="рис табл гл разд п пп ч т стр ст илл №",
        starters="он она оно они мы вы я ты это этот эта эти тот та те в во на с со к ко по за из от до для при о "
        "об у над под но и а или если когда где как что кто почему потом затем тогда также однако после перед все "
        "всё каждый его её их наш ваш мой не нет здесь там теперь так",
    ),
}
# Full stops after numbers as in German; the other rules of these languages are the common ones.
_ORDINALS = "cs da et fi hr hu is lb lv nb nn no pl sk sl sq sr tr"
LANGUAGES |= {language: _words(ordinals=True) for language in _ORDINALS.split()}


def words_of(language: str) -> Words:
    own = LANGUAGES.get(language, ANY)
    return Words(
        own.always | ANY.always,
        own.often | ANY.often,
        own.numbered | ANY.numbered,
        own.starters,
        own.ordinals,
    )
