"""Does a model use its context? What context is worth to it, token by token, and where it looks."""
