"""Driver for transponders in chassis with the OpenConfig models terminal-device and platform-transceiver."""

from lumctl_openconfig.transponder import OpenConfigTransponder

__all__ = ["OpenConfigTransponder"]
