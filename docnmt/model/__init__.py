"""The paper's model: layers, the sentence-level Transformer (theta_s) and its document-level context (theta_d)."""
