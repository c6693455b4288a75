"""Mounts, disks, clock, crash records and network cards, as hosts print them."""

import pytest
from exporter_pages import node_page

from lumctl.fleet.exporters.node import NodeExporterReader
from lumctl.fleet.host_readings import Service
from lumctl.fleet.probe_output import Gathered, ProbeAnswer, visible
from lumctl.fleet.readings import ProbeStatus

HEADER = "Filesystem     Type   Inodes  IUsed     Used    Avail Mounted on\n"
MOUNTS = """\
proc /proc proc rw,nosuid,nodev,noexec,relatime 0 0
/dev/nvme0n1p2 / ext4 {} 0 0
/dev/loop3 /snap/core20/2318 squashfs ro,nodev,relatime,errors=continue,threads=single 0 0
fs1:/export /data\\040sets nfs4 ro,relatime,vers=4.2 0 0
/dev/nvme1n1 /scratch xfs rw,relatime,attr2,inode64 0 0
"""


@pytest.mark.parametrize(
    ("options", "stopped"),
    [
        ("rw,relatime,errors=remount-ro", False),
        ("ro,relatime,errors=remount-ro", True),
        ("rw,relatime,emergency_ro", True),
        # So an operator mounts what nobody is to change.
        ("ro,relatime", False),
    ],
)
def test_a_file_system_that_takes_no_writes_since_an_error(take, options, stopped):
    status, _, gathered = take("mounts", MOUNTS.format(options))
    mounts = gathered.mounts.by_path
    assert status is ProbeStatus.OK
    assert list(mounts) == ["/proc", "/", "/snap/core20/2318", "/data sets", "/scratch"]
    assert [path for path, mount in mounts.items() if mount.stopped] == (["/"] if stopped else [])


def test_a_table_that_was_cut_or_mutilated_is_not_well(take):
    text = MOUNTS.format("rw")
    assert take("mounts", text[: text.index("/dev/nvme0")])[0] is ProbeStatus.FAILED
    assert take("mounts", text[:-20])[0] is ProbeStatus.FAILED


def test_disks_are_what_is_written_to(take):
    text = HEADER + (
        "/dev/nvme0n1p2 ext4 1000 990 990 10 /\n"
        "/dev/md0 xfs 0 0 1048576 3145728 /scratch with blanks\n"
        "/dev/nvme0n1p1 vfat 0 0 99 1 /boot/efi\n"
        "/dev/sdb ext4 100 100 100 0 /var/lib/kubelet/plugins/csi/x\n"
        "tank zfs 5 5 100 0 /tank\n"
        "df: /mnt/broken: Input/output error\n"
        "df: /run/user/1000/doc: Operation not permitted\n"
    )
    status, _, gathered = take("disks", text, status=1)
    assert status is ProbeStatus.OK
    found = {use.path: (use.used, use.inodes_used) for use in gathered.disks.uses}
    assert found == {"/": (0.99, 0.99), "/scratch with blanks": (0.25, None), "/tank": (1.0, 1.0)}
    assert gathered.disks.uses[1].free_gib == 3.0
    assert gathered.disks.unreadable == {"/mnt/broken": "Input/output error"}


@pytest.mark.parametrize("kind", ["ext4", "bcachefs", "nilfs2", "reiserfs"])
def test_a_shell_and_an_exporter_take_the_same_file_systems_for_disks(take, kind):
    _, _, by_shell = take("disks", HEADER + f"/dev/sda1 {kind} 1000 10 500 500 /\n")
    by_exporter, page = Gathered(), node_page().replace("ext4", kind)
    NodeExporterReader([], ()).take(ProbeAnswer(0, page), 9.0, by_exporter)
    assert [use.path for use in by_shell.disks.uses] == [use.path for use in by_exporter.disks.uses] == ["/"]


def test_tools_that_cannot_say_it_are_no_fault(take):
    said = "df: unrecognized option: local\nBusyBox v1.36.1 () multi-call binary.\n\nUsage: df [-PkmhT]\n"
    assert take("disks", said, status=1)[0] is ProbeStatus.ABSENT
    assert take("crashes", "find: unrecognized: -printf\n", status=1)[0] is ProbeStatus.ABSENT
    assert take("adapters", "", status=1)[0] is ProbeStatus.ABSENT


def test_a_clock_lies_between_question_and_answer(take):
    gathered = Gathered(heard_at=1_800_000_000.5)
    take("clock", "1800000002.400000000\n", gathered=gathered, at=1_800_000_000.0)
    assert (gathered.clock.least_ahead_s, gathered.clock.most_ahead_s) == pytest.approx((1.9, 2.4))
    take("clock", "1800000002\n", gathered=gathered, at=1_800_000_000.0)
    assert (gathered.clock.least_ahead_s, gathered.clock.most_ahead_s) == pytest.approx((1.5, 3.0))
    # In a capture nobody knows when the answer came.
    status, _, captured = take("clock", "1800000002.400000000\n")
    assert (status, captured.clock) == (ProbeStatus.OK, None)


def test_records_of_crashes_come_in_parts_and_may_be_hidden(take):
    status, _, gathered = take("crashes", "1732452135.1234567890\n1732452135.2234567890\n")
    assert (status, gathered.crashes) == (ProbeStatus.OK, (1732452135.0,))
    missing = "find: '/var/lib/systemd/pstore': No such file or directory\n"
    assert take("crashes", missing, status=1)[0] is ProbeStatus.OK
    status, _, gathered = take("crashes", "find: '/sys/fs/pstore': Permission denied\n", status=1)
    assert (status, gathered.crashes) == (ProbeStatus.ABSENT, ())
    partly = "find: '/sys/fs/pstore': Permission denied\n1732452135.1234567890\n"
    assert take("crashes", partly, status=1)[0] is ProbeStatus.OK


UNITS = """\
Id=nvidia-fabricmanager.service
LoadState=loaded
ActiveState=activating
SubState=auto-restart
UnitFileState=enabled

Id=nvidia-imex.service
LoadState=not-found
ActiveState=inactive
SubState=dead

Id=nvidia-persistenced.service
LoadState=loaded
ActiveState=active
SubState=running
UnitFileState=disabled
"""


def test_services_that_the_host_has(take):
    status, _, gathered = take("services", UNITS)
    assert status is ProbeStatus.OK
    assert list(gathered.services.by_name.values()) == [
        Service("nvidia-fabricmanager", "activating", "auto-restart", enabled=True),
        Service("nvidia-persistenced", "active", "running", enabled=False),
    ]
    assert take("services", UNITS[: UNITS.index("SubState")])[0] is ProbeStatus.FAILED
    assert take("services", UNITS.replace("ActiveState=active", "ActiveState"))[0] is ProbeStatus.FAILED


@pytest.mark.parametrize(
    "said",
    [
        "System has not been booted with systemd as init system (PID 1). Can't operate.\n",
        "Failed to connect to bus: No such file or directory\n",
        "Failed to get D-Bus connection: Operation not permitted\n",
    ],
)
def test_a_host_without_systemd_has_no_services(take, said):
    status, _, gathered = take("services", said, status=1)
    assert (status, gathered.services) == (ProbeStatus.ABSENT, None)


@pytest.mark.parametrize(("online", "processors"), [("0-223", 224), ("0", 1), ("0-1,4,8-11", 7)])
def test_memory_and_processors(take, online, processors):
    text = f"/proc/meminfo:MemTotal:       33554432 kB\n/sys/devices/system/cpu/online:{online}\n"
    status, _, gathered = take("capacity", text)
    assert status is ProbeStatus.OK
    assert (gathered.capacity.memory_gib, gathered.capacity.processors) == (32.0, processors)


def test_where_network_cards_sit(take):
    text = (
        "/sys/class/net/eth2/device/uevent:PCI_SLOT_NAME=0000:9c:00.0\n"
        "/sys/class/infiniband/mlx5_0/device/uevent:PCI_SLOT_NAME=0000:9c:00.0\n"
    )
    status, _, gathered = take("adapters", text)
    assert status is ProbeStatus.OK
    assert gathered.adapters.interfaces == {"eth2": "0000:9c:00.0"}
    assert gathered.adapters.rdma_devices == {"mlx5_0": "0000:9c:00.0"}


def test_what_was_read_before_a_question_is_not_shown_to_who_asks_anew(take):
    _, _, gathered = take("mounts", MOUNTS.format("rw"), at=9.0)
    assert visible(gathered, {}, 9.0)["mounts"] is gathered.mounts
    assert visible(gathered, {}, 9.5)["mounts"] is None


WRITTEN = 1_795_576_335
FABRIC_LOG = f"""\
{WRITTEN}.1234567890 2026-11-25T03:12
[Nov 25 2026 03:10:01] [INFO] [tid 4242] Fabric Manager initialization completed
[Nov 25 2026 03:11:30] [ERROR] [tid 4242] request to query NVSwitch device information failed
 with a line that continues
[Nov 25 2026 03:12:15] [FATAL] detected an error on an NVLink trunk
"""


@pytest.mark.parametrize("hours", [0, 1, -8, 5.5])
def test_errors_of_the_fabric_manager_are_dated_in_the_hosts_own_zone(take, hours):
    written = WRITTEN + int(hours * 3600)
    status, _, gathered = take("fabric_log", FABRIC_LOG.replace(str(WRITTEN), str(written)))
    assert status is ProbeStatus.OK
    assert [error.text.split()[0] for error in gathered.fabric_errors] == ["request", "detected"]
    assert [written - error.at for error in gathered.fabric_errors] == [45, 0]


@pytest.mark.parametrize(
    ("text", "status"),
    [
        ("", ProbeStatus.ABSENT),
        ("find: '/var/log': Permission denied\n", ProbeStatus.ABSENT),
        (
            f"{FABRIC_LOG.splitlines()[0]}\ntail: cannot open '/var/log/x' for reading: Permission denied\n",
            ProbeStatus.ABSENT,
        ),
        (FABRIC_LOG.split("\n", 1)[1], ProbeStatus.FAILED),
        ("find: unrecognized: -printf\n", ProbeStatus.ABSENT),
    ],
)
def test_a_fabric_managers_log_that_is_not_there_or_not_readable(take, text, status):
    assert take("fabric_log", text, status=int("unrecognized" in text))[0] is status
