"""Contrastive sets: right and wrong translations that only context can tell apart."""
