"""Control of torchrun jobs: ends a job before light moves, and starts it again at its new placement."""

from lumctl_torchrun.control import Torchrun

__all__ = ["Torchrun"]
