"""`docnmt contrast`: contrastive sets."""

from __future__ import annotations

import argparse

from docnmt.cli.options import Verbs, add_context, add_json, check_outputs


def add(verbs: Verbs) -> None:
    contrast = verbs.add_parser(
        "contrast",
        help="how often the right translation is more probable than wrong ones",
        description="Reads contrastive sets in docnmt's JSON lines and in the layouts of ContraPro, Lopes et al., "
        "Bawden et al. and Voita et al., told by their content.",
    )
    contrast.add_argument("model", metavar="MODEL")
    contrast.add_argument("files", nargs="+", metavar="SET", help="one file; as text: source and target")
    contrast.add_argument(
        "--layout", default="", help="docnmt, contrapro, text, bawden, voita; where content does not tell"
    )
    contrast.add_argument(
        "--context-from",
        nargs="+",
        default=[],
        metavar="PATH",
        help="contrapro: the documents, a folder or a corpus; text: the files with source and target context lines",
    )
    add_context(contrast)
    contrast.add_argument("--write", default="", metavar="FILE", help="save the set as docnmt's JSON lines")
    contrast.add_argument("--items", default="", metavar="FILE", help="write all scores, a JSON object an item")
    contrast.add_argument("--device", default="auto")
    add_json(contrast)
    contrast.add_argument("--markdown", default="", metavar="FILE", help="write the table as Markdown")
    contrast.add_argument("--latex", default="", metavar="FILE", help="write the table as LaTeX")
    contrast.set_defaults(run=run_contrast)


def run_contrast(options: argparse.Namespace) -> None:
    import json
    from pathlib import Path

    from rich.console import Console

    from docnmt.base.files import write_atomically, write_json
    from docnmt.base.progress import Progress
    from docnmt.decoding.translator import load
    from docnmt.evaluation import contrastive as accuracy
    from docnmt.evaluation.contrastive_items import write_items
    from docnmt.evaluation.contrastive_layouts import read_set

    check_outputs(options.write, options.items, options.json, options.markdown, options.latex)
    translator = load(options.model, options.device)
    languages = translator.card.source_language, translator.card.target_language
    items = read_set(options.files, layout=options.layout, context_from=options.context_from, languages=languages)
    if options.write:
        write_items(options.write, items)
    verdicts = {}
    for use, context in accuracy.uses(translator, options.context).items():
        with Progress().bar(use, len(items), "items") as tick:
            verdicts[use] = accuracy.judge(translator, items, context, tick)
    found = accuracy.groups(items, verdicts)
    signature = accuracy.signature(translator, options.context, len(items))
    notes = accuracy.notes(items, accuracy.sees_translations(translator, options.context))
    title = f"Contrastive accuracy: {', '.join(Path(path).name for path in options.files)}"
    table = accuracy.table(title, found, [*notes, signature])
    if options.json:
        write_json(options.json, {"signature": signature, "notes": notes, "groups": accuracy.as_json(found)})
    for path, text in ((options.markdown, table.markdown()), (options.latex, table.latex())):
        if path:
            with write_atomically(path) as file:
                file.write(text)
    if options.items:
        with write_atomically(options.items) as file:
            for row in accuracy.item_rows(items, verdicts):
                file.write(json.dumps(row, ensure_ascii=False) + "\n")
    table.print(Console())  # last, as a reader may close the pipe on it
