"""Drives the pluggable modules of Example & Co. through their host (made up: it shows what a driver looks like)."""

from lumctl_example_transponder.transponder import ExampleTransponder

__all__ = ["ExampleTransponder"]
