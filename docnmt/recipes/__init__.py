"""The recipes that come along, and how a recipe is read; docnmt/config.py has what one can say."""

from __future__ import annotations

import os
import tomllib
from collections.abc import Iterable
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from docnmt.base.errors import DocnmtError, nearest
from docnmt.base.lines import CorpusFiles
from docnmt.config import Recipe, from_table, one_of
from docnmt.recipes.presets import PRESETS, over

FOLDER = Path(__file__).parent
OWN = tuple(sorted(path.stem for path in FOLDER.glob("*.toml")))  # go by their names: `docnmt train demo`


def load_recipe(recipe: str | Path, settings: Iterable[str] = ()) -> Recipe:
    """Reads a recipe, given by its path or, of docnmt's own, by its name.

    Relative paths in a recipe are seen from its folder; in docnmt's own, which may lie where nobody can write, from the
    working folder.
    """
    path, folder = _find(recipe)
    try:
        table = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise DocnmtError(f"{path}: cannot be read ({error.strerror})\n  {_remedy(path)}") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise DocnmtError(f"{path}: not valid TOML: {error}\n  Mend that line.") from None
    for setting in settings:
        _set(table, setting, folder)
    if table.get("like"):
        one_of(f"{path}: like", table["like"], tuple(PRESETS))
        table = over(PRESETS[table["like"]], table)
    return resolve_paths(from_table(Recipe, table, str(path)), folder)


def _find(recipe: str | Path) -> tuple[Path, Path]:
    """A recipe's file, and the folder from which its paths are seen."""
    path = Path(recipe)
    if str(recipe) in OWN and not path.is_file():
        path = FOLDER / f"{recipe}.toml"
    return path, Path() if path.parent.resolve() == FOLDER.resolve() else path.parent


def _remedy(path: Path) -> str:
    return f"Give the path of a TOML file, or a name. {nearest(path.stem, OWN, 'docnmt has')}"


CORPUS_PATHS = ("path", "source", "target", "document_ids", "document_starts")
PATHS = (
    "output",
    "data.documents",
    "data.sentences",
    "data.dev",
    "data.test",
    "evaluation.contrastive",
    "subwords.source_model",
    "subwords.target_model",
    "document.start_from",
)


def _set(table: dict[str, Any], setting: str, folder: Path) -> None:
    """`model.width=256`: the value is read as TOML, or taken as text where it is not.

    A path on the command line is seen from where the user is, not from the recipe.
    """
    key, separator, text = setting.partition("=")
    if not separator:
        raise DocnmtError(f"--set {setting}: no value\n  Write --set section.key=value.")
    try:
        value = tomllib.loads(f"value = {text}")["value"]
    except tomllib.TOMLDecodeError:
        value = text.strip()
    if key.strip() in PATHS and value != "nothing":
        value = _seen_from(value, folder)
    *sections, name = key.strip().split(".")
    for section in sections:
        table = table.setdefault(section, {})
        if not isinstance(table, dict):
            raise DocnmtError(f"--set {setting}: {section} is not a section\n  Write --set section.key=value.")
    table[name] = value


def _seen_from(value: Any, folder: Path) -> Any:
    """Paths as written on the command line, in a list or a table or alone, as seen from a folder."""
    if isinstance(value, list):
        return [_seen_from(item, folder) for item in value]
    if isinstance(value, dict):
        return {k: _seen_from(v, folder) if k in CORPUS_PATHS else v for k, v in value.items()}
    relative = isinstance(value, str) and value and not os.path.isabs(value)
    return os.path.relpath(value, folder) if relative else value


def resolve_paths(recipe: Recipe, folder: Path) -> Recipe:
    """Paths in a recipe are written as seen from the recipe."""

    def at(text: str) -> str:
        return os.path.normpath(folder / text) if text else ""

    def corpora(entries: tuple[CorpusFiles, ...]) -> tuple[CorpusFiles, ...]:
        return tuple(CorpusFiles(**(asdict(e) | {n: at(getattr(e, n)) for n in CORPUS_PATHS})) for e in entries)

    start = recipe.document.start_from
    return replace(
        recipe,
        output=at(recipe.output),
        data=replace(
            recipe.data,
            documents=corpora(recipe.data.documents),
            sentences=corpora(recipe.data.sentences),
            dev=corpora(recipe.data.dev),
            test=corpora(recipe.data.test),
        ),
        subwords=replace(
            recipe.subwords,
            source_model=at(recipe.subwords.source_model),
            target_model=at(recipe.subwords.target_model),
        ),
        document=replace(recipe.document, start_from=start if start == "nothing" else at(start)),
        evaluation=replace(recipe.evaluation, contrastive=at(recipe.evaluation.contrastive)),
    )
