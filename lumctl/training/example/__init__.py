"""A job to try recovery with: a small Llama, served, or trained on local text with several kinds of parallelism."""
