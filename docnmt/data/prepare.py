"""`docnmt prepare`: subwords and token stores for a recipe, made once and reused while nothing changes."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from functools import partial
from itertools import chain, islice
from pathlib import Path

from docnmt.base.errors import DocnmtError, OnBad, SkipBad
from docnmt.base.files import check_hashes, file_hash, json_hash, owned, read_json, remove_unfinished, write_json
from docnmt.base.lines import CorpusFiles
from docnmt.base.progress import Progress
from docnmt.config import Recipe
from docnmt.corpus.read import read_named
from docnmt.data.store import TokenStore, open_store, sentences_of, write_store
from docnmt.data.subwords import Subwords, train_subwords
from docnmt.document import ParallelDocument
from docnmt.recipes import CORPUS_PATHS

ROLES = ("documents", "sentences", "dev")


@dataclass(frozen=True)
class Prepared:
    source: Subwords
    target: Subwords
    documents: TokenStore
    sentences: TokenStore
    dev: TokenStore

    @property
    def stores(self) -> dict[str, TokenStore]:
        return {role: getattr(self, role) for role in ROLES}


def prepared_stores(recipe: Recipe) -> dict[str, TokenStore]:
    """What was prepared for a recipe, even if its files have changed since."""
    folder = Path(recipe.output) / "data"
    missing = [role for role in ROLES if not (folder / role).exists()]
    if missing:
        raise DocnmtError(
            f"{folder / missing[0]}: the data is not prepared yet\n  Run docnmt prepare, train or tables first."
        )
    return {role: TokenStore(folder / role) for role in ROLES}


def prepare(recipe: Recipe, progress: Progress) -> Prepared:
    folder = Path(recipe.output) / "data"
    if not (recipe.data.documents or recipe.data.sentences):
        raise DocnmtError("the recipe has no training data\n  Set data.documents (or data.sentences).")
    on_bad = recipe.data.on_bad()
    hashes = {role: _content_hash(recipe, role) for role in ROLES}
    with owned(folder, wait=progress.say):  # a process that had to wait finds everything prepared
        folder.mkdir(exist_ok=True)
        remove_unfinished(folder)
        return _made(recipe, folder, hashes, on_bad, progress)


def _made(recipe: Recipe, folder: Path, hashes: dict[str, str], on_bad: OnBad, progress: Progress) -> Prepared:
    source, target = _subwords(recipe, folder, hashes, on_bad, progress)
    stores = {}
    for role in ROLES:
        key = json_hash([hashes[role], hashlib.sha256(source.content + target.content).hexdigest()])
        path = folder / role
        store = open_store(path, key, progress.say)
        if store is not None:
            progress.say(f"{role}: already prepared")
            stores[role] = store
            continue
        if isinstance(on_bad, SkipBad):
            on_bad = SkipBad()  # counts only this corpus; subword training has read the same lines before
        documents = _read(recipe, role, on_bad)
        counted = progress.track(documents, f"encode {role}", unit="sentences", size=len)
        stores[role] = write_store(path, counted, source, target, os.cpu_count() or 1, key)
        if isinstance(on_bad, SkipBad) and getattr(recipe.data, role):
            progress.say(f"{role}: {on_bad.report()}")
        card, pairs = stores[role].card, stores[role].pairs
        if pairs:
            gaps = f" and {card['gaps']:,} gaps (missing sentences)" if "gaps" in card else ""
            progress.say(f"{role}: {card['documents']:,} documents, {pairs:,} sentence pairs{gaps}")
    return Prepared(source, target, stores["documents"], stores["sentences"], stores["dev"])


def _read(recipe: Recipe, role: str, on_bad: OnBad) -> Iterator[ParallelDocument]:
    for files in getattr(recipe.data, role):
        yield from read_named(recipe.data, files, on_bad, sentence_level=role == "sentences")


def _subwords(
    recipe: Recipe, folder: Path, hashes: dict[str, str], on_bad: OnBad, progress: Progress
) -> tuple[Subwords, Subwords]:
    """The two subword models: given in the recipe, made before, or trained now."""
    config = recipe.subwords
    given = [config.source_model, config.target_model or (config.source_model if config.shared else "")]
    if any(given):
        if not all(given):
            raise DocnmtError("only one subword model is given\n  Set both subwords.source_model and target_model.")
        models = [Subwords.load(path) for path in given]
    else:
        key = json_hash([hashes["documents"], hashes["sentences"], asdict(config), recipe.seed])
        paths = [folder / f"{side}.{key[:16]}.spm" for side in ("source", "target")]
        card = folder / f"subwords.{key[:16]}.json"
        if not all(path.exists() for path in paths) or _damaged(card, progress):
            _train_both(recipe, paths, on_bad, progress)
            write_json(card, {path.name: file_hash(path) for path in paths})
        models = [Subwords.load(path) for path in paths]
    if recipe.model.tie == "all" and models[0].all_pieces() != models[1].all_pieces():
        raise DocnmtError('model.tie = "all" needs one vocabulary for both languages\n  Set subwords.shared = true.')
    return models[0], models[1]


def _damaged(card: Path, progress: Progress) -> bool:
    """Whether the subword models differ from what was written. Older versions kept no hashes."""
    try:
        check_hashes(card.parent, read_json(card) if card.exists() else {})
    except (OSError, ValueError, AttributeError) as error:
        progress.say(f"{card.parent}: {error}; the subwords are trained again")
        return True
    return False


def _train_both(recipe: Recipe, paths: list[Path], on_bad: OnBad, progress: Progress) -> None:
    def lines(sides: Iterable[str], name: str) -> Iterator[str]:
        for side in sides:
            documents = chain(_read(recipe, "documents", on_bad), _read(recipe, "sentences", on_bad))
            yield from progress.track(sentences_of(documents, side), f"read {side} for {name}", unit="sentences")

    config = recipe.subwords
    if config.tokenized:
        for side in ("source", "target"):
            _check_tokenised(islice(lines((side,), "marks"), 1000), side)
    sets = (
        {paths[0]: ("source", "target")}
        if config.shared
        else {p: (s,) for p, s in zip(paths, ("source", "target"), strict=True)}
    )
    for path, sides in sets.items():
        model = train_subwords(partial(lines, sides, "subwords"), config, recipe.seed)
        model.save(path)
        fewer = f", as the text does not have {config.vocabulary:,}" if len(model) < config.vocabulary else ""
        progress.say(f"subwords ({' and '.join(sides)}): {len(model):,} pieces{fewer}")
        if config.shared:
            model.save(paths[1])


def _check_tokenised(sentences: Iterable[str], side: str) -> None:
    """Refuses text in which final punctuation is mostly not a token of its own."""
    ends = [sentence[-2:] for sentence in sentences if sentence[-1:] in ".?!,;:" and len(sentence) > 1]
    if sum(end[0].isalnum() for end in ends) > len(ends) / 2:
        raise DocnmtError(
            f"subwords.tokenized = true, but the {side} corpora are not tokenised: punctuation is attached to words\n"
            "  Tokenise them, or set subwords.tokenized = false."
        )


def _content_hash(recipe: Recipe, role: str) -> str:
    """A hash of the files' content and of every setting that determines how they are read."""
    corpora: tuple[CorpusFiles, ...] = getattr(recipe.data, role)
    parts: list[object] = [recipe.data.languages, recipe.data.skip_bad, recipe.data.max_characters]
    for files in corpora:
        parts.append([files.format, files.swap, *filter(None, (files.only, files.encoding))])
        for name in CORPUS_PATHS:
            path = getattr(files, name)
            parts.append(_path_hash(path) if path else "")
    return json_hash(parts)


def _path_hash(path: str) -> str:
    if Path(path).is_dir():  # a release: its files, by name
        files = sorted(file for file in Path(path).rglob("*") if file.is_file())
        return json_hash([[str(file.relative_to(path)), _path_hash(str(file))] for file in files])
    try:
        return file_hash(path)
    except OSError as error:
        remedy = "Check the paths in the recipe."
        if Path(path).parent == Path("runs/demo/corpus"):  # of docnmt's own recipes, which come without it
            remedy = "Write the embedded corpus first: docnmt corpus demo runs/demo/corpus"
        raise DocnmtError(f"{path}: cannot be read ({error.strerror})\n  {remedy}") from None
