"""The demo's own promises, checked on the figures it wrote; and what help(docnmt) shows, on the model it left."""

import doctest
import json
import sys

import docnmt

with open(sys.argv[1], encoding="utf-8") as file:
    systems = json.load(file)["systems"]
sentence, document = systems["sentence model"], systems["document model"]
shuffled = systems["document model, shuffled context"]
checks = {
    "the sentence model is near chance": abs(sentence["context_words"] - sentence["chance"]) < 12,
    "the document model gets 95 % of the context-dependent words": document["context_words"] >= 95,
    "and is no worse on all others": document["other_words"] >= sentence["other_words"] - 0.1,
    "a shuffled context takes the gain away": shuffled["context_words"] < document["context_words"] - 20,
}
checks["the examples of help(docnmt) come out as they stand there"] = not doctest.testmod(docnmt).failed
for claim, holds in checks.items():
    print("ok  " if holds else "FAIL", claim)
sys.exit(0 if all(checks.values()) else 1)
