"""Formats that both drivers and the fleet's probes read. Pure functions that never raise."""
