"""The demo from end to end on the real recipe, cut to a few updates: its tables, examples and figures."""

import json

from tests.system.conftest import command


def test_the_demo_runs_and_writes_its_figures(tmp_path):
    figures = tmp_path / "figures.json"
    settings = [f"output={tmp_path / 'run'}", "sentence.updates=2", "document.updates=2", "validation.decode=false"]
    settings += ["model.width=32", "model.filter_width=32", "decoding.beam=1", "document.batch_tokens=4000"]
    arguments = [word for setting in settings for word in ("--set", setting)]
    done = command("demo", "--json", figures, *arguments)
    assert done.code == 0, done.err
    assert "context-dependent words" in done.out and f"{tmp_path / 'run'}/document/model my-text.txt" in done.out
    systems = json.loads(figures.read_text(encoding="utf-8"))["systems"]
    assert set(systems) == {"sentence model", "document model", "document model, shuffled context"}
    for system in systems.values():
        assert 0 <= system["context_words"] <= 100 and system["context_words_count"] > 400
        assert system["bleu_signature"].startswith("nrefs:1|case:lc")
