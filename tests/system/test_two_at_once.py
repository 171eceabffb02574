"""The same recipe started twice at the same time, by mistake or to share the work: nothing is garbled, nothing is done
twice."""

from __future__ import annotations

import signal

from docnmt.base.files import owned
from tests.system.conftest import Tiny, leftovers, metrics, outcome, start_docnmt
from tests.system.test_resume import long_run, wait_until_training


def test_a_second_training_is_refused_and_the_first_goes_on_undisturbed(tiny: Tiny, tmp_path):
    first = start_docnmt(*tiny.arguments(tmp_path / "twice", *long_run(60), step="sentence"))
    wait_until_training(first, tmp_path / "twice" / "sentence")
    first.send_signal(signal.SIGSTOP)  # it has all the time that the other needs
    second = tiny.train(tmp_path / "twice", *long_run(60), step="sentence")
    first.send_signal(signal.SIGCONT)
    _, err = first.communicate(timeout=120)
    assert first.returncode == 0, err
    assert second.code == 2
    assert f"sentence: in use by process {first.pid} on " in second.err and "train" in second.err
    assert tiny.train(tmp_path / "once", *long_run(60), step="sentence").code == 0
    assert outcome(tmp_path / "twice", ("sentence",)) == outcome(tmp_path / "once", ("sentence",))
    updates = [line["update"] for line in metrics(tmp_path / "twice", "sentence", "train")]
    assert updates == sorted(set(updates))
    assert leftovers(tmp_path / "twice") == []


def test_a_killed_training_is_taken_up_at_once(tiny: Tiny, tmp_path):
    first = start_docnmt(*tiny.arguments(tmp_path, *long_run(60), step="sentence"))
    wait_until_training(first, tmp_path / "sentence")
    first.kill()
    first.communicate()
    assert (tmp_path / "sentence.lock").read_text()
    done = tiny.train(tmp_path, *long_run(60), step="sentence")
    assert done.code == 0, done.err


def test_two_that_prepare_make_everything_once(tiny: Tiny, tmp_path):
    settings = [f'--set=output="{tmp_path}"', "--set=subwords.source_model=", "--set=subwords.target_model="]
    with owned(tmp_path / "data"):
        both = [start_docnmt("prepare", tiny.recipe, *settings) for _ in range(2)]
        for process in both:
            assert process.stderr is not None and "data: waiting for process" in process.stderr.readline()
    said = [process.communicate(timeout=120)[1] for process in both]
    assert [process.returncode for process in both] == [0, 0]
    assert sorted(text.count("documents: already prepared") for text in said) == [0, 1]
    assert sum(text.count("subwords (source):") for text in said) == 1
    assert leftovers(tmp_path) == []
