"""Driver for the power of machines behind management controllers that speak Redfish.

HTTP is lumctl's own client; of the Redfish libraries, sushy 5.14 sent a reset that nobody answered three times, and
DMTF's redfish 3.4 eleven times and checks no certificate unless it is told to.
"""

from lumctl_redfish.power import RedfishPower

__all__ = ["RedfishPower"]
