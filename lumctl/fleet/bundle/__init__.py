"""Captures of hosts: what their probes printed, as files."""
