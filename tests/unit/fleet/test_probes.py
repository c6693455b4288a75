import re
import shlex
import subprocess

from lumctl.fleet.parsers.kernel_log import KERNEL_PATTERN
from lumctl.fleet.probes import probes_for
from lumctl.inventory.exporters import EXPORTER_KINDS
from lumctl.inventory.probe_times import PROBE_TIMES, ProbeTimes

PROBES = {probe.name: probe for probe in probes_for(("eth2",), sudo=False)}


def test_the_commands_are_those_that_were_agreed():
    commands = {name: probe.command for name, probe in PROBES.items()}
    counters = commands.pop("counters").split()
    assert commands == {
        "gpu": "run nvidia-smi -q -x",
        "nvlink": "run nvidia-smi nvlink -s",
        "nvlink:errors": "run nvidia-smi nvlink -e",
        "nvlink:traffic": "run nvidia-smi nvlink -gt d",
        "kernel": f"grow '{KERNEL_PATTERN}' dmesg",
        "net": (
            "files /sys/class/net/lo/operstate /sys/class/net/eth2/operstate"
            " /sys/class/net/eth2/carrier_changes /sys/class/net/eth2/speed"
        ),
        "infiniband": (
            "files /sys/class/infiniband/*/ports/*/state /sys/class/infiniband/*/ports/*/phys_state"
            " /sys/class/infiniband/*/ports/*/rate /sys/class/infiniband/*/board_id"
        ),
        "mounts": "run cat /proc/self/mounts",
        "disks": (
            "run df --local --block-size=1K --output=source,fstype,itotal,iused,used,avail,target"
            " -x tmpfs -x devtmpfs -x squashfs -x overlay"
        ),
        "clock": "run date +%s.%N",
        "fabric_log": (
            r"run find /var/log -maxdepth 1 -name fabricmanager.log -printf '%T@ %TY-%Tm-%TdT%TH:%TM\n'"
            " -exec tail -n 200 {} ';'"
        ),
        "crashes": r"run find /sys/fs/pstore /var/lib/systemd/pstore -name 'dmesg[-.]*' -printf '%T@\n'",
        "services": (
            "run systemctl show --property=Id,LoadState,ActiveState,SubState,UnitFileState,NRestarts"
            " nvidia-fabricmanager.service nvidia-imex.service nvidia-persistenced.service"
        ),
        "capacity": "run grep -sHE '^MemTotal:|^[0-9]' /proc/meminfo /sys/devices/system/cpu/online",
        "adapters": (
            "run grep -sH ^PCI_SLOT_NAME= /sys/class/net/eth2/device/uevent /sys/class/infiniband/*/device/uevent"
        ),
        "lldp": "run lldpctl -f json",
        "optics:eth2": "run ethtool -m eth2",
    }
    assert counters[:4] == ["run", "grep", "-sH", "."]
    assert "/sys/class/net/eth2/statistics/rx_errors" in counters
    assert "/sys/class/infiniband/*/ports/*/counters/link_downed" in counters


def test_a_hung_tool_holds_up_its_own_lane_only():
    lanes = {name: probe.lane for name, probe in PROBES.items()}
    assert lanes["gpu"] == lanes["nvlink"] == lanes["nvlink:errors"] == "nvidia"
    assert lanes["net"] == lanes["infiniband"] == ""
    assert len({lanes[name] for name in ("gpu", "kernel", "counters", "lldp", "optics:eth2")}) == 5


def test_with_sudo_and_a_name_that_a_shell_would_misread():
    *_, last = probes = probes_for(("eth2; rm -rf /",), sudo=True)
    assert last.command == "run sudo -n ethtool -m 'eth2; rm -rf /'"
    (net,) = (probe.command for probe in probes if probe.name == "net")
    assert shlex.split(net)[2] == "/sys/class/net/eth2; rm -rf //operstate"
    assert [p.name for p in probes if "sudo" in p.command] == [
        *("gpu", "nvlink", "nvlink:errors", "nvlink:traffic", "kernel", "fabric_log", "crashes", "lldp"),
        "optics:eth2; rm -rf /",
    ]


def test_deadlines_and_cadences_are_by_kind_and_may_be_set():
    own = {"optics": ProbeTimes(10.0, 9.0), "nvlink": ProbeTimes(60.0, 5.0)}
    probes = probes_for(("eth2",), sudo=False, times={**PROBE_TIMES, **own})
    found = {probe.name: (probe.deadline_s, probe.every_s) for probe in probes}
    assert found["optics:eth2"] == (9.0, 10.0)
    assert found["nvlink:errors"] == (5.0, 60.0)
    assert found["net"] == (3.0, 0.0)
    assert PROBE_TIMES.keys() - EXPORTER_KINDS.keys() == {probe.kind for probe in probes}


LINES = {
    "[    1.000000] NVRM: Xid (PCI:0000:9b:00): 79, GPU has fallen off the bus.": True,
    "[    1.000000] NVRM: GPU 0000:9b:00.0: GPU has fallen off the bus.": True,
    "[    1.000000] nvidia-nvswitch3: SXid (PCI:0000:05:00.0): 12028, Non-fatal": True,
    "[    1.000000] mlx5_core 0000:9c:00.0 eth2: Link down": True,
    "dmesg: read kernel buffer failed: Operation not permitted": True,
    "sudo: a password is required": True,
    "sh: 1: dmesg: not found": True,
    "[    1.000000] NVRM: loading NVIDIA UNIX Open Kernel Module for x86_64": False,
    "[    1.000000] mlx5_core 0000:9c:00.0: firmware version: 28.41.1000": False,
    "2026-11-21T07:24:18,123456+00:00 systemd[1]: Started nothing of interest.": False,
}


def test_the_host_picks_the_lines_that_matter(answer, require_program):
    """As ``grep -E`` understands the pattern, and as Python does: the simulator picks by it as well."""
    lines = [*LINES, *answer("nic.log").splitlines(), *answer("kernel.log").splitlines()]
    grep = [require_program("grep"), "-E", KERNEL_PATTERN]
    ran = subprocess.run(grep, input="\n".join(lines), capture_output=True, text=True, check=True)
    picked = ran.stdout.splitlines()
    assert [line in picked for line in LINES] == list(LINES.values())
    assert picked == [line for line in lines if re.search(KERNEL_PATTERN, line)]
    assert "'" not in KERNEL_PATTERN
