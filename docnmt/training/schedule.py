"""The learning rate of Vaswani et al. (2017): a linear warm-up, then the inverse square root."""


def learning_rate(update: int, width: int, warmup: int, factor: float) -> float:
    """The rate for update 1, 2, ..."""
    return factor * width**-0.5 * min(update**-0.5, update * warmup**-1.5)
