"""`docnmt serve`."""

from __future__ import annotations

import argparse
from pathlib import Path

from docnmt.base.errors import DocnmtError, missing_extra

DEMO = "runs/demo/document/model"


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
