"""`docnmt demo`, `recipe`, `prepare` and `train`."""

from __future__ import annotations

import argparse

from docnmt.base.errors import DocnmtError, nearest
from docnmt.cli.options import recipe_of


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
