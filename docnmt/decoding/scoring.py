"""`docnmt score`: how probable given translations are, with their context and without one."""

from __future__ import annotations

import json
import sys
from itertools import tee

from docnmt.base.files import write_json
from docnmt.base.lines import CorpusFiles
from docnmt.base.progress import Progress
from docnmt.corpus.read import read_corpus
from docnmt.decoding.results import SentenceScore
from docnmt.decoding.translator import Translator
from docnmt.document import NO_CONTEXT


def print_scores(
    translator: Translator,
    files: CorpusFiles,
    languages: tuple[str, str],
    context: str | None,
    tokens: bool,
    json_path: str,
) -> None:
    """One line a sentence: document, number, log-probability with context, without, pieces; then a summary."""
    languages = languages if any(languages) else (translator.card.source_language, translator.card.target_language)
    first, second, third = tee(read_corpus(files, languages=languages), 3)
    informed_scores = translator.score(second, context=context)
    if translator.card.context.active:
        plain_scores = translator.score(third, context=NO_CONTEXT)
    else:  # a sentence model: there is no other way to score
        informed_scores, plain_scores = tee(informed_scores)
    scored = zip(first, informed_scores, plain_scores, strict=True)
    total = without_total = 0.0
    pieces = sentences = 0
    if not tokens:
        print("document\tsentence\tlog_probability\twithout_context\tpieces")
    for document, informed, plain in Progress().track(scored, "score", unit="sentences", size=lambda row: len(row[0])):
        for number, (with_context, without) in enumerate(zip(informed, plain, strict=True), 1):
            if tokens:
                print(json.dumps(_as_json(document.id, number, with_context, without), ensure_ascii=False))
            else:
                print(
                    f"{document.id}\t{number}\t{with_context.total:.4f}\t{without.total:.4f}\t{len(with_context.pieces)}"
                )
            total += with_context.total
            without_total += without.total
            pieces += len(with_context.pieces)
            sentences += 1
    summary = {
        "sentences": sentences,
        "pieces": pieces,
        "log_probability_per_piece": total / pieces,
        "without_context_per_piece": without_total / pieces,
        "gain_per_piece": (total - without_total) / pieces,
    }
    told = f"{sentences:,} sentences, {pieces:,} pieces: {summary['log_probability_per_piece']:.4f} a piece"
    if translator.rule(context) is None:
        told += " by the sentence model"
    else:
        told += f" with context, {summary['without_context_per_piece']:.4f} without"
        told += f", gain {summary['gain_per_piece']:+.4f}"
    print(told, file=sys.stderr)
    if json_path:
        write_json(json_path, summary)


def _as_json(document: str, number: int, informed: SentenceScore, plain: SentenceScore) -> dict[str, object]:
    return {
        "document": document,
        "sentence": number,
        "log_probability": informed.total,
        "without_context": plain.total,
        "pieces": informed.pieces,
        "log_probabilities": informed.log_probabilities,
        "log_probabilities_without_context": plain.log_probabilities,
    }
