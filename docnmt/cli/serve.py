"""`docnmt serve`."""

from __future__ import annotations

import argparse
from pathlib import Path

from docnmt.base.errors import DocnmtError, missing_extra
from docnmt.cli.options import Verbs

DEMO = "runs/demo/document/model"


def add(verbs: Verbs) -> None:
    serve = verbs.add_parser(
        "serve",
        examples=["docnmt serve", "docnmt serve runs/demo/document/model --port 8080"],
        help="translate over HTTP: a page, and an API compatible with LibreTranslate",
        description="Serves models to browsers and programs. Only this machine can reach it unless --host says "
        "otherwise. Needs the extra [serve].",
    )
    serve.add_argument("models", nargs="*", metavar="MODEL", help=f"default: the demo's, {DEMO}")
    serve.add_argument("--host", default="127.0.0.1", help="address to listen on; 0.0.0.0 for all (default 127.0.0.1)")
    serve.add_argument("--port", type=int, default=5000, help="default 5000; 0 for any free port")
    serve.add_argument("--workers", type=int, default=0, metavar="N", help="model processes (default: one per core)")
    serve.add_argument(
        "--memory", type=float, default=4096, metavar="MB", help="per process, half of it for models (default 4096)"
    )
    serve.add_argument("--queue", type=int, default=1024, metavar="N", help="sentences that may wait (default 1024)")
    serve.add_argument(
        "--timeout",
        type=float,
        default=60,
        metavar="S",
        help="seconds for a text (default 60); 10 times that for a file",
    )
    serve.add_argument("--max-characters", type=int, default=50_000, metavar="N", help="per text (default 50000)")
    serve.add_argument("--max-file", type=float, default=10, metavar="MB", help="largest file (default 10)")
    serve.add_argument("--keys", default="", metavar="FILE", help="API keys, one per line; or in DOCNMT_API_KEYS")
    serve.add_argument("--name", action="append", default=[], metavar="HOST", help="a name of the server, as in URLs")
    serve.add_argument("--origin", action="append", default=[], metavar="URL", help="a site whose pages may use it")
    serve.set_defaults(run=run_serve)


def run_serve(options: argparse.Namespace) -> None:
    import asyncio
    from importlib import import_module

    try:
        for name in ("starlette", "uvicorn", "python_multipart"):
            import_module(name)
    except ImportError as error:
        raise missing_extra(f"{error.name} is needed to serve", "serve") from None
    from docnmt.serving.server import run
    from docnmt.serving.web import Settings, read_keys

    for name in ("memory", "queue", "timeout", "max_characters", "max_file"):
        if not 0 < getattr(options, name) < 1e9:
            given = f"--{name.replace('_', '-')} {getattr(options, name)}"
            raise DocnmtError(f"{given}: out of range\n  Give a number above 0.")
    if options.workers < 0:
        raise DocnmtError(f"--workers {options.workers}: must not be negative\n  Give 1 or more.")
    settings = Settings(
        characters=options.max_characters,
        file_bytes=int(options.max_file * (1 << 20)),
        seconds=options.timeout,
        keys=read_keys(options.keys),
        names=options.name,
        origins=options.origin,
    )
    serving = run(
        _models(options.models),
        settings,
        lambda line: print(line, flush=True),
        host=options.host,
        port=options.port,
        workers=options.workers,
        room=options.queue,
        memory=int(options.memory * (1 << 20)),
    )
    asyncio.run(serving)


def _models(given: list[str]) -> list[str]:
    if not given and not (Path(DEMO) / "config.json").exists():
        raise DocnmtError(
            f"no model is given, and there is no demo model at {DEMO}\n"
            "  Give a model folder, or train the demo first: docnmt demo."
        )
    from docnmt.model_folder import load_card

    models = list(dict.fromkeys(given or [DEMO]))
    for folder in models:
        load_card(folder)  # a folder that is not a model is found before processes are started
    return models
