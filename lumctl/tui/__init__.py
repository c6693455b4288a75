"""The dashboard: the only place that imports Textual. It is handed callables, so that it needs no rack to be tested."""
