"""The caches from the command line; what they have in common with other systems is in test_systems.py."""

from __future__ import annotations

import pytest

from docnmt.model_folder import load_model
from tests.every_system import CASES


@pytest.mark.parametrize("name", ["cache", "rnnsearch-cache"])
def test_a_model_folder_knows_its_topics(systems, name):
    topics = load_model(systems.trained(name) / "document" / "model").model.context_topics
    assert topics.evidence.any() and (topics.words >= 0).any()
    assert topics.words.shape[1] == CASES[name].context["topic_words"]
