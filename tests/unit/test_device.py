import pytest
import torch

from docnmt.base.errors import DocnmtError
from docnmt.model_folder import choose_device


def test_auto_without_a_gpu_is_the_cpu(monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    assert choose_device("auto") == torch.device("cpu") == choose_device("cpu")


def test_each_process_of_torchrun_asks_for_its_own_gpu(monkeypatch):
    asked = []
    monkeypatch.setenv("LOCAL_RANK", "3")
    monkeypatch.setattr(torch, "empty", lambda *_, device: asked.append(device) or torch.zeros(0))
    choose_device("cuda")
    assert asked == ["cuda:3"]


def test_an_unknown_device_is_a_clear_error():
    with pytest.raises(DocnmtError, match="abacus"):
        choose_device("abacus")
