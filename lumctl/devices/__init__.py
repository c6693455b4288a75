"""The plug-in layer: Protocols per capability, the registry of drivers, the contract test kit."""
