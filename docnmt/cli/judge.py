"""`docnmt judge` and `judgements`: people compare two systems."""

from __future__ import annotations

import argparse

from docnmt.base.errors import missing_extra
from docnmt.cli.options import Verbs, add_tables, check_outputs, show

PORT = 5001
STORE = "judgements.sqlite"


def add(verbs: Verbs) -> None:
    judge = verbs.add_parser(
        "judge",
        examples=["docnmt judge baseline.txt ours.txt --source test.tsv --documents 10"],
        help="a page on which people say which of two systems is better, not knowing which is which",
        description="Draws whole documents and serves a page that shows each sentence in its document with both "
        "translations. Judges may stop and continue at any time; the same command continues with the same judgements.",
    )
    judge.add_argument("one", metavar="A", help="translations of the baseline")
    judge.add_argument("other", metavar="B", help="translations of the other system")
    judge.add_argument("--source", required=True, metavar="S", help="the source of both, with its documents")
    judge.add_argument("--documents", type=int, default=20, metavar="N", help="how many to judge (default 20)")
    judge.add_argument(
        "--seed", type=int, default=1, metavar="N", help="seed of the sample and of the sides (default 1)"
    )
    judge.add_argument("--store", default=STORE, metavar="FILE", help=f"where judgements are kept (default {STORE})")
    judge.add_argument("--host", default="127.0.0.1", help="address to listen at; 0.0.0.0 for all (default 127.0.0.1)")
    judge.add_argument("--port", type=int, default=PORT, help=f"default {PORT}; 0 for any free one")
    judge.add_argument(
        "--name", action="append", default=[], metavar="HOST", help="a host name under which judges reach it"
    )
    judge.set_defaults(run=run_judge)

    judgements = verbs.add_parser(
        "judgements",
        help="what the judges found: shares, agreement, sign test, CSV",
        examples=["docnmt judgements judgements.sqlite --csv judgements.csv"],
    )
    judgements.add_argument("store", metavar="STORE", help="the --store of `docnmt judge`")
    judgements.add_argument("--judges", nargs="+", default=[], metavar="NAME", help="of these judges only")
    judgements.add_argument("--csv", default="", metavar="FILE", help="write all judgements as CSV")
    add_tables(judgements)
    judgements.set_defaults(run=run_judgements)


def run_judge(options: argparse.Namespace) -> None:
    try:
        import starlette  # noqa: F401
        import uvicorn  # noqa: F401
    except ImportError as error:
        raise missing_extra(f"{error.name} is needed to judge", "serve") from None
    import asyncio

    from docnmt.judging.app import judging_app
    from docnmt.judging.sampling import read_sample
    from docnmt.judging.store import Store
    from docnmt.serving.server import address, listen, serve

    check_outputs(options.store)
    sample = read_sample(options.source, (options.one, options.other), options.documents, options.seed)
    bound = listen(options.host, options.port)
    store = Store(options.store, sample)
    try:
        asked = f"{len(sample.questions):,} of {len(sample.sentences):,} sentences, which differ"
        print(f"documents: {len(sample.documents):,}; judges are asked about {asked}")
        print(f"judgements go to {options.store}; to see them: docnmt judgements {options.store}")
        for name, secret in store.secrets().items():
            print(f"{name} continues at {address(bound)}as/{secret}")
        print(f"judge at {address(bound)} (Ctrl-C stops it, the same command continues)", flush=True)
        asyncio.run(serve(judging_app(store, options.name), bound, seconds=5))
    finally:
        store.close()


def run_judgements(options: argparse.Namespace) -> None:
    from docnmt.base.files import write_atomically
    from docnmt.judging.store import Store
    from docnmt.judging.summary import as_csv, figures, summarise, summary_table

    check_outputs(options.csv, options.json, options.markdown, options.latex)
    store = Store(options.store)
    summary = summarise(store, options.judges)
    if options.csv:
        with write_atomically(options.csv) as file:
            file.write(as_csv(store, options.judges))
    store.close()
    show(options, [summary_table(summary)], figures(summary))
