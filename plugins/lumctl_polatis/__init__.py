"""Drivers for optical circuit switches of Polatis, over SCPI and over NETCONF."""

from lumctl_polatis.netconf import PolatisNetconf
from lumctl_polatis.scpi import PolatisScpi

__all__ = ["PolatisNetconf", "PolatisScpi"]
