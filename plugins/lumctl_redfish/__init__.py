"""Driver for the power of machines behind management controllers that speak Redfish.

It uses lumctl's own HTTP client because Redfish libraries repeat a reset that got no answer: sushy 5.14 sent it three
times, DMTF's redfish 3.4 eleven times. DMTF's library also checks no certificate by default.
"""

from lumctl_redfish.power import RedfishPower

__all__ = ["RedfishPower"]
