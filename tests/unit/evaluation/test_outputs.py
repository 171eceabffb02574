"""Every translation stands beside its own reference, whatever the files; what does not fit is refused."""

from __future__ import annotations

import gzip
import json
import unicodedata
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from docnmt.base.errors import DocnmtError
from docnmt.decoding.files import Placed, as_text, renderer
from docnmt.decoding.translator import TranslatedDocument, TranslatedSentence
from docnmt.document import Document
from docnmt.evaluation.outputs import read_outputs, read_references
from docnmt.evaluation.scores import all_of, documents_of, domains_of

SOURCES = {
    "court": ("L'avocat arrive.", "Il met sa robe.", "Tout est prêt."),
    "market": ("Il est mûr.", "Je le prends."),
}
TARGETS = {
    "court": ("The lawyer comes.", "He puts on his robe.", "All is set."),
    "market": ("It is ripe.", "I take it."),
}
OTHERS = {
    "court": ("A lawyer arrives.", "She dons her gown.", "All's ready."),
    "market": ("It's ripe.", "I'll have it."),
}
SAID = {"court": ("The lawyer.", "He puts his dress.", "Ready."), "market": ("He is ripe.", "I take him.")}

Side = dict[str, tuple[str, ...]]


def flat(side: Side) -> tuple[str, ...]:
    return tuple(sentence for sentences in side.values() for sentence in sentences)


def tsv(*sides: Side) -> str:
    rows = [
        "\t".join((name, *(side[name][position] for side in sides)))
        for name in sides[0]
        for position in range(len(sides[0][name]))
    ]
    return "\n".join(rows) + "\n"


def text(side: Side, gap: str = "\n") -> str:
    return gap.join("".join(f"{sentence}\n" for sentence in sentences) for sentences in side.values())


def jsonl(source: Side, target: Side) -> str:
    return "".join(json.dumps({"id": n, "source": source[n], "target": target[n]}) + "\n" for n in target)


def segments(sentences: tuple[str, ...]) -> str:
    return "".join(f'<seg id="{number}">{sentence}</seg>\n' for number, sentence in enumerate(sentences, 1))


def sgml(tag: str, side: Side, system: str = "") -> str:
    named = f' sysid="{system}"' if system else ""
    return f"<{tag}>" + "".join(f'<doc docid="{n}"{named}>{segments(s)}</doc>' for n, s in side.items()) + f"</{tag}>\n"


def wmt(*sides: tuple[str, Side]) -> str:
    documents = "".join(
        f'<doc id="{name}">'
        + "".join(f"<{tag}><p>{segments(side[name])}</p></{tag.split()[0]}>" for tag, side in sides)
        + "</doc>\n"
        for name in sides[0][1]
    )
    return f"<dataset>\n{documents}</dataset>\n"


def write(path: Path, content: str) -> str:
    path.write_text(content, encoding="utf-8")
    return str(path)


@pytest.fixture
def references(tmp_path):
    return read_references([write(tmp_path / "ref.tsv", tsv(SOURCES, TARGETS))])


# ---- references ----

WITH_SOURCE = {
    "tsv": tsv(SOURCES, TARGETS),
    "bars": tsv(SOURCES, TARGETS).replace("\t", " ||| "),
    "jsonl, a document a line": jsonl(SOURCES, TARGETS),
    "jsonl, a sentence a line": "".join(
        json.dumps({"document": n, "id": k, "source": s, "target": t}) + "\n"
        for n in SOURCES
        for k, (s, t) in enumerate(zip(SOURCES[n], TARGETS[n], strict=True))
    ),
    "wmt-xml": wmt(('src lang="fr"', SOURCES), ('ref lang="en"', TARGETS)),
    "mteval": f"<mteval>{sgml('srcset', SOURCES)}{sgml('refset', TARGETS)}</mteval>",
}
WITHOUT_SOURCE = {
    "tsv": tsv(TARGETS),
    "jsonl": "".join(json.dumps({"id": n, "target": t}) + "\n" for n, t in TARGETS.items()),
    "nist-sgml": sgml("refset", TARGETS),
    "iwslt-xml": f"<mteval>{sgml('refset', TARGETS)}</mteval>",
    "nist-sgml named srcset": sgml("srcset", TARGETS),
    "iwslt-tags": "".join(f"<talkid>{n}</talkid>\n" + "".join(f"{s}\n" for s in t) for n, t in TARGETS.items()),
}
UNNAMED = {
    "text": text(TARGETS),
    "text with more empty lines": "\n\n" + text(TARGETS, gap="\n\n\n") + "\n",
    "lines": "".join(" </s> ".join(sentences) + "\n" for sentences in TARGETS.values()),
}


@pytest.mark.parametrize("kind", WITH_SOURCE)
def test_references_with_their_source(kind, tmp_path):
    found = read_references([write(tmp_path / "ref", WITH_SOURCE[kind])])
    assert found.ids == ("court", "market")
    assert found.documents.tolist() == [0, 0, 0, 1, 1]
    assert found.texts == (flat(TARGETS),)
    assert found.sources == flat(SOURCES)


@pytest.mark.parametrize("kind", WITHOUT_SOURCE)
def test_references_alone(kind, tmp_path):
    found = read_references([write(tmp_path / "ref", WITHOUT_SOURCE[kind])])
    assert found.ids == ("court", "market")
    assert (found.texts, found.sources) == ((flat(TARGETS),), None)


@pytest.mark.parametrize("kind", UNNAMED)
def test_references_whose_documents_have_no_names_are_numbered(kind, tmp_path):
    found = read_references([write(tmp_path / "ref", UNNAMED[kind])])
    assert found.ids == ("ref:1", "ref:2")
    assert found.documents.tolist() == [0, 0, 0, 1, 1]
    assert found.texts == (flat(TARGETS),)


def test_tmx_is_read_in_the_language_of_the_translations(tmp_path):
    units = "".join(
        f'<tu><prop type="x-document">{name}</prop><tuv xml:lang="fr"><seg>{s}</seg></tuv>'
        f'<tuv xml:lang="de"><seg>?</seg></tuv><tuv xml:lang="en-GB"><seg>{t}</seg></tuv></tu>\n'
        for name in SOURCES
        for s, t in zip(SOURCES[name], TARGETS[name], strict=True)
    )
    path = write(tmp_path / "memory.tmx", f"<tmx><body>{units}</body></tmx>")
    found = read_references([path], language="en")
    assert (found.texts, found.sources, found.ids) == ((flat(TARGETS),), flat(SOURCES), ("court", "market"))


SEVERAL = {
    "wmt-xml": [wmt(("src", SOURCES), ('ref translator="A"', TARGETS), ('ref translator="B"', OTHERS))],
    "a refset each": [sgml("refset", TARGETS, "A") + sgml("refset", OTHERS, "B")],
    "one refset": ["<refset>" + (sgml("x", TARGETS, "A") + sgml("x", OTHERS, "B")) + "</refset>"],
    "a file each": [tsv(SOURCES, TARGETS), tsv(SOURCES, OTHERS)],
    "files of several formats": [jsonl(SOURCES, TARGETS), text(OTHERS)],
}


@pytest.mark.parametrize("kind", SEVERAL)
def test_several_references(kind, tmp_path):
    paths = [write(tmp_path / f"ref{number}", content) for number, content in enumerate(SEVERAL[kind])]
    assert read_references(paths).texts == (flat(TARGETS), flat(OTHERS))


def test_references_in_another_language_are_left_out(tmp_path):
    path = write(tmp_path / "ref.xml", wmt(("src", SOURCES), ('ref lang="de"', OTHERS), ('ref lang="en"', TARGETS)))
    assert read_references([path], "en").texts == (flat(TARGETS),)
    assert len(read_references([path]).texts) == 2


def catalogue(said: list[str], flag: str = "") -> str:
    entries = "".join(
        f'{flag}msgid "{source}"\nmsgstr "{text}"\n\n' for source, text in zip(flat(SOURCES), said, strict=True)
    )
    return f'msgid ""\nmsgstr "Language: en\\n"\n\n{entries}'


def xliff(said: list[str], state: str) -> str:
    units = "".join(
        f'<trans-unit id="{n}"><source>{source}</source><target state="{state}">{text}</target></trans-unit>\n'
        for n, (source, text) in enumerate(zip(flat(SOURCES), said, strict=True))
    )
    head = '<file original="one" source-language="fr" target-language="en">'
    return f'<xliff version="1.2">{head}<body>\n{units}</body></file></xliff>\n'


@pytest.mark.parametrize("kind", ["po", "xliff"])
def test_files_of_messages_are_compared_message_by_message(kind, tmp_path):
    """Machine translation is marked for review in them and is judged; a reference without a translation is none."""
    rights = ["", *flat(TARGETS)[1:]]
    said = [*flat(SAID)[:-1], ""]
    if kind == "po":
        paths = write(tmp_path / "ref.po", catalogue(rights)), write(tmp_path / "out.po", catalogue(said, "#, fuzzy\n"))
    else:
        paths = (
            write(tmp_path / "ref.xlf", xliff(rights, "final")),
            write(tmp_path / "out.xlf", xliff(said, "needs-review-translation")),
        )
    references = read_references([paths[0]])
    assert references.texts == (flat(TARGETS)[1:],) and references.sources == flat(SOURCES)[1:]
    (found,) = read_outputs([paths[1]], references)
    assert found.sentences == (*flat(SAID)[1:-1], "")


def test_an_unfinished_message_is_no_reference(tmp_path):
    with pytest.raises(DocnmtError, match="no references"):
        read_references([write(tmp_path / "ref.po", catalogue([*flat(TARGETS)], "#, fuzzy\n"))])


@pytest.mark.parametrize("marks", ["ids", "starts"])
def test_documents_of_plain_text_may_be_told_by_another_file(marks, tmp_path):
    path = write(tmp_path / "ref.en", text(TARGETS, gap=""))
    told = {"ids": "court\n" * 3 + "market\n" * 2, "starts": "0\n3\n"}[marks]
    found = read_references([path], **{marks: write(tmp_path / marks, told)})
    assert found.texts == (flat(TARGETS),) and found.lengths() == [3, 2]
    (output,) = read_outputs([write(tmp_path / "out.txt", text(SAID, gap=""))], found)
    assert output.sentences == flat(SAID)
    if marks == "ids":
        assert found.ids == ("court", "market")


def test_references_are_read_from_gzip_files(tmp_path):
    path = tmp_path / "ref.tsv.gz"
    path.write_bytes(gzip.compress(tsv(SOURCES, TARGETS).encode()))
    assert read_references([str(path)]).texts == (flat(TARGETS),)


# ---- translations ----

TRANSLATIONS = {
    "tsv": tsv(SOURCES, SAID),
    "tsv in another order": tsv(dict(reversed(SOURCES.items())), SAID),
    "tsv without source": tsv(SAID),
    "bars": tsv(SOURCES, SAID).replace("\t", " ||| "),
    "jsonl": jsonl(SOURCES, SAID),
    "tstset": sgml("srcset", SOURCES) + sgml("refset", TARGETS) + sgml("tstset", SAID, "mine"),
    "hyp": wmt(("src", SOURCES), ("ref", TARGETS), ('hyp system="mine"', SAID)),
    "text": text(SAID),
    "text without empty lines": text(SAID, gap=""),
    "text with many empty lines": "\n" + text(SAID, gap="\n\n\n") + "\n\n",
    "tsv with numbers for ids": tsv({f"in:{k}": s for k, s in enumerate(SAID.values(), 1)}),
    "lines": "".join(" </s> ".join(sentences) + "\n" for sentences in SAID.values()),
}


@pytest.mark.parametrize("kind", TRANSLATIONS)
def test_translations_are_aligned(kind, tmp_path, references):
    (found,) = read_outputs([write(tmp_path / "mine.out", TRANSLATIONS[kind])], references)
    assert found.sentences == flat(SAID)
    assert found.name == "mine"


def test_translations_of_named_documents_go_with_references_without_names(tmp_path):
    unnamed = read_references([write(tmp_path / "ref.en", text(TARGETS))])
    (found,) = read_outputs([write(tmp_path / "out.tsv", tsv(SOURCES, SAID))], unnamed)
    assert found.sentences == flat(SAID)


@pytest.mark.parametrize("format", ["text", "tsv", "jsonl", "nist-sgml"])
def test_what_translate_writes_is_read_back_with_empty_translations(format, tmp_path):
    """A system may say nothing; it is judged for that sentence all the same."""
    said = {"court": ("", "He puts.", ""), "market": ("It.", "")}
    render = renderer(format, nbest=1)
    lines: list[str] = []
    for number, name in enumerate(SOURCES):
        placed = Placed(Document(name, SOURCES[name]), blank_lines=2 * (number > 0))
        result = TranslatedDocument(name, tuple(TranslatedSentence((line,), (0.0,)) for line in said[name]))
        lines += render(placed, result)
    content = {"text": text(TARGETS, gap="\n\n")}.get(format, tsv(SOURCES, TARGETS))
    known = read_references([write(tmp_path / "ref", content)])
    (found,) = read_outputs([write(tmp_path / "out", "".join(f"{line}\n" for line in lines))], known)
    assert found.sentences == flat(said)


SIZES = st.lists(st.integers(1, 4), min_size=1, max_size=5)


@settings(max_examples=150, deadline=None)
@given(SIZES, st.data())
def test_text_as_translate_writes_it_is_aligned_whatever_is_empty(tmp_path_factory, sizes, data):
    folder = tmp_path_factory.mktemp("text")
    gaps = data.draw(st.lists(st.integers(1, 3), min_size=len(sizes), max_size=len(sizes)))
    reference, output, said = [], [], []
    for number, size in enumerate(sizes):
        own = data.draw(st.lists(st.sampled_from(["", "words"]), min_size=size, max_size=size))
        placed = Placed(Document("x", ("source",) * size), blank_lines=gaps[number] if number else 0)
        for side, lines in ((reference, ["reference"] * size), (output, own)):
            translated = TranslatedDocument("x", tuple(TranslatedSentence((line,), (0.0,)) for line in lines))
            side += as_text(placed, translated)
        said += own
    known = read_references([write(folder / "ref.txt", "\n".join(reference) + "\n")])
    (found,) = read_outputs([write(folder / "out.txt", "\n".join(output) + "\n")], known)
    assert list(found.sentences) == said


def test_text_without_empty_lines_may_have_empty_translations(tmp_path, references):
    (found,) = read_outputs([write(tmp_path / "out.txt", "\ntwo\n\n\n\n")], references)
    assert found.sentences == ("", "two", "", "", "")


def test_systems_are_named_as_shortly_as_tells_them_apart(tmp_path, references):
    for folder in ("one", "two"):
        (tmp_path / folder).mkdir()
    content = tsv(SAID)
    paths = [
        write(tmp_path / name, content) for name in ("one/base.tsv", "one/mine.tsv.gz", "one/mine.txt", "two/base.tsv")
    ]

    def names(*chosen: str) -> list[str]:
        return [output.name for output in read_outputs(chosen, references)]

    assert names(paths[0], paths[1]) == ["base", "mine"]
    assert names(paths[1], paths[2]) == ["mine.tsv", "mine.txt"]
    assert names(paths[0], paths[3]) == [paths[0], paths[3]]
    with pytest.raises(DocnmtError, match=r"base.tsv: given twice\n  Give each system once"):
        names(paths[0], paths[0])


# ---- what does not fit ----

CUT = {"court": SAID["court"][:2], "market": SAID["market"]}
LONG = {"court": SAID["court"], "market": (*SAID["market"], "More.")}
MISFITS = {
    "a sentence too few": (tsv(CUT), r"out, line 2, document court: expected 3 sentences, found 2\n  Translate"),
    "a sentence too many": (tsv(LONG), r"out, line 6, document market: expected 2 sentences, found 3\n"),
    "a document too few": (
        tsv({"court": SAID["court"]}),
        r"out, document market: it is missing: expected 2 sentences, found 0",
    ),
    "a document too many": (
        tsv({**SAID, "extra": ("x",)}),
        r"out, line 6, document extra: it is not in the references",
    ),
    "in jsonl": (jsonl(CUT, CUT), r"out, line 1, document court: expected 3 sentences, found 2"),
    "numbered documents": (tsv({"in:1": ("x",)}), r"out: expected 2 documents, found 1\n  Translate"),
    "text, a sentence too few": (text(CUT), r"out, line 1, document court: expected 3 sentences, found 2"),
    "text, a sentence too many": (text(LONG), r"out, line 5, document market: expected 2 sentences, found 3"),
    "text, too few lines": (
        "a\nb\nc\n",
        r"out, line 4, document market: expected 5 lines, one for each sentence, found 3",
    ),
    "text, too many lines": (
        "a\n" * 7,
        r"out, line 6, document market: expected 5 lines, one for each sentence, found 7",
    ),
    "text, a document too many": (
        text({**SAID, "x": ("x",)}),
        r"out, line 8, document number 3: it is not in the references",
    ),
    "text, as many lines but other documents": (
        "a\n\nc\nd\ne\n",
        r"out, line 1, document court: expected 3 .*found 1\n.*If empty lines are",
    ),
    "an empty file": ("", r"out, line 1, document court: expected 5 lines, one for each sentence, found 0"),
    "several versions": (sgml("tstset", SAID, "A") + sgml("tstset", SAID, "B"), r"2 translations per sentence"),
    "versions of some documents": (
        sgml("tstset", SAID, "A") + sgml("tstset", {"court": SAID["court"]}, "B"),
        r"document market: expected 2 translations, as in the first document, but found 1",
    ),
    "versions of other lengths": (
        sgml("refset", SAID, "A") + sgml("refset", CUT, "B"),
        r"document court: 3 sentences in one translation but 2 in another \(from line \d+ of .*out\)",
    ),
    "a dataset without translations": (
        wmt(("src", SOURCES), ("ref", TARGETS)),
        r"document court: the document has no <hyp>",
    ),
    "a wrong number of columns": (
        "court\ta\tb\tc\n" + tsv(SAID),
        r"line 1, document court: 4 columns, but there should be 2 or 3",
    ),
    "a row without its translation": (
        tsv(SOURCES, SAID).replace("\tHe puts his dress.", ""),
        r"line 2, document court: 2 columns, but there should be 3\n",
    ),
    "a row with a source where the others have none": (
        tsv(SAID) + "market\ta\tb\n",
        r"line 6, document market: 3 columns, but there should be 2\n",
    ),
    "no document id": (tsv(SAID) + "\tb\n", r"line 6: no document id"),
    "a document that comes again": (
        tsv(SAID) + "court\tmore\n",
        r"line 6, document court: .*already read, from line 1",
    ),
    "broken JSON": (jsonl(SOURCES, SAID) + "{oops\n", r"line 3: not valid JSON"),
    "JSON without id": (jsonl(SOURCES, SAID) + '{"target": "x"}\n', r"line 3: no document id"),
    "JSON without translation": ('{"id": "court", "source": ["x"]}\n', r"line 1, document court: target must be"),
    "JSON of unequal sides": (
        '{"id": "court", "source": ["x"], "target": []}\n',
        r"1 source sentences but 0 target sentences",
    ),
    "JSON of a document twice": (jsonl(SOURCES, SAID) * 2, r"line 3, document court: .*already read, from line 1"),
    "sentences in another order": (
        tsv({**SOURCES, "court": SOURCES["court"][::-1]}, SAID),
        r"line 1, document court: the source is 'Tout est prêt.' here, but \"L'avocat arrive.\" in the references"
        r"\n.*leave the source column out",
    ),
    "an older test set": (
        jsonl({**SOURCES, "market": ("Il est vert.", "Je le prends.")}, SAID),
        r"line 2, document market: the source is 'Il est vert.'",
    ),
    "a control character": (text(SAID).replace("ripe", "ri\x07pe"), r"out, line 5: control character U\+0007"),
}


@pytest.mark.parametrize("case", MISFITS)
def test_translations_that_do_not_fit_are_refused_with_the_place(case, tmp_path, references):
    content, message = MISFITS[case]
    with pytest.raises(DocnmtError, match=message):
        read_outputs([write(tmp_path / "out", content)], references)


def test_a_source_may_be_spaced_and_cased_otherwise(tmp_path, references):
    def escaped(text: str) -> str:
        return unicodedata.normalize("NFD", text.upper()).replace("'", " &apos;")

    retold = {name: tuple(f"  {escaped(s)} !" for s in sentences) for name, sentences in SOURCES.items()}
    (output,) = read_outputs([write(tmp_path / "out.tsv", tsv(retold, SAID))], references)
    assert output.sentences == flat(SAID)


BAD_REFERENCES = {
    "empty": (
        [tsv({**TARGETS, "x": ("a", "b", "c")}, TARGETS | {"x": ("a", " ", "c")})],
        r"ref0, document x: sentence 2 has an empty",
    ),
    "empty in the second file": (
        [tsv(TARGETS), tsv({**TARGETS, "market": ("x", "")})],
        r"ref1, document market: sentence 2 has an empty reference\n  Add the reference",
    ),
    "nothing at all": (["\n\n"], r"ref0: contains no references\n  Choose a file"),
    "files that do not fit": ([tsv(TARGETS), tsv(CUT)], r"ref1, line 2, document court: expected 3 sentences, found 2"),
}


@pytest.mark.parametrize("case", BAD_REFERENCES)
def test_bad_references_are_refused(case, tmp_path):
    contents, message = BAD_REFERENCES[case]
    paths = [write(tmp_path / f"ref{number}", content) for number, content in enumerate(contents)]
    with pytest.raises(DocnmtError, match=message):
        read_references(paths)


def test_a_file_that_is_not_there_is_named(tmp_path, references):
    with pytest.raises(DocnmtError, match=r"nowhere\.txt: no such file"):
        read_outputs([str(tmp_path / "nowhere.txt")], references)


# ---- parts ----


@pytest.fixture
def games(tmp_path):
    ids = ["wesnoth:b", "cataclysm:a", "wesnoth:a", "manual-1", "manual-2", "news:x"]
    return read_references([write(tmp_path / "ref.tsv", tsv({name: ("x",) * (k + 1) for k, name in enumerate(ids)}))])


def contents(parts, references) -> dict[str, list[str]]:
    return {part.name: [references.ids[number] for number in part.documents] for part in parts}


def test_domains_are_the_beginnings_of_ids(games):
    parts = domains_of(games)
    assert contents(parts, games) == {
        "cataclysm": ["cataclysm:a"],
        "news": ["news:x"],
        "wesnoth": ["wesnoth:b", "wesnoth:a"],
        "other": ["manual-1", "manual-2"],
    }
    assert [part.sentences for part in parts] == [2, 6, 4, 9]
    assert sum(part.sentences for part in parts) == all_of(games).sentences == len(games)


def test_domains_can_be_grouped_and_the_longest_prefix_counts(games):
    parts = domains_of(games, ["games=wesnoth,cataclysm", "manuals=manual", "second=manual-2"])
    assert contents(parts, games) == {
        "games": ["wesnoth:b", "cataclysm:a", "wesnoth:a"],
        "manuals": ["manual-1"],
        "second": ["manual-2"],
        "other": ["news:x"],
    }


def test_a_domain_may_have_sources_that_the_test_set_has_not(games):
    domains = domains_of(games, ["games=wesnoth, widelands", "manuals=manual"])
    assert [part.name for part in domains] == ["games", "manuals", "other"]
    assert len(domains[0].documents) == len(domains_of(games, ["games=wesnoth"])[0].documents)


def test_documents_are_sorted_by_id(games):
    parts = documents_of(games)
    assert [part.name for part in parts] == sorted(games.ids)
    assert [part.sentences for part in parts] == [2, 4, 5, 6, 3, 1]


@pytest.mark.parametrize(
    ("groups", "message"),
    [
        (["games"], r"invalid domain 'games'\n  Write NAME=prefix,prefix"),
        (["games=wesnoth,"], r"invalid domain 'games=wesnoth,'"),
        (["a=wesnoth", "b=wesnoth"], r"'wesnoth' is listed twice"),
        (["a=wessnoth"], r"no document id begins with 'wessnoth'\n  Did you mean 'wesnoth'\?"),
        (["a=zzz"], r"no document id begins with a prefix of the domain 'a'\n  Ids here look like 'wesnoth:b'"),
        (["a=manual", "b=wesnotj"], r"no document id begins with 'wesnotj'\n  Did you mean 'wesnoth'\?"),
    ],
)
def test_domains_that_cannot_be_are_refused(groups, message, games):
    with pytest.raises(DocnmtError, match=message):
        domains_of(games, groups)
