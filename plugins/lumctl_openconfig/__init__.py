"""Driver for transponders of chassis that are modelled as OpenConfig says: terminal-device, platform-transceiver."""

from lumctl_openconfig.transponder import OpenConfigTransponder

__all__ = ["OpenConfigTransponder"]
