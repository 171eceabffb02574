"""The tables of the paper as code: what they compare, how it is trained, what came out."""
