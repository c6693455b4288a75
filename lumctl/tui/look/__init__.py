"""Appearance: marks, styles, themes, times."""
