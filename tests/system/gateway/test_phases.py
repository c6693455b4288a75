"""Phases lit through a gateway's socket on a simulated switch that is read back, and on one that misbehaves."""

import json
import random
import threading
from pathlib import Path

import pytest
from gateways import serving
from permitted_phases import permit, record

from lumctl.daemon.gateway.writes import LOG_FILE
from lumctl.devices.errors import DeviceRefusedError, DeviceUnreachableError, InconsistentError, RackLeasedError
from lumctl.devices.gateway.phases import PhaseGateway
from lumctl.inventory.load import example, load_inventory
from lumctl.inventory.phase_records import phase_of
from lumctl.sim.launch import launch

RACK, FREE = "rails", "-"


def phases_at(first):
    """Two phases of a job on four ports of both rails."""
    a, b, c, d = range(first, first + 4)
    one = {a: str(b), b: FREE, c: str(d), d: FREE}
    two = {a: str(c), b: str(d), c: FREE, d: FREE}
    return {"A": {"rail0": one, "rail1": one}, "B": {"rail0": two, "rail1": two}}


class Served:
    """A gateway and its simulated rack; jobs ``train`` and ``other`` share its switches, each with its own ports."""

    def __init__(self, context, gateway, sim, folder):
        self.context, self.sim, self.gateway, self.folder = context, sim, gateway, folder
        self.store = context.store(RACK)
        self.plans = {
            job: permit(self.store, job, phases_at(first), RACK, now=context.now()).id
            for job, first in (("train", 0), ("other", 4))
        }

    def light(self, phase, job="train", device="rail0"):
        return self.gateway.light(job, self.plans[job], device, phase)

    def joins(self, device="rail0"):
        return self.context.devices.switch(device).read_circuits()

    @property
    def logged(self):
        return [json.loads(line) for line in (self.folder / LOG_FILE).read_text().splitlines()]


@pytest.fixture(scope="module")
def served(tmp_path_factory):
    folder = tmp_path_factory.mktemp("g")
    inventory = load_inventory(example(RACK))
    with launch(inventory, folder=folder / "sim", tied=True) as sim:
        socket = folder / "r.sock"
        with serving(inventory, sim.endpoints(), f"sqlite:///{folder}/lumctl.db", socket, rack=RACK) as context:
            gateway = PhaseGateway.at(Path(socket), rack=RACK, target="sim")
            yield Served(context, gateway, sim, folder)
            gateway.close()


def wanted(job, phase):
    states = phases_at(0 if job == "train" else 4)[phase]["rail0"]
    return {port: int(to) for port, to in states.items() if to != FREE}


def test_two_jobs_that_change_one_switch_at_the_same_time_never_move_each_others_joins(served):
    strange = []

    def changes(job, seed):
        dice = random.Random(seed)  # noqa: S311 - no secret
        for _ in range(30):
            phase = dice.choice("AB")
            written = served.light(phase, job)
            own = {
                port: to for port, to in served.joins().items() if port in wanted(job, "A") or port in wanted(job, "B")
            }
            if own != wanted(job, phase) or not written.read_back:
                strange.append((job, phase, own))

    threads = [threading.Thread(target=changes, args=each) for each in (("train", 1), ("other", 2))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert strange == []
    of_jobs = {"train": range(4), "other": range(4, 8)}
    for line in served.logged:
        assert (line["call"], line["outcome"], line["plan"]) == ("phase", "done", served.plans[line["job"]])
    assert len(served.logged) == 60
    assert {to for port, to in served.joins().items() if port in of_jobs["train"]} <= set(of_jobs["train"])


def test_nothing_is_lit_while_a_lease_is_held_or_without_a_permit(served):
    on_record = served.store.fabric.assignment()[phase_of("train")]
    assert on_record[0] == "A"
    served.light("A", device="rail1")
    held = served.store.leases.acquire(RACK, "an engine", term_s=30.0, now=served.context.now())
    with pytest.raises(RackLeasedError, match="nothing was sent"):
        served.light("B", device="rail1")
    with pytest.raises(RackLeasedError):
        served.light("A", device="rail1")
    served.store.leases.release(held)
    served.light("B", device="rail1")
    record(served.store, RACK, {phase_of("train"): ("B",)}, now=served.context.now())
    with pytest.raises(DeviceRefusedError, match="no plan permits job train"):
        served.light("A", device="rail1")
    assert served.joins("rail1") == wanted("train", "B")
    record(served.store, RACK, {phase_of("train"): on_record}, now=served.context.now())


@pytest.mark.parametrize(
    ("fault", "error"),
    [
        ("device-half", InconsistentError),
        ("device-lying", InconsistentError),
        ("device-refuse", DeviceRefusedError),
        ("device-cut", DeviceUnreachableError),
        ("device-down", DeviceUnreachableError),
    ],
)
def test_a_switch_that_misbehaves_never_counts_as_lit(served, fault, error):
    served.light("A")
    served.sim.inject("rail0", fault)
    try:
        with pytest.raises(error) as failed:
            served.light("B")
    finally:
        served.sim.clear()
    assert type(failed.value) is error
    assert served.logged[-1]["outcome"] == error.__name__
    assert served.light("B").read_back
    assert wanted("train", "B").items() <= served.joins().items()
