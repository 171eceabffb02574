"""Section 2.4 of the paper: two steps, each a loop with checkpoints and validation; what identifies a run."""
