"""`docnmt demo`, `recipe`, `prepare` and `train`."""

from __future__ import annotations

import argparse

from docnmt.base.errors import DocnmtError, nearest
from docnmt.cli.options import Verbs, add_json, add_recipe, add_set, recipe_of


def add(verbs: Verbs) -> None:
    demo = verbs.add_parser(
        "demo",
        help="train and evaluate a small document-level translator, in minutes",
        examples=["docnmt demo", "docnmt demo --set output=runs/shorter --set document.updates=300"],
    )
    add_recipe(demo, default="demo")
    add_set(demo)
    add_json(demo)
    demo.set_defaults(run=run_demo)

    recipe = verbs.add_parser(
        "recipe",
        help="print one of docnmt's own recipes as a starting point; without a name, list them",
        examples=["docnmt recipe", "docnmt recipe demo > mine.toml"],
    )
    recipe.add_argument("name", nargs="?", default="", metavar="NAME")
    recipe.set_defaults(run=run_recipe)

    prepare = verbs.add_parser(
        "prepare",
        help="train subwords and turn a recipe's corpora into token stores",
        examples=["docnmt prepare mine.toml"],
    )
    add_recipe(prepare)
    prepare.add_argument("--skip-bad", action="store_true", help="skip and count bad places instead of stopping")
    add_set(prepare)
    prepare.set_defaults(run=run_prepare)

    train = verbs.add_parser(
        "train",
        help="train a recipe's model: the sentence step, then the document step",
        examples=[
            "docnmt train mine.toml",
            "docnmt train demo --set context.previous=1 --set output=runs/one",
            "docnmt train mine.toml --step document --set document.start_from=runs/demo/sentence/model",
        ],
    )
    add_recipe(train)
    train.add_argument("--step", choices=("sentence", "document"), help="run only one of the steps")
    train.add_argument("--skip-bad", action="store_true", help="skip and count bad places instead of stopping")
    train.add_argument("--dry-run", action="store_true", help="measure time and memory of an update; train nothing")
    train.add_argument(
        "--from-scratch", action="store_true", help="start again instead of continuing; what was trained is deleted"
    )
    add_set(train)
    train.set_defaults(run=run_train)


def run_demo(options: argparse.Namespace) -> None:
    from rich.console import Console

    from docnmt.base.progress import Progress
    from docnmt.demo.run import run_demo as run

    run(recipe_of(options), Progress(), Console(), options.json)


def run_recipe(options: argparse.Namespace) -> None:
    from docnmt.recipes import FOLDER, OWN

    if options.name and options.name not in OWN:
        raise DocnmtError(f"docnmt has no recipe named {options.name!r}\n  {nearest(options.name, OWN, 'It has')}")
    texts = {name: (FOLDER / f"{name}.toml").read_text(encoding="utf-8") for name in OWN}
    if options.name:
        print(texts[options.name], end="")
    else:
        for name, text in texts.items():
            first = text.splitlines()[0].removeprefix("# ").split(". ")[0].split(": ")[0]
            print(f"{name:20} {first.rstrip('.')}")


def run_prepare(options: argparse.Namespace) -> None:
    from docnmt.base.progress import Progress
    from docnmt.data.prepare import prepare

    prepare(recipe_of(options), Progress())


def run_train(options: argparse.Namespace) -> None:
    from docnmt.base.progress import Progress
    from docnmt.training.parallel import leave_group
    from docnmt.training.two_step import train

    recipe = recipe_of(options)
    steps = (options.step,) if options.step else ("sentence", "document") if recipe.context.active else ("sentence",)
    if recipe.document.start_from and not options.step:
        steps = ("document",)  # what step 2 starts from is given, so there is no step 1 to run
    if options.dry_run:
        from rich.console import Console

        from docnmt.experiments.timing import cost_table

        return cost_table(recipe, steps).print(Console())
    try:
        train(recipe, steps, Progress(), from_scratch=options.from_scratch)
    finally:
        leave_group()
