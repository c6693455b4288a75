"""Drives the optical circuit switch of Example & Co. (made up: it shows what a driver of lumctl looks like)."""

from lumctl_example_switch.switch import ExampleSwitch

__all__ = ["ExampleSwitch"]
