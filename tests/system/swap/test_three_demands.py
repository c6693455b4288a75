"""Four jobs and two classes of accelerators: a whole host and two ranks fail at once; spares return one by one."""

import pytest
from waiting import until

from lumctl.change import apply
from lumctl.store import SERVED
from lumctl.swap import plan_swap
from lumctl.swap.demand_queue import queue_demands, queue_entries
from lumctl.swap.explanations import NoSpareError

RACK = "mixed"
HOST = tuple(f"a1-gpu{n}" for n in range(4))
DEMANDS = {"alpha": HOST, "beta": ("a2-gpu0",), "gamma": ("b1-gpu0",)}
BIG, SMALL = tuple(f"s1-gpu{n}" for n in range(4)), ("s2-gpu0",)
INVENTORY = """\
lumctl: 1
racks:
  mixed:
hosts:
  - name: a[1-2]
    accelerators: [{id: "{host}-gpu[0-3]", model: BIG, memory_gib: 80}]
  - name: b1
    accelerators: [{id: "{host}-gpu[0-3]", model: SMALL, memory_gib: 40}]
  - name: s1
    accelerators: [{id: "{host}-gpu[0-3]", model: BIG, memory_gib: 80, role: spare}]
  - name: s2
    accelerators: [{id: "{host}-gpu0", model: SMALL, memory_gib: 40, role: spare}]
devices:
  - {id: ocs, kind: switch, driver: polatis-scpi, address: "ocs.example:5025", port_count: 34, input_count: 34}
transponders:
  - id: "a[1-2]-gpu[0-3]-a"
    accelerator: "a[1-2]-gpu[0-3]"
    interface: ["eth[2-5]", "eth[2-5]"]
    device: ocs
    port: [0, 1, 2, 3, 4, 5, 6, 7]
  - id: "a[1-2]-gpu[0-3]-b"
    accelerator: "a[1-2]-gpu[0-3]"
    interface: ["eth[6-9]", "eth[6-9]"]
    device: ocs
    port: [8, 9, 10, 11, 12, 13, 14, 15]
  - {id: "b1-gpu[0-3]-a", accelerator: "b1-gpu[0-3]", interface: "eth[2-5]", device: ocs, port: [16, 17, 18, 19]}
  - {id: "b1-gpu[0-3]-b", accelerator: "b1-gpu[0-3]", interface: "eth[6-9]", device: ocs, port: [20, 21, 22, 23]}
  - {id: "s1-gpu[0-3]-a", accelerator: "s1-gpu[0-3]", interface: "eth[2-5]", device: ocs, port: [24, 25, 26, 27]}
  - {id: "s1-gpu[0-3]-b", accelerator: "s1-gpu[0-3]", interface: "eth[6-9]", device: ocs, port: [28, 29, 30, 31]}
  - {id: s2-gpu0-a, accelerator: s2-gpu0, interface: eth2, device: ocs, port: 32}
  - {id: s2-gpu0-b, accelerator: s2-gpu0, interface: eth3, device: ocs, port: 33}
jobs:
  - {name: alpha, ranks: ["a1-gpu[0-3]"], links: [{kind: ring}]}
  - {name: beta, ranks: ["a2-gpu[0-3]"], links: [{kind: ring}]}
  - {name: gamma, ranks: ["b1-gpu[0-1]"], links: [{kind: ring}]}
  - {name: delta, ranks: ["b1-gpu[2-3]"], links: [{kind: ring}]}
"""


@pytest.fixture
def rack(rack_of, tmp_path):
    made = rack_of("ring8", tmp_path, edited=lambda _: INVENTORY)
    yield next(made)
    next(made, None)


def given(rack):
    """The spares that each waiting job can have now."""
    seen = rack.context.observe()
    entries, decision = queue_entries(rack.store.demands.waiting(), seen, RACK)
    assert decision.fault is None
    return {entry.demand.job: set(entry.given) for entry in entries}


def until_given(rack, **expected):
    wanted = {job: set(names) for job, names in expected.items()}
    until(lambda: given(rack) == wanted, says=lambda: given(rack))


def serve(rack, job):
    apply(rack.context, plan_swap(rack.context, job, list(DEMANDS[job])))
    require_sound(rack)


def require_sound(rack):
    """No accelerator runs two ranks, and the host of four is replaced as a whole or not at all."""
    placed = rack.context.assignment()
    used = [name for ranks in placed.values() for name in ranks]
    assert len(used) == len(set(used))
    assert len(set(placed["alpha"]) & set(BIG)) in {0, 4}
    assert set(rack.ok_circuits("delta")) == {True}


def test_each_demand_has_all_that_it_needs_or_nothing_and_all_are_served_in_the_end(rack):
    for name in (*BIG, *SMALL, *(name for failed in DEMANDS.values() for name in failed)):
        rack.sim.inject(name, "gpu-lost")
    for job, failed in DEMANDS.items():
        with pytest.raises(NoSpareError) as refused:
            plan_swap(rack.context, job, list(failed))
        queue_demands(rack.store, rack.context.observe(), RACK, failed, why=str(refused.value), who="ann@console")
    until_given(rack, alpha=(), beta=(), gamma=())
    rack.sim.clear(SMALL[0])  # only the job of its class can use it
    until_given(rack, alpha=(), beta=(), gamma=SMALL)
    rack.sim.clear(BIG[0])  # the host needs four: one does not wait idle for it
    until_given(rack, alpha=(), beta=BIG[:1], gamma=SMALL)
    with pytest.raises(NoSpareError):
        plan_swap(rack.context, "alpha", list(HOST))
    for name in BIG[1:]:
        rack.sim.clear(name)
    until_given(rack, alpha=BIG, beta=(), gamma=SMALL)  # the oldest first
    with pytest.raises(NoSpareError, match="is kept for alpha"):
        plan_swap(rack.context, "beta", list(DEMANDS["beta"]))

    serve(rack, "gamma")
    serve(rack, "alpha")
    until_given(rack, beta=())
    rack.sim.clear(DEMANDS["beta"][0])  # what failed is repaired instead

    def needless():
        entries, _ = queue_entries(rack.store.demands.waiting(), rack.context.observe(), RACK)
        return [(entry.demand.job, entry.needless) for entry in entries]

    until(lambda: needless() == [("beta", "a2-gpu0 is ok again")], says=needless)
    ended = {each.job: each.state for each in rack.store.demands.all()}
    assert (ended["alpha"], ended["gamma"]) == (SERVED, SERVED)
    assert rack.store.first_break() is None
