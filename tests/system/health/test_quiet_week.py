"""A week in which nothing is wrong: ordinary noise, and hosts that are rebooted inside maintenance windows.

The 64-accelerator rack is read once through its probes; then its readings change as those of a well rack do. Racks of
other shapes are read so too, and their readings replaced by what such hardware prints. A look comes every minute of
virtual time. The whole week runs with LUMCTL_CAMPAIGN=1, else its first hours.
"""

import math
import os
import random
from collections.abc import Iterator
from dataclasses import dataclass, replace

import pytest
from rack_shapes import SHAPES, Shape

from lumctl.fleet.host_readings import (
    Capacity,
    ClockReading,
    Disks,
    DiskUse,
    HostEvent,
    HostEventKind,
    Service,
    Services,
)
from lumctl.fleet.readings import (
    HostSnapshot,
    InfinibandPort,
    InterfaceReading,
    NicEvent,
    NicEventKind,
    PortCounters,
    Snapshot,
    XidEvent,
)
from lumctl.health.acknowledgements import MaintenanceWindow
from lumctl.health.states import State
from lumctl.inventory.load import example, load_inventory

TICK_S, HOUR_S, DAY_S = 60.0, 3600.0, 86_400.0
IS_WHOLE = os.environ.get("LUMCTL_CAMPAIGN") == "1"
LENGTH_S = 7 * DAY_S if IS_WHOLE else 8 * HOUR_S
LENGTH_OF_A_SHAPE_S = 7 * DAY_S if IS_WHOLE else 2.5 * HOUR_S
WINDOW_S, DOWN_FROM_S, DOWN_UNTIL_S, SETTLED_S = 20 * 60.0, 120.0, 480.0, 720.0
"""Of a maintenance window: its length, when its host goes down and comes up again, and when its links stay up."""
HARMLESS_XIDS = (13, 31, 43, 45, 63, 94, 137)
SLOW_COUNTERS = {"symbol_error": 10, "port_rcv_errors": 200, "port_xmit_discards": 2000, "link_error_recovery": 1}
"""Of what a port counts, the most that is added at once, about once an hour."""
BLINK_S = 3 * DAY_S
"""How often the carrier of a link is lost for less than a look."""


REGISTERING = {"state": "In Progress"}


@dataclass(frozen=True)
class Reboot:
    host: str
    starts: float

    @property
    def window(self) -> MaintenanceWindow:
        return MaintenanceWindow(
            f"{self.host}-{self.starts:.0f}", self.host, "kim", "kernel update", self.starts, self.starts + WINDOW_S
        )


class QuietRack:
    """The readings of a rack at work. Each host has its own state, which only noise changes."""

    def __init__(self, rack, chance: random.Random, *, length_s: float, shape: Shape | None = None) -> None:
        self.rack, self.chance, self.shape = rack, chance, shape
        for _ in range(4):
            # Until neighbours are forgotten that were heard before the mesh was programmed.
            rack.tick(TICK_S)
        hosts = rack.snapshot().hosts
        self.base = {name: shape.dressed(host) if shape else host for name, host in hosts.items()}
        inventory = rack.inventory
        self.lanes = {h: [t for t in inventory.transponders.values() if t.host == h] for h in inventory.hosts}
        self.boots = dict.fromkeys(inventory.hosts, 0)
        self.counters = {t: self._worn_counters() for t in inventory.transponders}
        self.carriers = dict.fromkeys(inventory.transponders, 3)
        self.phase = {t: chance.uniform(0, BLINK_S) for t in inventory.transponders}
        self.replays = dict.fromkeys(inventory.accelerators, 7)
        self.corrected = dict.fromkeys(inventory.accelerators, 0)
        self.warmth = {a: chance.uniform(40, 65) for a in inventory.accelerators}
        self.xids: dict[str, list[XidEvent]] = {host: [] for host in inventory.hosts}
        self.reboots = [
            Reboot(host, rack.at + day * DAY_S + chance.uniform(0, min(DAY_S, length_s) - 3 * WINDOW_S))
            for day in range(math.ceil(length_s / DAY_S))
            for host in chance.sample(sorted(inventory.hosts), 3)
        ]
        self.booted = dict.fromkeys(inventory.hosts, rack.at - DAY_S)
        self.lines: dict[str, list[HostEvent]] = {host: [] for host in inventory.hosts}
        self.updated: set[str] = set()
        self.memory_gib = {host: chance.uniform(2014.0, 2016.0) for host in inventory.hosts}

    def _worn_counters(self) -> dict[str, int]:
        """Lifetime values of a port that has seen much, full ones among them; they are nobody's alarm.

        Where no changes of the carrier are counted, a full counter of them is one: there it is near.
        """
        full = 100 if self.shape is not None and self.shape.is_infiniband else 255
        return {"link_downed": self.chance.choice((0, 4, full)), "excessive_buffer_overrun_errors": 15} | dict.fromkeys(
            SLOW_COUNTERS, 40
        )

    def snapshot(self, now: float) -> Snapshot:
        down = {reboot.host: now - reboot.starts for reboot in self.reboots if reboot.window.open_at(now)}
        dark = {far for host, age in down.items() if age < SETTLED_S for far in self._far_ends(host, age)}
        return Snapshot(now, 0.1, {host: self._host(host, now, down.get(host), dark) for host in self.base})

    def _far_ends(self, host: str, age: float) -> Iterator[str]:
        """Receivers that lose their light while a host is down, and while its links come and go after that."""
        flickers = age >= DOWN_UNTIL_S and int(age // TICK_S) % 2 == 0
        if DOWN_FROM_S <= age < DOWN_UNTIL_S or flickers:
            for circuit in self.rack.circuits:
                for receiver, sender in circuit.receivers:
                    if self.rack.inventory.transponders[sender].host == host:
                        yield receiver

    def _host(self, host: str, now: float, age: float | None, dark: set[str]) -> HostSnapshot:
        base = self.base[host]
        if age is not None and DOWN_FROM_S <= age < DOWN_UNTIL_S:
            if age < DOWN_FROM_S + TICK_S:
                self._boot(host)
            attempts = int((age - DOWN_FROM_S) // TICK_S) + 1
            return HostSnapshot(host, now, reachable=False, error="no route to host", attempts=attempts)
        interfaces, optics, counters = dict(base.interfaces), dict(base.optics), dict(base.counters)
        if self.shape is not None:
            interfaces, counters = {}, {}
        for lane in self.lanes[host]:
            name = lane.interface
            self._wear(lane.id)
            is_dark = lane.id in dark
            if is_dark:
                self.carriers[lane.id] += 2
                self.counters[lane.id]["link_downed"] = min(self.counters[lane.id]["link_downed"] + 1, 255)
            if self.shape is None or not self.shape.is_infiniband:
                known = interfaces.get(name) or InterfaceReading(name, now, "up", 2)
                interfaces[name] = replace(
                    known,
                    taken_at=now,
                    operstate="down" if is_dark else known.operstate,
                    carrier_changes=self.carriers[lane.id],
                    speed_mbps=int(self.shape.rate) if self.shape else known.speed_mbps,
                )
            power = optics[name].rx_power_dbm + self.chance.gauss(0, 0.2)
            optics[name] = replace(optics[name], taken_at=now, rx_power_dbm=-math.inf if is_dark else power)
            port = f"{name}/1" if self.shape is not None and self.shape.is_infiniband else name
            counters[port] = PortCounters(port, now, dict(self.counters[lane.id]))
        return replace(
            base,
            taken_at=now,
            probes={name: replace(outcome, taken_at=now) for name, outcome in base.probes.items()},
            gpus=tuple(self._gpu(host, gpu, now, starts=age is not None and age < SETTLED_S) for gpu in base.gpus),
            nvlinks=tuple(replace(link, taken_at=now, errors_at=now) for link in base.nvlinks),
            interfaces=interfaces,
            infiniband=self._ports(self.lanes[host], dark, now) if self.shape and self.shape.is_infiniband else (),
            optics=optics,
            counters=counters,
            xids=tuple(self._xids(host, now)),
            boot_id=f"{host}-{self.boots[host]}",
            booted_at=self.booted[host],
            **(self._machine(host, now, age) if self.shape else {}),
        )

    def _machine(self, host: str, now: float, age: float | None) -> dict[str, object]:
        """The machine under the GPUs: its clock, disks, services and log, and its InfiniBand ports."""
        starts = age is not None and age < SETTLED_S
        ahead_s, used = self.chance.gauss(0, 0.05), 0.5 + 0.35 * ((now / DAY_S) % 1)
        if self.chance.random() < TICK_S / DAY_S:
            server = HostEvent(
                now - 40, HostEventKind.FILE_SERVER, "nfs: server fs1 not responding", "fs1", f"{now - 40}"
            )
            self.lines[host] += [
                server,
                replace(server, at=now - 10, kind=HostEventKind.FILE_SERVER_BACK, stamp=f"{now}"),
            ]
            self.lines[host].append(
                HostEvent(
                    now - 30, HostEventKind.MEMORY_LIMIT, "Memory cgroup out of memory: Killed process 7", "7", f"{now}"
                )
            )
        cards = [
            (f"0000:{n:02x}:00.0", NicEventKind.CABLE, "Port module event: module 0, Cable unplugged") for n in (1, 2)
        ]
        cards += [("0000:9a:00.0", kind, str(kind)) for kind in (NicEventKind.LINK_DOWN, NicEventKind.LINK_UP)]
        state = "activating" if starts else "active"
        units = ("nvidia-fabricmanager", "nvidia-persistenced") if self.shape.is_nvidia else ()
        found: dict[str, object] = {
            "clock": ClockReading(now, ahead_s - 0.02, ahead_s + 0.02),
            "disks": Disks(now, (DiskUse("/", used, 0.1, 900.0 * (1 - used)), DiskUse("/scratch", 0.9, 0.2, 700.0))),
            "capacity": Capacity(now, self.memory_gib[host], 224),
            "services": Services(now, {unit: Service(unit, state, "start", enabled=True) for unit in units}),
            "host_events": tuple(self.lines[host]),
            "nic_events": tuple(NicEvent(self.booted[host] + 20, None, *card, stamp="20.5") for card in cards),
        }
        return found

    def _ports(self, lanes, dark: set[str], now: float) -> tuple[InfinibandPort, ...]:
        """RDMA devices in place of interfaces."""
        return tuple(
            InfinibandPort(
                lane.interface,
                1,
                now,
                "DOWN" if lane.id in dark else "ACTIVE",
                "Polling" if lane.id in dark else "LinkUp",
                self.shape.rate,
                "MT_0000000838",
            )
            for lane in lanes
        )

    def _boot(self, host: str) -> None:
        self.boots[host] += 1
        self.booted[host] = self.rack.at + DOWN_UNTIL_S - DOWN_FROM_S
        self.updated.add(host)
        self.xids[host].clear()
        self.lines[host].clear()
        for lane in self.lanes[host]:
            self.carriers[lane.id] = 1
            self.counters[lane.id] = dict.fromkeys(self.counters[lane.id], 0)
        for accelerator in self.rack.inventory.accelerators_of(host):
            self.replays[accelerator.id] = self.corrected[accelerator.id] = 0

    def _wear(self, lane: str) -> None:
        for counter, most in SLOW_COUNTERS.items():
            if self.chance.random() < TICK_S / HOUR_S:
                self.counters[lane][counter] = min(self.counters[lane][counter] + self.chance.randint(0, most), 65_000)
        if (self.rack.at + self.phase[lane]) % BLINK_S < TICK_S:
            # Once is nothing; twice within an hour would be a link that is not steady.
            self.carriers[lane] += 2
        if self.chance.random() < TICK_S / (5 * DAY_S):
            # A driver that was loaded again counts from the beginning.
            self.counters[lane] = dict.fromkeys(self.counters[lane], 0)

    def _gpu(self, host: str, gpu, now: float, *, starts: bool):
        accelerator = self.rack.inventory.accelerators_of(host)[gpu.minor].id
        self.warmth[accelerator] = min(max(self.warmth[accelerator] + self.chance.gauss(0, 2), 35), 84)
        self.replays[accelerator] += self.chance.choice((0, 0, 0, 1, 2))
        self.corrected[accelerator] += self.chance.random() < 1 / 200
        idle = self.chance.random() < 0.2
        power_w, shape = (self.shape.power_w if self.shape else 700.0), self.shape
        if shape is not None:
            # Newer drivers do not print application clocks, and the fabric is registered a while after the boot.
            gpu = replace(
                gpu,
                application_clock_mhz=None if host in self.updated else gpu.application_clock_mhz,
                fabric=REGISTERING if starts and gpu.fabric else gpu.fabric,
            )
        return replace(
            gpu,
            taken_at=now,
            temperature_c=self.warmth[accelerator],
            utilization_percent=0.0 if idle else self.chance.uniform(85, 100),
            memory_utilization_percent=0.0 if idle else self.chance.uniform(0, 70),
            power_w=60.0 if idle else self.chance.uniform(0.43 * power_w, power_w - 10),
            power_limit_w=power_w,
            pcie_tx_kb_s=self.chance.uniform(0, 2e6),
            pcie_rx_kb_s=self.chance.uniform(0, 2e6),
            # Idle, the link saves power.
            pcie_generation=1 if idle else gpu.pcie_generation_max,
            throttle_reasons=frozenset({"hw_thermal_slowdown"} if self.chance.random() < 0.02 else {"sw_power_cap"}),
            pcie_replays=self.replays[accelerator],
            ecc_volatile_correctable=self.corrected[accelerator],
        )

    def _xids(self, host: str, now: float) -> list[XidEvent]:
        """Jobs that crash, each time another one, and lines that mean nothing."""
        if self.chance.random() < TICK_S / DAY_S and (self.shape is None or self.shape.is_nvidia):
            gpu = self.chance.choice(self.base[host].gpus)
            unit = f"(GPC {self.chance.randrange(8)}, TPC {self.chance.randrange(9)}, SM {len(self.xids[host])})"
            number = self.chance.choice(HARMLESS_XIDS)
            text = f"Xid {number}, pid={int(now) % 40_000}, Graphics SM Warp Exception on {unit}"
            self.xids[host].append(XidEvent(now, gpu.pci, number, text))
        return self.xids[host]


def quiet_looks(rack, quiet: QuietRack, length_s: float) -> int:
    """Look every minute: nothing may be found but in windows. Returns how many looks there were."""
    windows = [reboot.window for reboot in quiet.reboots]
    until = rack.at + length_s
    in_maintenance, at_work, looks = 0, 0, 0
    while rack.at < until:
        rack.at += TICK_S
        rack.said["windows"] = windows
        report = rack.judge(quiet.snapshot(rack.at))
        well = {State.OK, State.DISABLED}
        alarms = [f for f in report.findings() if f.state is not State.OK]
        under_work = any(window.open_at(rack.at) for window in windows)
        assert under_work or not alarms, (rack.at, alarms)
        strays = {name: state for name, state in rack.states().items() if state not in well}
        assert not strays, (rack.at, strays, alarms)
        in_maintenance += State.DISABLED in rack.states().values()
        at_work += under_work
        looks += 1
    assert in_maintenance == at_work > 0
    assert all(state is State.OK for state in rack.states().values())
    return looks


@pytest.mark.timeout(3600)
def test_nothing_is_said_in_a_time_in_which_nothing_is_wrong(virtual_rack):
    rack = virtual_rack(load_inventory(example("rack64")))
    quiet = QuietRack(rack, random.Random(2027), length_s=LENGTH_S)  # noqa: S311 - a seeded week, no secret
    assert quiet_looks(rack, quiet, LENGTH_S) == LENGTH_S / TICK_S


@pytest.mark.timeout(3600)
@pytest.mark.parametrize("shape", SHAPES, ids=[shape.name for shape in SHAPES])
def test_racks_of_every_shape_stay_quiet(virtual_rack, shape, tmp_path):
    path = tmp_path / "lumctl.yaml"
    path.write_text(shape.inventory())
    rack = virtual_rack(load_inventory(path))
    length_s = LENGTH_OF_A_SHAPE_S
    quiet = QuietRack(rack, random.Random(2028), length_s=length_s, shape=shape)  # noqa: S311 - as above
    assert quiet_looks(rack, quiet, length_s) == length_s / TICK_S
