"""What stands behind a NETCONF server."""

from typing import Protocol
from xml.etree.ElementTree import Element

from lumctl.sim.netconf.tree import Keys


class NetconfDevice(Protocol):
    """What a device really is. Trees are below a root element of whatever name."""

    keys: Keys

    def initial(self) -> Element:
        """The configuration that it begins with."""
        ...

    def check(self, config: Element) -> None:
        """Whether a configuration can be taken.

        Raises:
            RpcError: it cannot.
        """
        ...

    def apply(self, config: Element) -> None:
        """Do as the running configuration says from now on."""
        ...

    def state(self) -> Element:
        """What is to be seen now besides the configuration."""
        ...
