"""`docnmt serve` from start to stop: a port, model processes, the application on top."""

from __future__ import annotations

import os
import socket
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from docnmt.serving.app import make_app
from docnmt.serving.detection import Detector, subwords_of
from docnmt.serving.downloads import Downloads
from docnmt.serving.languages import name_of
from docnmt.serving.models import ModelInfo, named
from docnmt.serving.pool import LONG, Pool
from docnmt.serving.server import address, is_loopback, listen, serve
from docnmt.serving.settings import Settings
from docnmt.serving.worker import Load, load_for_serving


@dataclass(frozen=True)
class Service:
    models: Sequence[str]  # folders
    settings: Settings = field(default_factory=Settings)
    host: str = "127.0.0.1"
    port: int = 5000
    workers: int = 0  # 0: one a core
    room: int = 1024  # sentences that may wait
    names: Sequence[str] = ()
    origins: Sequence[str] = ()
    load: Load = load_for_serving

    async def run(self, say: Callable[[str], object]) -> None:
        bound = listen(self.host, self.port)  # first: a port that is taken is told before models are loaded
        with bound:
            say("loading ...")
            names, downloads = [*self.names], Downloads()
            if not is_loopback(bound):
                names.append(socket.gethostname())
            workers = self.workers or len(os.sched_getaffinity(0))
            pool = Pool(
                named(self.models), workers=workers, room=self.room, seconds=self.settings.seconds, load=self.load
            )
            try:
                async with pool:
                    detector = Detector(subwords_of(pool.models.values()))
                    app = make_app(pool, self.settings, detector, downloads, names=names, origins=self.origins)
                    for info in pool.models.values():
                        say(told(info))
                    keys = "with an API key only" if self.settings.keys else "open to all who reach it"
                    processes = "1 model process" if workers == 1 else f"{workers} model processes"
                    say(f"{address(bound)}   {processes}, {keys}; Ctrl-C stops it")
                    await serve(app, bound, LONG * self.settings.seconds)  # a file may be under way
                    say("stopped")
            finally:
                downloads.close()


def told(info: ModelInfo) -> str:
    languages = f"{name_of(info.source_language)} to {name_of(info.target_language)}"
    context = f"sees {info.context.previous} sentences before"
    if info.context.following:
        context += f" and {info.context.following} after"
    return f"{info.name}: {languages}, {context if info.uses_context else 'single sentences'}"
