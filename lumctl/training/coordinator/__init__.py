"""The coordinator of a job: its state, and the functions that act on it."""
