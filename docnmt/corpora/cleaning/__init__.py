"""Cleaning a corpus: filters for pairs and documents, what they removed, and a report of it."""
