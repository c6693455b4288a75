"""Driver for the power of machines behind management controllers that speak Redfish. Needs ``lumctl[redfish]``.

HTTP is urllib3 (MIT, no dependencies, released through 2026); of the Redfish libraries, sushy 5.14 sent a reset that
nobody answered three times, and DMTF's redfish 3.4 eleven times and checks no certificate unless it is told to.
"""

from lumctl_redfish.power import RedfishPower

__all__ = ["RedfishPower"]
