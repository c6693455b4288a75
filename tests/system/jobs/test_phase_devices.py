"""A job that changes its light, once on each kind of real part: meshes with the line protocol, netconfd behind sshd."""

import importlib.util
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest
from gateways import serving, through
from lit_cluster import LitCluster
from lit_rack import RACK, DeviceStates, LitRack, gated
from lumctl_polatis import PolatisNetconf
from lumctl_polatis.model import NS
from permitted_phases import permit

from lumctl.context import Context
from lumctl.devices.netconf import NetconfClient
from lumctl.devices.protocols import DriverContext
from lumctl.inventory.load import example, load_inventory
from lumctl.sim.launch import launch
from lumctl.sim.meshes.driver import SimMesh
from lumctl.store import store_at
from lumctl.training.coordinator import requests
from lumctl.training.phase_control import RankPath, rails_of
from lumctl.training.phase_permission import PhasePermit

CONTRACT = Path(__file__).parents[2] / "contract"
STEPS = 6
SWITCH = """\
    kind: switch
    driver: polatis-scpi
    address: "{id}.rails.example:5025"
    port_count: 8
    input_count: 8
    loss_per_port_db: 0.7
    settle_ms: 10
"""
MESH = """\
    kind: mesh
    driver: smartlight
    address: "{id}.rails.example:65432"
    geometry: {columns: 7, rows: 3}
    loss_per_puc_db: 0.25
    loss_per_port_db: 1.0
    settle_ms: 5
"""
ONE_RAIL = (
    ("    ranks: h[1-4]-gpu[0-1]\n", "    ranks: h[1-4]-gpu0\n"),
    ("[[0, 2], [1, 3], [4, 6], [5, 7]]", "[[0, 1], [2, 3]]"),
    ("[[0, 4], [1, 5], [2, 6], [3, 7]]", "[[0, 2], [1, 3]]"),
    ("driver: polatis-scpi", "driver: polatis-netconf"),
)
PAIRS = {"pipeline": [(0, 1), (2, 3)], "gradients": [(0, 2), (1, 3)]}
PORTS = 8


def edited(path, *changes):
    """The inventory of the example with each of these replaced."""
    text = example(RACK).read_text()
    for old, new in changes:
        assert old in text
        text = text.replace(old, new)
    path.write_text(text)
    return load_inventory(path)


def does_steps(folder, rack):
    """Have a job do steps; check that its light changed, and was right in each collective."""
    cluster = LitCluster(folder, rack, seed=1)
    try:
        cluster.start()
        for _ in range(STEPS):
            assert cluster.works_on(), cluster.said
        light = requests.document(cluster.state)["light"]
    finally:
        cluster.light.let_go()
    assert light["changes"] >= STEPS // 2
    assert light["failed_changes"] == 0
    assert cluster.collectives_done >= STEPS


def test_meshes_with_the_line_protocol(tmp_path, tmp_path_factory):
    changes = ((SWITCH, MESH), ("port: [0, 1, 2, 3, 4]", "port: [10, 16, 4, 30, 22]"))
    inventory = edited(tmp_path / "meshes.yaml", *changes)
    with gated(inventory, tmp_path_factory.mktemp("g")) as (context, sim, gateway):
        meshes = {
            each: SimMesh(DriverContext(device=each, address=f"unix:{sim.control}")) for each in ("rail0", "rail1")
        }
        states = DeviceStates({each: partial(states_of, mesh) for each, mesh in meshes.items()})
        does_steps(tmp_path, LitRack.proved(context, gateway, states))


def states_of(mesh):
    return {puc: str(state) for puc, state in mesh.read_states().items()}


@pytest.fixture
def netconfd(require_program):
    """A netconfd with the ports of the first rail."""
    spec = importlib.util.spec_from_file_location("netconfd", CONTRACT / "netconfd.py")
    loaded = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(loaded)
    running = loaded.Netconfd(require_program, ("optical-switch",), module_paths=(CONTRACT / "yang" / "polatis",))
    client = NetconfClient(running.context("rail0"))
    ports = "".join(f"<port><port-id>{number}</port-id></port>" for number in range(1, PORTS + 1))
    with client.locked("running", "candidate"):
        client.edit_config(f'<port-config xmlns="{NS}">{ports}</port-config>')
        client.commit()
    client.close()
    yield running
    running.close()


class PermittedRack(LitRack):
    """A rack whose phases cannot be proved, for no light passes its switch."""

    def obtain(self, *, again):
        del again
        return self.permit


def test_netconfd_behind_sshd(tmp_path, tmp_path_factory, netconfd):
    folder = tmp_path_factory.mktemp("g")
    inventory, url = edited(tmp_path / "one.yaml", *ONE_RAIL), f"sqlite:///{folder}/lumctl.db"
    store = lambda _rack: store_at(url, files=folder, rack=RACK)  # noqa: E731
    with launch(inventory, folder=folder / "sim", tied=True) as sim:
        simulated = sim.endpoints()
        real = replace(simulated, devices={**simulated.devices, "rail0": netconfd.endpoint("rail0")})
        with (
            serving(inventory, real, url, folder / "r.sock", rack=RACK),
            Context(inventory, "sim", endpoints=through(real, folder / "r.sock", RACK), store=store) as context,
        ):
            switch = PolatisNetconf(netconfd.context("rail0", port_count=PORTS, input_count=PORTS, timeout_s=10.0))
            phases = {name: {"rail0": cells(pairs)} for name, pairs in PAIRS.items()}
            plan = permit(context.store(RACK), "train", phases, RACK, now=context.now())
            paths = [RankPath(name, pair, ("rail0",)) for name, pairs in PAIRS.items() for pair in pairs]
            allowed = PhasePermit(plan.id, rails_of(paths), "pipeline")
            context.devices.phases(RACK).light("train", plan.id, "rail0", "pipeline")
            states = DeviceStates({"rail0": lambda: {a: str(b) for a, b in switch.read_circuits().items() if a < b}})
            does_steps(tmp_path, PermittedRack(context, folder / "r.sock", states, allowed))
            switch.close()


def cells(pairs):
    """The joins of these ranks, whose lanes are at the ports of the same numbers, and no other."""
    return {port: str(dict(pairs).get(port, "-")) for port in range(3)}
