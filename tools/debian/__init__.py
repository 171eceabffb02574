"""A corpus of translated manuals and games from Debian packages, for whoever has a machine with apt."""
