"""What int8 and a shortlist cost: BLEU, and words that context decides, of one model on one test set.

    python benchmarks/quality.py MODEL TEST --train FILE [--context-words FILE] [--json FILE]

The model is quantized, and a shortlist is learnt from the training pairs, in a folder that is thrown away. Decoding is
by the packed engine throughout. The first row is the model as it is.
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path
from typing import Any

import sacrebleu

from docnmt.base.files import write_json
from docnmt.base.lines import CorpusFiles
from docnmt.base.progress import Progress
from docnmt.base.report import Column, Table
from docnmt.cli import main as docnmt
from docnmt.corpus.read import read_corpus
from docnmt.decoding.translator import load
from docnmt.demo import read_context_words
from docnmt.demo.run import accuracy
from docnmt.document import Document, ParallelDocument


def measure(
    model: Path, test: list[ParallelDocument], train: str, words: str, progress: Progress
) -> list[dict[str, Any]]:
    """A row for each way to decode."""
    rows: list[dict[str, Any]] = []
    exact: list[str] = []
    with tempfile.TemporaryDirectory() as folder:
        small = Path(folder) / "int8"
        docnmt(["quantize", str(model), "-o", str(small)])
        docnmt(["shortlist", str(small), train])
        for name, path, shortlist in (
            ("float32", model, False),
            ("int8", small, False),
            ("int8, shortlist", small, True),
        ):
            translator = load(path)
            sources = [Document(document.id, document.source) for document in test]
            found = translator.translate_documents(sources, shortlist=shortlist)
            total = sum(map(len, sources))
            tracked = progress.track(found, name, total=total, unit="sentences", size=lambda d: len(d.sentences))
            texts = [[sentence.text for sentence in document.sentences] for document in tracked]
            flat = [text for document in texts for text in document]
            exact = exact or flat
            metric = sacrebleu.BLEU()
            bleu = metric.corpus_score(flat, [[sentence for document in test for sentence in document.target]])
            row = {"way": name, "bleu": bleu.score, "differ": sum(map(str.__ne__, flat, exact)), "sentences": len(flat)}
            if words:
                aligned = [
                    (document.id, position, reference, text)
                    for document, translated in zip(test, texts, strict=True)
                    for position, (reference, text) in enumerate(zip(document.target, translated, strict=True))
                ]
                row["context_words"] = accuracy(read_context_words(Path(words)), aligned).words.percent
            rows.append(row | {"signature": str(metric.get_signature())})
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", type=Path, metavar="MODEL")
    parser.add_argument("test", metavar="TEST", help="parallel documents")
    parser.add_argument("--train", required=True, metavar="FILE", help="parallel documents, for the shortlist")
    parser.add_argument(
        "--context-words", default="", metavar="FILE", help="of the embedded corpus: context-words.jsonl"
    )
    parser.add_argument("--json", default="", metavar="FILE")
    options = parser.parse_args()
    progress = Progress()
    test = list(read_corpus(CorpusFiles(path=options.test)))
    rows = measure(options.model, test, options.train, options.context_words, progress)
    if options.json:
        write_json(options.json, rows)
    table = Table(
        f"{options.model}: {rows[0]['sentences']:,} sentences",
        [Column("", text=True), *map(Column, ("BLEU", "change", "differ", "context words"))],
    )
    for row in rows:
        share = f"{row['context_words']:.1f} %" if "context_words" in row else ""
        table.add(
            row["way"], f"{row['bleu']:.2f}", f"{row['bleu'] - rows[0]['bleu']:+.2f}", f"{row['differ']:,}", share
        )
    table.print(progress.console)
    progress.say(f"BLEU: {rows[0]['signature']}")


if __name__ == "__main__":
    main()
