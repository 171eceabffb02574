"""Measures of what context does."""
