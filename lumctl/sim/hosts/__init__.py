"""The simulated hosts: an SSH server each, and what the commands of the probes print on them."""
