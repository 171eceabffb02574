"""The training loop, the two steps, checkpoints, validation, data parallel."""
