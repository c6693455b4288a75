"""What is simulated: cells, light, links, GPUs, hosts and their faults. It knows no sockets."""
