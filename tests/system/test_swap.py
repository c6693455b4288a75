"""Swaps on a simulated rack: real SSH, the real mesh protocol, a real database; the mesh is read back to see."""

import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from lumctl.change import Plan, apply, to_document
from lumctl.devices.errors import DeviceUnreachableError
from lumctl.devices.protocols import DriverContext
from lumctl.devices.types import PucState
from lumctl.errors import HalfDoneError, RefusedError, RolledBackError, UsageError
from lumctl.health.states import State
from lumctl.inventory.examples import example
from lumctl.inventory.load import load_inventory
from lumctl.inventory.model import Inventory
from lumctl.sim.driver import SimMesh
from lumctl.sim.launch import SimProcess, launch
from lumctl.site import Site
from lumctl.store import Run, Store, store_at
from lumctl.swap import commission, plan_fabric, plan_rollback, plan_swap


@dataclass
class Rack:
    """A simulated rack with its store."""

    inventory: Inventory
    sim: SimProcess
    site: Site
    store: Store
    folder: Path

    def cells(self) -> dict[str, dict[int, PucState]]:
        """What every mesh really holds."""
        return {
            device: SimMesh(DriverContext(device=device, address=f"unix:{self.sim.control}")).read_states()
            for device in self.inventory.devices
        }

    def ok_circuits(self, job: str) -> list[bool]:
        report = self.site.observe().report
        return [c.state is State.OK for c in report.circuits.values() if c.owner == job]

    def clear(self) -> None:
        from lumctl.sim.client import ask

        ask(self.sim.control, "clear")

    def another_site(self, **settings: Callable[[], float]) -> Site:
        return Site(
            self.inventory,
            "sim",
            endpoints=self.sim.endpoints(),
            store=lambda _rack: store_at(str(self.folder / "store")),
            **settings,
        )


def rack_of(name: str, folder: Path, *, driver: str = "smartlight", **settings: float) -> Iterator[Rack]:
    path = folder / f"{name}.yaml"
    text = example(name).read_text().replace("driver: smartlight", f"driver: {driver}")
    path.write_text(text + "\nthresholds: {light_deadline_s: 1.0}\n")
    inventory = load_inventory(path)
    store = store_at(str(folder / "store"))
    with (
        launch(inventory, folder=folder / "sim", tied=True, **settings) as sim,
        Site(inventory, "sim", endpoints=sim.endpoints(), store=lambda _rack: store) as site,
    ):
        commission(site)
        yield Rack(inventory, sim, site, store, folder)


@pytest.fixture(scope="module")
def shared_rack64(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Rack]:
    yield from rack_of("rack64", tmp_path_factory.mktemp("rack64"))


@pytest.fixture
def timed_rack(tmp_path: Path) -> Iterator[Rack]:
    """A rack whose mesh can be read back and reverts by itself unless a change is confirmed."""
    yield from rack_of("prototype", tmp_path, driver="sim-mesh", delay_ms=300.0)


@pytest.fixture
def rack(tmp_path: Path) -> Iterator[Rack]:
    yield from rack_of("prototype", tmp_path)


RACK64 = load_inventory(example("rack64"))
WORKERS = [(job.name, accelerator) for job in RACK64.jobs.values() for accelerator in job.ranks]
CAMPAIGN = bool(os.environ.get("LUMCTL_CAMPAIGN"))
VICTIMS = WORKERS if CAMPAIGN else random.Random(64).sample(WORKERS, 4)  # noqa: S311 - a seeded sample, no secret


@pytest.mark.parametrize(("job", "victim"), VICTIMS)
def test_any_accelerator_that_works_in_a_job_can_be_replaced(shared_rack64: Rack, job: str, victim: str) -> None:
    rack = shared_rack64
    before = rack.cells()
    placed_before = rack.site.assignment()
    rack.sim.inject(victim, "gpu-lost")
    plan = plan_swap(rack.site, job, [victim])
    result = apply(rack.site, plan)
    spare = plan.replacements[0].spare

    after = rack.cells()
    changed = {(d, p) for d, cells in after.items() for p, state in cells.items() if before[d][p] is not state}
    assert changed == {(c.device, c.puc) for c in plan.changes}
    assert not changed & {(c.device, puc) for c in plan.keep for puc in c.pucs}
    assert {p.receiver for p in result.verified} == {
        r for c in plan.add for r in (c.ends[0]["lane"], c.ends[1]["lane"])
    }
    assert rack.site.assignment()[job] == tuple(spare if a == victim else a for a in placed_before[job])
    assert all(rack.ok_circuits(job))

    apply(rack.site, plan_rollback(rack.site, rack.store.run(result.run)))
    rack.clear()
    assert rack.cells() == before
    assert rack.site.assignment() == placed_before
    assert all(all(rack.ok_circuits(name)) for name in rack.inventory.jobs)
    assert rack.store.first_break() is None


def lost(rack: Rack) -> Plan:
    """s1's GPU is lost and a plan to replace it is made."""
    rack.sim.inject("s1-gpu0", "gpu-lost")
    return plan_swap(rack.site, "finetune", ["s1-gpu0"])


def cell_to_spoil(plan: Plan) -> str:
    """A cell that the plan writes and that no kept circuit runs through."""
    return f"mesh/puc/{plan.changes[0].puc}"


@pytest.mark.parametrize("fault", ["stuck", "mesh-lying", "dark"])
def test_light_that_is_not_proved_takes_everything_back(rack: Rack, fault: str) -> None:
    plan = lost(rack)
    before = rack.cells()
    if fault == "stuck":
        stays = "stuck-cross" if before["mesh"][plan.changes[0].puc] is PucState.CROSS else "stuck-bar"
        rack.sim.inject(cell_to_spoil(plan), stays)
    else:
        rack.sim.inject("mesh" if fault == "mesh-lying" else "s3-gpu0-a", fault)
    with pytest.raises(RolledBackError, match=r"rolled back: light was not verified within .* s: .* instead of"):
        apply(rack.site, plan)
    assert rack.cells() == before
    assert rack.site.assignment()["finetune"] == ("s0-gpu0", "s1-gpu0", "s2-gpu0")
    assert rack.store.runs()[0].state == "rolled-back"
    assert rack.site.known_states("mesh") == before["mesh"]
    assert rack.site.devices.transponder("s1-gpu0-a").transmitting()


def test_a_mesh_that_is_gone_is_unreachable_and_nothing_is_done(rack: Rack) -> None:
    plan = lost(rack)
    rack.sim.inject("mesh", "mesh-down")
    runs = len(rack.store.runs())
    with pytest.raises(DeviceUnreachableError, match="mesh"):
        apply(rack.site, plan)
    assert len(rack.store.runs()) == runs


def test_a_spare_that_fell_ill_after_the_plan_is_refused_before_anything_is_touched(rack: Rack) -> None:
    plan = lost(rack)
    before = rack.cells()
    rack.sim.inject("s3-gpu0", "row-remap-failed")
    with pytest.raises(RefusedError, match="s3-gpu0 is failed"):
        apply(rack.site, plan)
    assert rack.cells() == before
    assert rack.store.runs()[0].state == "refused"
    assert rack.site.known_states("mesh") == before["mesh"]


def test_a_spare_that_is_ill_is_not_planned_with(rack: Rack) -> None:
    rack.sim.inject("s3-gpu0", "row-remap-failed")
    with pytest.raises(RefusedError, match="s3-gpu0: is failed"):
        lost(rack)


def test_a_plan_is_applied_once(rack: Rack) -> None:
    plan = lost(rack)
    apply(rack.site, plan)
    with pytest.raises(RefusedError, match="is stale: finetune does not run where it did"):
        apply(rack.site, plan)


def test_an_accelerator_that_is_well_is_not_replaced_unless_asked(rack: Rack) -> None:
    rack.sim.inject("s1-gpu0", "process-died")
    with pytest.raises(RefusedError, match="can restart on it in place"):
        plan_swap(rack.site, "finetune", ["s1-gpu0"])
    assert plan_swap(rack.site, "finetune", ["s1-gpu0"], even_if_healthy=True).replacements[0].spare == "s3-gpu0"


def test_a_host_that_is_gone_is_replaced_all_the_same(rack: Rack) -> None:
    rack.sim.inject("s1", "unreachable")
    result = apply(rack.site, plan_swap(rack.site, "finetune", ["s1-gpu0"]))
    darkened = [e for e in rack.store.entries(result.run) if e.kind == "outcome" and "failed" in e.data]
    assert [e.step for e in darkened] == ["2", "3"]
    assert len(result.verified) == 4


def test_two_engines_never_change_one_rack_at_once(rack: Rack) -> None:
    plan = lost(rack)
    held = rack.store.acquire("prototype", "somebody else", term_s=60.0, now=time.time())
    with pytest.raises(RefusedError, match="being changed by somebody else"):
        apply(rack.site, plan)
    rack.store.release(held)
    apply(rack.site, plan)


def test_an_unprogrammed_mesh_is_not_planned_on_until_the_fabric_is_applied(rack: Rack, tmp_path: Path) -> None:
    empty = store_at(str(tmp_path / "empty"))
    with Site(rack.inventory, "sim", endpoints=rack.sim.endpoints(), store=lambda _rack: empty) as site:
        rack.sim.inject("s1-gpu0", "gpu-lost")
        with pytest.raises(RefusedError, match="never programmed from this store"):
            plan_swap(site, "finetune", ["s1-gpu0"])
        result = apply(site, plan_fabric(site, "prototype"))
        assert len(result.verified) == 6
        assert plan_fabric(site, "prototype").steps == ()
        apply(site, plan_swap(site, "finetune", ["s1-gpu0"]))


@pytest.mark.parametrize(
    ("job", "failed", "spares", "says"),
    [
        ("finetun", ["s1-gpu0"], [], "no job 'finetun' in the inventory; did you mean 'finetune'"),
        ("finetune", ["s1-gpu"], [], "no accelerator 's1-gpu' in the inventory; did you mean"),
        ("finetune", ["s3-gpu0"], [], "s3-gpu0 does not work in finetune"),
        ("finetune", ["s1-gpu0", "s1-gpu0"], [], "named twice"),
        ("finetune", ["s1-gpu0"], ["s3-gpu0", "s2-gpu0"], "1 accelerators failed, but 2 spares"),
        ("finetune", [], [], "no failed accelerator"),
    ],
)
def test_wrong_names_are_one_line_each(rack: Rack, job: str, failed: list[str], spares: list[str], says: str) -> None:
    with pytest.raises(UsageError, match=says):
        plan_swap(rack.site, job, failed, spares)


APPLY = """
import sys
from pathlib import Path
from lumctl.change import apply, from_document
from lumctl.devices.endpoints import sim_endpoints
from lumctl.inventory.load import load_inventory
from lumctl.site import Site
from lumctl.store import store_at
inventory, folder, plan = load_inventory(Path(sys.argv[1])), Path(sys.argv[2]), sys.argv[3]
store = store_at(str(folder / "store"))
with Site(inventory, "sim", endpoints=sim_endpoints(inventory, folder / "sim"), store=lambda _rack: store) as site:
    apply(site, from_document(store.plan(plan)), progress=lambda line: print(line, flush=True))
"""


@pytest.fixture
def slow_rack(tmp_path: Path) -> Iterator[Rack]:
    """A rack whose mesh takes a while to settle, so that a run can be killed while it writes."""
    yield from rack_of("prototype", tmp_path, delay_ms=700.0)


def kill_engine(rack: Rack, plan: Plan, when: Callable[[subprocess.Popen[str]], object]) -> Run:
    """Apply a plan in a process of its own and kill that at the given moment."""
    rack.store.save_plan(to_document(plan))
    with subprocess.Popen(
        [sys.executable, "-c", APPLY, str(rack.inventory.path), str(rack.folder), plan.id],
        stdout=subprocess.PIPE,
        text=True,
    ) as engine:
        when(engine)
        engine.send_signal(signal.SIGKILL)
    run = rack.store.runs()[0]
    assert run.state == "running"
    return run


def take_back(rack: Rack, run: Run, before: dict[str, dict[int, PucState]]) -> None:
    """The lease of a dead engine holds for its term; then its run can be taken back whole."""
    with rack.another_site() as site, pytest.raises(RefusedError, match="its lease ends in"):
        apply(site, plan_rollback(site, run))
    with rack.another_site(now=lambda: time.time() + 60) as later:
        apply(later, plan_rollback(later, rack.store.run(run.id)))
    assert rack.cells() == before
    assert rack.store.run(run.id).state == "undone"
    assert rack.site.known_states("mesh") == before["mesh"]
    assert rack.site.assignment()["finetune"] == ("s0-gpu0", "s1-gpu0", "s2-gpu0")
    assert rack.store.first_break() is None


@pytest.mark.parametrize("step", ["1", "3", "6", "7"])
def test_a_run_that_is_killed_after_a_step_is_taken_back_by_its_journal(slow_rack: Rack, step: str) -> None:
    plan = lost(slow_rack)
    before = slow_rack.cells()
    run = kill_engine(slow_rack, plan, lambda engine: next(x for x in engine.stdout or () if x.startswith(f"{step}. ")))
    take_back(slow_rack, run, before)


def test_a_run_that_is_killed_while_it_writes_leaves_the_mesh_uncertain_until_it_is_taken_back(
    slow_rack: Rack,
) -> None:
    plan = lost(slow_rack)
    before = slow_rack.cells()

    def writes(_engine: object) -> None:
        deadline = time.monotonic() + 20
        while slow_rack.store.uncertain_since("mesh") is None:
            assert time.monotonic() < deadline

    run = kill_engine(slow_rack, plan, writes)
    with pytest.raises(RefusedError, match=f"is not certain since {run.id} was cut"):
        plan_swap(slow_rack.site, "finetune", ["s1-gpu0"])
    take_back(slow_rack, run, before)


def test_a_mesh_that_dies_between_writing_and_undoing_is_left_half_done_and_says_so(rack: Rack) -> None:
    plan = lost(rack)
    rack.sim.inject(cell_to_spoil(plan), "stuck-cross" if plan.changes[0].after == "=" else "stuck-bar")

    def die_before_verify(line: str) -> None:
        if line.startswith("6. "):
            rack.sim.inject("mesh", "mesh-down")

    with pytest.raises(HalfDoneError, match=r"is left half done: program 9 PUCs of mesh: .* refused") as error:
        apply(rack.site, plan, progress=die_before_verify)
    run = rack.store.runs()[0]
    assert f"lumctl swap rollback {run.id}" in str(error.value.hint)
    assert run.state == "half-done"
    assert rack.site.known_states("mesh") == {}
    rack.clear()
    apply(rack.site, plan_rollback(rack.site, run))
    assert all(rack.ok_circuits("finetune"))


def test_a_mesh_with_a_timer_is_certain_only_when_it_is_confirmed(timed_rack: Rack) -> None:
    rack = timed_rack
    plan = lost(rack)
    before = rack.cells()
    run = kill_engine(rack, plan, lambda engine: next(x for x in engine.stdout or () if x.startswith("6. ")))
    assert rack.site.known_states("mesh") == {}
    take_back(rack, run, before)
    result = apply(rack.site, plan_swap(rack.site, "finetune", ["s1-gpu0"]))
    assert rack.site.known_states("mesh") == rack.cells()["mesh"]
    assert [phase.name for phase in result.phases][-2:] == ["confirm", "assign"]


def test_a_mesh_that_can_be_read_and_was_changed_by_somebody_is_not_built_on(timed_rack: Rack) -> None:
    plan = lost(timed_rack)
    timed_rack.sim.inject("mesh/puc/40", "stuck-cross")
    timed_rack.sim.inject("mesh/puc/43", "stuck-cross")
    with pytest.raises(RefusedError, match="does not hold what was last written to it: 2 cells differ"):
        apply(timed_rack.site, plan)


def test_a_run_whose_listener_is_gone_is_undone_all_the_same(rack: Rack) -> None:
    plan = lost(rack)
    before = rack.cells()
    rack.sim.inject("mesh", "mesh-lying")

    def deaf(_line: str) -> None:
        raise BrokenPipeError

    with pytest.raises(RolledBackError):
        apply(rack.site, plan, progress=deaf)
    assert rack.cells() == before
    rack.clear()
    assert apply(rack.site, plan, progress=deaf).outcome == "done"


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGINT])
def test_a_run_that_is_told_to_stop_is_undone_first(slow_rack: Rack, number: signal.Signals) -> None:
    rack = slow_rack
    plan = lost(rack)
    before = rack.cells()
    rack.store.save_plan(to_document(plan))
    with subprocess.Popen(
        [sys.executable, "-c", APPLY, str(rack.inventory.path), str(rack.folder), plan.id],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    ) as engine:
        next(line for line in engine.stdout or () if line.startswith("6. "))
        engine.send_signal(number)
    assert rack.store.runs()[0].state == "rolled-back"
    assert rack.cells() == before
    assert rack.site.known_states("mesh") == before["mesh"]


def test_a_swap_of_a_dead_host_that_was_cut_can_be_taken_back(slow_rack: Rack) -> None:
    slow_rack.sim.inject("s1", "unreachable")
    before = slow_rack.cells()
    plan = plan_swap(slow_rack.site, "finetune", ["s1-gpu0"])
    run = kill_engine(slow_rack, plan, lambda engine: next(x for x in engine.stdout or () if x.startswith("6. ")))
    take_back(slow_rack, run, before)


def test_a_plan_that_became_stale_while_the_lease_was_awaited_is_refused(rack: Rack) -> None:
    plan = lost(rack)
    with rack.another_site() as other:
        acquire = rack.store.acquire

        def late(*words: object, **more: object) -> object:
            apply(other, plan)
            return acquire(*words, **more)  # type: ignore[arg-type]

        rack.store.acquire = late  # type: ignore[method-assign, assignment]
        with pytest.raises(RefusedError, match="is stale"):
            apply(rack.site, plan)


def test_one_dark_lane_does_not_keep_the_fabric_from_being_programmed(rack: Rack, tmp_path: Path) -> None:
    empty = store_at(str(tmp_path / "empty"))
    with Site(rack.inventory, "sim", endpoints=rack.sim.endpoints(), store=lambda _rack: empty) as site:
        rack.sim.inject("s0-gpu0-a", "dark")
        with pytest.raises(HalfDoneError, match=r"s2-gpu0-b hears .* instead of s0-gpu0-a"):
            apply(site, plan_fabric(site, "prototype"))
        assert site.known_states("mesh") == rack.cells()["mesh"]
        rack.sim.inject("s1-gpu0", "gpu-lost")
        apply(site, plan_swap(site, "finetune", ["s1-gpu0"]))


def test_a_rollback_that_was_cut_is_named_and_can_be_taken_back(slow_rack: Rack) -> None:
    rack = slow_rack
    result = apply(rack.site, lost(rack))
    swapped = rack.cells()
    back = plan_rollback(rack.site, rack.store.run(result.run))
    run = kill_engine(rack, back, lambda engine: next(x for x in engine.stdout or () if x.startswith("4. ")))
    with rack.another_site(now=lambda: time.time() + 60) as later:
        with pytest.raises(RefusedError, match="is stale"):
            apply(later, plan_rollback(later, rack.store.run(result.run)))
        apply(later, plan_rollback(later, rack.store.run(run.id)))
    assert rack.cells() == swapped
    assert rack.store.run(result.run).state == "done"


def test_fabric_apply_mends_what_the_light_denies_and_the_record_claims(rack: Rack) -> None:
    assert plan_fabric(rack.site, "prototype").steps == ()
    rack.sim.inject(f"mesh/puc/{crossed(rack)}", "stuck-bar")
    rack.clear()  # the cell moves again, and stays where the fault has left it
    assert not all(rack.ok_circuits("finetune"))
    result = apply(rack.site, plan_fabric(rack.site, "prototype"))
    assert result.verified
    assert all(rack.ok_circuits("finetune"))


def crossed(rack: Rack) -> int:
    """A cell in cross that a circuit runs through."""
    from lumctl.fabric import mesh, trace

    held = rack.cells()["mesh"]
    return next(puc for puc, state in trace(mesh(7, 3), held, 20).passes if state is PucState.CROSS)


def test_a_run_that_waits_for_a_hand_is_named_by_the_next_look(slow_rack: Rack) -> None:
    plan = lost(slow_rack)
    run = kill_engine(slow_rack, plan, lambda engine: next(x for x in engine.stdout or () if x.startswith("3. ")))
    assert slow_rack.site.observe().unfinished == ()  # its lease has not ended: it may still be at work
    with slow_rack.another_site(now=lambda: time.time() + 60) as later:
        assert later.observe().unfinished == (run.id,)
        apply(later, plan_rollback(later, run))
        assert later.observe().unfinished == ()
