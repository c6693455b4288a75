"""lumctl: operate racks of accelerators joined by a programmable optical fabric."""

__version__ = "0.1.0"
