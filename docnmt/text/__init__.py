"""Text, independent of files and models: scripts, words, sentences."""
