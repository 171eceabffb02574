"""From packages to train.tsv, dev.tsv and test.tsv with a card: `python -m tools.debian.get DIR --languages fr-en`."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from rich.console import Console

from docnmt.base.errors import DocnmtError
from docnmt.base.progress import Progress
from docnmt.corpus import clean as report
from docnmt.corpus.clean import Cleaner, similar_size
from docnmt.corpus.pairs import sentence_pairs
from docnmt.corpus.rows import write_tsv
from docnmt.document import GAP, ParallelDocument
from tools.debian.packages import Apt, Files, Package, download, read_packages
from tools.debian.pages import Texts, tidy
from tools.debian.sources import ENGLISH, Language, Source, chosen_sources, parse_pair
from tools.debian.splits import Card, SourceCard, split

_RATIO = 2.5  # of two sentences, for a paragraph to be divided into them


def main(arguments: Sequence[str] | None = None) -> int:
    options = _parser().parse_args(arguments)
    try:
        card, cleaner = get_debian(**vars(options), progress=Progress())
    except DocnmtError as error:
        print(f"tools.debian.get: {error}", file=sys.stderr)
        return 2
    console = Console()
    for table in (*card.tables(), report.table(cleaner)):
        table.print(console)
    print(f"{options.folder}: train.tsv, dev.tsv, test.tsv; README.md and corpus.json say what is in them")
    return 0


def _parser() -> argparse.ArgumentParser:
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "docnmt" / "debian"
    get = argparse.ArgumentParser(
        prog="python -m tools.debian.get",
        description="Translated manuals and games from Debian packages: train.tsv, dev.tsv, test.tsv and a card.",
    )
    get.add_argument("folder", metavar="DIR", type=Path)
    get.add_argument("--languages", required=True, metavar="SRC-TRG", help="fr-en, en-de, zh-en, pt_BR-en ...")
    get.add_argument("--only", default="", metavar="SOURCE,...", help="libreoffice,wesnoth ... (default: all)")
    get.add_argument(
        "--cache", default=cache, type=Path, metavar="DIR", help="keeps the packages; default ~/.cache/docnmt/debian"
    )
    get.add_argument(
        "--held-out", type=float, default=0.02, metavar="SHARE", help="of documents for dev, and for test (0.02)"
    )
    get.add_argument("--seed", type=int, default=1, metavar="S")
    return get


def get_debian(
    folder: Path,
    languages: str,
    *,
    only: str = "",
    cache: Path,
    held_out: float = 0.02,
    seed: int = 1,
    apt: Apt | None = None,
    progress: Progress,
) -> tuple[Card, Cleaner]:
    """Writes the corpus into a folder and says what is in it."""
    pair = parse_pair(languages)
    sources = chosen_sources(only)
    if not 0 < held_out <= 0.25:
        raise DocnmtError(f"--held-out {held_out}: not a share for dev and for test\n  Give more than 0, at most 0.25.")
    command = f"python -m tools.debian.get --languages {languages}{f' --only {only}' if only else ''}"
    card = Card((pair[0].code, pair[1].code), command, seed, held_out)
    apt = apt or Apt()
    foreign = [language for language in pair if language.code != ENGLISH]
    found = _find(apt, sources, foreign, card, progress)
    files = download(apt, {p.name: p for packages in found.values() for p in packages}, cache, progress)
    cleaner = Cleaner(card.languages)
    documents: list[ParallelDocument] = []
    for source in sources:
        if paths := [files[package.name] for package in found[source.name]]:
            extracted = _extract(source, _read(source, paths, foreign, progress), foreign, card.languages)
            documents += cleaner.clean(progress.track(extracted, f"extract {source.name}", unit="sentences", size=len))
    if not documents:
        raise _nothing(foreign)
    folder.mkdir(parents=True, exist_ok=True)
    splits, card.emptied = split(documents, held_out, seed)
    card.count(splits)
    for name, part in splits.items():
        write_tsv(str(folder / f"{name}.tsv"), part)
    card.write(folder, cleaner)
    return card, cleaner


def _find(
    apt: Apt, sources: list[Source], foreign: list[Language], card: Card, progress: Progress
) -> dict[str, list[Package]]:
    """The packages of each source in this release. What is missing is reported; sources without the languages go."""
    wanted = {source.name: source.packages_of(foreign) for source in sources}
    known = apt.find(name for groups in wanted.values() for names in groups for name in names)
    if not known:
        raise DocnmtError(
            "apt knows none of the packages\n"
            "  Run `apt-get update` once as root; the packages are in Debian's main section and in Ubuntu's universe."
        )
    found: dict[str, list[Package]] = {}
    for source in sources:
        available = {names[0]: [known[name] for name in names if name in known] for names in wanted[source.name]}
        here = [packages[0] for packages in available.values() if packages]
        missing = [name for name, packages in available.items() if not packages]
        lacking = [] if source.multilingual else [each.code for each in foreign if not source.has(each, known)]
        if lacking:
            here = []
            progress.say(f"{source.name}: left out, has no package for {' and '.join(lacking)}")
        elif missing:
            progress.say(f"{source.name}: not in this release, left out: {', '.join(missing)}")
        found[source.name] = here
        versions = {package.name: package.version for package in here}
        card.sources.append(SourceCard(source.name, source.domain, source.licence, versions, missing))
    if not any(found.values()):
        raise _nothing(foreign)
    return found


def _nothing(foreign: list[Language]) -> DocnmtError:
    return DocnmtError(
        f"the chosen sources have no text in {' and '.join(language.code for language in foreign)}\n"
        "  Give a language as packages name it (fr, de, zh, pt_BR): `apt-cache search libreoffice-help` shows many."
    )


def _read(source: Source, paths: list[Path], foreign: list[Language], progress: Progress) -> Files:
    with progress.bar(f"read {source.name}", len(paths), "packages") as advance:
        return read_packages(paths, lambda path: any(source.wants(path, each) for each in foreign), advance)


def _extract(
    source: Source, files: Files, foreign: list[Language], languages: tuple[str, str]
) -> Iterator[ParallelDocument]:
    # Two languages other than English meet where they translate the same English text.
    others = {
        name: dict(reversed(texts)) for language in foreign[1:] for name, texts in _translated(source, files, language)
    }
    for name, texts in _translated(source, files, foreign[0]):
        if len(foreign) == 2:
            texts = [(others.get(name, {}).get(english, ""), text) for english, text in texts]
        if languages[0] == foreign[0].code:
            texts = [(text, other) for other, text in texts]
        if pairs := _sentences(texts, languages):
            yield ParallelDocument(tidy(f"{source.name}:{name}"), *map(tuple, zip(*pairs, strict=True)))


def _translated(source: Source, files: Files, language: Language) -> Iterator[tuple[str, Texts]]:
    """The documents; a text left in English counts as untranslated."""
    for name, texts in source.documents(files, language):
        yield name, [(english, "" if text == english else text) for english, text in texts]


def _sentences(texts: Texts, languages: tuple[str, str]) -> Texts:
    """Paragraphs split into sentences if both sides agree; untranslated ones are gaps, except at the ends."""
    pairs: Texts = []
    for source, target in texts:
        if not source or not target:
            pairs.append((GAP, GAP))
            continue
        divided = sentence_pairs(source, target, languages)
        fits = all(similar_size(left, right, _RATIO) for left, right in divided)
        pairs += divided if fits else [(source, target)]
    while pairs and not pairs[-1][0]:
        pairs.pop()
    return pairs[next((i for i, pair in enumerate(pairs) if pair[0]), len(pairs)) :]


if __name__ == "__main__":
    sys.exit(main())
