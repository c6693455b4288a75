"""Reads the accelerators of Example & Co., which are made up."""

from lumctl_example_probe.probe import ExampleProbe

__all__ = ["ExampleProbe"]
