"""The simulated hosts: an SSH server for each, and the output of the probes' commands."""
