"""What is less than the inventory states, or than most neighbours have."""

from dataclasses import replace

import pytest

from lumctl.fleet.host_readings import Adapters
from lumctl.fleet.readings import InfinibandPort, NvlinkReading, PortCounters, ProbeStatus
from lumctl.health.states import State
from lumctl.inventory.wiring import circuits_of

GPU, HOST, LANE = "h03-gpu2", "h03", "h03-gpu2-a"
NDR, EDR = "400 Gb/sec (4X NDR)", "100 Gb/sec (4X EDR)"


def told(report, *groups):
    found = [f for group in groups for health in getattr(report, group).values() for f in health.findings]
    return [(f.component, f.rule, f.case, f.state) for f in found if f.rule.endswith(".expected")]


def evidence(report):
    (finding,) = [f for f in report.findings() if f.rule.endswith(".expected")]
    return finding.evidence


def speeds(rack, of_one, of_others, only=None):
    for name in rack.inventory.transponders if only is None else only:
        rack.interface(name, speed_mbps=of_others)
    rack.interface(LANE, speed_mbps=of_one)


def write(rack, kind, name, **fields):
    entries = getattr(rack.inventory, kind)
    entries[name] = replace(entries[name], **fields)


def test_an_ethernet_port_slower_than_the_racks(rack):
    speeds(rack, 25_000, 100_000)
    report = rack.report()
    assert told(report, "links") == [(LANE, "link.expected", "rate", State.DEGRADED)]
    assert evidence(report) == "eth6 runs at 25 Gb/s, expected 100 (29 of 30 alike in the rack)"


def test_what_the_inventory_states_goes_before_the_rack(rack):
    speeds(rack, 25_000, 100_000)
    write(rack, "transponders", LANE, rate_gb_s=25.0)
    assert told(rack.report(), "links") == []
    speeds(rack, 100_000, 100_000)
    write(rack, "transponders", LANE, rate_gb_s=200.0)
    assert evidence(rack.report()) == "eth6 runs at 100 Gb/s, expected 200 (the inventory)"


@pytest.mark.parametrize(("alike", "found"), [(2, False), (3, True)])
def test_too_few_neighbours_say_nothing(rack, alike, found):
    for name in rack.inventory.transponders:
        rack.interface(name, speed_mbps=None)
    used = {end.transponder for c in circuits_of(rack.inventory, rack.assignment) for end in (c.a, c.b)}
    device = rack.inventory.transponders[LANE].lane.device
    joined = [t.id for t in rack.inventory.transponders.values() if t.lane.device == device and t.id in used]
    others = [name for name in joined if name != LANE][:alike]
    speeds(rack, 25_000, 100_000, only=others)
    assert bool(told(rack.report(), "links")) is found


def test_neighbours_that_differ_say_nothing(rack):
    for at, name in enumerate(rack.inventory.transponders):
        rack.interface(name, speed_mbps=(25_000, 100_000)[at % 2])
    assert told(rack.report(), "links") == []


def infiniband(rack, *, rates, boards=None, host=HOST):
    boards = boards or ["MT_0000000838"] * len(rates)
    ports = tuple(
        InfinibandPort(f"mlx5_{at}", 1, rack.hosts[host].taken_at, "ACTIVE", "LinkUp", rate, board)
        for at, (rate, board) in enumerate(zip(rates, boards, strict=True))
    )
    rack.host(host, infiniband=ports)
    rack.probe(host, "infiniband", ProbeStatus.OK)


def test_an_infiniband_port_slower_than_those_of_the_same_card(rack):
    lanes = [t for t in rack.inventory.transponders.values() if t.host == HOST]
    for at, lane in enumerate(lanes):
        write(rack, "transponders", lane.id, interface=f"mlx5_{at}", driver="")
    infiniband(rack, rates=[EDR, *[NDR] * (len(lanes) - 1)])
    assert told(rack.report(), "links") == [(lanes[0].id, "link.expected", "rate", State.DEGRADED)]
    # A card for storage may well be slower.
    infiniband(rack, rates=[EDR, *[NDR] * 7], boards=["MT_0000000222", *["MT_0000000838"] * 7])
    assert told(rack.report(), "links") == []


def test_lanes_and_modules_that_the_inventory_states(rack):
    write(rack, "transponders", LANE, interface="mlx5_0", rate_lanes=4, module_part="AO-400G")
    infiniband(rack, rates=["200 Gb/sec (2X NDR)"])
    optics = next(iter(rack.hosts[HOST].optics.values()))
    rack.host(HOST, optics={**rack.hosts[HOST].optics, "mlx5_0": replace(optics, part="AO-100G")})
    found = told(rack.report(), "links")
    assert [case for *_, case, _ in found] == ["lanes", "module"]


def test_a_host_with_fewer_ports_than_its_neighbours(rack):
    for host in rack.hosts:
        infiniband(rack, rates=[NDR] * 8, host=host)
    infiniband(rack, rates=[NDR] * 7)
    report = rack.report()
    assert told(report, "hosts") == [(HOST, "host.expected", "rdma-ports", State.DEGRADED)]
    assert evidence(report) == "7 InfiniBand and RoCE ports, expected 8 (15 of 16 alike in the rack)"
    write(rack, "hosts", HOST, rdma_ports=7)
    assert told(rack.report(), "hosts") == []


def nvlinks(rack, accelerator, active, count=18):
    known = rack.inventory.accelerators[accelerator]
    host = rack.hosts[known.host]
    place, gpu = next((at, gpu) for at, gpu in enumerate(host.gpus) if gpu.minor == known.index)
    links = tuple(NvlinkReading(host.taken_at, place, gpu.uuid, n, active=n < active) for n in range(count))
    rack.host(known.host, nvlinks=(*(link for link in host.nvlinks if link.index != place), *links))


@pytest.mark.parametrize("active", [0, 17])
def test_nvlinks_beside_healthy_neighbours(rack, active):
    for accelerator in rack.inventory.accelerators:
        nvlinks(rack, accelerator, 18)
    nvlinks(rack, GPU, active)
    report = rack.report()
    assert told(report, "accelerators") == [(GPU, "gpu.expected", "nvlinks", State.DEGRADED)]
    assert evidence(report).startswith(f"{active} NVLinks are active, expected 18 (")


def test_cards_without_a_bridge_are_all_alike(rack):
    for accelerator in rack.inventory.accelerators:
        nvlinks(rack, accelerator, 0)
    assert told(rack.report(), "accelerators") == []
    write(rack, "accelerators", GPU, nvlinks=4)
    assert evidence(rack.report()) == "0 NVLinks are active, expected 4 (the inventory)"


@pytest.mark.parametrize(
    ("width", "others", "best", "case"),
    [
        (8, 16, 16, "pcie-width"),
        (4, None, 16, "pcie-quarter"),
        (8, None, 16, None),
        (8, 8, 16, None),
        (16, 16, 16, None),
    ],
)
def test_pcie_lanes_against_neighbours_and_in_one_look(rack, width, others, best, case):
    for accelerator in rack.inventory.accelerators:
        rack.gpu(accelerator, pcie_width=others, pcie_width_max=best, utilization_percent=0.0)
    rack.gpu(GPU, pcie_width=width)
    expected = [(GPU, "gpu.expected", case, State.DEGRADED)] if case else []
    assert told(rack.report(), "accelerators") == expected


def test_roce_counts_under_the_name_of_the_device(watched):
    interface = watched.rack.inventory.transponders[LANE].interface
    watched.rack.host(HOST, adapters=Adapters({interface: "0000:5e:00.0"}, {"mlx5_2": "0000:5e:00.0"}))

    def count(retries):
        counters = watched.rack.hosts[HOST].counters
        port = PortCounters("mlx5_2/1", watched.now, {"rnr_nak_retry_err": retries, "np_cnp_sent": 10**6 * retries})
        watched.rack.host(HOST, counters={**counters, "mlx5_2/1": port})
        return watched.look(5).links[LANE].state

    assert count(7) is State.OK
    assert count(8) is State.DEGRADED
    assert [(f.component, f.case) for f in watched.report.findings()] == [(LANE, "rnr-retries")]
