"""`context.kind = "han"` from the command line; what it has in common with other systems is in test_systems.py."""

from __future__ import annotations

import pytest

from tests.system.conftest import command, weights


@pytest.mark.parametrize(
    ("integration", "networks"),
    [
        ("both", {"context_in_encoder", "context_in_decoder"}),
        ("encoder", {"context_in_encoder"}),
        ("decoder", {"context_in_decoder"}),
    ],
)
def test_networks_stand_where_they_are_asked_for(systems, tmp_path, integration, networks):
    output = systems.trained("han")
    if integration != "both":
        output = tmp_path
        systems.train("han", output, f"context.integration={integration}", "document.updates=2", "hardware.bf16=true")
    added = weights(output, "document").keys() - weights(systems.base("transformer"), "sentence").keys()
    assert {name.split(".")[0] for name in added} == networks
    done = command("translate", output / "document" / "model", stdin="Le chat dort.\nIl rêve.\n".encode())
    assert done.code == 0 and len(done.lines) == 2
