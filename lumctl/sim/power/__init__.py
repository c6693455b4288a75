"""The simulated management controllers: Redfish, and the driver ``sim-power``."""
