"""View models: the content of screens as values and text, without widgets, threads or stores."""
