"""The twin of a device that speaks NETCONF: a server over SSH, on loopback, in front of whatever a device really is."""

from lumctl.sim.netconf.datastore import Datastore
from lumctl.sim.netconf.server import NetconfServer
from lumctl.sim.netconf.tree import Keys, NetconfDevice, RpcError

__all__ = ["Datastore", "Keys", "NetconfDevice", "NetconfServer", "RpcError"]
