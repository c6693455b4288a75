"""Drivers behind a gateway: the process that owns the sockets of a rack's devices and writes for the newest lease."""
