"""Text without regard to files or models: scripts, words, sentences."""
