"""Tables and pages: how figures are shown."""
