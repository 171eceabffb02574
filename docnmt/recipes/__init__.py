"""docnmt's own recipes and presets, and how a recipe is read; docnmt/config.py defines what it can contain."""

from __future__ import annotations

import os
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from docnmt.base.errors import DocnmtError, nearest
from docnmt.base.lines import CorpusFiles
from docnmt.config import Recipe, from_table, one_of

FOLDER = Path(__file__).parent
OWN = tuple(sorted(path.stem for path in FOLDER.glob("*.toml")))  # known by name: `docnmt train demo`
PRESETS = ("paper", "released")  # what `like` may name


def load_recipe(recipe: str | Path, settings: Iterable[str] = ()) -> Recipe:
    """Reads a recipe, given by its path or, if it is one of docnmt's own, by its name.

    Relative paths in a recipe start at its folder; in docnmt's own, which may be in a read-only place, at the
    working folder.
    """
    path, folder = _find(recipe)
    try:
        table = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise DocnmtError(f"{path}: cannot be read ({error.strerror})\n  {_remedy(path)}") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise DocnmtError(f"{path}: not valid TOML: {error}\n  Correct that line.") from None
    for setting in settings:
        _set(table, setting, folder)
    if table.get("like"):
        one_of(f"{path}: like", table["like"], PRESETS)
        table = _over(preset(table["like"]), table)
    return resolve_paths(from_table(Recipe, table, str(path)), folder)


def _find(recipe: str | Path) -> tuple[Path, Path]:
    """A recipe's file, and the folder that its paths are relative to."""
    path = Path(recipe)
    if str(recipe) in OWN and not path.is_file():
        path = FOLDER / f"{recipe}.toml"
    return path, Path() if path.parent.resolve() == FOLDER.resolve() else path.parent


def _remedy(path: Path) -> str:
    return f"Give the path of a TOML file, or the name of a recipe. {nearest(path.stem, OWN, 'docnmt has')}"


def preset(name: str) -> dict[str, Any]:
    """What `like = NAME` at the top of a recipe stands for; the recipe's own keys override it."""
    table = tomllib.loads((FOLDER / "presets" / f"{name}.toml").read_text(encoding="utf-8"))
    below = table.pop("like", "")
    return _over(preset(below), table) if below else table


def _over(below: Mapping[str, Any], above: Mapping[str, Any]) -> dict[str, Any]:
    """Two tables of sections merged; if both have a key, the second's wins."""
    found = dict(below)
    for key, value in above.items():
        both = isinstance(value, Mapping) and isinstance(found.get(key), Mapping)
        found[key] = _over(found[key], value) if both else value
    return found


# ---- paths ----

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
NOTHING = "nothing"  # document.start_from: no model, everything is trained from scratch


def _is_path(key: str, value: Any) -> bool:
    return key in PATHS and (key, value) != ("document.start_from", NOTHING)


def _set(table: dict[str, Any], setting: str, folder: Path) -> None:
    """`model.width=256`: the value is read as TOML, or as text if it is not TOML.

    A path on the command line starts where the user is, not at the recipe.
    """
    key, separator, text = setting.partition("=")
    if not separator:
        raise DocnmtError(f"--set {setting}: no value given\n  Write --set section.key=value.")
    try:
        value = tomllib.loads(f"value = {text}")["value"]
    except tomllib.TOMLDecodeError:
        value = text.strip()
    if _is_path(key.strip(), value):
        value = _seen_from(value, folder)
    *sections, name = key.strip().split(".")
    for section in sections:
        table = table.setdefault(section, {})
        if not isinstance(table, dict):
            raise DocnmtError(f"--set {setting}: {section} is not a section\n  Write --set section.key=value.")
    table[name] = value


def _seen_from(value: Any, folder: Path) -> Any:
    """Paths on the command line, in a list, a table or alone, as a recipe in this folder would write them."""
    if isinstance(value, list):
        return [_seen_from(item, folder) for item in value]
    if isinstance(value, dict):
        return {k: _seen_from(v, folder) if k in CORPUS_PATHS else v for k, v in value.items()}
    relative = isinstance(value, str) and value and not os.path.isabs(value)
    return os.path.relpath(value, folder) if relative else value


def resolve_paths(recipe: Recipe, folder: Path) -> Recipe:
    """The recipe with its paths, which are relative to `folder`, made relative to the current folder."""

    def at(path: str) -> str:
        return os.path.normpath(folder / path) if path else ""

    def corpus(files: CorpusFiles) -> CorpusFiles:
        paths: dict[str, Any] = {name: at(getattr(files, name)) for name in CORPUS_PATHS}
        return replace(files, **paths)

    for key in PATHS:
        section, _, name = key.rpartition(".")
        part: Any = getattr(recipe, section) if section else recipe
        value = getattr(part, name)
        if _is_path(key, value):
            part = replace(part, **{name: tuple(map(corpus, value)) if isinstance(value, tuple) else at(value)})
            recipe = replace(recipe, **{section: part}) if section else part
    return recipe
