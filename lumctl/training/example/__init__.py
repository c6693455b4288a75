"""A job to try recovery with: a small Llama, served, or trained on local text with three kinds of parallelism."""
