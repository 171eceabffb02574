"""The systems that the paper stands beside: the base, the context and the training of each.

Sizes, data and updates are the recipe's own, the same for all. Set here is what a system's authors do differently, or,
where they leave it open, what docs/systems says of it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from docnmt.config import Recipe

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
            recipe.document,
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
    return replace(recipe, model=replace(recipe.model, kind=base), context=replace(recipe.context, kind="none"))


# Caches remember as much as their authors' do, a hundred words.
_MEMORY = {"previous": 6, "max_tokens": 512}
_NO_SMOOTHING = {"smoothing": 0.0}  # docs/systems/cache.md says why
_ALL = {"freeze": False}  # there is no theta_d, or the authors train everything: gently, as it is trained already

RIVALS: dict[str, Rival] = {
    rival.name: rival
    for rival in (
        Rival(
            "hierarchical", "Wang et al. (2017)", "rnnsearch", {"kind": "hierarchical", "previous": 3}, _ALL, rate=0.3
        ),
        Rival("rnnsearch-cache", "Kuang et al. (2017)", "rnnsearch", {"kind": "cache", **_MEMORY}, _NO_SMOOTHING, 4),
        Rival("cache", "Kuang et al. (2017)*", "transformer", {"kind": "cache", **_MEMORY}, _NO_SMOOTHING, 4),
        Rival(
            "concat-2-to-1",
            "Tiedemann and Scherrer (2017), 2-to-1",
            "transformer",
            {"kind": "concat", "previous": 1},
            _ALL,
            rate=0.3,
            longer=3,
        ),
        Rival(
            "concat-2-to-2",
            "Tiedemann and Scherrer (2017), 2-to-2",
            "transformer",
            {"kind": "concat", "previous": 1, "translate_previous": True},
            _ALL,
            rate=0.3,
            longer=3,
        ),
        Rival(
            "continuous-cache",
            "Tu et al. (2018)",
            "transformer",
            {"kind": "continuous-cache", **_MEMORY},
            _NO_SMOOTHING,
            batch=4,
        ),
        Rival("voita", "Voita et al. (2018)", "transformer", {"kind": "voita", "previous": 1}),
        Rival("han", "Miculicich et al. (2018)", "transformer", {"kind": "han", "previous": 3}, batch=2),
    )
}
