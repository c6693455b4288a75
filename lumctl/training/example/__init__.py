"""A job to try recovery on: a small Llama, trained on text that is at hand in three ways of sharing it, or served."""
