"""Beam search, scoring, and translating whole documents."""
