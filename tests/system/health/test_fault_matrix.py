"""Every kind of fault: it appears, it flaps, it heals. The right states in time, and nobody else's changes.

Times are virtual. A look comes every ten seconds, which is also how often nvidia-smi and the modules are read.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

import pytest

from lumctl.health.states import State
from lumctl.inventory.wiring import initial_assignment
from lumctl.sim.world.faults import FaultKind

TICK_S = 10.0
LLDP_S = 30.0
"""Between two announcements of a host: a wrong transmitter names itself within this time."""
LLDP_TTL_S = 120.0
"""For so long the entry of a transmitter stays that is heard no more, and looks younger than the right one."""
STALE_S = 30.0
HOUR_S = 3600.0
GPU, LANE, FAR_LANE, CIRCUIT = "accelerator n2-gpu0", "link n2-gpu0-a", "link n1-gpu0-b", "circuit train/0-1"
F, D, U, OK = State.FAILED, State.DEGRADED, State.UNKNOWN, State.OK
BEHIND_N2 = {
    GPU: U,
    "accelerator n2-gpu1": U,
    LANE: U,
    "link n2-gpu0-b": U,
    CIRCUIT: U,
    "circuit train/1-2": U,
}


@dataclass(frozen=True)
class Case:
    """A fault, what it makes of whom within ``appears_s``, and how long it is remembered once it has healed.

    ``flapped`` is what a fault that came and went leaves for a while; ``cells`` tells that the mesh must be written
    again to heal it.
    """

    component: str
    kind: FaultKind
    expected: Mapping[str, State]
    appears_s: float = 0.0
    clears_s: float = 0.0
    flapped: Mapping[str, State] = field(default_factory=dict)
    flapped_clears_s: float = 0.0
    cells: bool = False

    @property
    def id(self) -> str:
        return f"{self.kind}-{self.component.replace('/', '-')}"


UNSTEADY = {LANE: D, FAR_LANE: D}
"""Three changes of carrier within an hour make a link unsteady; that is forgotten an hour and ten minutes later."""
FORGOTTEN_S = HOUR_S + 600
CASES = (
    # A boot of its host brings it back, and ends what was counted.
    Case("n2-gpu0", FaultKind.GPU_LOST, {GPU: F}),
    # The process is the job's: its GPU is well.
    Case("n2-gpu0", FaultKind.PROCESS_DIED, {}),
    # The second time that errors are counted the memory itself is suspected, for a week.
    Case("n2-gpu0", FaultKind.ECC, {GPU: F}, flapped={GPU: D}, flapped_clears_s=7 * 24 * HOUR_S),
    # Failed and well again, from the third time on.
    Case("n2-gpu0", FaultKind.ROW_REMAP_FAILED, {GPU: F}, flapped={GPU: D}, flapped_clears_s=7 * HOUR_S),
    Case("n2-gpu0", FaultKind.OVERHEAT, {GPU: D}, clears_s=30, flapped_clears_s=30),
    # Six minutes of ten with held clocks; what flaps for less is no fault.
    Case("n2-gpu0", FaultKind.THROTTLED, {GPU: D}, appears_s=360, clears_s=600),
    # The lane sends nothing either, so its circuit's far end is dark.
    Case(
        "n2-gpu0-a",
        FaultKind.LINK_DOWN,
        {LANE: F, FAR_LANE: F, CIRCUIT: F},
        flapped=UNSTEADY,
        flapped_clears_s=FORGOTTEN_S,
    ),
    Case(
        "n2-gpu0-a",
        FaultKind.LINK_FLAP,
        # Five seconds down, five up: each look finds it down.
        {LANE: F, FAR_LANE: F, CIRCUIT: F},
        appears_s=20,
        clears_s=FORGOTTEN_S,
        flapped=UNSTEADY,
        flapped_clears_s=FORGOTTEN_S,
    ),
    # The card is gone from its bus, with both interfaces.
    Case(
        "n2/nic",
        FaultKind.NIC_LOST,
        {
            LANE: F,
            "link n2-gpu0-b": F,
            FAR_LANE: F,
            "link n3-gpu0-a": F,
            CIRCUIT: F,
            "circuit train/1-2": F,
            # Its modules cannot be read.
            "host n2": D,
        },
        flapped={**UNSTEADY, "link n2-gpu0-b": D, "link n3-gpu0-a": D},
        flapped_clears_s=FORGOTTEN_S,
    ),
    # A dark receiver; the other direction continues.
    Case("n2-gpu0-a/rx", FaultKind.DARK, {LANE: F, CIRCUIT: F}, flapped={LANE: D}, flapped_clears_s=FORGOTTEN_S),
    # Neither the fibre nor the media converter is seen by the module in the NIC.
    *(
        Case(
            f"n2-gpu0-a/{part}",
            FaultKind.DARK,
            {LANE: F, FAR_LANE: F, CIRCUIT: F},
            flapped=UNSTEADY,
            flapped_clears_s=FORGOTTEN_S,
        )
        for part in ("fibre", "converter")
    ),
    Case("n2-gpu0-a/fibre", FaultKind.DIM, {CIRCUIT: D}),
    # A dark transmitter shows at its own module and at the far receiver; its own receiver still has light and carrier.
    Case(
        "n2-gpu0-a",
        FaultKind.DARK,
        {LANE: F, FAR_LANE: F, CIRCUIT: F},
        flapped={FAR_LANE: D},
        flapped_clears_s=FORGOTTEN_S,
    ),
    # A dark port lets nothing through in either direction.
    Case(
        "m1/port/10",
        FaultKind.DARK,
        {LANE: F, FAR_LANE: F, CIRCUIT: F},
        flapped=UNSTEADY,
        flapped_clears_s=FORGOTTEN_S,
    ),
    # Light enough for the receivers, and much less than planned; the module that sends it knows.
    Case("n2-gpu0-a", FaultKind.DIM, {CIRCUIT: D, LANE: D}),
    Case("m1/port/10", FaultKind.DIM, {CIRCUIT: D}),
    # Two circuits pass these cells, one on each side: each now brings the other's light.
    Case(
        "m1/puc/25",
        FaultKind.STUCK_BAR,
        {CIRCUIT: F, "circuit train/3-0": F},
        appears_s=LLDP_S,
        clears_s=LLDP_TTL_S,
        flapped_clears_s=LLDP_TTL_S,
        cells=True,
    ),
    Case(
        "m1/puc/50",
        FaultKind.STUCK_CROSS,
        {"circuit train/1-2": F, "circuit train/2-3": F},
        appears_s=LLDP_S,
        clears_s=LLDP_TTL_S,
        flapped_clears_s=LLDP_TTL_S,
        cells=True,
    ),
    # What was read of it last ages until it says nothing about now.
    Case("n2", FaultKind.SLOW_HOST, {**BEHIND_N2, "host n2": D}, appears_s=STALE_S, clears_s=10, flapped_clears_s=10),
    Case(
        "n2",
        FaultKind.HUNG_SMI,
        {GPU: U, "accelerator n2-gpu1": U, "host n2": D},
        appears_s=STALE_S,
        # nvidia-smi is asked again when it is due.
        clears_s=10,
        flapped_clears_s=10,
    ),
    # Three misses.
    Case("n2", FaultKind.UNREACHABLE, {**BEHIND_N2, "host n2": F}, appears_s=2 * TICK_S),
    # Light stays as it was last programmed.
    Case("m1", FaultKind.MESH_DOWN, {"device m1": F}),
    Case("m1", FaultKind.DEVICE_DOWN, {"device m1": F}),
    # A mesh that lies, or refuses, and is not written to does neither.
    Case("m1", FaultKind.MESH_LYING, {}),
    Case("m1", FaultKind.DEVICE_LYING, {}),
    Case("m1", FaultKind.DEVICE_REFUSE, {}),
    Case("m1", FaultKind.DEVICE_HALF, {}),
    # These two are seen in a protocol only, and a look in virtual time speaks none.
    Case("m1", FaultKind.DEVICE_SLOW, {}),
    Case("m1", FaultKind.DEVICE_CUT, {}),
    Case("m1", FaultKind.SLOW_COMMIT, {}),
    # A mesh continues carrying light, whatever it complains of.
    Case("m1", FaultKind.ALARM, {"device m1": F}),
    Case("m1", FaultKind.OVERHEAT, {"device m1": D}),
)


class Trial:
    """A rack on which one case is tried; at each look everybody else must be as before."""

    def __init__(self, rack, case):
        self.rack, self.case = rack, case
        self.before = rack.states()
        assert set(self.before.values()) == {OK}

    def appears(self):
        self.rack.world.inject(self.case.component, self.case.kind)

    def heals(self):
        self.rack.world.clear(self.case.component)
        if self.case.cells:
            self.rack.rewrite("m1")

    def look(self, seconds=TICK_S):
        self.rack.tick(seconds)
        now = self.rack.states()
        strangers = {n: s for n, s in now.items() if s is not self.before[n] and n not in self.touched}
        assert not strangers, self.rack.report.findings()
        return now

    @property
    def touched(self):
        return {*self.case.expected, *self.case.flapped}

    def reaches(self, expected, within_s):
        """Two looks after ``within_s`` at the latest the states are as expected. Long times are gone through faster."""
        wanted = {**self.before, **expected}
        step = TICK_S if within_s <= HOUR_S / 4 else 60.0 if within_s <= 2 * HOUR_S else HOUR_S
        passed = 0.0
        while passed <= within_s + 2 * step:
            passed += step
            now = self.look(step)
            if now == wanted:
                return
        differing = {name: (state, wanted[name]) for name, state in now.items() if state is not wanted[name]}
        pytest.fail(f"after {passed:g} s: {differing} {self.rack.report.findings()}")


@pytest.fixture(params=CASES, ids=lambda case: case.id)
def trial(request, virtual):
    return Trial(virtual, request.param)


def test_every_kind_of_fault_is_tried():
    assert {case.kind for case in CASES} == set(FaultKind)


def test_a_fault_appears_and_heals(trial):
    trial.appears()
    trial.reaches(trial.case.expected, trial.case.appears_s)
    for _ in range(3):
        # It stands for as long as it is there.
        now = trial.look()
        assert {name: now[name] for name in trial.case.expected} == trial.case.expected
    trial.heals()
    trial.reaches({}, trial.case.clears_s)


def test_a_fault_that_flaps_and_heals_leaves_what_its_rule_remembers(trial):
    for _ in range(4):
        trial.appears()
        for _ in range(2):
            trial.look()
        trial.heals()
        for _ in range(2):
            trial.look()
    trial.reaches(trial.case.flapped, LLDP_TTL_S)
    trial.reaches({}, trial.case.flapped_clears_s)


def test_a_swap_on_a_mesh_that_lies_is_seen_at_the_light_that_never_moved(virtual):
    virtual.world.inject("m1", FaultKind.MESH_LYING)
    virtual.assignment = {
        **initial_assignment(virtual.inventory),
        "train": ("n1-gpu0", "n2-gpu0", "n3-gpu0", "n5-gpu0"),
    }
    virtual.said["disabled"] = {"n4-gpu0"}
    virtual.program()
    for _ in range(3):
        virtual.tick()
    out_of_service = {"accelerator n4-gpu0", "link n4-gpu0-a", "link n4-gpu0-b"}
    # The lanes of the spare hear each other, for in bar every port is paired with some other.
    wrong = {"circuit train/2-3": F, "circuit train/3-0": F}
    states = virtual.states()
    assert {n: s for n, s in states.items() if s is not OK} == {
        **dict.fromkeys(out_of_service, State.DISABLED),
        **wrong,
    }
    virtual.world.clear("m1")
    virtual.program()
    for _ in range(int(LLDP_TTL_S / TICK_S) + 2):
        virtual.tick()
    assert {n for n, s in virtual.states().items() if s is not OK} == out_of_service


def test_all_gpus_of_a_host_alike_are_one_incident_of_the_host(virtual):
    for gpu in ("n2-gpu0", "n2-gpu1"):
        virtual.world.inject(gpu, FaultKind.OVERHEAT)
    virtual.tick()
    (incident,) = virtual.report.incidents
    assert (incident.id, incident.cause, incident.rule) == ("host:n2", "n2", "gpu.temperature")
    assert incident.members == ("n2", "n2-gpu0", "n2-gpu1")


def test_a_rack_that_loses_its_power_is_one_incident(virtual):
    for host in ("n1", "n2", "n3", "n4"):
        virtual.world.inject(host, FaultKind.UNREACHABLE)
    for _ in range(3):
        virtual.tick()
    (incident,) = virtual.report.incidents
    assert (incident.id, incident.rule, incident.state) == ("rack:r1", "host.unreachable", F)
    assert {"n1", "n2", "n3", "n4", "n1-gpu0", "train/0-1"} <= set(incident.members)
    assert {finding.incident for finding in virtual.report.findings()} == {"rack:r1"}
