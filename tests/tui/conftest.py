"""A rack that needs no rack: observations made by hand, a clock that stands still, swaps that do as they are told.

pytest imports this file for its fixtures, ``picture.py`` for the README's picture.
"""

import asyncio
import re
import sys
import threading
import time
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from looks import DARK, RX_DBM, report_of
from rack_states import STATES
from textual.pilot import Pilot

from lumctl.cli.output import ASCII_GLYPHS, GLYPHS
from lumctl.devices.types import OpticsReading, PucState
from lumctl.fabric import Route, mesh, route, trace
from lumctl.fabric.drawing import NamedRoutes
from lumctl.fleet.readings import GpuProcess, GpuReading, HostSnapshot, ProbeOutcome, ProbeStatus, Snapshot
from lumctl.health.observation import Observation
from lumctl.health.states import State
from lumctl.inventory.model import (
    Accelerator,
    Device,
    DeviceKind,
    Evidence,
    Geometry,
    Host,
    Inventory,
    Job,
    Lane,
    Rack,
    RingLinks,
    Role,
    Thresholds,
    Transponder,
)
from lumctl.inventory.wiring import Circuit, circuits_of, initial_assignment
from lumctl.store import StoredRun
from lumctl.tui.actions import Acts, ApplyView, PlanView
from lumctl.tui.app import Dashboard
from lumctl.tui.look.marks import Marks
from lumctl.tui.preferences import Preferences
from lumctl.tui.sources import Sources
from lumctl.tui.views.meshes import MeshChange, MeshView
from lumctl.tui.views.records import Line, Records

START = 1_795_000_000.0
LOST = "r1-h2-g1"
HOSTS, PER_HOST, WORKERS = 4, 4, 12


def inventory() -> Inventory:
    """Four hosts of four accelerators on one mesh: twelve work in a ring, the last host's four are spares."""
    hosts = [f"r1-h{n}" for n in range(1, HOSTS + 1)]
    accelerators = [
        Accelerator(
            id=f"{host}-g{index}",
            host=host,
            rack="r1",
            model="H100",
            memory_gib=80,
            role=Role.SPARE if host == hosts[-1] else Role.ACTIVE,
            index=index,
            pci=f"0000:{0x1B + 0x10 * index:02x}:00.0",
        )
        for host in hosts
        for index in range(PER_HOST)
    ]
    transponders = [
        Transponder(
            id=f"{accelerator.id}-l{lane}",
            accelerator=accelerator.id,
            host=accelerator.host,
            interface=f"eth{2 * accelerator.index + lane + 1}",
            lane=Lane("mesh1", 2 * position + lane, 2 * position + lane),
            driver="hostport",
            verify=(Evidence.LLDP, Evidence.BLINK),
            tx_power_dbm=0.0,
            rx_sensitivity_dbm=-14.0,
        )
        for position, accelerator in enumerate(accelerators)
        for lane in (0, 1)
    ]
    mesh = Device("mesh1", "r1", DeviceKind.MESH, "smartlight", "10.0.0.9:5000", Geometry(9, 9), 76, 0.2, 1.0, 50.0)
    ranks = tuple(accelerator.id for accelerator in accelerators[:WORKERS])
    return Inventory(
        path=Path("rack.yaml"),
        digest="0" * 64,
        racks={"r1": Rack("r1")},
        hosts={host: Host(host, "r1", f"10.0.0.{n}") for n, host in enumerate(hosts, start=1)},
        accelerators={accelerator.id: accelerator for accelerator in accelerators},
        transponders={transponder.id: transponder for transponder in transponders},
        devices={"mesh1": mesh},
        jobs={"llm": Job("llm", "r1", ranks, (RingLinks(tuple(range(WORKERS))),))},
        thresholds=Thresholds(),
    )


def observation(*, at: float = START, failed: str | None = "r1-h2-g1", target: str = "sim") -> Observation:
    """One look at that rack; with ``failed``, that accelerator is off its bus and its circuits are dark."""
    rack = inventory()
    assignment = initial_assignment(rack)
    circuits = circuits_of(rack, assignment)
    snapshot = Snapshot(at, 0.21, {host: _host(rack, host, at, failed) for host in rack.hosts})
    return Observation(
        at=at,
        target=target,
        inventory=rack,
        assignment=assignment,
        circuits=circuits,
        losses={circuit.id: 4.2 for circuit in circuits},
        snapshot=snapshot,
        report=report_of(rack, circuits, at, [failed] if failed else []),
    )


def _host(rack: Inventory, host: str, at: float, failed: str | None) -> HostSnapshot:
    accelerators = rack.accelerators_of(host)
    return HostSnapshot(
        host,
        at,
        reachable=True,
        connect_seconds=0.03,
        probes={"gpu": ProbeOutcome("gpu", ProbeStatus.OK, at, 0.18)},
        gpus=tuple(_gpu(a, at) for a in accelerators if a.id != failed),
        optics={
            lane.interface: OpticsReading(
                at,
                transmitting=True,
                rx_power_dbm=DARK if a.id == failed else RX_DBM,
                tx_power_dbm=0.0,
                thresholds={"rx_power_low_alarm": -14.0},
            )
            for a in accelerators
            for lane in rack.transponders_of(a.id)
        },
    )


def _gpu(accelerator: Accelerator, at: float) -> GpuReading:
    works = accelerator.role is Role.ACTIVE
    return GpuReading(
        taken_at=at,
        pci=accelerator.pci or "",
        minor=accelerator.index,
        temperature_c=58 + accelerator.index if works else 31,
        temperature_slowdown_c=87,
        utilization_percent=97 if works else 0,
        memory_used_mib=71 * 1024 if works else 1024,
        memory_total_mib=80 * 1024,
        power_w=612.5 if works else 70,
        power_limit_w=700,
        memory_utilization_percent=54 if works else 0,
        sm_clock_mhz=1755 if works else 345,
        sm_clock_max_mhz=1980,
        pcie_generation=5,
        pcie_generation_max=5,
        pcie_width=16,
        pcie_width_max=16,
        pcie_tx_kb_s=1_850_000 if works else 350,
        pcie_rx_kb_s=2_100_000 if works else 400,
        ecc_volatile_uncorrectable=0,
        recovery_action="None",
        processes=(GpuProcess(4711, "python", 72_000),) if works else (),
    )


def with_room(rack: Inventory) -> Inventory:
    """The same rack with its fibres at ports that the mesh can join as the ring needs them."""
    apart = {
        name: replace(each, lane=Lane("mesh1", 3 * each.lane.tx + 1, 3 * each.lane.rx + 1))
        for name, each in rack.transponders.items()
    }
    return replace(rack, transponders=apart)


def mesh_cells(circuits: Sequence[Circuit]) -> dict[int, str]:
    """What that rack's mesh holds when these circuits are made."""
    chip = mesh(9, 9)
    states = dict.fromkeys(range(chip.puc_count), PucState.BAR)
    for found in route(chip, [circuit.ports for circuit in circuits], states={}):
        states |= dict(found.passes)
    return {puc: state.value for puc, state in states.items()}


def mesh_change() -> MeshChange:
    """What a plan makes of that mesh: the two circuits of the lost accelerator are led to a spare."""
    rack, chip = inventory(), mesh(9, 9)
    circuits = circuits_of(rack, initial_assignment(rack))
    pairs = {circuit.id: circuit.ports for circuit in circuits}
    before = {puc: PucState(state) for puc, state in mesh_cells(circuits).items()}
    kept = {name: ports for name, ports in pairs.items() if name not in {"llm/4-5", "llm/5-6"}}
    added = {"llm/4-5": (28, 71), "llm/5-6": (72, 37)}
    routes = route(chip, list(added.values()), states=before, live=list(kept.values()))
    after = before | {puc: state for found in routes for puc, state in found.passes}

    def ways(named: Mapping[str, tuple[int, int]], states: Mapping[int, PucState]) -> NamedRoutes:
        found = (trace(chip, states, a) for a, _ in named.values())
        return NamedRoutes(tuple(named), tuple(Route((way.port, way.exit), way.passes) for way in found))

    gone = {name: ports for name, ports in pairs.items() if name not in kept}
    return MeshChange(rack.devices["mesh1"], before, after, ways(added, after), ways(gone, before), ways(kept, after))


def run(number: int = 7, *, state: str = "done", at: float = START, **changed: Any) -> StoredRun:
    """One run of that rack, as its store holds it."""
    values = {
        "id": f"swap-{number:04}",
        "rack": "r1",
        "target": "sim",
        "kind": "swap",
        "title": f"llm: replace {LOST} by r1-h4-g0",
        "plan": {"steps": [{"id": "s1", "title": "program 14 cells of mesh1"}]},
        "plan_digest": "1" * 64,
        "inventory_digest": "0" * 64,
        "who": "ops@bastion",
        "version": "0.1.0",
        "fence": number,
        "state": state,
        "started_at": at - 40,
        "ended_at": None if state == "running" else at - 38.5,
        "undone_by": None,
    }
    return StoredRun(**{**values, **changed})


def records() -> Records:
    """What that rack's store tells: one swap, an autopilot with one policy, a job that runs, and the log of it all."""
    decision = {
        "at": START - 60,
        "key": f"gpu.lost:{LOST}",
        "policy": "replace",
        "act": "apply",
        "because": "it is lost",
    }
    policy = {
        "policy": "replace",
        "how": "apply",
        "breaker": "closed",
        "breaker_since": None,
        "breaker_why": None,
        "swaps_hour": 1,
        "most_hour": 2,
        "swaps_day": 1,
        "most_day": 4,
    }
    autopilot = {
        "rack": "r1",
        "state": "running",
        "why": None,
        "policies": [policy],
        "last_decided_at": START - 60,
        "waiting": [],
        "decisions": [decision],
    }
    line = Line(START - 40, "r1", "ops@bastion", f"swap-0007 begins: llm: replace {LOST} by r1-h4-g0")
    return Records(runs=(run(),), autopilots=(autopilot,), log=(line,))


@dataclass
class Stage:
    """A dashboard's surroundings, all in the test's hand: the clock, what is observed, what plan and apply do."""

    target: str = "sim"
    interval_s: float = 3600
    now: float = START
    seen: Observation | Exception | None = None
    records: Records = field(default_factory=Records)
    forbidden: str = ""
    plan_error: Exception | None = None
    apply_error: Exception | None = None
    may_end: threading.Event = field(default_factory=threading.Event)
    planned: list[tuple[str | None, ...]] = field(default_factory=list)
    applied: list[PlanView] = field(default_factory=list)
    looks: int = 0
    changes: tuple[MeshChange, ...] = ()
    holds: MeshView | Exception | None = None
    racks: tuple[str, ...] = ("r1",)
    sources: dict[str, Any] = field(default_factory=dict)
    """Whatever else a test's dashboard reads with, by the names of ``Sources``."""
    preferences: Preferences | None = None
    acts: dict[str, Any] = field(default_factory=dict)
    """Whatever else may be done from it, by the names of ``Acts``."""

    def mesh(self, device: str) -> MeshView:
        held = self.holds or MeshView(device, trouble=f"{device} cannot be read back")
        if isinstance(held, Exception):
            raise held
        return held

    def observe(self) -> Observation:
        self.looks += 1
        seen = self.seen or observation(target=self.target)
        if isinstance(seen, Exception):
            raise seen
        return seen

    def plan(self, job: str | None, *failed: str) -> PlanView:
        self.planned.append((job, *failed))
        if self.plan_error is not None:
            raise self.plan_error
        title = f"{job}: replace {', '.join(failed)} by r1-h4-g0"
        return PlanView(title, self.target, PLAN_LINES, "the plan", changes=self.changes)

    def apply(self, plan: PlanView, progress: Callable[[str], None]) -> ApplyView:
        self.applied.append(plan)
        progress("1. check that r1-h4-g0 is healthy: 0.31 s")
        progress("2. program 14 cells of mesh1: 0.08 s")
        assert self.may_end.wait(20)
        if self.apply_error is not None:
            raise self.apply_error
        progress("3. show that each receiver hears its transmitter: 1.12 s")
        return ApplyView(
            "run-7: done in 1.51 s, 4 receivers proved",
            done=True,
            lines=("runbook: /var/lib/lumctl/r1/runbooks/run-7.yaml",),
        )

    def dashboard(self, *, ascii_only: bool = False) -> Dashboard:
        return Dashboard(
            Sources(self.observe, lambda: self.records, mesh=self.mesh, **self.sources),
            Acts(self.plan, self.apply, self.forbidden, **self.acts),
            racks=self.racks,
            target=self.target,
            marks=Marks(ASCII_GLYPHS if ascii_only else GLYPHS, ascii_only=ascii_only),
            interval_s=self.interval_s,
            now=lambda: self.now,
            preferences=self.preferences,
        )


PLAN_LINES = (
    "target sim, rack r1",
    "",
    "spares considered",
    "  * r1-h4-g0: healthy, shortest light paths",
    "    r1-h4-g1: healthy",
    "",
    "circuits",
    "  - llm/4-5: r1-h2-g0-l1 (port 9) <-> r1-h2-g1-l0 (port 10)",
    "  + llm/4-5: r1-h2-g0-l1 (port 9) <-> r1-h4-g0-l0 (port 24), 9 PUCs, 4.20 dB, -4.20 dBm expected",
    "    10 others on the same devices stay as they are",
    "",
    "cells of mesh1: 14 written",
)


TURNS = 2000
"""How often a test looks whether what it waits for has come."""


async def until(pilot: Pilot[None], condition: Callable[[], object]) -> None:
    """Let the application work until something holds; fail after so many turns: pytest's limit is not heard here."""
    for _ in range(TURNS):
        if condition():
            break
        await pilot.pause(0.005)
    assert condition(), screen_text(pilot.app)
    await pilot.pause()


async def first_look(pilot: Pilot[None]) -> None:
    """Wait until something was observed, or could not be."""
    app = pilot.app
    assert isinstance(app, Dashboard)
    await until(pilot, lambda: app.seen is not None or app.trouble is not None)


def with_states(seen: Observation, states: Mapping[str, State]) -> Observation:
    """The same observation with other states for some accelerators."""
    accelerators = {
        name: replace(health, state=states.get(name, health.state)) for name, health in seen.report.accelerators.items()
    }
    return replace(seen, report=replace(seen.report, accelerators=accelerators))


def swapped_out(seen: Observation, accelerator: str) -> Observation:
    """The same observation with an accelerator that a swap took out of its job."""
    ranks = tuple("r1-h4-g0" if rank == accelerator else rank for rank in seen.assignment["llm"])
    return with_states(replace(seen, assignment={"llm": ranks}), {accelerator: State.DISABLED})


def unreachable(seen: Observation) -> Observation:
    """The same rack when no host answers any more: nothing is read, so nothing is known."""
    hosts = {name: HostSnapshot(name, seen.at, reachable=False, error="no route") for name in seen.snapshot.hosts}
    accelerators = {
        name: replace(health, state=State.UNKNOWN, read_at=None, findings=())
        for name, health in seen.report.accelerators.items()
    }
    return replace(
        seen,
        snapshot=replace(seen.snapshot, hosts=hosts),
        report=replace(seen.report, accelerators=accelerators),
    )


Script = Callable[[Pilot[None]], Awaitable[None]]


def drive(dashboard: Dashboard, script: Script, size: tuple[int, int] = (110, 30)) -> None:
    """Run a dashboard without a terminal and let a script use it once something was read."""

    async def run() -> None:
        async with dashboard.run_test(size=size) as pilot:
            await first_look(pilot)
            await script(pilot)

    asyncio.run(run())


def screen_text(dashboard: Dashboard) -> str:
    """What stands on the screen, line by line."""
    return "\n".join(strip.text.rstrip() for strip in dashboard.screen._compositor.render_strips())


@pytest.fixture(autouse=True)
def _same_clocks_everywhere(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Times of day are shown in the reader's time zone: the pictures have that of nobody in particular."""
    with monkeypatch.context() as patch:
        patch.setenv("TZ", "UTC")
        time.tzset()
        yield
    time.tzset()


@pytest.fixture
def stage() -> Stage:
    """A dashboard on the simulator, with one accelerator lost."""
    return Stage()


@pytest.fixture
def on_mesh(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> Stage:
    """That dashboard where the mesh makes every circuit and tells what it holds."""
    rack = with_room(inventory())
    monkeypatch.setattr(sys.modules[__name__], "inventory", lambda: rack)
    cells = mesh_cells(observation().circuits)
    stage.holds = MeshView("mesh1", cells, START - 3, cells)
    return stage


@pytest.fixture
def kit() -> ModuleType:
    """This file: test folders are no packages, so its helpers are handed to the tests."""
    return sys.modules[__name__]


@pytest.fixture
def looks_as_before(snap_compare):
    """Compare the screen after some keys, pressed once the first reading is there."""

    def compare(stage, *keys, size=(110, 30), ascii_only=False, then=None):
        dashboard = stage.dashboard(ascii_only=ascii_only)

        async def use(pilot):
            await first_look(pilot)
            await pilot.press(*keys)
            if then is not None:
                await then(pilot)
            await pilot.pause()  # a screen that has just come is laid out once more

        return snap_compare(dashboard, terminal_size=size, run_before=use)

    return compare


def _shown(stage, *keys, size, ascii_only, then):
    """What stands on the screen after some keys."""
    shown: list[str] = []

    async def use(pilot):
        await pilot.press(*keys)
        if then is not None:
            await then(pilot)
        await pilot.pause()
        shown.append(screen_text(pilot.app) + "\n")

    drive(stage.dashboard(ascii_only=ascii_only), use, size)
    assert shown[0].isascii() or not ascii_only, shown[0]
    return shown[0]


@pytest.fixture
def shows():
    """The words of the screen after some keys: its lines without indent, one blank between two words.

    For screens whose words count, and whose layout another picture shows.
    """

    def words(stage, *keys, size=(110, 30), ascii_only=False, then=None):
        text = _shown(stage, *keys, size=size, ascii_only=ascii_only, then=then)
        return "\n".join(" ".join(line.split()) for line in text.splitlines())

    return words


@pytest.fixture
def reads_as_before(request):
    """Compare the text of the screen after some keys with a stored text, ``screens/TEST.txt``.

    For screens whose layout is the point. ``pytest --snapshot-update`` writes it again.
    """

    def compare(stage, *keys, size=(110, 30), ascii_only=False, then=None):
        shown = _shown(stage, *keys, size=size, ascii_only=ascii_only, then=then)
        name = re.sub(r"[^a-z0-9]+", "-", request.node.name.removeprefix("test_")).strip("-")
        file = Path(__file__).parent / "screens" / f"{request.node.path.stem.removeprefix('test_')}-{name}.txt"
        if request.config.option.update_snapshots:
            file.parent.mkdir(exist_ok=True)
            file.write_text(shown, encoding="utf-8")
        assert shown == file.read_text(encoding="utf-8")
        return True

    return compare


@pytest.fixture
def rack64(kit):
    """A stage for each state of ``rack_states`` by name."""

    def stage(name):
        records = kit.records() if name == "swap-under-way" else Records(autopilots=kit.records().autopilots)
        if name == "swap-under-way":
            replaced = {"rack": "rack64", "title": "train-a: replace h03-gpu2 by h16-gpu2"}
            under_way = run(8, state="running", at=START + 37, **replaced)
            plan = {**under_way.plan, "replacements": [{"failed": "h03-gpu2", "spare": "h16-gpu2"}]}
            records = replace(records, runs=(replace(under_way, plan=plan),))
        return Stage(seen=STATES[name](), records=replace(records, watched=True), racks=("rack64",))

    return stage
