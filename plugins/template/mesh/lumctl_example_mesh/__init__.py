"""Drives the mesh controller of Example & Co. (made up: it shows what a driver of lumctl looks like)."""

from lumctl_example_mesh.mesh import ExampleMesh

__all__ = ["ExampleMesh"]
