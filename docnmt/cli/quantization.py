"""`docnmt quantize`: a small model folder for translating."""

from __future__ import annotations

import argparse

from docnmt.cli.options import Verbs, add_json, check_outputs


def add(verbs: Verbs) -> None:
    quantize = verbs.add_parser(
        "quantize",
        help="write a model folder about a quarter as large, its matrices in int8",
        description="All verbs but train take the folder as they take any model.",
    )
    quantize.add_argument("model", metavar="MODEL")
    quantize.add_argument("-o", "--output", default="", metavar="FOLDER", help="default: MODEL-int8")
    add_json(quantize)
    quantize.set_defaults(run=run_quantize)


def run_quantize(options: argparse.Namespace) -> None:
    from dataclasses import asdict
    from pathlib import Path

    from rich.console import Console

    from docnmt.base.files import write_json
    from docnmt.model_folder import quantize_folder

    check_outputs(options.json)
    folder = Path(options.model)
    named = folder if folder.name not in ("", "..") else folder.resolve()
    out = Path(options.output or named.with_name(f"{named.name}-int8"))
    done = quantize_folder(folder, out)
    if options.json:
        write_json(options.json, {"model": str(folder), "int8": str(out), **asdict(done)})
    print(f"int8 model: {out}")
    done.table().print(Console())
