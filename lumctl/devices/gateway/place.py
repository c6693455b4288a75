"""Where the gateway of each rack is: as the inventory or ``$LUMCTL_GATEWAY`` says; where one listens unless told."""

import hashlib
import os
from collections.abc import Mapping
from pathlib import Path

from lumctl.devices.endpoints import GatewayEndpoint, HostEndpoint, private_runtime_folder
from lumctl.inventory.model import Inventory

VARIABLE = "LUMCTL_GATEWAY"
"""Names the socket of a gateway, or a folder with the socket RACK.sock of each; on the simulator, the only way to."""


def gateways_of(inventory: Inventory, target: str, hosts: Mapping[str, HostEndpoint]) -> dict[str, GatewayEndpoint]:
    """The racks that are written through a gateway. One named by the inventory is that of the rack, not of a sim."""
    if named := os.environ.get(VARIABLE):
        return {rack: GatewayEndpoint(_in(Path(named).expanduser(), rack)) for rack in inventory.racks}
    if target != "rack":
        return {}
    return {
        rack.name: GatewayEndpoint(rack.gateway, hosts[rack.gateway_via] if rack.gateway_via else None)
        for rack in inventory.racks.values()
        if rack.gateway is not None
    }


def default_socket(inventory: Inventory, rack: str, target: str) -> Path:
    """Where a gateway listens that is not told: in the runtime folder of its user alone."""
    key = hashlib.sha256(f"{inventory.path.resolve()}\0{target}".encode()).hexdigest()[:12]
    return private_runtime_folder() / f"gateway-{key}" / f"{rack}.sock"


def _in(named: Path, rack: str) -> Path:
    return named / f"{rack}.sock" if named.is_dir() else named
