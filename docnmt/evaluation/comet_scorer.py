"""Scores segments with unbabel-comet. Run as a script by the Python that has it, which need not
have docnmt.

    python comet_scorer.py REQUEST RESPONSE

Both are JSON files. The request: `model` (a checkpoint or a name), `context` (whether segments have
sentences before them) and `segments`, each with lists of sentences under src, mt and ref, its own
sentence last. The response: `scores` and `version`.
"""

import json
import os
import sys


def main(request_path: str, response_path: str) -> None:
    import comet
    import torch

    with open(request_path, encoding="utf-8") as file:
        request = json.load(file)
    name = request["model"]
    model = comet.load_from_checkpoint(name if os.path.exists(name) else comet.download_model(name))
    between = " "
    if request["context"]:
        if not hasattr(model, "enable_context"):
            sys.exit("this version of unbabel-comet does not support context; install 2.2.3 or later")
        model.enable_context()
        between = f" {model.encoder.tokenizer.sep_token} "
    segments = [{side: between.join(texts) for side, texts in segment.items()} for segment in request["segments"]]
    found = model.predict(segments, batch_size=16, gpus=int(torch.cuda.is_available()), progress_bar=False)
    version = getattr(comet, "__version__", "unknown")
    with open(response_path, "w", encoding="utf-8") as file:
        json.dump({"scores": [float(score) for score in found["scores"]], "version": version}, file)


if __name__ == "__main__":
    sys.path.pop(0)  # this folder, which has a comet.py of its own
    main(*sys.argv[1:])
