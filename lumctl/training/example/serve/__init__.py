"""The model served: rank 0 takes requests over HTTP, all ranks work on each turn."""
