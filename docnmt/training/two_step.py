"""Two-step training: section 2.4 of the paper.

Step 1, "sentence":  theta_s on D_s and D_d as sentence pairs, the context modules not there.
Step 2, "document":  theta_d on D_d, theta_s fixed. Also with nothing frozen, or all from scratch on D_d alone.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch

from docnmt.base.errors import DocnmtError
from docnmt.base.files import owned
from docnmt.base.progress import Progress
from docnmt.config import DecodingConfig, DocumentStepConfig, Recipe
from docnmt.data.batches import Examples, Stream
from docnmt.data.context import ContextRule
from docnmt.data.focus import Lessons
from docnmt.data.prepare import prepare
from docnmt.data.store import TokenStore
from docnmt.data.subwords import BOS, EOS
from docnmt.document import NO_CONTEXT
from docnmt.evaluation.test_sets import joined, read_test_set
from docnmt.model.base import TranslationModel
from docnmt.model.context import is_document_parameter
from docnmt.model_folder import (
    LoadedModel,
    ModelCard,
    check_files,
    choose_device,
    is_int8,
    load_card,
    load_weights,
    read_notes,
    save_model,
    set_threads,
)
from docnmt.recipes import NOTHING
from docnmt.systems import system_of
from docnmt.training.checkpoint import start_over
from docnmt.training.identity import context_of, data_keys, roles_of, settings_of, weights_digest
from docnmt.training.loop import Session, Trainer
from docnmt.training.parallel import join_group
from docnmt.training.validation import Validation, Validator


def train(
    recipe: Recipe, steps: tuple[str, ...], progress: Progress, folder: Path | None = None, from_scratch: bool = False
) -> dict[str, Path]:
    """Runs the named steps in order and returns the model folder of each; they lie in `folder`, or the output's.

    `from_scratch` deletes what earlier runs of these steps left instead of resuming it.
    """
    device = choose_device(recipe.hardware.device)
    set_threads(recipe.hardware.threads)
    group = join_group(device)
    if not group.first:
        progress = Progress(quiet=True)
    recipe = settled(recipe, steps)
    if group.first:  # the others find it prepared
        prepared = prepare(recipe, progress)
    group.wait()
    if not group.first:
        prepared = prepare(recipe, progress)
    session = Session(recipe, prepared, folder or Path(recipe.output), device, group, progress, from_scratch)
    run = {"sentence": sentence_step, "document": document_step}
    return {step: run[step](session) for step in steps}


def sentence_step(session: Session) -> Path:
    """Step 1: theta_s = argmax sum over D_s and D_d of log P(y | x; theta_s)"""
    session.progress.say("step 1: the sentence model, on all sentence pairs")
    model = _new_model(session, "sentence")
    stores = [getattr(session.prepared, role) for role in roles_of(session.recipe, "sentence")]
    stores = [store for store in stores if len(store)]
    if not stores:
        raise DocnmtError(
            'sentence.corpora = "documents", but the recipe has no documents\n  Set data.documents in the recipe.'
        )
    return _train_and_save(session, "sentence", model, stores, {})


def document_step(session: Session) -> Path:
    """Step 2: theta_d = argmax sum over D_d of log P(Y | X; theta_s, theta_d), theta_s as step 1 left it"""
    recipe, prepared = session.recipe, session.prepared
    if not recipe.context.active:
        raise DocnmtError(
            "the recipe's model has no context, so it has no document step\n"
            '  Set context.kind = "attention" and context.integration, or run only --step sentence.'
        )
    if not len(prepared.documents):
        raise DocnmtError("the document step needs parallel documents\n  Set data.documents in the recipe.")
    model = _new_model(session, "document")
    if recipe.document.base_dropout >= 0:
        model.set_sentence_dropout(recipe.document.base_dropout)
    start = _start_folder(recipe)
    if start is None:
        notes: dict[str, Any] = {"start_from": NOTHING}
        session.progress.say("one step: the whole document model from scratch, on the documents only")
    else:
        _load_sentence_model(model, start)
        what = "the whole model, nothing frozen"
        if recipe.document.freeze:
            what = "the context modules, with the sentence model frozen"
            for _, parameter in model.sentence_parameters():
                parameter.requires_grad_(False)
        notes = {"start_from_sha256": weights_digest(start), "frozen": recipe.document.freeze}
        session.progress.say(f"step 2: {what}, on the documents")
    learn = system_of(recipe.model.kind, recipe.context.kind).learn
    if learn is not None:
        learn(model, prepared.documents, prepared.target)
    return _train_and_save(session, "document", model, [prepared.documents], notes)


# ---- what a step begins with ----


def settled(recipe: Recipe, steps: tuple[str, ...]) -> Recipe:
    """The recipe as these steps take it: checked, and with the sizes of the model that step 2 starts from."""
    if "document" in steps:
        _check_document_step(recipe)
    return _with_model_of(recipe, _start_folder(recipe)) if steps == ("document",) else recipe


def _check_document_step(recipe: Recipe) -> None:
    """Finds what a system refuses before step 1 takes hours."""
    context = recipe.context
    if not context.active:
        return
    if recipe.document.choices and context.kind == "cache":
        raise DocnmtError(
            'document.choices: context.kind = "cache" mixes two distributions and has no loss within a class of words\n'
            "  Leave choices out."
        )
    system = system_of(recipe.model.kind, context.kind)
    system.rule(context)(context.spec, context.max_tokens, BOS, EOS)
    with torch.device("meta"):
        model = system.model(recipe.model, context, recipe.subwords.vocabulary, recipe.subwords.vocabulary)
    if recipe.document.freeze and recipe.document.start_from != NOTHING and not any(model.document_parameters()):
        raise DocnmtError(
            f'context.kind = "{context.kind}" adds no parameters: with theta_s frozen, step 2 has nothing to train\n'
            "  Set document.freeze = false."
        )


def _new_model(session: Session, step: str) -> TranslationModel:
    recipe, prepared = session.recipe, session.prepared
    context = context_of(recipe, step)
    torch.manual_seed(recipe.seed)
    system = system_of(recipe.model.kind, context.kind)
    return system.model(recipe.model, context, len(prepared.source), len(prepared.target)).to(session.device)


def _load_sentence_model(model: TranslationModel, start: Path) -> None:
    check_files(start)
    weights = load_weights(start / "weights.safetensors")
    try:
        missing = [name for name in model.load_weights(weights) if not is_document_parameter(name)]
    except DocnmtError as error:
        raise DocnmtError(f"{start}: {error}") from None
    if missing:
        raise DocnmtError(f"{start}: not a sentence model of this shape ({missing[0]} is missing)")


def _start_folder(recipe: Recipe) -> Path | None:
    if recipe.document.start_from == NOTHING:
        return None
    folder = Path(recipe.document.start_from or Path(recipe.output) / "sentence" / "model")
    if not (folder / "weights.safetensors").exists():
        raise DocnmtError(
            f"{folder}: there is no sentence model to start from\n"
            "  Run --step sentence first, or set document.start_from to a model folder."
        )
    if is_int8(folder):
        raise DocnmtError(
            f"{folder}: this is an int8 model, but training needs float32 weights\n"
            "  Set document.start_from to the model that it was quantized from."
        )
    return folder


def _with_model_of(recipe: Recipe, folder: Path | None) -> Recipe:
    """A given model has its own sizes and subwords, which replace the recipe's."""
    if folder is None:
        return recipe
    subwords = replace(
        recipe.subwords, source_model=str(folder / "source.spm"), target_model=str(folder / "target.spm")
    )
    card = load_card(folder)
    # So does how it decodes, in all that the recipe leaves at its default.
    asked = {key: value for key, value in vars(recipe.decoding).items() if value != getattr(DecodingConfig(), key)}
    decoding = replace(card.decoding, **asked)
    model = replace(card.model, dropout=recipe.model.dropout)
    return replace(recipe, model=model, subwords=subwords, decoding=decoding)


# ---- training a step, and its model ----


def _train_and_save(
    session: Session, step: str, model: TranslationModel, stores: list[TokenStore], notes: dict[str, Any]
) -> Path:
    recipe, prepared, group = session.recipe, session.prepared, session.group
    card = ModelCard(model.model_config, model.context_config, recipe.decoding, *recipe.data.languages)
    loaded = LoadedModel(model, card, prepared.source, prepared.target)
    own = card.rule(prepared.source, None, prepared.target) if card.context.active else None
    rule, foreign = _contexts(recipe, step, own)
    chosen = recipe.document if step == "document" else DocumentStepConfig()  # no lesson by default
    lessons = Lessons.of(chosen, prepared.source, prepared.target, prepared.documents, rule)
    focus = lessons.focus
    counted = Examples(stores, prepared.source, prepared.target, _filling(recipe, step, own), lessons=Lessons(focus))
    examples = Examples(stores, prepared.source, prepared.target, rule, foreign, lessons)
    stream = Stream(counted, getattr(recipe, step).batch_tokens, recipe.seed)

    def settings(update: int) -> dict[str, Any]:
        return settings_of(recipe, step, data_keys(prepared.stores), group.size, update) | notes

    trainer = Trainer(session, step, model, examples, stream, settings, _validator(session, loaded, rule, foreign))
    trained, frozen = (sum(p.numel() for p in model.parameters() if p.requires_grad is flag) for flag in (True, False))
    session.progress.say(f"{trained:,} parameters to train, {frozen:,} frozen; {len(examples):,} sentence pairs")
    if focus is not None and focus.only:
        kept = int((~counted.left_out).sum())
        if not kept:
            raise DocnmtError("document.focus_only: no sentence contains a word of document.focus\n  Give other words.")
        session.progress.say(f"{kept:,} of them contain a word of document.focus; the others only serve as context")
    folder = session.folder(step)
    with owned(folder) if group.first else nullcontext():
        if session.from_scratch and group.first:
            start_over(folder)
        group.wait()
        state = trainer.run()
        if group.first:
            saved = {"step": step, "update": state.update, "best": [list(pair) for pair in state.best], **notes}
            if read_notes(folder / "model") != saved:  # else a finished run is only looked at again
                weights = trainer.final_weights(state)
                trainer.disk.write(
                    lambda: save_model(folder / "model", weights, card, prepared.source, prepared.target, saved)
                )
            session.progress.say(f"model: {folder / 'model'}")
        group.wait()
    return folder / "model"


def _contexts(recipe: Recipe, step: str, own: ContextRule | None) -> tuple[ContextRule | None, int | None]:
    """How examples get their contexts, and the seed if they get those of other documents."""
    kind = recipe.document.context_from if step == "document" else "own"
    if own is None or kind == "own":
        return own, None
    return (own, recipe.seed) if kind == "shuffled" else (replace(own, spec=NO_CONTEXT), None)


def _filling(recipe: Recipe, step: str, own: ContextRule | None) -> ContextRule | None:
    """The contexts that fill batches. They need not be those that are read: so a control, or a context of another
    length, takes the same sentences in each update as the run that it is compared with."""
    if own is None or step != "document" or recipe.document.batches_for < 0:
        return own
    return replace(own, spec=replace(own.spec, previous=recipe.document.batches_for))


def _validator(
    session: Session, loaded: LoadedModel, rule: ContextRule | None, foreign: int | None
) -> Callable[[], Validation] | None:
    recipe = session.recipe
    if not len(session.prepared.dev):
        session.progress.say("no dev documents: there is no validation, and the last weights become the model")
        return None
    return Validator(
        loaded,
        session.prepared.dev,
        joined("Dev", [read_test_set(files, recipe) for files in recipe.data.dev]),
        rule,
        foreign,
        decode=recipe.validation.decode,
        beam=recipe.validation_beam,
        batch_tokens=recipe.decoding.batch_tokens,
        group=session.group,
        tokenized=recipe.evaluation.tokenized,
    ).validate
