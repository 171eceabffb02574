"""The benchmarks' models for CTranslate2: in a Transformer that is not ours the same weights write the same words."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.decoders.ctranslate2_writer import export
from docnmt.base.errors import DocnmtError
from docnmt.decoding.translator import load
from docnmt.document import Document
from tests.system.conftest import Tiny

ctranslate2 = pytest.importorskip("ctranslate2", reason='needs CTranslate2: pip install "docnmt[bench]"')


LONGEST = 50  # pieces: below what either allows to any sentence


@pytest.fixture(scope="module")
def exported(models: dict[str, Path], tmp_path_factory) -> dict[str, Path]:
    made = {}
    for name, folder in models.items():
        made[name] = tmp_path_factory.mktemp("exported") / name
        export(folder, made[name])
    return made


@pytest.mark.parametrize("beam", [1, 4])
@pytest.mark.parametrize("name", ["sentence", "document"])
def test_the_same_words(tiny: Tiny, models, exported, name, beam):
    """Of a beam CTranslate2 may stop sooner than we: then ours is the more probable one."""
    translator = load(models[name])
    lines = [line for line in (tiny.folder / "corpus" / "dev.fr").read_text(encoding="utf-8").splitlines() if line][:60]
    read = [translator.source.pieces(ids) for ids in translator.source.encode(lines)]
    other = ctranslate2.Translator(str(exported[name]), intra_threads=1)
    limits = {"min_decoding_length": 0, "max_decoding_length": LONGEST + 50}
    theirs = other.translate_batch(read, beam_size=beam, length_penalty=0, return_scores=True, **limits)
    options = {"beam": beam, "length_penalty": 0.0, "context": "off"}
    (ours,) = translator.translate_documents([Document("dev", tuple(lines))], **options)
    vocabulary = {piece: number for number, piece in enumerate(translator.target.pieces(range(len(translator.target))))}
    same = set()
    for result, sentence in zip(theirs, ours.sentences, strict=True):
        words = [vocabulary[piece] for piece in result.hypotheses[0]]
        if len(words) < LONGEST:  # others babble on to their limits
            (text,) = translator.target.decode([words])
            assert text == sentence.text or (beam > 1 and sentence.scores[0] > result.scores[0])
            same |= {text} if text == sentence.text else set()
    assert len(same) > 5


def test_int8_is_smaller(models, exported, tmp_path):
    export(models["sentence"], tmp_path / "int8", "int8")
    assert (tmp_path / "int8" / "model.bin").stat().st_size < 0.8 * (exported["sentence"] / "model.bin").stat().st_size


def test_what_cannot_be_written_is_said(models, tmp_path):
    with pytest.raises(DocnmtError, match=r"'int3' is not known\n.*int8"):
        export(models["sentence"], tmp_path / "new", "int3")
    with pytest.raises(DocnmtError, match="is there already"):
        export(models["sentence"], tmp_path)
    assert list(tmp_path.iterdir()) == []
