"""Models of other programs, and for them."""
