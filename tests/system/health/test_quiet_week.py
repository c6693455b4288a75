"""A week in which nothing is wrong: ordinary noise, and hosts that are rebooted inside maintenance windows.

The 64-accelerator rack is read once through its probes; then its readings change as those of a well rack do. A look
comes every minute of virtual time. The whole week runs with LUMCTL_CAMPAIGN=1, else its first eight hours.
"""

import math
import os
import random
from collections.abc import Iterator
from dataclasses import dataclass, replace

import pytest

from lumctl.fleet.readings import HostSnapshot, PortCounters, Snapshot, XidEvent
from lumctl.health.attention import MaintenanceWindow
from lumctl.health.states import State
from lumctl.inventory.examples import example
from lumctl.inventory.load import load_inventory

TICK_S, HOUR_S, DAY_S = 60.0, 3600.0, 86_400.0
LENGTH_S = 7 * DAY_S if os.environ.get("LUMCTL_CAMPAIGN") == "1" else 8 * HOUR_S
WINDOW_S, DOWN_FROM_S, DOWN_UNTIL_S, SETTLED_S = 20 * 60.0, 120.0, 480.0, 720.0
"""Of a maintenance window: its length, when its host goes down and comes up again, and when its links stay up."""
HARMLESS_XIDS = (13, 31, 43, 45, 63, 94, 137)
SLOW_COUNTERS = {"symbol_error": 10, "port_rcv_errors": 200, "port_xmit_discards": 2000, "link_error_recovery": 1}
"""Of what a port counts, the most that is added at once, about once an hour."""
BLINK_S = 3 * DAY_S
"""How often the carrier of a link is lost for less than a look."""


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

    def __init__(self, rack, chance: random.Random) -> None:
        self.rack, self.chance = rack, chance
        for _ in range(4):
            # Until neighbours are forgotten that were heard before the mesh was programmed.
            rack.tick(TICK_S)
        self.base = dict(rack.snapshot().hosts)
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
            Reboot(host, rack.at + day * DAY_S + chance.uniform(0, min(DAY_S, LENGTH_S) - 2 * HOUR_S))
            for day in range(math.ceil(LENGTH_S / DAY_S))
            for host in chance.sample(sorted(inventory.hosts), 3)
        ]

    def _worn_counters(self) -> dict[str, int]:
        """Lifetime values of a port that has seen much, full ones among them; they are nobody's alarm."""
        return {"link_downed": self.chance.choice((0, 4, 255)), "excessive_buffer_overrun_errors": 15} | dict.fromkeys(
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
        for lane in self.lanes[host]:
            name = lane.interface
            self._wear(lane.id)
            is_dark = lane.id in dark
            if is_dark:
                self.carriers[lane.id] += 2
            interfaces[name] = replace(
                interfaces[name],
                taken_at=now,
                operstate="down" if is_dark else interfaces[name].operstate,
                carrier_changes=self.carriers[lane.id],
            )
            power = optics[name].rx_power_dbm + self.chance.gauss(0, 0.2)
            optics[name] = replace(optics[name], taken_at=now, rx_power_dbm=-math.inf if is_dark else power)
            counters[name] = PortCounters(name, now, dict(self.counters[lane.id]))
        return replace(
            base,
            taken_at=now,
            probes={name: replace(outcome, taken_at=now) for name, outcome in base.probes.items()},
            gpus=tuple(self._gpu(host, gpu, now) for gpu in base.gpus),
            nvlinks=tuple(replace(link, taken_at=now, errors_at=now) for link in base.nvlinks),
            interfaces=interfaces,
            optics=optics,
            counters=counters,
            xids=tuple(self._xids(host, now)),
            boot_id=f"{host}-{self.boots[host]}",
        )

    def _boot(self, host: str) -> None:
        self.boots[host] += 1
        self.xids[host].clear()
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
            # A driver that was loaded anew counts from the beginning.
            self.counters[lane] = dict.fromkeys(self.counters[lane], 0)

    def _gpu(self, host: str, gpu, now: float):
        accelerator = self.rack.inventory.accelerators_of(host)[gpu.minor].id
        self.warmth[accelerator] = min(max(self.warmth[accelerator] + self.chance.gauss(0, 2), 35), 84)
        self.replays[accelerator] += self.chance.choice((0, 0, 0, 1, 2))
        self.corrected[accelerator] += self.chance.random() < 1 / 200
        idle = self.chance.random() < 0.2
        return replace(
            gpu,
            taken_at=now,
            temperature_c=self.warmth[accelerator],
            utilization_percent=0.0 if idle else self.chance.uniform(85, 100),
            memory_utilization_percent=0.0 if idle else self.chance.uniform(0, 70),
            power_w=60.0 if idle else self.chance.uniform(300, 690),
            power_limit_w=700.0,
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
        if self.chance.random() < TICK_S / DAY_S:
            gpu = self.chance.choice(self.base[host].gpus)
            unit = f"(GPC {self.chance.randrange(8)}, TPC {self.chance.randrange(9)}, SM {len(self.xids[host])})"
            number = self.chance.choice(HARMLESS_XIDS)
            text = f"Xid {number}, pid={int(now) % 40_000}, Graphics SM Warp Exception on {unit}"
            self.xids[host].append(XidEvent(now, gpu.pci, number, text))
        return self.xids[host]


@pytest.mark.timeout(3600)
def test_nothing_is_said_in_a_time_in_which_nothing_is_wrong(virtual_rack):
    rack = virtual_rack(load_inventory(example("rack64")))
    quiet = QuietRack(rack, random.Random(2027))  # noqa: S311 - a seeded week, no secret
    windows = [reboot.window for reboot in quiet.reboots]
    until = rack.at + LENGTH_S
    in_maintenance = 0
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
    assert in_maintenance >= len(windows) * WINDOW_S / TICK_S / 2
    assert all(state is State.OK for state in rack.states().values())
