"""Waiting for what is at last so, where nothing tells of it."""

import threading
import time
from collections.abc import Callable
from typing import TypeVar

from said import PATIENCE_S

Found = TypeVar("Found")


def until(
    condition: Callable[[], Found], within_s: float = PATIENCE_S, says: Callable[[], object] = lambda: ""
) -> Found:
    """The first result of ``condition`` that counts as true; fails after ``within_s`` seconds, with what it says."""
    pause, end = threading.Event(), time.monotonic() + within_s
    while not (found := condition()):
        assert time.monotonic() < end, f"not so within {within_s:g} s: {says()}"
        pause.wait(0.01)
    return found
