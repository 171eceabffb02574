"""`docnmt export`: a model for another program."""

from __future__ import annotations

import argparse

from docnmt.cli.options import Verbs


def add(verbs: Verbs) -> None:
    export = verbs.add_parser(
        "export",
        help="write a sentence model for CTranslate2",
        description="Writes a folder that CTranslate2 loads, with the sub-word models beside it. Of a document model "
        "it is the sentence model inside: CTranslate2 knows no context. A shortlist becomes its vocabulary map.",
    )
    export.add_argument("model", metavar="MODEL")
    export.add_argument("folder", metavar="DIR", help="to be made")
    export.add_argument("--quantization", default="float32", help="float32 (default), int8, int8_float32 or int16")
    export.set_defaults(run=run_export)


def run_export(options: argparse.Namespace) -> None:
    from docnmt.interop.ctranslate2 import export
    from docnmt.model_folder import load_card

    if load_card(options.model).context.active:
        print("a document model: what is written is the sentence model inside, without its context")
    export(options.model, options.folder, options.quantization)
    print(f"model for CTranslate2: {options.folder}")
