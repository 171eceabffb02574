"""Parallel documents: readers and writers of every format, inspection, cleaning."""
