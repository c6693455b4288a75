"""A job that runs again: its processes, the swap that a failure needs, and what became of it, in one place."""
