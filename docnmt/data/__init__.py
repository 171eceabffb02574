"""From documents to batches: contexts in token ids, subwords, the token store, packing."""
