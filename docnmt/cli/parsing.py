"""The parsers of all verbs, from their description in verbs.toml."""

from __future__ import annotations

import argparse
import tomllib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from docnmt.base import __version__
from docnmt.base.errors import nearest

Table = dict[str, Any]


class VerbParser(argparse.ArgumentParser):
    """The parser of a verb. Its help ends with examples, and it has a suggestion for what is mistyped.

    A verb may have jobs beside what it does without naming one: `docnmt contrast MODEL SET` and `docnmt contrast make
    CORPUS`.
    """

    def __init__(self, examples: Sequence[str] = (), **settings: Any) -> None:
        super().__init__(**settings)
        self.examples = examples
        self.jobs: dict[str, VerbParser] = {}

    def format_help(self) -> str:
        lines = "".join(f"\n  {example}" for example in self.examples)
        return super().format_help() + (f"\nexample{'s' * (len(self.examples) > 1)}:{lines}\n" if lines else "")

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        if action.choices is not None and value not in action.choices:
            hint = nearest(str(value), map(str, action.choices), "Choose from")
            raise argparse.ArgumentError(action, f"unknown value {value!r}. {hint}")

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        if args and args[0] in self.jobs:
            return self.jobs[args[0]].parse_known_args(args[1:], namespace)
        options, left = super().parse_known_args(args, namespace)
        for word in left:
            if word.startswith("--"):
                known = [name for name in self._option_string_actions if name.startswith("--")]
                self.error(f"unknown option {word!r}. {nearest(word.partition('=')[0], known, 'It has')}")
        return options, left


def parser(verb: str = "") -> VerbParser:
    """Of one verb; of all if it is not the name of one."""
    described = tomllib.loads(Path(__file__).with_name("verbs.toml").read_text(encoding="utf-8"))
    verbs, shared = described["verbs"], described["shared"]
    root = VerbParser(described["examples"], prog="docnmt", description=described["description"])
    root.add_argument("--version", action="version", version=f"docnmt {__version__}")
    choice = root.add_subparsers(title="verbs", required=True, metavar="VERB")
    for name in [verb] if verb in verbs else verbs:
        _fill(choice.add_parser(name, **_texts(verbs[name])), verbs[name], shared)
    return root


def _texts(verb: Table) -> Table:
    return {name: verb[name] for name in ("help", "description", "epilog", "examples") if name in verb}


def _fill(parser: VerbParser, verb: Table, shared: Table) -> None:
    _add_options(parser, verb.get("options", {}), shared)
    jobs = verb.get("jobs", {})
    if "run" in verb:
        parser.set_defaults(run=verb["run"])
        for name, job in jobs.items():
            parser.jobs[name] = VerbParser(prog=f"{parser.prog} {name}", **_texts(job))
            _fill(parser.jobs[name], job, shared)
    else:  # it does nothing itself
        choice = parser.add_subparsers(required=True, metavar="JOB")
        for name, job in jobs.items():
            _fill(choice.add_parser(name, **_texts(job)), job, shared)


def whole(text: str) -> int:
    if not text.isdecimal():
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number")
    return int(text)


TYPES = {"int": int, "float": float, "whole": whole}


def _add_options(to: argparse._ActionsContainer, options: Table, shared: Table) -> None:
    for name, how in options.items():
        if how == "shared":
            _add_options(to, shared[name], shared)
        elif name == "title":  # of a group, which has the options that follow
            to = to.add_argument_group(how)
        else:
            settings = dict(how)
            if "type" in settings:
                settings["type"] = TYPES[settings["type"]]
            if isinstance(settings.get("metavar"), list):
                settings["metavar"] = tuple(settings["metavar"])
            to.add_argument(*name.split(), **settings)
