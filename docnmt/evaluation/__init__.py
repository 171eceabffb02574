"""Measuring translations, and what context does for a model.

Translations: `outputs` (read and aligned), `metrics`, `significance`, `scores`, `comparison`;
`words` and `comet` are further measures. Context: `test_sets` (with wrong contexts on purpose),
`context_gain`, `context_trace`, `context_report`. Contrastive sets: `contrastive_items`,
`contrastive_layouts`, `contrastive`, `contrastive_report`; `probes` makes such sets, from
`probe_words`.
"""

from pathlib import Path


def static(name: str) -> str:
    """A style or script that goes into a page."""
    return "\n" + (Path(__file__).parent / "static" / name).read_text(encoding="utf-8")
