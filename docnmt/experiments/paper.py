"""The paper (Zhang et al., 2018): its figures as it prints them, and the systems that it stands beside."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

from docnmt.config import Recipe, StepConfig

# ---- The figures of the paper (Zhang et al., 2018), table by table, as it prints them ----

NIST = ("MT06", "MT02", "MT03", "MT04", "MT05", "MT08", "All")  # MT06 is the development set and not part of All

TRANSFORMER = ("48.09", "48.63", "47.54", "47.79", "48.34", "38.31", "45.97")
THIS_WORK = ("49.69", "50.96", "50.21", "49.73", "49.46", "39.69", "47.93")

CONTEXT_LENGTH = {1: "49.38", 2: "49.69", 3: "49.49"}  # sentences -> MT06
CONTEXT_LAYERS = {1: "49.69", 2: "49.38", 3: "49.54", 4: "49.59", 5: "49.31", 6: "49.43"}  # N_c -> MT06

COMPARISON = {
    "Wang et al. (2017)": ("RNNsearch", ("37.76", "-", "-", "-", "36.89", "27.57", "-")),
    "Kuang et al. (2017)": ("RNNsearch", ("-", "34.41", "-", "38.40", "32.90", "31.86", "-")),
    "Vaswani et al. (2017)": ("Transformer", TRANSFORMER),
    "Kuang et al. (2017)*": ("Transformer", ("48.14", "48.97", "48.05", "47.91", "48.53", "38.38", "46.37")),
    "this work": ("Transformer", THIS_WORK),
}
FRENCH_ENGLISH = {"Transformer": ("29.42", "35.15"), "this work": ("30.40", "36.04")}  # Dev, Test

TWO_STEP = {  # (sentence pairs, pairs in documents)
    ("940K", "-"): ("36.20", "42.41", "43.12", "41.02", "40.93", "31.49", "39.53"),
    ("2M", "-"): TRANSFORMER,
    ("-", "940K"): ("34.00", "38.83", "40.51", "38.30", "36.69", "29.38", "36.52"),
    ("940K", "940K"): ("37.12", "43.29", "43.70", "41.42", "41.84", "32.36", "40.22"),
    ("2M", "940K"): THIS_WORK,
}
INTEGRATION = {
    "none": TRANSFORMER,
    "encoder": ("48.88", "50.30", "49.34", "48.81", "49.75", "39.55", "47.51"),
    "decoder": ("49.10", "50.31", "49.83", "49.35", "49.29", "39.07", "47.48"),
    "both": THIS_WORK,
}
GATING = {"w/o": ("49.33", "50.56", "49.74", "49.29", "50.11", "39.02", "47.55"), "w/": THIS_WORK}
EFFICIENCY = {"Transformer": ("41K", "872"), "this work": ("31K", "364")}  # words a second: training, decoding
EFFICIENCY_SHARE = ("0.76", "0.42")  # 31K / 41K and 364 / 872; not printed in the paper

# A row that the paper has not, beside its model.
OURS = "ours: starts as the sentence model"
OURS_NOTE = (
    "This work is the paper's model, LayerNorm(lambda H + (1 - lambda) Sub(H)). Beside it stands ours "
    '(context.start = "sentence"), H + (1 - lambda) Sub(H), which is exactly the sentence model when step 2 begins.'
)


# ---- The systems that the paper stands beside: the base, the context and the training of each ----

# Sizes, data and updates are the recipe's own, the same for all. Set here is what a system's authors do differently,
# or, where they leave it open, what docs/systems says of it.

BASES = {"rnnsearch": "Bahdanau et al. (2015)", "transformer": "Vaswani et al. (2017)"}  # model.kind -> its authors
MODELS = {"rnnsearch": "RNNsearch", "transformer": "Transformer"}  # as the paper calls them


@dataclass(frozen=True)
class Rival:
    """A system as changes to a recipe."""

    name: str  # of its runs
    authors: str
    base: str  # model.kind
    context: Mapping[str, Any]
    document: Mapping[str, Any] = field(default_factory=dict)
    # Factors on the recipe's settings. Contexts count in batch_tokens: who sees more of them gets larger batches, so
    # that an update has about as many sentences for all.
    batch: int = 1
    rate: float = 1.0
    longer: int = 1  # updates: who changes all of a trained model instead of adding to it needs more of them

    def of(self, recipe: Recipe) -> Recipe:
        step = replace(
            _clipped(recipe.document, self.base),
            batch_tokens=self.batch * recipe.document.batch_tokens,
            learning_rate=self.rate * recipe.document.learning_rate,
            updates=self.longer * recipe.document.updates,
        )
        return replace(
            recipe,
            model=replace(recipe.model, kind=self.base),
            context=replace(recipe.context, **self.context),
            document=replace(step, **self.document),
        )


def with_base(recipe: Recipe, base: str) -> Recipe:
    """For step 1, which has no context: the recipe's own may not be there for another base."""
    model, context = replace(recipe.model, kind=base), replace(recipe.context, kind="none")
    return replace(recipe, model=model, context=context, sentence=_clipped(recipe.sentence, base))


Step = TypeVar("Step", bound=StepConfig)


def _clipped(step: Step, base: str) -> Step:
    """Bahdanau et al. (2015) scale gradients down to a norm of 1, and so do all on RNNsearch here, unless the recipe
    has a limit of its own."""
    return replace(step, clip=1.0) if base == "rnnsearch" and not step.clip else step


# Caches remember as much as their authors' do, a hundred words.
_MEMORY = {"previous": 6, "max_tokens": 512}
_NEAR = {"start": "sentence"}  # for these two no other equations, but first values that begin near the base
_NO_SMOOTHING = {"smoothing": 0.0}  # docs/systems/cache.md says why
_ALL = {"freeze": False}  # there is no theta_d, or the authors train everything: gently, as it is trained already


def _concat(name: str, **context: Any) -> Rival:
    """Two and three sentences in a row. 2+1, with prefixes, and 2-to-2 are the authors'; a break in the place of
    prefixes and a third sentence came later."""
    authors = f"Tiedemann and Scherrer (2017), {name}"
    return Rival(f"concat-{name}", authors, "transformer", {"kind": "concat", **context}, _ALL, rate=0.3, longer=3)


RIVALS: dict[str, Rival] = {
    rival.name: rival
    for rival in (
        Rival(
            "hierarchical",
            "Wang et al. (2017)",
            "rnnsearch",
            {"kind": "hierarchical", "previous": 3, **_NEAR},
            _ALL,
            rate=0.3,
        ),
        Rival("rnnsearch-cache", "Kuang et al. (2017)", "rnnsearch", {"kind": "cache", **_MEMORY}, _NO_SMOOTHING, 4),
        Rival("cache", "Kuang et al. (2017)*", "transformer", {"kind": "cache", **_MEMORY}, _NO_SMOOTHING, 4),
        _concat("2+1", previous=1, mark="prefix"),
        _concat("2-to-1", previous=1),
        _concat("2-to-2", previous=1, translate_previous=True),
        _concat("3-to-1", previous=2),
        _concat("3-to-3", previous=2, translate_previous=True),
        Rival(
            "continuous-cache",
            "Tu et al. (2018)",
            "transformer",
            {"kind": "continuous-cache", **_MEMORY, **_NEAR},
            _NO_SMOOTHING,
            batch=4,
        ),
        Rival("voita", "Voita et al. (2018)", "transformer", {"kind": "voita", "previous": 1}),
        Rival(
            "han", "Miculicich et al. (2018)", "transformer", {"kind": "han", "previous": 3, "start": "paper"}, batch=2
        ),
    )
}
