"""Where a worker stands in its job."""

from dataclasses import dataclass


@dataclass
class Seat:
    """The rank that a worker has; ``joined`` says that it has had one. A group is one of a generation."""

    rank: int = 0
    world: int = 1
    generation: int = 0
    joined: bool = False
    stopped: bool = False
    """No step follows."""
    cut_short: bool = False
    """It was told to end before all steps were done."""
