"""People judge two systems without knowing which is which: the paper's subjective evaluation."""
