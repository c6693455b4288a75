"""The simulated optical switches: SCPI, NETCONF, and the driver ``sim-switch``."""
