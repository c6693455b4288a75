"""The four-server rack in memory: a mesh whose cells decide who hears whom, transmitters, hosts, and a real store.

Whatever acts adds to one list of events, and so does every entry of the journal once it is on disk: what a test
asserts is their order.
"""

from dataclasses import replace

import pytest

from lumctl.change import apply
from lumctl.change.foreign_circuits import circuits_before_and_after
from lumctl.change.run_scope import RunScope
from lumctl.context import Context
from lumctl.devices.types import Capability, Neighbour, OpticsReading, PucChange, PucState, Receipt, Staged
from lumctl.fabric import changes, exits, mesh, route
from lumctl.fleet.readings import Snapshot
from lumctl.inventory.model import Evidence
from lumctl.inventory.wiring import circuits_of
from lumctl.store import Record, store_at
from lumctl.swap import plan_swap

SHAPE = mesh(7, 3)
ACTS = ("transmit", "commit", "confirm", "roll_back")
RUN = {"kind": "fabric", "target": "sim", "title": "t", "plan_digest": "d", "inventory_digest": "i", "who": "me"}


class MeshTwin:
    """A mesh controller and its cells."""

    kind = "mesh"

    def __init__(self, rack) -> None:
        self.rack = rack
        self.capabilities = frozenset()
        self.cells = dict.fromkeys(range(SHAPE.puc_count), PucState.BAR)

    def identify(self):
        self.rack.happens("identify", "mesh")
        return "a mesh"

    def stage(self, wanted):
        return Staged(tuple(PucChange(puc, None, after) for puc, after in wanted.items()), token="")

    def commit(self, staged, *, revert_after_s=None):
        self.rack.happens("commit", "mesh", revert_after_s)
        self.cells |= {change.puc: change.after for change in staged.changes}
        return Receipt(staged, revert_armed=revert_after_s is not None)

    def confirm(self, receipt):
        self.rack.happens("confirm", "mesh")
        assert receipt.revert_armed

    def roll_back(self, receipt):
        self.rack.happens("roll_back", "mesh", receipt.revert_armed)
        self.cells |= {change.puc: change.before for change in receipt.staged.changes}

    def compare(self, staged):
        differing = [change for change in staged.changes if self.cells[change.puc] is not change.after]
        return tuple(PucChange(change.puc, self.cells[change.puc], change.after) for change in differing)

    def read_states(self):
        assert Capability.READ_STATES in self.capabilities
        return dict(self.cells)


class TransponderTwin:
    """A lane of a host: its transmitter, its receiver's power, and the host's voice."""

    capabilities = frozenset({Capability.SET_TRANSMIT})

    def __init__(self, rack, lane) -> None:
        self.rack, self.lane = rack, lane

    def transmitting(self):
        return self.rack.on[self.lane.id]

    def set_transmit(self, enabled):
        self.rack.happens("transmit", self.lane.id, enabled)
        self.rack.on[self.lane.id] = enabled

    def announce(self, mark):
        self.rack.announce(self.lane.host, mark)

    def read_optics(self):
        return OpticsReading(0.0, rx_power_dbm=-5.0 if self.rack.heard()[self.lane.id] else float("-inf"))


class GuardTwin:
    """A revert guard that only listens. ``takes_over`` is what it does as soon as it is heard to work."""

    has_hung_up = False

    def __init__(self, rack) -> None:
        self.rack = rack
        self.heard: list = []
        self.takes_over = lambda: None

    def arm(self, _context, lease, silent_s):
        self.rack.happens("arm", silent_s)
        self.lease = lease
        return self

    def allow(self, seconds):
        self.heard.append(seconds)

    def finish(self):
        self.heard.append("finish")
        self.takes_over()

    def dismiss(self):
        self.heard.append("dismiss")


class MemoryRack:
    """The rack, its store and its context. It stands in for both the hosts and the drivers of the context."""

    def __init__(self, collected, folder) -> None:
        self.collected = collected
        self.inventory = replace(
            collected.inventory,
            devices={name: replace(d, settle_ms=0.0) for name, d in collected.inventory.devices.items()},
            thresholds=replace(collected.inventory.thresholds, light_deadline_s=0.0),
        )
        self.time = collected.observation().at
        self.events: list[tuple] = []
        self.hooks: list[tuple] = []
        self.on = {lane.id: lane.host != "s3" for lane in self.inventory.transponders.values()}
        self.dark: set[str] = set()
        self.tables: dict[str, tuple[Neighbour, ...]] = {}
        self.twin = MeshTwin(self)
        self.guard = GuardTwin(self)
        self.folder = folder
        self.store = store_at(str(folder))
        self.context = Context(self.inventory, "sim", store=lambda _rack: self.store, now=lambda: self.time)
        self.context.fleet = self.context.devices = self
        self._program()
        self._watch()

    # -- what tests arrange and look at ------------------------------------------------------------------------------

    def at(self, *event, do):
        """Once, when an event begins that starts like this one: raise an error, or call something."""
        self.hooks.append((event, do))

    def seen(self, *kinds):
        return [event for event in self.events if event[0] in kinds]

    def acts(self):
        return self.seen(*ACTS)

    def plan(self, **more):
        plan = plan_swap(self.context, "finetune", ["s1-gpu0"], even_if_healthy=True, **more)
        self.events.clear()
        return plan

    def apply(self, plan, **more):
        return apply(self.context, plan, **{"who": "me", "arm": self.guard.arm, **more})

    def bench(self, plan):
        return RunScope(self.context, *circuits_before_and_after(self.context, plan))

    def verify_by_blink(self, *receivers):
        """These receivers cannot say whom they hear."""
        lanes = self.inventory.transponders
        lanes.update({name: replace(lanes[name], verify=(Evidence.BLINK,)) for name in receivers})

    def placed(self):
        return self.context.assignment()["finetune"]

    # -- the hosts and the light -------------------------------------------------------------------------------------

    def happens(self, *event):
        self.events.append(event)
        for hook in [hook for hook in self.hooks if event[: len(hook[0])] == hook[0]]:
            self.hooks.remove(hook)
            if isinstance(hook[1], BaseException):
                raise hook[1]
            hook[1]()

    def heard(self):
        """The transmitter that each receiver hears now, if any."""
        lanes = self.inventory.transponders.values()
        lit = {lane.lane.tx: lane.id for lane in lanes if self.on[lane.id] and lane.id not in self.dark}
        partner = exits(SHAPE, self.twin.cells)
        return {lane.id: lit.get(partner[lane.lane.rx]) for lane in lanes}

    def announce(self, host, mark):
        """A host says a mark on all its lanes: it lands in the tables of those who hear them, and stays there."""
        for receiver, transmitter in self.heard().items():
            sender = self.inventory.transponders.get(transmitter)
            if sender is not None and sender.host == host:
                self.tables[receiver] = (Neighbour(sender.host, sender.interface, 0.0, mark),)

    def collect(self, hosts=None, probes=None):  # noqa: ARG002 - what was not asked for does no harm
        lanes = self.inventory.transponders.values()
        return Snapshot(
            self.time,
            0.0,
            {
                name: replace(
                    self.collected.hosts[name],
                    neighbours={t.interface: self.tables.get(t.id, ()) for t in lanes if t.host == name},
                )
                for name in (hosts or self.inventory.hosts)
            },
        )

    def accelerator_probes(self, hosts):  # noqa: ARG002 - see above
        return None

    def changing(self, device):
        return self.mesh(device)

    def mesh(self, _device):
        return self.twin

    def transponder(self, name):
        return TransponderTwin(self, self.inventory.transponders[name])

    def close(self):
        """The context closes what it was given."""

    # -- the start ---------------------------------------------------------------------------------------------------

    def _program(self):
        """The jobs' circuits stand, in the mesh and in the store."""
        circuits = circuits_of(self.inventory, self.collected.assignment)
        self.twin.cells |= changes(
            self.twin.cells, route(SHAPE, [c.ports for c in circuits], states=dict(self.twin.cells))
        )
        lease = self.store.leases.acquire("prototype", "me", term_s=30.0, now=self.time)
        run = self.store.runs.begin(lease, RUN, {"digest": "d"}, now=self.time - 60)
        outcome = Record(self.time, "outcome", "1", {})
        self.store.runs.conclude(lease, run, outcome, states={"mesh": self.twin.cells})
        self.store.runs.end(lease, run, Record(self.time, "end", "", {}), "done")
        self.store.leases.release(lease)

    def _watch(self):
        """Whatever the store has taken is an event."""
        self._after(self.store.leases, "acquire", lambda *_, **__: [("acquire",)])
        self._after(self.store.leases, "release", lambda *_, **__: [("release",)])
        self._after(self.store.runs, "begin", lambda *_, **__: [("begin",)])
        self._after(self.store.runs, "advance", lambda _lease, _run, entries, **_: _written(entries))
        self._after(self.store.runs, "end", lambda *_, outcomes=(), **__: _written(outcomes))
        self._after(self.store.runs, "end", lambda _lease, _run, _entry, state, **_: [("end", state)])

    def _after(self, part, name, events_of):
        real = getattr(part, name)

        def watched(*words, **more):
            result = real(*words, **more)
            for event in events_of(*words, **more):
                self.happens(*event)
            return result

        setattr(part, name, watched)


def _written(entries):
    return [(entry.kind, entry.step) for entry in entries]


@pytest.fixture
def rack(collected, tmp_path, monkeypatch):
    monkeypatch.setattr("lumctl.change.light_proof.STANDING_S", 0.0)  # in memory, what stands shows itself at once
    monkeypatch.setattr("lumctl.change.run.MOST_AT_A_HOST", 1)  # in their order, so that a test can tell it
    rack = MemoryRack(collected("prototype"), tmp_path / "store")
    yield rack
    rack.context.close()
