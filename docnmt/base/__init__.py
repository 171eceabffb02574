"""What everything else is built on: errors, files, lines, progress, tables and pages."""

__version__ = "0.1.0"
