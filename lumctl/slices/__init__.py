"""Slices: jobs that lumctl places on free accelerators of a torus and joins by light."""
