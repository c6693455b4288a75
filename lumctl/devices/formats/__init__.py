"""Parsers of formats that both drivers and the fleet's probes read: pure functions that never raise."""
