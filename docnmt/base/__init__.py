"""What everything else stands on: errors, files, lines, progress, tables and pages."""
