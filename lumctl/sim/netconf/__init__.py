"""The twin of a NETCONF device: a server over SSH on loopback for a simulated device."""

from lumctl.sim.netconf.datastore import Datastore
from lumctl.sim.netconf.server import NetconfServer
from lumctl.sim.netconf.tree import Keys, NetconfDevice, RpcError

__all__ = ["Datastore", "Keys", "NetconfDevice", "NetconfServer", "RpcError"]
