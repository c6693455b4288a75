"""Jobs that torchrun starts: ended before light moves, started anew where they are placed then."""

from lumctl_torchrun.control import Torchrun

__all__ = ["Torchrun"]
