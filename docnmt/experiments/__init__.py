"""The paper's tables for a recipe: rows (tables), trainings (runs), what they are worth (scores) and cost (timing); the
command (job), its results and their report."""
