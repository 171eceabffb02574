"""Readers and writers of parallel documents, sub-words, the token store and batches."""
