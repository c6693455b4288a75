"""The simulated mesh controllers: the line protocol, a vendor-style object, and the driver ``sim-mesh``."""
