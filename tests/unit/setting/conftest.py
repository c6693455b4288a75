"""A rack with a switch, a chassis and controllers of power: drivers are twins in memory, the engine is the real one.

``rack.world`` is what the twins show: ports of the switch, transponders by id, power by device. ``rack.breaks`` maps
a call's name to an error that it raises once, before or (``after:NAME``) after it acted.
"""

from types import SimpleNamespace

import pytest

from lumctl.change import apply
from lumctl.context import Context
from lumctl.devices.base import BasePower, BaseSwitch, BaseTransponder
from lumctl.devices.endpoints import rack_endpoints
from lumctl.devices.types import Capability, JoinChange, OpticsReading, PortReading, PowerReading, Receipt, Staged
from lumctl.inventory.load import load_inventory
from lumctl.store import Record, store_at
from lumctl.swap import plan_rollback, plan_settings

RACK = """
lumctl: 1
racks: {switched: {}}
hosts:
  - name: h[1-3]
    power: bmc[1-3]
    accelerators: [{id: "{host}-gpu0", model: H100, memory_gib: 80}]
  - name: h4
    power: bmc4
    accelerators: [{id: "{host}-gpu0", model: H100, memory_gib: 80, role: spare}]
devices:
  - {id: ocs, kind: switch, driver: polatis-scpi, address: "ocs.example:5025", port_count: 32, settle_ms: 0}
  - {id: shelf, kind: chassis, driver: openconfig, address: "shelf.example:830"}
  - {id: "bmc[1-4]", kind: power, driver: redfish, address: "{id}.example:443"}
transponders:
  - id: h[1-4]-gpu0-a
    accelerator: h[1-4]-gpu0
    interface: eth2
    device: ocs
    tx: [0, 2, 4, 6]
    rx: [16, 18, 20, 22]
    module: shelf/och-[1-4]-a
  - id: h[1-4]-gpu0-b
    accelerator: h[1-4]-gpu0
    interface: eth3
    device: ocs
    tx: [1, 3, 5, 7]
    rx: [17, 19, 21, 23]
    module: shelf/och-[1-4]-b
jobs:
  - {name: finetune, ranks: "h[1-3]-gpu0", links: [{kind: ring}]}
"""
RUN = {"kind": "fabric", "target": "rack", "title": "t", "plan_digest": "d", "inventory_digest": "i", "who": "me"}
JOINS = {0: 21, 1: 18, 2: 17, 3: 20, 4: 19, 5: 16}
"""What the job of the example needs."""


class World:
    def __init__(self):
        self.ports = {n: PortReading(n, enabled=True, label="") for n in range(32)}
        self.joins = dict(JOINS)
        self.transmit, self.frequency, self.dbm = {}, {}, {}
        self.power = {f"bmc{n}": True for n in range(1, 5)}
        self.follows = True
        self.breaks = {}
        self.calls = []

    def call(self, name, act, *words):
        self.calls.append((name, *words))
        if error := self.breaks.pop(name, None):
            raise error
        act()
        if error := self.breaks.pop(f"after:{name}", None):
            raise error


def drivers(world):  # noqa: C901 - four small twins, not one function
    class Switch(BaseSwitch):
        api_version = 1
        capabilities = frozenset({Capability.READ_PORTS, Capability.SET_PORTS, Capability.SET_LABELS})
        proven = "twin"

        def identify(self):
            world.call("identify", lambda: None)
            return "a switch"

        def stage(self, joins):
            return Staged(tuple(JoinChange(i, world.joins.get(i), e) for i, e in joins.items()), "")

        def compare(self, staged):
            return tuple(
                JoinChange(c.ingress, world.joins.get(c.ingress), c.after)
                for c in staged.changes
                if world.joins.get(c.ingress) != c.after
            )

        def _write(self, wanted):
            for ingress, egress in wanted.items():
                world.joins.pop(ingress, None)
                if egress is not None:
                    world.joins[ingress] = egress

        def commit(self, staged, *, revert_after_s=None):
            assert revert_after_s is None
            world.call("commit", lambda: self._write({c.ingress: c.after for c in staged.changes}))
            return Receipt(staged, revert_armed=False)

        def confirm(self, receipt):
            pass

        def roll_back(self, receipt):
            world.call("roll_back", lambda: self._write({c.ingress: c.before for c in receipt.staged.changes}))

        def read_circuits(self):
            return dict(world.joins)

        def read_ports(self):
            world.call("read_ports", lambda: None)
            return dict(world.ports)

        def set_port(self, port, enabled):
            old = world.ports[port]
            changed = PortReading(port, enabled=enabled, label=old.label)
            world.call("set_port", lambda: world.ports.update({port: changed}), port, enabled)

        def set_label(self, port, label):
            old = world.ports[port]
            changed = PortReading(port, enabled=old.enabled, label=label)
            world.call("set_label", lambda: world.ports.update({port: changed}), port, label)

    class Chassis(BaseTransponder):
        api_version = 1
        capabilities = frozenset(
            {
                Capability.READ_OPTICS,
                Capability.SET_TRANSMIT,
                Capability.SET_CHANNEL,
                Capability.SET_OUTPUT_POWER,
            }
        )
        proven = "twin"

        def read_optics(self):
            name = self.context.device
            world.call("read_optics", lambda: None)
            return OpticsReading(
                0.0, frequency_mhz=world.frequency.get(name), target_power_dbm=world.dbm.get(name), vendor="ACME"
            )

        def transmitting(self):
            return world.transmit.get(self.context.device, True)

        def set_transmit(self, enabled):
            name = self.context.device
            world.call("set_transmit", lambda: world.transmit.update({name: enabled}), name, enabled)

        def set_channel(self, frequency_mhz):
            name = self.context.device
            world.call("set_channel", lambda: world.frequency.update({name: frequency_mhz}), name, frequency_mhz)

        def set_output_power(self, dbm):
            name = self.context.device
            world.call("set_output_power", lambda: world.dbm.update({name: round(dbm, 1)}), name, dbm)

    class Power(BasePower):
        api_version = 1
        capabilities = frozenset({Capability.SET_POWER, Capability.RESET})
        proven = "twin"

        def identify(self):
            world.call("identify", lambda: None)
            return "a controller"

        def read_power(self):
            world.call("read_power", lambda: None)
            return PowerReading(0.0, on=world.power[self.context.device])

        def set_power(self, on, *, force=False):
            followed = {self.context.device: on} if world.follows else {}
            world.call("set_power", lambda: world.power.update(followed), self.context.device, on, force)

        def reset(self):
            world.call("reset", lambda: None, self.context.device)

    class Host(BaseTransponder):
        api_version = 1
        proven = "twin"

    return {"polatis-scpi": Switch, "openconfig": Chassis, "redfish": Power, "hostport": Host}


class NoGuard:
    has_hung_up = False

    def allow(self, seconds):
        """Nobody listens."""

    def finish(self):
        """Nobody listens."""

    dismiss = finish


class Rack:
    def __init__(self, folder):
        self.world = World()
        (folder / "rack.yaml").write_text(RACK)
        self.inventory = load_inventory(folder / "rack.yaml")
        self.store = store_at(str(folder / "store"))
        self.context = Context(
            self.inventory,
            "rack",
            endpoints=rack_endpoints(self.inventory),
            store=lambda _rack: self.store,
            now=lambda: 1000.0,
        )
        lease = self.store.leases.acquire("switched", "me", term_s=30.0, now=900.0)
        run = self.store.runs.begin(lease, RUN, {"digest": "d"}, now=900.0)
        held = {n: str(JOINS.get(n, "-")) for n in range(8)}
        self.store.runs.conclude(lease, run, Record(900.0, "outcome", "1", {}), states={"ocs": held})
        self.store.runs.end(lease, run, Record(900.0, "end", "", {}), "done")
        self.store.leases.release(lease)

    def plan(self, component, *words, **more):
        return plan_settings(self.context, component, words, **more)

    def apply(self, plan):
        return apply(self.context, plan, who="me", arm=lambda *_: NoGuard())

    def set(self, component, *words, **more):
        return self.apply(self.plan(component, *words, **more))

    def take_back(self, run):
        return self.apply(plan_rollback(self.context, self.store.runs.get(run)))

    def acts(self, *kinds):
        return [call for call in self.world.calls if call[0].startswith(kinds or ("set_", "reset", "commit", "roll"))]


@pytest.fixture
def rack(tmp_path, monkeypatch):
    monkeypatch.setattr("lumctl.change.settings.POLL_S", 0.01)
    rack = Rack(tmp_path)
    by_name = drivers(rack.world)
    monkeypatch.setattr("lumctl.devices.registry.load", by_name.__getitem__)
    monkeypatch.setattr("lumctl.context.roll_call.load", by_name.__getitem__)
    silent = SimpleNamespace(
        silent_hosts=lambda _: set(),
        sound=lambda _: {},
        powers=lambda _: {},
        require_powers=lambda *_: None,
        prove=lambda *_, **__: [],
    )
    monkeypatch.setattr("lumctl.change.run_scope.LightProof", lambda *_, **__: silent)
    yield rack
    rack.context.close()
