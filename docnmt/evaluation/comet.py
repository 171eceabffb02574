"""COMET, by unbabel-comet in a Python of its own: the versions it pins conflict with those docnmt needs."""

from __future__ import annotations

import json
import os
import subprocess
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from docnmt.base.errors import DocnmtError
from docnmt.base.progress import Progress
from docnmt.evaluation import comet_scorer
from docnmt.evaluation.metrics import Mean
from docnmt.evaluation.outputs import Output, References
from docnmt.evaluation.scores import Measured

PYTHON = "DOCNMT_COMET_PYTHON"
MODEL = "Unbabel/wmt22-comet-da"
_HOW = (
    "Create one: python -m venv comet && comet/bin/pip install unbabel-comet; then --comet-python comet/bin/python, or "
    f"{PYTHON}."
)


@dataclass(frozen=True)
class CometScorer:
    python: str  # that has unbabel-comet
    model: str = MODEL  # a checkpoint, or a name
    context: int = 0  # sentences before, of source and reference
    download: bool = False  # may a missing model be downloaded?

    def __post_init__(self) -> None:
        if not self.python:
            raise DocnmtError(f"COMET runs in a separate Python environment, and none was given\n  {_HOW}")

    def measure(self, outputs: Sequence[Output], references: References, progress: Progress) -> list[Measured]:
        """Each system's segments, against the first reference."""
        if references.sources is None:
            raise DocnmtError(
                "COMET needs the source sentences, but the references have none\n"
                "  Give references in a format that holds both sides, such as TSV."
            )
        segments = [segment for output in outputs for segment in self._segments(output, references)]
        progress.say(f"COMET: {len(segments):,} segments, {self.model}")
        scores, version = self._run(segments)
        signature = f"COMET|model:{self.model}|context:{self.context}|scale:100|unbabel-comet:{version}"
        rows = np.stack([100 * np.array(scores), np.ones(len(scores))], axis=1)
        metric = Mean("COMET", signature)
        return [Measured(metric, part, references.documents) for part in np.split(rows, len(outputs))]

    def _segments(self, output: Output, references: References) -> list[dict[str, list[str]]]:
        """The context of a translation is that of the reference, as in Vernikos et al. (2022): a
        system's own sentences would be judged twice."""
        sources, reference, found = references.sources or (), references.texts[0], []
        for number, (document, sentence) in enumerate(zip(references.documents, output.sentences, strict=True)):
            first = int(np.searchsorted(references.documents, document))
            before = slice(max(first, number - self.context), number)
            found.append(
                {
                    "src": [*sources[before], sources[number]],
                    "mt": [*reference[before], sentence],
                    "ref": [*reference[before], reference[number]],
                }
            )
        return found

    def _run(self, segments: list[dict[str, list[str]]]) -> tuple[list[float], str]:
        """Scores, and the version of unbabel-comet."""
        environment = {**os.environ, **({} if self.download else {"HF_HUB_OFFLINE": "1"})}
        with tempfile.TemporaryDirectory() as folder:
            request, response = Path(folder) / "request.json", Path(folder) / "response.json"
            asked = {"model": self.model, "context": self.context > 0, "segments": segments}
            request.write_text(json.dumps(asked, ensure_ascii=False), encoding="utf-8")
            command = [self.python, comet_scorer.__file__, str(request), str(response)]
            try:
                done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
            except OSError as error:
                raise DocnmtError(f"{self.python}: cannot be run ({error.strerror})\n  {_HOW}") from None
            if done.returncode or not response.exists():
                last = next((line for line in reversed(done.stderr.splitlines()) if line.strip()), "no error message")
                raise DocnmtError(f"{self.python}: COMET failed: {last.strip()}\n  {self._remedy(done.stderr)}")
            found = json.loads(response.read_text(encoding="utf-8"))
        return found["scores"], found["version"]

    def _remedy(self, said: str) -> str:
        if "No module named" in said:
            return _HOW
        if not self.download:
            return f"If {self.model} is not on this machine yet, --comet-download fetches it (about 2 GB)."
        return "Run COMET by itself to see the whole error."
