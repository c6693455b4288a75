"""AMD Instinct and Radeon accelerators, by amd-smi and the lines of amdgpu in the kernel log. Not run on hardware."""

from lumctl_amd.probe import AmdSmi

__all__ = ["AmdSmi"]
