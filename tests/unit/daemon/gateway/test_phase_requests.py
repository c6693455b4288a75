"""Requests to light a phase at a gateway: what is permitted, what is refused, and what each device is sent."""

import json
import shutil
import threading
from contextlib import closing
from types import SimpleNamespace

import pytest
from permitted_phases import permit, plan_of, record
from sqlalchemy import update

from lumctl.change.plan import to_document
from lumctl.daemon.gateway.fencing import Fence, HighestLease, NewestLease
from lumctl.daemon.gateway.phase_requests import PhaseRequests
from lumctl.daemon.gateway.requests import RequestHandler
from lumctl.daemon.gateway.writes import FencedWrites, GatewayLog
from lumctl.devices.base import BaseMesh, BaseSwitch
from lumctl.devices.errors import (
    DeviceRefusedError,
    InconsistentError,
    NotTakenError,
    OutcomeUnknownError,
    RackLeasedError,
    WrongGatewayError,
)
from lumctl.devices.gateway.wire import error_heard
from lumctl.devices.joins import Ports, difference, plan
from lumctl.devices.protocols import DriverContext
from lumctl.devices.types import Capability, PucChange, PucState, Receipt, Staged
from lumctl.errors import UsageError
from lumctl.inventory.load import load_inventory
from lumctl.inventory.phase_records import phase_of
from lumctl.sockets import Peer
from lumctl.store import StoreError, store_at
from lumctl.store.schema import leases, plans, runs

RACK = """\
lumctl: 1
racks: {r1: {}, r2: {}}
hosts:
  - {name: h1, rack: r1, accelerators: [{id: g1, model: X100, memory_gib: 80}]}
devices:
  - {id: "rail[0-1]", kind: switch, driver: sim-switch, rack: r1, address: "{id}.example:1", port_count: 8,
     input_count: 8}
  - {id: chip, kind: mesh, driver: smartlight, rack: r1, address: "c.example:1", geometry: {columns: 3, rows: 2}}
  - {id: far, kind: switch, driver: sim-switch, rack: r2, address: "f.example:1", port_count: 8, input_count: 8}
"""
FREE = "-"
A = {
    "rail0": {0: "1", 1: FREE, 2: "3", 3: FREE},
    "rail1": {0: "1", 1: FREE, 2: FREE, 3: FREE},
    "chip": {0: "=", 1: "x"},
}
B = {
    "rail0": {0: "2", 1: "3", 2: FREE, 3: FREE},
    "rail1": {0: FREE, 1: "2", 2: FREE, 3: FREE},
    "chip": {0: "x", 1: "x"},
}
US = Peer(pid=7, uid=8)
NOW = 1000.0


class Switch(BaseSwitch):
    """A switch in memory that keeps to what a test has it do with a write."""

    api_version = 1
    capabilities = frozenset()

    def __init__(self, name):
        super().__init__(DriverContext(device=name))
        self.joins, self.written, self.obeys = {6: 7}, 0, True
        self.fails = None
        self.inside, self.goes_on = threading.Event(), threading.Event()
        self.goes_on.set()
        self._ports = Ports(name, 8, 8)

    def read_circuits(self):
        return dict(self.joins)

    def stage(self, joins):
        return Staged(plan(self._ports, self.joins, joins).changes, "")

    def compare(self, staged):
        return difference(self.joins, staged.changes)

    def commit(self, staged, *, revert_after_s=None):
        assert revert_after_s is None
        self.written += 1
        self.inside.set()
        assert self.goes_on.wait(10)
        if self.obeys:
            planned = plan(self._ports, self.joins, {change.ingress: change.after for change in staged.changes})
            self.joins = dict({*self.joins.items()} - {*planned.remove} | {*planned.add})
        if self.fails:
            raise self.fails("no answer")
        return Receipt(staged, revert_armed=False)


class Mesh(BaseMesh):
    """A mesh that cannot be read back."""

    api_version = 1
    capabilities: frozenset[Capability] = frozenset()

    def __init__(self):
        super().__init__(DriverContext(device="chip"))
        self.record = {}

    def stage(self, changes):
        return Staged(tuple(PucChange(puc, self.record.get(puc), to) for puc, to in changes.items()), "")

    def commit(self, staged, *, revert_after_s=None):
        del revert_after_s
        self.record |= {change.puc: change.after for change in staged.changes}
        return Receipt(staged, revert_armed=False)


def opened(folder):
    return store_at(f"sqlite:///{folder / 'lumctl.db'}", files=folder, rack="r1")


class Rack:
    """A gateway without its socket. ``stored`` holds a store in which a plan permits job train its phases."""

    def __init__(self, folder, stored, plan):
        shutil.copy(stored / "lumctl.db", folder)
        (folder / "rack.yaml").write_text(RACK)
        self.folder, self.now, self.said = folder, NOW, []
        self.store, self.plan = opened(folder), plan
        self.drivers = {"rail0": Switch("rail0"), "rail1": Switch("rail1"), "chip": Mesh()}
        self.log = GatewayLog(folder / "gateway.log", self.said.append)
        newest = NewestLease(lambda: self.store.leases.newest("r1"), lambda _: 0, self.said.append)
        self.fence = Fence("r1", newest, newest.shut_out, HighestLease(folder / "fence", self.said.append))
        devices, inventory = (
            SimpleNamespace(changing=self.drivers.__getitem__),
            load_inventory(self.folder / "rack.yaml"),
        )
        writes = FencedWrites(self.fence, self.log, now=lambda: self.now, say=self.said.append)
        self.phases = PhaseRequests(inventory, "r1", devices, writes, self.store, now=lambda: self.now)
        self.desk = RequestHandler(
            inventory, "r1", devices, self.fence, writes, say=self.said.append, others={"phase": self.phases.light}
        )

    def ask(self, peer=US, **changed):
        request = {"call": "phase", "job": "train", "plan": self.plan.id, "device": "rail0", "phase": "B", **changed}
        answer = json.loads(json.dumps(self.desk.answer(request, peer)))
        if "error" in answer:
            raise error_heard(answer["error"], wrote=True)
        return answer["answer"]

    @property
    def logged(self):
        return [json.loads(line) for line in (self.folder / "gateway.log").read_text().splitlines()]

    @property
    def joins(self):
        return self.drivers["rail0"].joins

    @property
    def writes(self):
        return sum(self.drivers[name].written for name in ("rail0", "rail1"))

    def change(self, table, **values):
        """Change rows of the store behind its back."""
        with self.store._engine.begin() as connection:
            connection.execute(update(table).values(**values))


@pytest.fixture(scope="module")
def stored(tmp_path_factory):
    """A folder with a store, which takes longer to make than a test, and the plan in it."""
    folder = tmp_path_factory.mktemp("stored")
    with closing(opened(folder)) as store:
        return folder, permit(store, "train", {"A": A, "B": B}, "r1", now=NOW)


@pytest.fixture
def rack(tmp_path, stored):
    made = Rack(tmp_path, *stored)
    yield made
    made.store.close()


def test_a_phase_is_written_read_back_and_logged_and_other_ports_stay(rack):
    for phase, joins in (("A", {0: 1, 2: 3}), ("B", {0: 2, 1: 3}), ("B", {0: 2, 1: 3}), ("A", {0: 1, 2: 3})):
        answer = rack.ask(phase=phase)
        assert (answer["cells"], answer["read_back"]) == (4, True)
        assert rack.joins == {6: 7, **joins}
    assert rack.drivers["rail1"].joins == {6: 7}
    line = rack.logged[1]
    assert (line.pop("took") >= 0, line.pop("at")) == (True, NOW)
    assert line == {
        "device": "rail0",
        "call": "phase",
        "job": "train",
        "plan": rack.plan.id,
        "phase": "B",
        "fence": 1,
        "peer": {"pid": 7, "uid": 8},
        "outcome": "done",
    }
    assert (rack.log.sent, rack.log.refused) == (4, 0)


def test_a_mesh_that_cannot_be_read_is_written_without_a_reading(rack):
    assert rack.ask(device="chip")["read_back"] is False
    assert rack.drivers["chip"].record == {0: PucState.CROSS, 1: PucState.CROSS}


def test_two_devices_are_written_at_the_same_time(rack):
    for name in ("rail0", "rail1"):
        rack.drivers[name].goes_on.clear()
    threads = [threading.Thread(target=rack.ask, kwargs={"device": name}) for name in ("rail0", "rail1")]
    for thread in threads:
        thread.start()
    assert all(rack.drivers[name].inside.wait(10) for name in ("rail0", "rail1"))
    for name in ("rail0", "rail1"):
        rack.drivers[name].goes_on.set()
    for thread in threads:
        thread.join(10)
    assert (rack.joins, rack.drivers["rail1"].joins) == ({6: 7, 0: 2, 1: 3}, {6: 7, 1: 2})


def withdrawn(rack):
    record(rack.store, "r1", {phase_of("train"): ("A",)}, now=NOW)


def replaced(rack):
    permit(rack.store, "train", {"B": B, "A": A}, "r1", now=NOW)


def edited(rack):
    body = to_document(rack.plan)
    body["phases"][1]["cells"]["rail0"][0] = [0, "5"]
    rack.change(plans, body=json.dumps(body))


def exchanged(rack):
    """Another plan, whole in itself, under the id of the permitted one."""
    other = plan_of({"A": A, "B": {**B, "rail0": {0: "5"}}}, "r1")
    rack.change(plans, body=json.dumps(to_document(other)), digest=other.digest)


def of_another_kind(rack):
    rack.plan = permit(rack.store, "train", {"A": A, "B": B}, "r1", now=NOW, kind="swap")


def deleted(rack):
    with rack.store._engine.begin() as connection:
        connection.execute(plans.delete())


@pytest.mark.parametrize(
    ("before", "request_", "error", "says"),
    [
        (None, {"job": "other"}, DeviceRefusedError, "no plan permits job other to change its phase now"),
        (None, {"plan": "plan-00000000"}, DeviceRefusedError, "the store has no plan 'plan-00000000'"),
        (withdrawn, {}, DeviceRefusedError, "no plan permits job train to change its phase now"),
        (replaced, {}, DeviceRefusedError, "does not permit job train to change its phase any more"),
        (deleted, {}, DeviceRefusedError, "the store has no plan"),
        (edited, {}, DeviceRefusedError, "this plan was changed after it was made"),
        (exchanged, {}, DeviceRefusedError, "the store holds plan-.* in the place of"),
        (of_another_kind, {}, DeviceRefusedError, "is a plan of kind swap, which permits no change of phases"),
        (None, {"phase": "C"}, DeviceRefusedError, "has no phase 'C', only A, B"),
        (None, {"device": "rail9"}, UsageError, "no device 'rail9'"),
        (None, {"device": "far"}, WrongGatewayError, "far is in rack r2, but this is the gateway of r1"),
        (None, {"phase": 5}, DeviceRefusedError, "does not name its phase"),
        (None, {"job": ""}, DeviceRefusedError, "does not name its job"),
    ],
)
def test_what_no_plan_permits_is_refused_and_reaches_no_device(rack, before, request_, error, says):
    if before:
        before(rack)
    with pytest.raises(error, match=says) as refused:
        rack.ask(**request_)
    assert type(refused.value) is error
    assert "\n" not in refused.value.message
    assert rack.writes == 0


def test_a_device_without_states_in_the_phase_is_refused(rack):
    rack.plan = permit(rack.store, "train", {"A": {"rail1": {0: "1"}}, "B": {"rail1": {0: FREE}}}, "r1", now=NOW)
    with pytest.raises(DeviceRefusedError, match="has no states of rail0 for phase B"):
        rack.ask()


def test_a_grant_that_is_withdrawn_between_two_changes_ends_them_and_is_logged(rack):
    rack.ask()
    withdrawn(rack)
    with pytest.raises(DeviceRefusedError, match="no plan permits") as refused:
        rack.ask(phase="A")
    assert refused.value.hint.endswith("lumctl job run train")
    assert rack.joins == {6: 7, 0: 2, 1: 3}
    assert [line["outcome"] for line in rack.logged] == ["done", "DeviceRefusedError"]
    assert rack.said[-1].startswith("refused: phase of rail0 by process 7 (user 8): no plan permits")


def test_while_a_process_holds_the_lease_nothing_is_sent(rack):
    held = rack.store.leases.acquire("r1", "swap by an operator", term_s=30.0, now=NOW)
    with pytest.raises(RackLeasedError, match=r"being changed by swap by an operator.*; nothing was sent"):
        rack.ask()
    assert rack.writes == 0
    rack.store.leases.release(held)
    rack.ask()
    assert rack.logged[-1]["fence"] == held.fence


@pytest.mark.parametrize("in_run", [True, False])
def test_a_lease_that_expired_shuts_phases_out_only_if_its_holder_may_go_on_with_a_run(rack, in_run):
    rack.store.leases.acquire("r1", "an engine", term_s=30.0, now=NOW)
    process = {"host": "elsewhere", "boot_id": "b", "pid": 5, "started": 1}
    rack.change(leases, process=json.dumps({"process": process, "ends_at": 1.0}))
    rack.change(runs, fence=2, state="running" if in_run else "done")
    rack.now = NOW + 31
    if in_run:
        with pytest.raises(RackLeasedError, match=r"its holder could still write for swap-0001 when it wakes up"):
            rack.ask()
    else:
        rack.ask()


def test_a_lease_taken_between_the_check_and_the_write_shuts_it_out(rack, monkeypatch):
    taken = []
    unheld = rack.store.leases.unheld

    def first(name, *, now):
        number = unheld(name, now=now)
        taken.append(rack.store.leases.acquire("r1", "an engine", term_s=30.0, now=NOW))
        return number

    monkeypatch.setattr(rack.store.leases, "unheld", first)
    with pytest.raises(RackLeasedError, match="a process has just taken the lease"):
        rack.ask()
    assert rack.writes == 0


def test_the_holder_of_a_lease_taken_during_a_write_reads_only_after_it(rack):
    switch = rack.drivers["rail0"]
    switch.goes_on.clear()
    writing = threading.Thread(target=rack.ask)
    writing.start()
    assert switch.inside.wait(10)
    held = rack.store.leases.acquire("r1", "an engine", term_s=30.0, now=NOW)
    # On another device: on the same one, the device's turn alone would make it wait.
    looked = threading.Thread(target=rack.fence.look, args=(held.fence,))
    looked.start()
    looked.join(0.05)
    assert looked.is_alive()
    switch.goes_on.set()
    for thread in (writing, looked):
        thread.join(10)
        assert not thread.is_alive()
    assert rack.joins == {6: 7, 0: 2, 1: 3}


def lies(switch):
    switch.obeys = False


def loses_the_request(switch):
    switch.obeys, switch.fails = False, OutcomeUnknownError


def loses_the_answer(switch):
    switch.fails = OutcomeUnknownError


@pytest.mark.parametrize(
    ("how", "error"), [(lies, InconsistentError), (loses_the_request, NotTakenError), (loses_the_answer, None)]
)
def test_a_device_is_believed_only_as_far_as_it_is_read(rack, how, error):
    rack.ask(phase="A")
    how(rack.drivers["rail0"])
    if error is None:
        assert rack.ask()["read_back"]
        assert rack.joins == {6: 7, 0: 2, 1: 3}
        return
    with pytest.raises(error) as failed:
        rack.ask()
    assert type(failed.value) is error
    assert rack.joins == {6: 7, 0: 1, 2: 3}
    assert rack.logged[-1]["outcome"] == error.__name__


@pytest.mark.parametrize("foreign", [{0: 5}, {5: 1}, {1: 5}])
def test_a_join_that_no_phase_has_is_not_removed(rack, foreign):
    rack.drivers["rail0"].joins = dict(foreign)
    with pytest.raises(DeviceRefusedError, match=r"as in no phase of plan-|does not list"):
        rack.ask(phase="A")
    assert rack.joins == foreign


def test_without_the_store_nothing_is_sent(rack, monkeypatch):
    def fails(_rack, *, now):
        raise StoreError(f"the store cannot be read at {now}", hint="mend it")

    monkeypatch.setattr(rack.store.leases, "unheld", fails)
    with pytest.raises(DeviceRefusedError, match=r"the store cannot be read at 1000.0; nothing was sent"):
        rack.ask()


def test_the_store_of_a_retired_rack_permits_nothing(rack):
    rack.change(leases, holder="moved to postgresql://there", expires_at=-1.0)
    with pytest.raises(
        DeviceRefusedError, match=r"the store of rack r1 was moved to postgresql://there.*nothing was sent"
    ):
        rack.ask()


def test_a_client_that_has_gone_is_sent_nothing_for(rack):
    with pytest.raises(DeviceRefusedError, match="the client disconnected"):
        rack.ask(Peer(7, 8, waits=lambda: False))
    assert rack.writes == 0
