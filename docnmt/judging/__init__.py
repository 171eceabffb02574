"""People judge two systems without knowing which is which: the paper's subjective evaluation. In
order: `store`, `app` (the page and its server), `summary`."""
