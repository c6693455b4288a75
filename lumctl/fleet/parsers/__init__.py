"""From what a host's tools print to readings. Pure functions that never raise: what cannot be read is left out."""
