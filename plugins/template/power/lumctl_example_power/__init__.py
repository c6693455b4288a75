"""Switches machines by the power strip of Example & Co. (made up: it shows what a driver of lumctl looks like)."""

from lumctl_example_power.power import ExamplePower

__all__ = ["ExamplePower"]
