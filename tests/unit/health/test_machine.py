"""What health says of the machine under the GPUs, and that ordinary hosts stay well."""

from dataclasses import replace

import pytest

from lumctl.fleet.host_readings import (
    Adapters,
    Capacity,
    ClockReading,
    Disks,
    DiskUse,
    FabricError,
    HostEvent,
    HostEventKind,
    Mount,
    Mounts,
    Service,
    Services,
)
from lumctl.fleet.readings import NicEvent, NicEventKind, ProbeStatus
from lumctl.health.rulebook import verdict
from lumctl.health.states import State

HOST, LANE = "h03", "h03-gpu2-a"
CARD = "0000:5e:00.0"
KIND = NicEventKind


def told(watched, host=HOST):
    return [(finding.rule, finding.case, finding.state) for finding in watched.report.hosts[host].findings]


def log(watched, kind, *, ago=5.0, device=None):
    event = HostEvent(watched.now - ago, kind, f"the kernel says {kind}", device, str(ago))
    watched.rack.host(HOST, host_events=(*watched.rack.hosts[HOST].host_events, event))


def nic(watched, kind, *, ago=5.0, interface=None, pci=CARD):
    event = NicEvent(watched.now - ago, interface, pci, kind, f"the card says {kind}", str(ago))
    watched.rack.host(HOST, nic_events=(*watched.rack.hosts[HOST].nic_events, event))


@pytest.mark.parametrize("kind", HostEventKind)
def test_a_line_counts_for_its_window(watched, kind):
    log(watched, kind)
    line = verdict("host.kernel", kind.value)
    watched.look(5)
    assert told(watched) == [("host.kernel", kind.value, line.state)]
    assert (line.state is State.OK) == (kind in {HostEventKind.MEMORY_LIMIT, HostEventKind.FILE_SERVER_BACK})
    watched.look(line.window_s)
    assert told(watched) == []


def test_a_line_from_before_the_last_boot_is_over(watched):
    log(watched, HostEventKind.FILESYSTEM, ago=500)
    watched.rack.host(HOST, booted_at=watched.now - 300)
    assert watched.look(5).hosts[HOST].state is State.OK


def test_a_gpu_that_started_after_all_is_no_fault(watched):
    pci = watched.rack.hosts[HOST].gpus[1].pci
    log(watched, HostEventKind.GPU_START, device=pci)
    assert watched.look(5).hosts[HOST].state is State.OK
    log(watched, HostEventKind.GPU_START, device="0000:fe:00.0")
    assert watched.look(5).hosts[HOST].state is State.FAILED


@pytest.mark.parametrize(
    ("said", "case"),
    [
        ("Failed to initialize NVML: Driver/library version mismatch", "mismatch"),
        ("NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver. Make sure that", "not-loaded"),
        ("Failed to initialize NVML: Unknown Error", "not-started"),
    ],
)
def test_a_driver_that_works_for_no_gpu_fails_its_host_in_one_finding(watched, said, case):
    for probe in ("gpu", "nvlink", "nvlink:errors", "nvlink:traffic"):
        watched.rack.probe(HOST, probe, ProbeStatus.FAILED, detail=said)
    watched.rack.host(HOST, gpus=(), nvlinks=())
    watched.look(5)
    assert told(watched) == [("host.driver", case, State.FAILED)]


SERVER = "fs1.example"


def test_a_file_server_that_answers_again_is_over(watched):
    log(watched, HostEventKind.FILE_SERVER, ago=50, device=SERVER)
    log(watched, HostEventKind.FILE_SERVER_BACK, ago=40, device="fs2.example")
    assert watched.look(5).hosts[HOST].state is State.DEGRADED
    log(watched, HostEventKind.FILE_SERVER_BACK, ago=30, device=SERVER)
    assert watched.look(5).hosts[HOST].state is State.OK
    log(watched, HostEventKind.FILE_SERVER, ago=3, device=SERVER)
    assert watched.look(5).hosts[HOST].state is State.DEGRADED


def serviced(watched, unit, state="failed", sub_state="failed", *, enabled=True):
    service = Service(unit, state, sub_state, enabled)
    watched.rack.host(HOST, services=Services(watched.now, {unit: service}))
    watched.rack.probe(HOST, "services", ProbeStatus.OK)


def all_gpus(watched, **fields):
    watched.rack.host(HOST, gpus=tuple(replace(gpu, **fields) for gpu in watched.rack.hosts[HOST].gpus))


COMPLETED = {"state": "Completed", "status": "Success"}
RACK = {"fabric/clusterUuid": "21ee30f8-17b4-4c2a-93a6-6d2a4f4c1a55"}
NO_RACK = {"fabric/clusterUuid": "00000000-0000-0000-0000-000000000000"}


@pytest.mark.parametrize(
    ("unit", "gpu", "case"),
    [
        ("nvidia-fabricmanager", {"fabric": COMPLETED, "raw": NO_RACK}, "fabric-manager"),
        # Its manager runs on the switches of the rack.
        ("nvidia-fabricmanager", {"fabric": COMPLETED, "raw": RACK}, None),
        ("nvidia-fabricmanager", {"fabric": {}, "product": "NVIDIA L40S"}, None),
        ("nvidia-imex", {"fabric": COMPLETED, "raw": RACK}, "imex"),
        ("nvidia-imex", {"fabric": COMPLETED, "raw": NO_RACK}, None),
        ("nvidia-persistenced", {"persistence_enabled": False}, "persistence"),
        ("nvidia-persistenced", {"persistence_enabled": True}, None),
    ],
)
@pytest.mark.parametrize(
    ("state", "sub_state"), [("failed", "failed"), ("inactive", "dead"), ("activating", "auto-restart")]
)
def test_a_service_that_its_gpus_need_must_run(watched, unit, gpu, case, state, sub_state):
    all_gpus(watched, **gpu)
    serviced(watched, unit, state, sub_state)
    watched.look(5)
    assert told(watched) == ([("host.service", case, verdict("host.service", case).state)] if case else [])


def test_a_fabric_manager_that_is_started_again_and_again(watched):
    all_gpus(watched, fabric=COMPLETED)

    def restarted(times):
        service = Service("nvidia-fabricmanager", "active", "running", enabled=True, restarts=times)
        watched.rack.host(HOST, services=Services(watched.now + 60, {service.name: service}))
        watched.look(60)
        return told(watched)

    watched.rack.probe(HOST, "services", ProbeStatus.OK)
    assert restarted(40) == restarted(42) == []
    assert restarted(43) == [("host.service", "restarting", State.FAILED)]
    # Somebody started it, so that it is counted again, and ten minutes later all is forgotten.
    assert restarted(0) == [("host.service", "restarting", State.FAILED)]
    for _ in range(10):
        restarted(0)
    assert told(watched) == []


def test_eight_modules_of_a_board_have_switches_though_nvidia_smi_tells_no_fabric(watched):
    gpu = replace(watched.rack.hosts[HOST].gpus[0], product="NVIDIA A100-SXM4-80GB")
    others = tuple(replace(gpu, minor=n, pci=f"0000:a{n}:00.0") for n in range(8, 12))
    all_gpus(watched, product="NVIDIA A100-SXM4-80GB")
    serviced(watched, "nvidia-fabricmanager")
    assert watched.look(5).hosts[HOST].state is State.OK
    watched.rack.host(HOST, gpus=(*watched.rack.hosts[HOST].gpus, *others))
    assert watched.look(5).hosts[HOST].state is State.FAILED


@pytest.mark.parametrize(
    ("state", "enabled"), [("active", True), ("activating", True), ("deactivating", True), ("failed", False)]
)
def test_a_service_that_runs_starts_or_is_not_wanted_is_no_fault(watched, state, enabled):
    all_gpus(watched, fabric=COMPLETED)
    serviced(watched, "nvidia-fabricmanager", state, "running", enabled=enabled)
    assert watched.look(5).hosts[HOST].state is State.OK


@pytest.mark.parametrize(
    ("memory_gib", "processors", "case"),
    [
        (2015.5, 224, None),
        (1952.0, 224, "memory"),
        (2040.0, 224, None),
        (2015.5, 222, "processors"),
        (None, None, None),
    ],
)
def test_a_host_with_less_memory_or_fewer_processors_than_its_like(watched, memory_gib, processors, case):
    for name in watched.rack.hosts:
        watched.rack.host(name, capacity=Capacity(watched.now, 2015.0, 224))
        watched.rack.probe(name, "capacity", ProbeStatus.OK)
    watched.rack.host(HOST, capacity=Capacity(watched.now, memory_gib, processors))
    watched.look(5)
    assert told(watched) == ([("host.capacity", case, State.DEGRADED)] if case else [])


def mounted(watched, *mounts, at=None):
    table = Mounts(watched.now if at is None else at, {mount.path: mount for mount in mounts})
    watched.rack.host(HOST, mounts=table)
    watched.rack.probe(HOST, "mounts", ProbeStatus.OK)


def test_mounts_that_the_inventory_names(watched):
    hosts = watched.rack.inventory.hosts
    hosts[HOST] = replace(hosts[HOST], mounts=("/data",))
    root, data = Mount("/", "/dev/sda1", "ext4"), Mount("/data", "fs1:/data", "nfs4")
    mounted(watched, root, data)
    watched.look(5)
    assert told(watched) == []
    mounted(watched, root)
    watched.look(5)
    assert told(watched) == [("host.mount", "missing", State.FAILED)]
    mounted(watched, replace(root, stopped=True), replace(data, stopped=True))
    watched.look(5)
    assert told(watched) == [("host.mount", "stopped", State.FAILED)] * 2


def test_a_table_of_mounts_that_is_too_old_proves_nothing(watched):
    hosts = watched.rack.inventory.hosts
    hosts[HOST] = replace(hosts[HOST], mounts=("/data",))
    mounted(watched, Mount("/", "/dev/sda1", "ext4"), at=watched.now - 100)
    watched.look(5)
    assert told(watched) == []


def test_images_and_file_systems_of_containers_are_no_fault(watched):
    mounted(
        watched,
        Mount("/", "/dev/sda1", "ext4"),
        Mount("/snap/core20", "/dev/loop3", "squashfs", stopped=True),
        Mount("/var/lib/kubelet/x", "/dev/rbd0", "ext4", stopped=True),
    )
    assert watched.look(5).hosts[HOST].state is State.OK


@pytest.mark.parametrize(
    ("use", "case"),
    [
        (DiskUse("/", 0.995, 0.1, 0.4), "full"),
        (DiskUse("/", 0.5, 0.999, 400.0), "full"),
        (DiskUse("/", 0.96, 0.1, 4.0), "nearly-full"),
        (DiskUse("/", 0.94, 0.1, 4.0), None),
        # A hundredth of a large array is room for much.
        (DiskUse("/scratch", 0.995, None, 150.0), None),
    ],
)
def test_disks_without_room(watched, use, case):
    watched.rack.host(HOST, disks=Disks(watched.now, (use,)))
    watched.look(5)
    assert told(watched) == ([("host.disk", case, verdict("host.disk", case).state)] if case else [])


def test_a_disk_that_answers_with_errors(watched):
    watched.rack.host(HOST, disks=Disks(watched.now, (), {"/data": "Input/output error"}))
    watched.look(5)
    assert told(watched) == [("host.mount", "broken", State.DEGRADED)]


def clocks(watched, ahead_s, *others, wide_s=0.1):
    names = [name for name in watched.rack.hosts if name != HOST]
    for name, ahead in zip([HOST, *names], [ahead_s, *others], strict=False):
        watched.rack.host(name, clock=ClockReading(watched.now, ahead - wide_s, ahead + wide_s))


@pytest.mark.parametrize(
    ("ahead_s", "others", "wide_s", "state"),
    [
        (2.0, (0.0, 0.1, 0.2), 0.1, State.DEGRADED),
        (-2.0, (0.0, 0.1, 0.2), 0.1, State.DEGRADED),
        # Ours is wrong, and theirs agree.
        (3600.0, (3600.1, 3600.2, 3600.3), 0.1, State.OK),
        # The host took so long to answer that nothing is proved.
        (2.0, (0.0, 0.1, 0.2), 1.5, State.OK),
        # Of two hosts nobody knows which is right.
        (2.0, (0.0,), 0.1, State.OK),
    ],
)
def test_a_clock_apart_from_the_racks(watched, ahead_s, others, wide_s, state):
    clocks(watched, ahead_s, *others, wide_s=wide_s)
    assert watched.look(5).hosts[HOST].state is state
    assert watched.report.hosts["h01"].state is State.OK


def test_a_crash_is_told_for_a_day(watched):
    watched.rack.probe(HOST, "crashes", ProbeStatus.OK)
    watched.rack.host(HOST, crashes=(watched.now - 9e6, watched.now - 60))
    watched.look(5)
    assert told(watched) == [("host.crash", "recorded", State.DEGRADED)]
    watched.look(86_400)
    assert told(watched) == []


@pytest.mark.parametrize(
    "kind", [NicEventKind.TEMPERATURE, NicEventKind.COMMAND, NicEventKind.CABLE, NicEventKind.FATAL]
)
def test_a_card_that_is_named_by_its_address_belongs_to_its_link(watched, kind):
    interface = watched.rack.inventory.transponders[LANE].interface
    watched.rack.host(HOST, adapters=Adapters({interface: CARD}, {"mlx5_2": CARD}))
    nic(watched, kind)
    watched.look(5)
    assert [(f.component, f.rule, f.case) for f in watched.report.findings()] == [(LANE, "link.nic", kind.value)]


def test_an_rdma_device_belongs_to_the_link_at_its_address(watched):
    interface = watched.rack.inventory.transponders[LANE].interface
    watched.rack.host(HOST, adapters=Adapters({interface: CARD}, {"mlx5_2": CARD, "mlx5_9": "0000:f0:00.0"}))
    nic(watched, NicEventKind.QUEUE, interface="mlx5_2", pci=None)
    nic(watched, NicEventKind.QUEUE, interface="mlx5_9", pci=None)
    watched.look(5)
    found = [(f.component, f.rule, f.case) for f in watched.report.findings()]
    assert sorted(found) == [(HOST, "host.nic", "nameless"), (LANE, "link.nic", "queue")]


@pytest.mark.parametrize("kind", NicEventKind)
def test_a_card_that_nobody_uses_may_have_an_empty_cage(watched, kind):
    nic(watched, kind, pci="0000:f0:00.0")
    state = watched.look(5).hosts[HOST].state
    harmless = {NicEventKind.LINK_UP, NicEventKind.LINK_DOWN, NicEventKind.CABLE, NicEventKind.PLUGGED}
    assert (state is State.OK) == (kind in harmless | {NicEventKind.TX_TIMEOUT})


def test_a_cable_that_was_plugged_in_again_is_mended(watched):
    interface = watched.rack.inventory.transponders[LANE].interface
    watched.rack.host(HOST, adapters=Adapters({interface: CARD}))
    nic(watched, NicEventKind.CABLE, ago=9)
    assert watched.look(1).links[LANE].state is State.DEGRADED
    nic(watched, NicEventKind.PLUGGED, ago=1)
    assert watched.look(1).links[LANE].state is State.OK


def test_an_error_of_the_fabric_manager_counts_for_an_hour(watched):
    error = FabricError(watched.now + 5, "failed to configure an NVSwitch")
    watched.rack.host(HOST, fabric_errors=(FabricError(watched.now - 9e6, "long ago"), error))
    watched.look(10)
    assert told(watched) == [("host.fabric-log", "error", State.DEGRADED)]
    (finding,) = watched.report.hosts[HOST].findings
    assert finding.evidence == "the fabric manager's log: failed to configure an NVSwitch"
    watched.look(3600)
    assert told(watched) == []
