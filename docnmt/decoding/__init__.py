"""Translating and scoring with a model.

To read: translator (documents in, documents out), on top of scoring (what a model is shown, and what it says of given
translations), units (what is decoded at once) and beam; then excerpts (the one way from sentences to translations),
files and jobs (files on disk).
A glossary is in terms, with the phrases it asks for (phrases) and the search that has to write them (constraints).
"""
