"""What a look says, as Prometheus metrics: names and base units by convention, light in dBm as optics have it.

What is lost disappears: a reading that is too old to say anything about now is left out, and so is one of a host that
cannot be reached.
"""

from lumctl.daemon.families.all import families

__all__ = ["families"]
