"""Wrong contexts in training, parts of corpora, and runs that began before either had a setting."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import sacrebleu
import torch

from docnmt.base.errors import DocnmtError
from docnmt.base.lines import CorpusFiles
from docnmt.base.progress import Progress
from docnmt.config import (
    DataConfig,
    DecodingConfig,
    DocumentStepConfig,
    Recipe,
    SentenceStepConfig,
    ValidationConfig,
)
from docnmt.corpus.read import read_corpus
from docnmt.data.batches import Examples, Stream, epoch_batches
from docnmt.data.context import ContextRule
from docnmt.data.prepare import _content_hash
from docnmt.decoding.translator import Translator
from docnmt.document import NO_CONTEXT, ContextSpec, Document, ParallelDocument
from docnmt.evaluation.test_sets import TestSet
from docnmt.training.loop import Session, Trainer
from docnmt.training.parallel import Group
from docnmt.training.two_step import _contexts, _filling, _validator
from docnmt.training.validation import Validator
from tests.builders import BOS, EOS, loaded_model, make_model, make_store, parallel_documents, subwords

SIZES = [5, 1, 3, 2]
MORE = [4, 30, 6]


def rule(previous: int = 2, following: int = 0, max_tokens: int = 256) -> ContextRule:
    return ContextRule(ContextSpec(previous, following), max_tokens, BOS, EOS)


@pytest.fixture(scope="module")
def stores(tmp_path_factory):
    folder = tmp_path_factory.mktemp("stores")
    return [
        make_store(folder / "a", parallel_documents(SIZES)),
        make_store(folder / "b", parallel_documents(MORE, seed=1)),
    ]


def examples_of(stores, context: ContextRule | None, foreign: int | None = None) -> Examples:
    return Examples(stores, subwords("source"), subwords("target"), context, foreign)


def contexts(examples: Examples) -> list[list[int]]:
    return [examples.batch([i]).context.tokens.tolist() for i in range(len(examples))]


def document_of(examples: Examples) -> list[int]:
    """Which document each sentence is of, over both stores."""
    return np.repeat(np.arange(len(SIZES + MORE)), SIZES + MORE).tolist()[: len(examples)]


# ---- contexts of other documents ----

RULES = [rule(), rule(1), rule(3, 2), rule(0, 3), rule(3, 2, max_tokens=17)]


@pytest.mark.parametrize("seed", range(5))
def test_no_sentence_gets_a_context_of_its_own_document(stores, seed):
    examples = examples_of(stores, rule(), seed)
    own = document_of(examples)
    assert all(own[i] != own[int(other)] for i, other in enumerate(examples.context_of))


@pytest.mark.parametrize("context", RULES, ids=str)
def test_a_foreign_context_is_the_true_one_of_another_sentence(stores, context):
    true = contexts(examples_of(stores, context))
    examples = examples_of(stores, context, foreign=1)
    assert contexts(examples) == [true[int(other)] for other in examples.context_of]


@pytest.mark.parametrize("context", RULES, ids=str)
def test_foreign_contexts_are_as_long_as_batches_count_on(stores, context):
    examples = examples_of(stores, context, foreign=1)
    assert examples.context_lengths.tolist() == [len(made) for made in contexts(examples)]


def test_contexts_come_from_everywhere(stores):
    examples = examples_of(stores, rule(), foreign=1)
    own = np.array(document_of(examples))
    assert len(set(own[examples.context_of].tolist())) == len(SIZES + MORE)
    assert len(set(examples.context_of.tolist())) > len(examples) // 3


def test_the_seed_alone_tells_which_contexts(stores):
    one, again, other = (examples_of(stores, rule(), seed).context_of.tolist() for seed in (1, 1, 2))
    assert one == again != other


def test_sentences_are_the_same_whatever_their_contexts(stores):
    plain, foreign = examples_of(stores, rule()), examples_of(stores, rule(), foreign=1)
    for i in range(len(plain)):
        one, other = plain.batch([i]), foreign.batch([i])
        assert torch.equal(one.source.tokens, other.source.tokens)
        assert torch.equal(one.target_out, other.target_out)


def test_an_epoch_of_foreign_contexts_holds_every_sentence_once_within_the_budget(stores):
    examples = examples_of(stores, rule(), foreign=1)
    batches = epoch_batches(examples, 200, 1, 0)
    assert sorted(np.concatenate(batches).tolist()) == list(range(len(examples)))
    for batch in batches:
        sides = (examples.source_lengths, examples.context_lengths, examples.target_lengths)
        assert len(batch) == 1 or len(batch) * sum(int(side[batch].max()) for side in sides) <= 200


def test_one_document_has_no_other_to_take_contexts_from(tmp_path):
    alone = make_store(tmp_path / "alone", parallel_documents([6]))
    with pytest.raises(DocnmtError, match=r"come from other documents.*\n  Give two documents or more"):
        examples_of([alone], rule(), foreign=1)
    # Two stores with a document each are two documents.
    assert contexts(
        examples_of([alone, make_store(tmp_path / "b", parallel_documents([2], seed=2))], rule(), foreign=1)
    )


# ---- what the settings stand for ----


def contexts_for(kind: str, step: str = "document") -> tuple[ContextRule | None, int | None]:
    return _contexts(Recipe(seed=7, document=DocumentStepConfig(context_from=kind)), step, own_rule())


def own_rule() -> ContextRule:
    loaded = loaded_model()
    return loaded.card.rule(loaded.source, None, loaded.target)


def test_context_from_says_where_contexts_come_from(stores):
    own, foreign = contexts_for("own")
    assert own.spec == loaded_model().card.context.spec and foreign is None
    assert contexts_for("shuffled") == (own, 7)
    none, foreign = contexts_for("none")
    assert none == replace(own, spec=NO_CONTEXT) and foreign is None
    assert contexts(examples_of(stores, none)) == [[BOS]] * sum(SIZES + MORE)
    assert examples_of(stores, none).context_lengths.tolist() == [1] * sum(SIZES + MORE)


def test_batches_may_be_those_of_a_context_of_another_length(stores):
    """One sentence of context and two are compared on the same sentences in each update."""

    def batches(context: ContextRule, batches_for: int = -1) -> list[list[int]]:
        recipe = Recipe(document=DocumentStepConfig(batches_for=batches_for))
        counted = examples_of(stores, _filling(recipe, "document", context))
        return [batch.tolist() for batch in Stream(counted, 200, seed=1).epoch(0)]

    assert batches(rule(1), 2) == batches(rule(2)) != batches(rule(1))
    assert batches(rule(2), 2) == batches(rule(2))
    assert batches(rule(2), 0) == batches(rule(0))


def test_batches_of_another_context_say_nothing_where_there_is_none():
    recipe = Recipe(document=DocumentStepConfig(batches_for=3))
    assert _filling(recipe, "document", None) is None
    assert _filling(recipe, "sentence", rule(1)) == rule(1)


def test_it_says_nothing_about_the_sentence_step():
    assert contexts_for("shuffled", "sentence") == contexts_for("own")


def test_a_model_without_context_has_none_to_confuse():
    recipe = Recipe(document=DocumentStepConfig(context_from="shuffled"))
    assert _contexts(recipe, "document", None) == (None, None)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (
            lambda: DocumentStepConfig(context_from="shuffle"),
            "document.context_from: unknown value 'shuffle'\n.*'shuffled'",
        ),
        (lambda: SentenceStepConfig(corpora="document"), "sentence.corpora: unknown value 'document'\n.*'documents'"),
    ],
)
def test_unknown_values_are_refused(make, message):
    with pytest.raises(DocnmtError, match=message):
        make()


# ---- validation is of the kind that training is ----


def validate(tmp_path: Path, kind: str, sizes: tuple[int, ...] = (4, 3, 5)):
    documents = parallel_documents(sizes, seed=9)
    dev = make_store(tmp_path / "dev", documents)
    options = {"decode": True, "beam": 1, "batch_tokens": 400, "group": Group()}
    test = TestSet("Dev", documents, [[sentence for d in documents for sentence in d.target]])
    return Validator(loaded_model(), dev, test, *contexts_for(kind), **options).validate()


def test_a_control_is_validated_with_its_own_kind_of_context(tmp_path):
    own, shuffled, none = (validate(tmp_path, kind) for kind in ("own", "shuffled", "none"))
    assert own.loss != shuffled.loss
    # Without context there is nothing to shuffle, and what every control loses is told beside it.
    assert own.loss_without_context == shuffled.loss_without_context == none.loss_without_context == none.loss
    assert own.bleu_without_context == shuffled.bleu_without_context == none.bleu_without_context == none.bleu


# ---- validation is by the measure that is reported ----

SGML = '<{kind} setid="dev" srclang="French" trglang="English">\n{documents}</{kind}>\n'


def nist_files(folder: Path, documents: list[ParallelDocument]) -> CorpusFiles:
    """The documents with two references: their own target, and the same without its first word."""

    def side(sysid: str, texts: Callable[[ParallelDocument], Iterable[str]]) -> str:
        found = ""
        for document in documents:
            segments = "".join(f'<seg id="{n}">{text}</seg>\n' for n, text in enumerate(texts(document), 1))
            found += f'<doc docid="{document.id}" sysid="{sysid}">\n{segments}</doc>\n'
        return found

    references = side("a", lambda d: d.target) + side("b", lambda d: [t.partition(" ")[2] or t for t in d.target])
    for name, kind, text in (("src", "srcset", side("source", lambda d: d.source)), ("ref", "refset", references)):
        (folder / f"{name}.sgm").write_text(SGML.format(kind=kind, documents=text), encoding="utf-8")
    return CorpusFiles(source=str(folder / "src.sgm"), target=str(folder / "ref.sgm"))


@pytest.mark.parametrize("beam", [1, 3])
def test_dev_documents_are_scored_as_they_are_reported(tmp_path, beam):
    """multi-bleu on all references, by the beam that translates."""
    documents, loaded = parallel_documents((4, 3, 5), seed=9), loaded_model()
    recipe = Recipe(
        data=DataConfig(dev=(nist_files(tmp_path, documents),)),
        decoding=DecodingConfig(beam=beam),
        validation=ValidationConfig(metric="bleu"),
    )
    dev = make_store(tmp_path / "dev", documents)
    run = SimpleNamespace(recipe=recipe, prepared=SimpleNamespace(dev=dev), group=Group(), progress=Progress())
    found = _validator(run, loaded, *contexts_for("own"))()
    sources = [Document(d.id, d.source) for d in documents]
    translated = Translator(loaded).translate_documents(sources, beam=beam)
    texts = [sentence.text for document in translated for sentence in document.sentences]
    first = [sentence for d in documents for sentence in d.target]
    second = [sentence.partition(" ")[2] or sentence for sentence in first]
    # sacrebleu's own numbers: lower case, no smoothing.
    wanted = sacrebleu.BLEU(lowercase=True, smooth_method="none").corpus_score(texts, [first, second]).score
    assert found.bleu == pytest.approx(wanted) and found.signature.startswith("multi-bleu|nrefs:2|case:lc|")


def test_the_beam_of_validation_is_that_of_decoding_unless_it_has_its_own():
    recipe = Recipe(decoding=DecodingConfig(beam=7))
    assert recipe.validation_beam == 7
    assert replace(recipe, validation=ValidationConfig(beam=1)).validation_beam == 1


# ---- a part of a corpus ----


@pytest.fixture
def corpus(tmp_path) -> CorpusFiles:
    names = ["games-1", "games-2", "manual-1", "news-1"]
    path = tmp_path / "own.tsv"
    path.write_text("".join(f"{name}\tsource {n}\ttarget {n}\n" for n, name in enumerate(names)), encoding="utf-8")
    return CorpusFiles(str(path))


@pytest.mark.parametrize("pairs", [False, True])
@pytest.mark.parametrize(
    ("only", "expected"),
    [
        ("games", ["games-1", "games-2"]),
        ("news, games-2", ["games-2", "news-1"]),
        ("manual-1,", ["manual-1"]),  # a comma too many is not everything
        ("", ["games-1", "games-2", "manual-1", "news-1"]),
    ],
)
def test_only_documents_whose_id_begins_so_are_read(corpus, pairs, only, expected):
    assert [document.id for document in read_corpus(replace(corpus, only=only), sentence_level=pairs)] == expected
    swapped = list(read_corpus(replace(corpus, only=only, swap=True), sentence_level=pairs))
    assert [document.id for document in swapped] == expected and swapped[0].source[0].startswith("target")


@pytest.mark.parametrize("only", ["wesnoth", "ames", " , "])
def test_a_part_with_nothing_in_it_is_an_error_that_names_it(corpus, only):
    with pytest.raises(DocnmtError) as error:
        list(read_corpus(replace(corpus, only=only)))
    assert corpus.path in str(error.value) and repr(only) in str(error.value)
    assert "No document's name begins so" in str(error.value)


def test_what_is_read_is_part_of_the_hash_and_what_it_is_called_is_not(corpus):
    def content(**changes: str) -> str:
        return _content_hash(Recipe(data=DataConfig(documents=(replace(corpus, **changes),))), "documents")

    assert len({content(), content(only="games"), content(only="news")}) == 3
    assert content(name="MT02") == content()


def test_a_corpus_is_called_by_its_name_or_after_its_file():
    assert CorpusFiles("a/b/fr-en.test.tsv.gz").title == "fr-en"
    assert CorpusFiles(source="x/mt02-src.sgm", target="x/mt02-ref.sgm").title == "mt02-src"
    assert CorpusFiles("a/b.tsv", name="MT02").title == "MT02"


# ---- runs that began before there were these settings ----


SETTINGS = {"seed": 1, "step.corpora": "all", "step.context_from": "own", "step.batches_for": -1}


def trainer(folder: Path, stores, updates: int, cooldown: int = 0, **settings: object) -> Trainer:
    model = make_model(0, source_words=len(subwords("source")), target_words=len(subwords("target"))).train()
    examples = examples_of(stores, rule())
    step = DocumentStepConfig(updates=updates, batch_tokens=300, warmup=2, checkpoint_every=1, cooldown=cooldown)
    device = torch.device("cpu")
    session = Session(Recipe(seed=1, document=step), None, folder, device, Group(), Progress(quiet=True))

    def settings_at(update: int) -> dict[str, object]:
        return SETTINGS | settings | {"step.cooldown": step.cooling(update)}

    return Trainer(session, "document", model, examples, Stream(examples, 300, 1), settings_at, None)


def forget(folder: Path, *names: str) -> None:
    """Makes the checkpoints those of a version that did not know these settings."""
    for file in folder.rglob("state.json"):
        table = json.loads(file.read_text())
        table["settings"] = {key: value for key, value in table["settings"].items() if key not in names}
        del table["files"]["state.json"]
        file.write_text(json.dumps(table))


@pytest.mark.parametrize("change", [{"step.context_from": "shuffled"}, {"step.corpora": "documents"}, {"seed": 2}])
def test_a_run_does_not_go_on_under_another_setting(stores, tmp_path, change):
    trainer(tmp_path, stores, 1).run()
    (name,) = change
    with pytest.raises(DocnmtError, match=f"was started with other settings: {name}\n"):
        trainer(tmp_path, stores, 2, **change).run()


def test_a_run_of_an_older_version_is_told_apart(stores, tmp_path):
    trainer(tmp_path, stores, 1).run()
    forget(tmp_path, "seed", "step.corpora")
    with pytest.raises(DocnmtError, match=r"was started by an older docnmt, which had no seed, step.corpora\n  Delete"):
        trainer(tmp_path, stores, 2).run()


# ---- a rate that falls at the end ----


def test_when_the_rate_falls_may_be_told_until_it_does(stores, tmp_path):
    whole = trainer(tmp_path / "whole", stores, 8, cooldown=4)
    whole.run()
    trainer(tmp_path / "parts", stores, 2).run()  # no end in sight
    trainer(tmp_path / "parts", stores, 3, cooldown=0).run()
    trainer(tmp_path / "parts", stores, 4).run()
    resumed = trainer(tmp_path / "parts", stores, 8, cooldown=4)
    assert resumed.run().update == 8
    for name, parameter in resumed.trained.items():
        assert torch.equal(parameter, whole.trained[name]), name


@pytest.mark.parametrize(("updates", "cooldown"), [(9, 6), (10, 8), (10, 0), (20, 6)], ids=str)
def test_once_it_falls_nothing_about_it_changes(stores, tmp_path, updates, cooldown):
    trainer(tmp_path, stores, 8, cooldown=6).run()
    with pytest.raises(DocnmtError, match=r"other settings: step\.cooldown\n  Its .*rate falls from update 2 to 8"):
        trainer(tmp_path, stores, updates, cooldown=cooldown).run()
    trainer(tmp_path, stores, 8, cooldown=6).run()  # as it was it may be looked at again


def test_a_run_that_never_cooled_is_not_said_to_have(stores, tmp_path):
    trainer(tmp_path, stores, 4).run()
    with pytest.raises(DocnmtError, match=r"was started with other settings: step\.cooldown\n"):
        trainer(tmp_path, stores, 8, cooldown=6).run()  # would have fallen from update 2 on
    trainer(tmp_path, stores, 8, cooldown=4).run()
