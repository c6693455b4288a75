"""The lanes of a simulated rack: connections between accelerators whose bytes flow only where light leads."""
