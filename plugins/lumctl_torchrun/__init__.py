"""Jobs that torchrun starts: ended before light moves, started again where they are placed then."""

from lumctl_torchrun.control import Torchrun

__all__ = ["Torchrun"]
