"""From documents to batches: contexts in token ids, sub-words, the token store, packing."""
