"""Recipes: read strictly, changed from the command line, paths as seen from the file."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from docnmt.base.errors import DocnmtError
from docnmt.base.lines import CorpusFiles
from docnmt.config import ContextConfig, ModelConfig, Recipe, SentenceStepConfig
from docnmt.document import ContextSpec
from docnmt.recipes import FOLDER, OWN, load_recipe


def read(tmp_path: Path, text: str = "", *settings: str) -> Recipe:
    path = tmp_path / "recipe.toml"
    path.write_text(text, encoding="utf-8")
    return load_recipe(path, settings)


def refused(tmp_path: Path, text: str, *settings: str) -> str:
    with pytest.raises(DocnmtError) as caught:
        read(tmp_path, text, *settings)
    assert "\n  " in str(caught.value), "it does not say what to do"
    return str(caught.value)


def test_an_empty_recipe_is_all_defaults(tmp_path):
    recipe = read(tmp_path)
    assert recipe.model == ModelConfig() and recipe.context == ContextConfig()
    assert recipe.sentence == SentenceStepConfig()


@pytest.mark.parametrize("name", OWN)
def test_every_recipe_that_comes_along_loads(name):
    recipe = load_recipe(name)
    assert recipe.data.documents and recipe.data.dev
    for step in (recipe.sentence, recipe.document):
        assert step.warmup <= step.updates / 2  # it leaves its warm-up


def test_own_recipes_go_by_name_and_write_where_the_user_is(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    recipe = load_recipe("demo", ["document.start_from=old"])
    assert (recipe.output, recipe.data.dev[0].path) == ("runs/demo", "runs/demo/corpus/dev.tsv")
    assert recipe.document.start_from == "old"
    assert load_recipe(FOLDER / "demo.toml").output == "runs/demo"
    Path("demo").mkdir()  # of that name, but no recipe
    assert load_recipe("demo") == load_recipe(FOLDER / "demo.toml")
    Path("other").mkdir()
    copy = shutil.copy(FOLDER / "demo.toml", "other/mine.toml")
    assert load_recipe(copy).output == "other/runs/demo"  # as in any recipe of a user's own


@pytest.mark.parametrize("given", ["dmo", "recipes/demo.toml", "nowhere/demo.tml"])
def test_a_recipe_that_is_not_there_may_be_one_of_our_own(given, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(DocnmtError, match=f"{given}: cannot be read(.|\n)*Did you mean 'demo'\\?"):
        load_recipe(given)


# ---- strictness ----


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("modle = 3", "unknown key 'modle'\n  Did you mean 'model'?"),
        ("[model]\nwidht = 3", "unknown key 'widht'\n  Did you mean 'width'?"),
        ("[model]\nqqq = 3", "Known keys: kind, width, "),
        ('[[data.documents]]\npaht = "x"', "Did you mean 'path'?"),
        ("model = 3", "must be a section, not 3"),
        ('[model]\nwidth = "3"', "width: expected int, found '3'"),
        ("[model]\nwidth = 3.0", "width: expected int, found 3.0"),
        ("[model]\nwidth = true", "width: expected int, found True"),
        ("[document]\nfreeze = 1", "freeze: expected bool, found 1"),
        ("[hardware]\ndevice = 3", "device: expected str, found 3"),
        ("[model]\ndropout = true", "dropout: expected float, found True"),
        ("[data]\ndocuments = 3", "documents: must be a section, not 3"),
        ("[data]\ndocuments = [3]", "documents: must be a section, not 3"),
        ('[context]\nintegration = "x"', "Choose from encoder, decoder, both, none."),
        ('[context]\nconnection = "gates"', "Did you mean 'gate'?"),
        ('[context]\nstart = "papre"', "Did you mean 'paper'?"),
        ('[model]\ntie = "al"', "Did you mean 'all'?"),
        ("[model]\nwidth = 10\nheads = 4", "model.width 10 cannot be split into 4 heads"),
    ],
)
def test_what_is_not_known_is_refused(tmp_path, text, said):
    assert said in refused(tmp_path, text)


def test_a_refusal_names_the_file(tmp_path):
    assert str(tmp_path / "recipe.toml") in refused(tmp_path, "[model]\nwidht = 3")
    assert "line 2" in refused(tmp_path, "[model]\nwidth = \n")


def test_bytes_that_are_no_text(tmp_path):
    path = tmp_path / "recipe.toml"
    path.write_bytes(b'output = "\xff"\n')
    with pytest.raises(DocnmtError, match="not valid TOML"):
        load_recipe(path)


@pytest.mark.parametrize(
    "setting",
    [
        "validation.metric=accuracy",
        "model.heads=0",
        "model.width=0",
        "model.dropout=1.5",
        "context.dropout=1.5",
        "model.dropout=-0.1",
        "context.previous=-1",
        "context.layers=-1",
        "context.max_tokens=0",
        "sentence.log_every=0",
        "sentence.validate_every=0",
        "sentence.checkpoint_every=0",
        "sentence.accumulation=0",
        "sentence.batch_tokens=0",
        "sentence.warmup=0",
        "sentence.updates=-1",
        "sentence.smoothing=1.5",
        "decoding.beam=0",
    ],
)
def test_values_that_cannot_work_are_refused_before_the_work_begins(tmp_path, setting):
    assert setting.partition("=")[0].partition(".")[2] in refused(tmp_path, "", setting)


# ---- values ----


def test_whole_numbers_do_for_fractions(tmp_path):
    recipe = read(tmp_path, "[model]\ndropout = 0")
    assert recipe.model.dropout == 0.0 and isinstance(recipe.model.dropout, float)


def test_corpora_by_name_by_table_or_several(tmp_path):
    recipe = read(
        tmp_path,
        '[data]\ndocuments = "/a.tsv"\nsentences = {source = "/b.fr", target = "/b.en", swap = true}\n'
        'dev = ["/c.tsv", {path = "/d.xml", format = "wmt-xml"}]\n',
    )
    assert recipe.data.documents == (CorpusFiles(path="/a.tsv"),)
    assert recipe.data.sentences == (CorpusFiles(source="/b.fr", target="/b.en", swap=True),)
    assert recipe.data.dev == (CorpusFiles(path="/c.tsv"), CorpusFiles(path="/d.xml", format="wmt-xml"))


def test_context_settings():
    assert ContextConfig(previous=3, following=1).spec == ContextSpec(3, 1)
    assert ContextConfig().active
    assert not ContextConfig(kind="none").active
    assert not ContextConfig(integration="none").active


# ---- paths ----


def test_paths_are_seen_from_the_recipe(tmp_path, monkeypatch):
    monkeypatch.chdir("/")
    recipe = read(
        tmp_path,
        'output = "../runs/x"\n[data]\ndocuments = "c/train.tsv"\nsentences = {source = "s.fr", target = "/abs/s.en",'
        ' document_ids = "ids"}\ndev = "dev.tsv"\n[subwords]\nsource_model = "m/s.spm"\ntarget_model = "/m/t.spm"\n'
        '[document]\nstart_from = "old/model"\n',
    )
    assert recipe.output == os.path.normpath(tmp_path / "../runs/x")
    assert recipe.data.documents[0].path == str(tmp_path / "c/train.tsv")
    pairs = recipe.data.sentences[0]
    assert (pairs.path, pairs.source, pairs.target) == ("", str(tmp_path / "s.fr"), "/abs/s.en")
    assert (pairs.document_ids, pairs.document_starts) == (str(tmp_path / "ids"), "")
    assert recipe.subwords.source_model == str(tmp_path / "m/s.spm")
    assert recipe.subwords.target_model == "/m/t.spm"
    assert recipe.document.start_from == str(tmp_path / "old/model")


def test_paths_on_the_command_line_are_seen_from_the_user(tmp_path, monkeypatch):
    recipes, here = tmp_path / "recipes", tmp_path / "here"
    recipes.mkdir()
    here.mkdir()
    monkeypatch.chdir(here)
    settings = [
        "output=out",
        "data.documents=a.tsv",
        'data.dev=["b.tsv", {path = "c.tsv"}]',
        'data.sentences={source = "s.fr", target = "/t.en"}',
        "subwords.source_model=m.spm",
        "document.start_from = old",
    ]
    recipe = read(recipes, "seed = 1", *settings)
    assert os.path.abspath(recipe.output) == str(here / "out")
    assert [os.path.abspath(files.path) for files in recipe.data.documents] == [str(here / "a.tsv")]
    assert [os.path.abspath(files.path) for files in recipe.data.dev] == [str(here / "b.tsv"), str(here / "c.tsv")]
    (pairs,) = recipe.data.sentences
    assert [os.path.abspath(pairs.source), pairs.target] == [str(here / "s.fr"), "/t.en"]
    assert os.path.abspath(recipe.subwords.source_model) == str(here / "m.spm")
    assert os.path.abspath(recipe.document.start_from) == str(here / "old")
    assert read(recipes, "", "document.start_from=nothing").document.start_from == "nothing"


def test_nothing_is_a_path_like_others_where_a_step_cannot_start_from_it(tmp_path, monkeypatch):
    (tmp_path / "recipes").mkdir()
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    recipe = read(tmp_path / "recipes", "", "output=nothing", "data.documents=nothing", "subwords.source_model=nothing")
    for path in (recipe.output, recipe.data.documents[0].path, recipe.subwords.source_model):
        assert os.path.abspath(path) == str(tmp_path / "here" / "nothing")


def test_nothing_and_no_path_stay_what_they_are(tmp_path):
    assert read(tmp_path, '[document]\nstart_from = "nothing"').document.start_from == "nothing"
    recipe = read(tmp_path)
    assert recipe.document.start_from == "" and recipe.subwords.source_model == ""


# ---- --set ----


@pytest.mark.parametrize(
    ("setting", "value"),
    [
        ("model.width=256", 256),
        ("model.width = 256", 256),
        ("model.dropout=0.25", 0.25),
        ("model.dropout=1e-3", 0.001),
        ("document.freeze=false", False),
        ("context.kind=none", "none"),
        ('context.kind="none"', "none"),
        ("hardware.device=a=b", "a=b"),
        ("hardware.device=two words", "two words"),
        ("hardware.device=", ""),
        ("data.skip_bad=true", True),
    ],
)
def test_set(tmp_path, setting, value):
    recipe: object = read(tmp_path, "[model]\nwidth = 64", setting)
    for name in setting.partition("=")[0].strip().split("."):
        recipe = getattr(recipe, name)
    assert recipe == value and type(recipe) is type(value)


def test_set_lists_tables_and_the_last_one_counts(tmp_path):
    recipe = read(tmp_path, "", 'data.documents=["/a.tsv", {path="/b.tsv"}]', "seed=1", "seed=2")
    assert recipe.data.documents == (CorpusFiles(path="/a.tsv"), CorpusFiles(path="/b.tsv"))
    assert recipe.seed == 2


@pytest.mark.parametrize(
    ("setting", "said"),
    [
        ("model.width", "no value"),
        ("=3", "unknown key ''"),
        ("model.width.more=3", "is not a section"),
        ("seed.x=3", "is not a section"),
        ("modle.width=3", "Did you mean 'model'?"),
        ("model.width=three", "expected int, found 'three'"),
        ("model.width=true", "expected int"),
        ("seed=1.5", "expected int"),
        ("model.width=", "expected int"),
    ],
)
def test_set_that_is_refused(tmp_path, setting, said):
    assert said in refused(tmp_path, "seed = 1\n[model]\nwidth = 64", setting)


@given(st.text(alphabet=st.characters(exclude_categories=("Cs", "Cc")), max_size=30))
def test_set_takes_any_text_without_falling_over(tmp_path_factory, text):
    """Text that happens to be TOML is what TOML says (and then perhaps of the wrong type), all other text is itself."""
    folder = tmp_path_factory.getbasetemp()
    try:
        name = read(folder, "", f"hardware.device={text}").hardware.device
    except DocnmtError as error:
        assert "device: expected str" in str(error)
    else:
        assert name == text.strip() or repr(name)[1:-1] in text or text.lstrip()[:1] in "\"'"


def test_the_document_step_has_its_own_default_batch_also_where_the_recipe_names_the_section(tmp_path):
    recipe = read(tmp_path, "[document]\nupdates = 5\n[sentence]\nupdates = 5")
    assert (recipe.sentence.batch_tokens, recipe.document.batch_tokens) == (48_000, 96_000)


@pytest.mark.parametrize("value", ["0.5", "1.1", "nan"])
def test_a_share_of_characters_that_sentencepiece_would_refuse(tmp_path, value):
    with pytest.raises(DocnmtError, match=r"character_coverage: .* is out of range\n  Use a number from 0\.98 to 1\.$"):
        read(tmp_path, "", f"subwords.character_coverage={value}")
