"""The simulated transponder chassis: OpenConfig over NETCONF, and the driver ``sim-transponder``."""
