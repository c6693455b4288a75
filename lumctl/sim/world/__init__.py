"""The simulated world: cells, light, links, GPUs, hosts and their faults. It uses no sockets."""
