"""Intel Gaudi accelerators, by hl-smi and the lines of habanalabs in the kernel log. Not run on hardware."""

from lumctl_gaudi.probe import HlSmi

__all__ = ["HlSmi"]
