"""The lanes of a simulated rack: connections between accelerators that carry bytes only where light arrives."""
