"""What real hosts print of each fault, through the probes and the rules: it is found, and it is never ok.

One host of four prints it, after a first look at which all is well. ``wordings.yaml`` names the public source of each.
"""

import functools
import re
from pathlib import Path

import pytest
import yaml

from lumctl.fleet.probe_output import Gathered, ProbeAnswer, visible
from lumctl.fleet.probes import probes_for
from lumctl.fleet.readings import HostSnapshot, ProbeOutcome, ProbeStatus, Snapshot
from lumctl.health.memory import Memory
from lumctl.health.states import State
from lumctl.inventory.load import load_inventory
from lumctl.inventory.wiring import circuits_of, initial_assignment

CATALOGUE = Path(__file__).parent / "catalogues" / "wordings.yaml"
START, BOOTED_S, HEARD_S = 1_800_000_000.0, 1000.0, 0.05
INVENTORY = """\
lumctl: 1
racks: {r: {}}
hosts:
  - name: h[1-4]
    accelerators:
      - {id: "{host}-g[0-1]", model: H100, memory_gib: 80, pci: ["0000:1b:00.0", "0000:43:00.0"]}
%s
devices: [{id: mesh, kind: mesh, driver: smartlight, address: "m:1", geometry: {columns: 4, rows: 3}}]
transponders:
  - {id: "h[1-4]-e", accelerator: "h[1-4]-g0", interface: eth2, device: mesh, port: [0, 2, 4, 6]}
  - {id: "h[1-4]-i", accelerator: "h[1-4]-g1", interface: mlx5_0, device: mesh, port: [8, 10, 12, 14]}
jobs:
  - {name: a, ranks: "h[1-4]-g0", links: [{kind: pairs, pairs: [[0, 1], [2, 3]]}]}
  - {name: b, ranks: "h[1-4]-g1", links: [{kind: pairs, pairs: [[0, 1], [2, 3]]}]}
"""
GPU = {
    "product_name": "NVIDIA H100 80GB HBM3",
    "persistence_mode": "Enabled",
    "gpu_recovery_action": "None",
    "pci/pci_gpu_link_info/pcie_gen/max_link_gen": "5",
    "pci/pci_gpu_link_info/pcie_gen/current_link_gen": "5",
    "pci/pci_gpu_link_info/link_widths/max_link_width": "16x",
    "pci/pci_gpu_link_info/link_widths/current_link_width": "16x",
    "fb_memory_usage/total": "81559 MiB",
    "fb_memory_usage/used": "71200 MiB",
    "utilization/gpu_util": "97 %",
    "ecc_mode/current_ecc": "Enabled",
    **{
        f"ecc_errors/{period}/{ram}": "0"
        for period in ("volatile", "aggregate")
        for ram in ("sram_uncorrectable_parity", "sram_uncorrectable_secded", "dram_uncorrectable")
    },
    "ecc_errors/aggregate/sram_threshold_exceeded": "No",
    "ecc_errors/channel_repair_pending": "No",
    "ecc_errors/tpc_repair_pending": "No",
    "ecc_errors/unrepairable_memory": "No",
    "remapped_rows/remapped_row_pending": "No",
    "remapped_rows/remapped_row_failure": "No",
    "remapped_rows/row_remapper_histogram/row_remapper_histogram_none": "0 bank(s)",
    "temperature/gpu_temp": "46 C",
    "temperature/gpu_temp_slow_threshold": "89 C",
    "gpu_power_readings/current_power_limit": "700.00 W",
    "max_clocks/sm_clock": "1980 MHz",
    "fabric/state": "Completed",
    "fabric/status": "Success",
    "fabric/clusterUuid": "00000000-0000-0000-0000-000000000000",
    "fabric/health/summary": "Healthy",
    "fabric/health/bandwidth": "Full",
    "fabric/health/route_unhealthy": "False",
    "fabric/health/incorrect_configuration": "None",
    "processes/process_info/pid": "4141",
    "processes/process_info/process_name": "python3",
}
UUID = "GPU-00000000-0000-0000-0000-0000000000{}0"
NAMED = "GPU {}: NVIDIA H100 80GB HBM3 (UUID: " + UUID + ")\n"
IB = "/sys/class/infiniband/mlx5_{}/ports/1/"
CARDS = {0: "400 Gb/sec (4X NDR)", 2: "100 Gb/sec (4X EDR)", 3: "400 Gb/sec (4X NDR)"}
COUNTED = (
    "counters/link_downed",
    "counters/symbol_error",
    *(
        f"hw_counters/{name}"
        for name in ("rnr_nak_retry_err", "packet_seq_err", "local_ack_timeout_err", "roce_slow_restart")
    ),
)
WELL = {
    "nvlink": "".join(
        NAMED.format(gpu, gpu + 1) + "".join(f"\t Link {link}: 26.562 GB/s\n" for link in range(3)) for gpu in range(2)
    ),
    "nvlink:errors": "".join(
        NAMED.format(gpu, gpu + 1)
        + "".join(f"\t Link {link}: {what} Errors: 0\n" for link in range(3) for what in ("Replay", "Recovery", "CRC"))
        for gpu in range(2)
    ),
    "nvlink:traffic": "".join(
        NAMED.format(gpu, gpu + 1)
        + "".join(f"\t Link {link}: Data {way}: 1024 KiB\n" for link in range(3) for way in ("Tx", "Rx"))
        for gpu in range(2)
    ),
    "kernel": (
        "[   12.500000] mlx5_core 0000:5e:00.0 eth2: Link up\n"
        "[   12.750000] EDAC MC0: Giving out device to module skx_edac controller Skylake Socket#0 IMC#0\n"
    ),
    "net": (
        "/sys/class/net/lo/operstate:unknown\n/sys/class/net/eth2/operstate:up\n"
        "/sys/class/net/eth2/carrier_changes:2\n/sys/class/net/eth2/speed:100000\n"
    ),
    "infiniband": "".join(
        f"{IB.format(n)}state:4: ACTIVE\n{IB.format(n)}phys_state:5: LinkUp\n{IB.format(n)}rate:{rate}\n"
        for n, rate in CARDS.items()
    )
    + "/sys/class/infiniband/mlx5_0/board_id:MT_0000000838\n",
    "counters": "".join(f"{IB.format(n)}{name}:0\n" for n in CARDS for name in COUNTED),
    "adapters": (
        "/sys/class/net/eth2/device/uevent:PCI_SLOT_NAME=0000:5e:00.0\n"
        "/sys/class/infiniband/mlx5_2/device/uevent:PCI_SLOT_NAME=0000:5e:00.0\n"
        "/sys/class/infiniband/mlx5_0/device/uevent:PCI_SLOT_NAME=0000:9a:00.0\n"
    ),
    "mounts": "/dev/nvme0n1p2 / ext4 rw,relatime,errors=remount-ro 0 0\nfs1:/data /data nfs4 rw,relatime 0 0\n",
    "disks": (
        "Filesystem Type Inodes IUsed Used Avail Mounted on\n"
        "/dev/nvme0n1p2 ext4 61054976 717083 351646600 571226252 /\n"
    ),
    "fabric_log": (
        "1799996400.0000000000 2027-01-15T07:00\n"
        "[Jan 15 2027 07:00:00] [INFO] [tid 4242] Successfully configured all the available NVSwitches.\n"
    ),
    "crashes": "find: '/sys/fs/pstore': No such file or directory\n",
    "services": (
        "Id=nvidia-fabricmanager.service\nLoadState=loaded\nActiveState=active\nSubState=running\nUnitFileState=enabled\n"
    ),
    "capacity": "/proc/meminfo:MemTotal:       2113411308 kB\n/sys/devices/system/cpu/online:0-223\n",
    "lldp": '{"lldp": {}}',
    "optics:eth2": "Identifier : 0x11 (QSFP28)\nConnector : 0x0c (MPO Parallel Optic)\n"
    + "".join(f"Laser tx bias current (Channel {n}) : 36.400 mA\n" for n in (1, 2))
    + "".join(f"Transmit avg optical power (Channel {n}) : 1.0000 mW / 0.00 dBm\n" for n in (1, 2))
    + "".join(f"Rcvr signal avg optical power(Channel {n}) : 0.5012 mW / -3.00 dBm\n" for n in (1, 2))
    + "Module temperature : 37.12 degrees C / 98.82 degrees F\nModule voltage : 3.2947 V\n"
    "Alarm/warning flags implemented : Yes\nLaser bias current low alarm threshold : 1.000 mA\n"
    "Module voltage high alarm threshold : 3.6300 V\nModule voltage low alarm threshold : 2.9700 V\n"
    "Laser rx power high alarm threshold : 3.4673 mW / 5.40 dBm\n"
    "Laser rx power low alarm threshold : 0.0741 mW / -11.30 dBm\n"
    "Laser rx power high warning threshold : 2.1878 mW / 3.40 dBm\n"
    "Laser rx power low warning threshold : 0.1862 mW / -7.30 dBm\n",
    "optics:mlx5_0": "netlink error: Operation not supported\n",
}
STATUSES = {"optics:mlx5_0": 95, "crashes": 1}


def xml(edits=None):
    """``nvidia-smi -q -x`` of two GPUs; the first differs by these leaves, of which ``None`` is not printed."""
    gpus = []
    for number, bus in enumerate(("1B", "43")):
        leaves = (
            GPU | {"uuid": UUID.format(number + 1), "minor_number": str(number)} | ((edits or {}) if not number else {})
        )
        gpus.append(f'<gpu id="00000000:{bus}:00.0">\n{elements(leaves)}</gpu>\n')
    return f'<?xml version="1.0" ?>\n<nvidia_smi_log>\n{"".join(gpus)}</nvidia_smi_log>\n'


def elements(leaves):
    branches, written = {}, ""
    for path, leaf in leaves.items():
        name, slash, rest = path.partition("/")
        if slash:
            branches.setdefault(name, {})[rest] = leaf
        elif leaf is not None:
            written += f"<{name}>{leaf}</{name}>\n"
    return written + "".join(f"<{name}>\n{elements(branch)}</{name}>\n" for name, branch in branches.items())


def edited(well, edits):
    """Lines with other values, of ``name: value`` or ``name:value``; of disks other lines, of ``name value``."""
    if well.startswith("Filesystem"):
        return well.splitlines(keepends=True)[0] + "".join(f"{name} {value}\n" for name, value in edits.items())
    for name, value in edits.items():
        line = re.compile(rf"^{re.escape(name)}(?P<between>\s*:\s?)[^\n]*\n", re.MULTILINE)
        if value is None:
            well = line.sub("", well)
        elif line.search(well):
            well = line.sub(lambda found, value=value, name=name: f"{name}{found['between']}{value}\n", well)
        else:
            well += f"{name} : {value}\n"
    return well


def said(probe, saying, now):
    """What the host prints in place of its own answer."""
    if probe == "clock":
        return f"{now + HEARD_S / 2 + saying['ahead_s']:.9f}\n"
    well = xml() if probe == "gpu" else WELL[probe]
    if isinstance(saying, dict):
        return xml(saying) if probe == "gpu" else edited(well, saying)
    if probe == "kernel":
        first = saying if saying.startswith(("[", "<")) else f"[ 1065.250000] {saying}"
        return f"{well}{first}\n"
    return saying.replace("{well}", well).replace("{recent}", str(int(START - 60)))


class PrintedRack:
    """Four hosts that are read as their answers say, and judged look after look."""

    def __init__(self, inventory):
        self.inventory = inventory
        self.circuits = circuits_of(inventory, initial_assignment(inventory))
        self.probes = probes_for(("eth2", "mlx5_0"), sudo=False)
        self.memory = Memory()
        self.gathered = {name: Gathered(booted_at=START - BOOTED_S) for name in inventory.hosts}
        self.known = {}

    def look(self, now, answers=None, statuses=None):
        """A look at which the first host gives these answers, by probe."""
        hosts = {}
        for name, gathered in self.gathered.items():
            own = (answers or {}) if name == "h1" else {}
            outcomes = {
                probe.name: ProbeOutcome(probe.name, *self._taken(name, probe, own, statuses or {}, now))
                for probe in self.probes
            }
            hosts[name] = HostSnapshot(
                host=name,
                taken_at=now,
                reachable=True,
                probes=outcomes,
                boot_id="b",
                booted_at=gathered.booted_at,
                **visible(gathered, outcomes, None),
            )
        return self.memory.judge(
            self.inventory, Snapshot(now, 0.1, hosts), self.circuits, losses={}, devices={}, now=now + 1
        )

    def _taken(self, host, probe, own, statuses, now):
        """How a probe ended, when and after how long. The same answer again is not read again, as in a fleet."""
        gathered, known = self.gathered[host], self.known.get((host, probe.name))
        gathered.heard_at = now + HEARD_S
        if probe.name in own and own[probe.name] is None:
            return ProbeStatus.TIMED_OUT, now, HEARD_S, "no answer in time"
        answer = ProbeAnswer(
            statuses.get(probe.name, STATUSES.get(probe.name, 0)), own.get(probe.name) or well(probe.name, now)
        )
        if known is not None and known[0] == answer:
            probe.again(now, gathered)
        else:
            known = self.known[host, probe.name] = answer, probe.take(answer, now, gathered)
        status, detail = known[1]
        return status, now, HEARD_S, detail


def well(probe, now):
    return xml() if probe == "gpu" else f"{now + HEARD_S / 2:.9f}\n" if probe == "clock" else WELL[probe]


@functools.cache
def inventory(folder, mounts="    mounts: [/data]"):
    path = Path(folder) / "lumctl.yaml"
    path.write_text(INVENTORY % mounts)
    return load_inventory(path)


@pytest.fixture(scope="session")
def place(tmp_path_factory):
    return str(tmp_path_factory.mktemp("printed"))


def findings_of(report):
    """Of hosts, accelerators and links: circuits and the mesh are not asked here."""
    parts = (report.hosts, report.accelerators, report.links)
    return [finding for part in parts for health in part.values() for finding in health.findings]


def judged(rack, entry, saying):
    """The findings after a first look at which all is well, and some at which the first host says this."""
    rack.look(START, {entry["probe"]: entry["before"]} if "before" in entry else {})
    probe, statuses = entry["probe"], {entry["probe"]: entry["status"]} if "status" in entry else {}
    for after_s in (10.0, 70.0, *([entry["after_s"]] if "after_s" in entry else ())):
        now = START + after_s
        answer = None if saying == {"never": "answers"} else said(probe, saying, now)
        report = rack.look(now, {probe: answer}, statuses)
    return findings_of(report)


ENTRIES = yaml.safe_load(CATALOGUE.read_text())
SAYINGS = [(entry, number) for entry in ENTRIES for number in range(len(entry["says"]))]


def test_nothing_is_found_where_all_is_well(place):
    rack = PrintedRack(inventory(place))
    for after_s in (0.0, 10.0, 70.0, 400.0):
        findings = findings_of(rack.look(START + after_s))
        assert not [finding for finding in findings if finding.state is not State.OK]


@pytest.mark.parametrize(("entry", "number"), SAYINGS, ids=[f"{entry['case']}-{number}" for entry, number in SAYINGS])
def test_what_hosts_print_of_a_fault_is_found(place, entry, number):
    findings = judged(PrintedRack(inventory(place)), entry, entry["says"][number])
    found = {f"{finding.rule}/{finding.case}": finding.state for finding in findings}
    assert entry["verdict"] in found
    assert found[entry["verdict"]] is not State.OK


def test_every_saying_names_its_source():
    assert all(entry["source"] and entry["says"] for entry in ENTRIES)
    assert len({entry["case"] for entry in ENTRIES}) == len(ENTRIES)
