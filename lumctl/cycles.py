"""How often Python searches what lives for cycles that nobody needs any more."""

import gc

_BETWEEN_SEARCHES = 100_000
"""So many more objects made than gone. Python's own 700 are made by a few hosts' answers, and each search of all that
lives then looks at every connection, every reading: hundreds of thousands of values in hardly a cycle."""


def search_seldom() -> None:
    """For a program that keeps much: what is in no cycle goes at once, as ever."""
    gc.set_threshold(_BETWEEN_SEARCHES)
