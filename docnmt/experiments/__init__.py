"""The paper's tables for a recipe: rows (tables), trainings (runs), their scores (scores) and cost (timing); the
command (job), its results and their report."""
