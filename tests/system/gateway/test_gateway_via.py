"""A gateway on another machine, reached through OpenSSH's sshd and ``lumctl gateway connect`` there."""

import sys
import time

import pytest
from gateways import serving

from lumctl.devices.endpoints import GatewayEndpoint
from lumctl.devices.errors import DeviceUnreachableError, StaleFenceError
from lumctl.devices.gateway.racks import GatewayMeans
from lumctl.devices.registry import DeviceSet
from lumctl.devices.types import PucState
from lumctl.fleet.fleet import Fleet


@pytest.fixture
def socket(tmp_path_factory):
    return tmp_path_factory.mktemp("g") / "r.sock"


@pytest.fixture
def far(serve_ssh, prototype_sim, socket):
    """The rack as another machine sees it: only through the gateway, over SSH."""
    from dataclasses import replace

    host = serve_ssh(prototype_sim.folder / "client_key", f"{sys.executable} -m lumctl gateway connect {socket}")
    endpoints = replace(prototype_sim.endpoints, gateways={"prototype": GatewayEndpoint(socket, host)})
    with Fleet(prototype_sim.inventory, endpoints) as fleet:
        devices = DeviceSet(
            prototype_sim.inventory,
            endpoints,
            shell_of=fleet.shell,
            way_of=fleet.way,
            known_states=lambda _: {},
            now=time.time,
            gateways=GatewayMeans(lambda _: 1, fleet.dial),
        )
        yield devices
        devices.close()


def test_a_gateway_on_another_machine_is_written_through(far, prototype_sim, socket, tmp_path):
    store = str(tmp_path / "store")
    with serving(prototype_sim.inventory, prototype_sim.endpoints, store, socket, rack="prototype") as gateway:
        kept = gateway.store("prototype")
        lease = kept.leases.acquire("prototype", "far", term_s=60.0, now=time.time())
        mesh = far.mesh("mesh")
        mesh.commit(mesh.stage({5: PucState.CROSS}))
        assert prototype_sim.mesh("mesh").read_states()[5] is PucState.CROSS
        kept.leases.release(lease)
        kept.leases.acquire("prototype", "another", term_s=60.0, now=time.time())
        with pytest.raises(StaleFenceError):
            mesh.commit(mesh.stage({5: PucState.BAR}))
        assert prototype_sim.mesh("mesh").read_states()[5] is PucState.CROSS
    with pytest.raises(DeviceUnreachableError, match=rf"at s0:{socket} does not answer.*nothing was written"):
        mesh.identify()
