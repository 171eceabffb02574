"""The learning rate of Vaswani et al. (2017), a linear warm-up and then the inverse square root; and how it ends.

The inverse square root never arrives: where a step has an end, it gains much from a rate that falls to nothing there
(Hägele et al., 2024). Until it falls nobody has to know when that will be, so a run may be given more updates.
"""


def learning_rate(update: int, width: int, warmup: int, factor: float) -> float:
    """The rate for update 1, 2, ..."""
    return factor * width**-0.5 * min(update**-0.5, update * warmup**-1.5)


def cooled(update: int, cooling: list[int] | None) -> float:
    """What is left of the rate at an update, between the two of `cooling`."""
    if cooling is None:
        return 1.0
    first, last = cooling
    return (last + 1 - update) / (last + 1 - first)
