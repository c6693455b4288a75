"""The dashboard: the only package that imports Textual. It receives callables, so that tests need no rack."""
