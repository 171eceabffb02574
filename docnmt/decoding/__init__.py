"""Translating and scoring with a model.

Start with translator (documents in, documents out), on top of scoring (what a model is shown, and how it rates given
translations), units (what is decoded at once) and beam; then excerpts (the one way from sentences to translations),
files and jobs (files on disk).
A glossary is in terms, the phrases it requires in phrases, and the search that has to write them in constraints.
"""
