"""The paper's two-step training (section 2.4).

Step 1, "sentence":  theta_s on D_s and D_d as sentence pairs, the context modules not there.
Step 2, "document":  theta_d on D_d, theta_s fixed. Also with nothing frozen, or all from scratch on D_d alone.
"""

from __future__ import annotations

import hashlib
from contextlib import nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch

from docnmt.base.errors import DocnmtError
from docnmt.base.files import owned
from docnmt.base.progress import Progress
from docnmt.config import ContextConfig, DecodingConfig, DocumentStepConfig, ModelConfig, Recipe, StepConfig
from docnmt.data.batches import Examples, Stream
from docnmt.data.context import ContextRule
from docnmt.data.focus import Choices, Focus, WordDropout
from docnmt.data.prepare import Prepared, prepare
from docnmt.data.split_pairs import SplitPairs
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
from docnmt.systems import system_of
from docnmt.training.checkpoint import start_over
from docnmt.training.identity import data_keys, sentence_stores, settings_of
from docnmt.training.loop import Trainer
from docnmt.training.parallel import Group, join_group
from docnmt.training.validation import Validator

NOTHING = "nothing"  # start_from: no model, everything is trained


@dataclass(frozen=True)
class Run:
    """What the two steps share."""

    recipe: Recipe
    prepared: Prepared
    output: Path
    device: torch.device
    group: Group
    progress: Progress
    from_scratch: bool = False

    def folder(self, step: str) -> Path:
        return self.output / step


def train(
    recipe: Recipe, steps: tuple[str, ...], progress: Progress, folder: Path | None = None, from_scratch: bool = False
) -> dict[str, Path]:
    """Runs the named steps in order and returns the model folder of each; they lie in `folder`, or the output's.

    `from_scratch` takes away what earlier runs of these steps left, where otherwise it would be taken up.
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
    run = Run(recipe, prepared, folder or Path(recipe.output), device, group, progress, from_scratch)
    folders = {}
    for step in steps:
        folders[step] = sentence_step(run) if step == "sentence" else document_step(run)
    return folders


def settled(recipe: Recipe, steps: tuple[str, ...]) -> Recipe:
    """The recipe as these steps take it: looked through, and with the sizes of the model that step 2 starts from."""
    if "document" in steps:
        _check_document_step(recipe)
    return _with_model_of(recipe, _start_folder(recipe)) if steps == ("document",) else recipe


def _check_document_step(recipe: Recipe) -> None:
    """Finds what a system refuses before step 1 has taken its time."""
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


def sentence_step(run: Run) -> Path:
    """Step 1: theta_s = argmax sum over D_s and D_d of log P(y | x; theta_s)"""
    recipe = run.recipe
    run.progress.say("step 1: the sentence model, on all sentence pairs")
    model = _new_model(recipe.seed, recipe.model, ContextConfig(kind="none"), run)
    stores = sentence_stores(recipe, run.prepared)
    if not stores:
        raise DocnmtError('sentence.corpora = "documents", but there are none\n  Set data.documents in the recipe.')
    return _train_and_save("sentence", run, model, stores, recipe.sentence, {})


def document_step(run: Run) -> Path:
    """Step 2: theta_d = argmax sum over D_d of log P(Y | X; theta_s, theta_d), theta_s as step 1 left it"""
    recipe = run.recipe
    if not recipe.context.active:
        raise DocnmtError(
            "the recipe's model has no context: there is no document step\n"
            '  Set context.kind = "attention" and context.integration, or run --step sentence alone.'
        )
    if not len(run.prepared.documents):
        raise DocnmtError("the document step needs parallel documents\n  Set data.documents in the recipe.")
    model = _new_model(recipe.seed, recipe.model, recipe.context, run)
    if recipe.document.base_dropout >= 0:
        model.set_sentence_dropout(recipe.document.base_dropout)
    start = _start_folder(recipe)
    notes: dict[str, Any] = {"start_from": NOTHING}
    if start is None:
        run.progress.say("one step: the whole document model from scratch, on the documents alone")
    else:
        check_files(start)
        weights = load_weights(start / "weights.safetensors")
        try:
            missing = [name for name in model.load_weights(weights) if not is_document_parameter(name)]
        except DocnmtError as error:
            raise DocnmtError(f"{start}: {error}") from None
        if missing:
            raise DocnmtError(f"{start}: is not a sentence model of this shape ({missing[0]} is missing)")
        if recipe.document.freeze:
            for _, parameter in model.sentence_parameters():
                parameter.requires_grad_(False)
        digest = hashlib.sha256((start / "weights.safetensors").read_bytes()).hexdigest()
        notes = {"start_from_sha256": digest, "frozen": recipe.document.freeze}
        frozen = "the context modules, the sentence model frozen"
        what = frozen if recipe.document.freeze else "everything, nothing frozen"
        run.progress.say(f"step 2: {what}, on the documents")
    learn = system_of(recipe.model.kind, recipe.context.kind).learn
    if learn is not None:
        learn(model, run.prepared.documents, run.prepared.target)
    return _train_and_save("document", run, model, [run.prepared.documents], recipe.document, notes)


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
            f"{folder}: is an int8 model, for translating; training goes on from float32 weights alone\n"
            "  Set document.start_from to the model that it was quantized from."
        )
    return folder


def _with_model_of(recipe: Recipe, folder: Path | None) -> Recipe:
    """A model that is brought along knows its own sizes and sub-words; the recipe's give way to them."""
    if folder is None:
        return recipe
    subwords = replace(
        recipe.subwords, source_model=str(folder / "source.spm"), target_model=str(folder / "target.spm")
    )
    card = load_card(folder)
    # How to decode is the model's own choice, too, where the recipe makes none.
    decoding = card.decoding if recipe.decoding == DecodingConfig() else recipe.decoding
    model = replace(card.model, dropout=recipe.model.dropout)
    return replace(recipe, model=model, subwords=subwords, decoding=decoding)


def _new_model(seed: int, model: ModelConfig, context: ContextConfig, run: Run) -> TranslationModel:
    torch.manual_seed(seed)
    system = system_of(model.kind, context.kind)
    return system.model(model, context, len(run.prepared.source), len(run.prepared.target)).to(run.device)


def _train_and_save(
    step: str, run: Run, model: TranslationModel, stores: list[TokenStore], config: StepConfig, notes: dict[str, Any]
) -> Path:
    recipe, prepared, folder = run.recipe, run.prepared, run.folder(step)
    card = ModelCard(
        model.model_config,
        model.context_config,
        recipe.decoding,
        recipe.data.source_language,
        recipe.data.target_language,
    )
    loaded = LoadedModel(model, card, prepared.source, prepared.target)
    own = card.rule(prepared.source, None, prepared.target) if card.context.active else None
    rule, foreign = _contexts(recipe, step, own)
    lessons = recipe.document if step == "document" else DocumentStepConfig()  # none of them by default
    focus = _focus(lessons, prepared)
    counted = Examples(stores, prepared.source, prepared.target, _filling(recipe, step, own), focus=focus)
    stream = Stream(counted, config.batch_tokens, recipe.seed)
    trainer = Trainer(
        folder,
        model,
        Examples(
            stores,
            prepared.source,
            prepared.target,
            rule,
            foreign,
            focus,
            _word_dropout(lessons, prepared),
            _choices(lessons, prepared),
            _split_pairs(lessons, prepared, rule),
        ),
        stream,
        config,
        seed=recipe.seed,
        settings=settings_of(recipe, step, data_keys(prepared.stores), run.group.size) | notes,
        validate=_validator(run, loaded, rule, foreign),
        metric=recipe.validation.metric,
        group=run.group,
        hardware=recipe.hardware,
        progress=run.progress,
    )
    trained, frozen = (sum(p.numel() for p in model.parameters() if p.requires_grad is flag) for flag in (True, False))
    run.progress.say(f"{trained:,} parameters to train, {frozen:,} frozen; {len(trainer.examples):,} sentence pairs")
    if focus is not None and focus.only:
        kept = int((~counted.left_out).sum())
        if not kept:
            raise DocnmtError("document.focus_only: no sentence has a word of document.focus\n  Name other words.")
        run.progress.say(f"{kept:,} of them have a word of document.focus; the others are context alone")
    with owned(folder) if run.group.first else nullcontext():
        if run.from_scratch and run.group.first:
            start_over(folder)
        run.group.wait()
        state = trainer.run()
        if run.group.first:
            saved = {"step": step, "update": state.update, "best": [list(pair) for pair in state.best], **notes}
            if read_notes(folder / "model") != saved:  # else a finished run is only looked at again
                weights = trainer.final_weights(state)
                trainer.disk.write(
                    lambda: save_model(folder / "model", weights, card, prepared.source, prepared.target, saved)
                )
            run.progress.say(f"model: {folder / 'model'}")
        run.group.wait()
    return folder / "model"


def _contexts(recipe: Recipe, step: str, own: ContextRule | None) -> tuple[ContextRule | None, int | None]:
    """How examples get their contexts, and the seed if they get those of other documents."""
    kind = recipe.document.context_from if step == "document" else "own"
    if own is None or kind == "own":
        return own, None
    return (own, recipe.seed) if kind == "shuffled" else (replace(own, spec=NO_CONTEXT), None)


def _filling(recipe: Recipe, step: str, own: ContextRule | None) -> ContextRule | None:
    """The contexts that fill batches. They need not be those that are read: so a control, or a context of another
    length, takes the same sentences in each update as the run that it is held against."""
    if own is None or step != "document" or recipe.document.batches_for < 0:
        return own
    return replace(own, spec=replace(own.spec, previous=recipe.document.batches_for))


def _focus(step: DocumentStepConfig, prepared: Prepared) -> Focus | None:
    return Focus(step.focus, step.focus_weight, step.focus_only, prepared.target) if step.focus else None


def _word_dropout(step: DocumentStepConfig, prepared: Prepared) -> WordDropout | None:
    return WordDropout(step.word_dropout, step.word_dropout_of, prepared.source) if step.word_dropout else None


def _split_pairs(step: DocumentStepConfig, prepared: Prepared, rule: ContextRule | None) -> SplitPairs | None:
    if not step.split_pairs or rule is None:
        return None
    if rule.spec.following:
        raise DocnmtError(
            "document.split_pairs: the first half of a sentence is context before it, but this model also reads after\n"
            "  Set context.following = 0, or leave split_pairs out."
        )
    return SplitPairs(step.split_pairs, prepared.source, prepared.target)


def _choices(step: DocumentStepConfig, prepared: Prepared) -> Choices | None:
    if not step.choices:
        return None
    counts = None
    if step.choice_balance:
        counts = np.bincount(prepared.documents.tokens["target"], minlength=len(prepared.target))
    return Choices(step.choices, step.choice_weight, prepared.target, counts)


def _validator(run: Run, loaded: LoadedModel, rule: ContextRule | None, foreign: int | None) -> Any:
    recipe = run.recipe
    if not len(run.prepared.dev):
        run.progress.say("no dev documents: nothing is validated, the last weights are the model")
        return None
    return Validator(
        loaded,
        run.prepared.dev,
        joined("Dev", [read_test_set(files, recipe) for files in recipe.data.dev]),
        rule,
        foreign,
        decode=recipe.validation.decode,
        beam=recipe.validation_beam,
        batch_tokens=recipe.decoding.batch_tokens,
        group=run.group,
        tokenized=recipe.evaluation.tokenized,
    ).validate
