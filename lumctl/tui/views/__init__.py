"""View models: what screens show, as values and text; no widget, thread or store."""
