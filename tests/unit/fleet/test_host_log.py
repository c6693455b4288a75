"""Lines about the machine under the GPUs, in the words of the Linux kernel and of NVIDIA's driver."""

import re

import pytest

from lumctl.fleet.host_readings import HostEventKind
from lumctl.fleet.parsers.kernel_log import KERNEL_PATTERN, parse_kernel_log
from lumctl.fleet.probe_output import Gathered
from lumctl.fleet.readings import GpuProcess, GpuReading, NicEventKind

KIND, NIC = HostEventKind, NicEventKind
FORMS = ["[  104.250000] {}", "Apr 17 08:41:24 h03 kernel: {}", "[Sun Jan  5 18:28:55 2025] {}"]
FAULTS = [
    (
        KIND.MEMORY,
        None,
        "EDAC MC0: 1 UE memory read error on CPU_SrcID#0_MC#0_Chan#1_DIMM#0 (channel:1)",
    ),
    (KIND.MEMORY, None, "mce: Uncorrected hardware memory error in user-access at 1f3a5b6c80"),
    (KIND.MEMORY, None, "Memory failure: 0x1f3a5b: recovery action for dirty LRU page: Recovered"),
    (KIND.MACHINE_CHECK, None, "mce: [Hardware Error]: CPU 17: Machine Check Exception: 5 Bank 1: be00000000800150"),
    (KIND.MACHINE_CHECK, None, "mce: [Hardware Error]: CPU 2: Machine Check: 0 Bank 8: be00000000800150"),
    (KIND.MACHINE_CHECK, None, "{1}[Hardware Error]: event severity: recoverable"),
    (KIND.MACHINE_CHECK, None, "[Hardware Error]: Uncorrected, software restartable error."),
    (KIND.FILESYSTEM, "sdb7", "EXT4-fs (sdb7): Remounting filesystem read-only"),
    (KIND.FILESYSTEM, "dm-0", "XFS (dm-0): Filesystem has been shut down due to log error (0x2)."),
    (
        KIND.FILESYSTEM,
        "nvme1n1",
        "XFS (nvme1n1): I/O Error Detected. Shutting down filesystem.",
    ),
    (KIND.FILESYSTEM, "sda2", "BTRFS info (device sda2): forced readonly"),
    (KIND.HUNG_TASK, "136986", "INFO: task jfsmount:136986 blocked for more than 120 seconds."),
    (KIND.HUNG_TASK, "77", "INFO: task kworker/u64:3:77 blocked in I/O wait for more than 122 seconds."),
    (KIND.LOCKUP, None, "watchdog: BUG: soft lockup - CPU#18 stuck for 27s! [python3:2254956]"),
    (KIND.LOCKUP, None, "watchdog: Watchdog detected hard LOCKUP on cpu 3"),
    (KIND.LOCKUP, None, "rcu: INFO: rcu_preempt self-detected stall on CPU"),
    (KIND.OUT_OF_MEMORY, "4242", "Out of memory: Killed process 4242 (python3) total-vm:904kB, anon-rss:1kB"),
    (KIND.OUT_OF_MEMORY, "4242", "Out of memory: Kill process 4242 (python3) score 911 or sacrifice child"),
    (KIND.MEMORY_LIMIT, "4242", "Memory cgroup out of memory: Killed process 4242 (python3) total-vm:904kB"),
    (
        KIND.JOB_KILLED,
        "991",
        (
            "oom-kill:constraint=CONSTRAINT_MEMCG,nodemask=(null),cpuset=0,oom_memcg=/slurm/uid_7/job_77,"
            "task_memcg=/slurm/uid_7/job_77/step_0/task_0,task=python,pid=991,uid=7"
        ),
    ),
    (KIND.NVME_RESET, "nvme4", "nvme nvme4: I/O tag 22 (2016) opcode 0x2 (Admin Cmd) QID 0 timeout, reset controller"),
    (KIND.NVME_RESET, "nvme2", "nvme nvme2: controller is down; will reset: CSTS=0xffffffff, PCI_STATUS=0x10"),
    (KIND.NVME_LOST, "nvme2", "nvme nvme2: Disabling device after reset failure: -19"),
    (KIND.NVME_LOST, "nvme1", "nvme nvme1: Removing after probe failure status: -19"),
    (KIND.DISK, "sdb", "blk_update_request: I/O error, dev sdb, sector 2048 op 0x0:(READ) flags 0x80700 phys_seg 1"),
    (KIND.DISK, "nvme0n1", "critical medium error, dev nvme0n1, sector 976773168 op 0x0:(READ) flags 0x0"),
    (KIND.DISK, "dm-0", "Buffer I/O error on dev dm-0, logical block 1308, lost async page write"),
    (KIND.DISK, "nvme0n1p1", "md/raid0md0: Disk failure on nvme0n1p1 detected, failing array."),
    (KIND.DISK, "sda1", "md/raid1:md0: Disk failure on sda1, disabling device."),
    (KIND.DISK, "nvme0n1", "block nvme0n1: no available path - failing I/O"),
    (KIND.DISK, "sda1", "EXT4-fs error (device sda1): ext4_lookup:1700: inode #2: comm ls: deleted inode referenced"),
    (KIND.DISK, "dm-0", "EXT4-fs (dm-0): I/O error while writing superblock"),
    (KIND.DISK, "dm-3", "XFS (dm-3): Metadata corruption detected at xfs_agf_verify+0x6e/0x80 [xfs]"),
    (KIND.DISK, "sdb1", 'XFS (sdb1): metadata I/O error in "xfs_buf_ioend" at daddr 0x2 len 1 error 5'),
    (KIND.FILE_SERVER, "fs1.example", "nfs: server fs1.example not responding, still trying"),
    (KIND.FILE_SERVER, "10.0.0.5", "nfs: server 10.0.0.5 not responding, timed out"),
    (KIND.FILE_SERVER_BACK, "fs1.example", "nfs: server fs1.example OK"),
    (
        KIND.FILE_SERVER,
        "fs-OST0001",
        "Lustre: fs-OST0001-osc-ffff8e: Connection to fs-OST0001 (at 10.0.0.5@o2ib) was lost; in progress operations",
    ),
    (
        KIND.FILE_SERVER_BACK,
        "fs-OST0001",
        "Lustre: fs-OST0001-osc-ffff8e: Connection restored to fs-OST0001 (at 10.0.0.5@o2ib)",
    ),
    (KIND.FILE_LIMIT, None, "VFS: file-max limit 1000000 reached"),
    (KIND.GPU_START, "0000:01:00.0", "NVRM: GPU 0000:01:00.0: RmInitAdapter failed! (0x62:0xffff:1863)"),
    (KIND.GPU_START, None, "NVRM: RmInitAdapter failed! (0x27:0x38:1193)"),
    (KIND.PANIC, None, "Kernel panic - not syncing: Fatal exception in interrupt"),
]
HARMLESS = [
    "mce: [Hardware Error]: Machine check events logged",
    "mce: [Hardware Error]: CPU 2: Machine Check: 0 Bank 8: 8c00004000010091",
    "{1}[Hardware Error]: event severity: corrected",
    "[Hardware Error]: Corrected error, no action required.",
    "EDAC MC0: 1 CE memory read error on CPU_SrcID#0_MC#0_Chan#1_DIMM#0 (channel:1 slot:0)",
    "EDAC MC0: Giving out device to module skx_edac controller Skylake Socket#0 IMC#0: DEV 0000:64:0a.0 (INTERRUPT)",
    "blk_update_request: I/O error, dev sr0, sector 0 op 0x0:(READ) flags 0x0 phys_seg 1 prio class 0",
    "Buffer I/O error on dev loop7, logical block 0, async page read",
    "blk_update_request: I/O error, dev fd0, sector 0 op 0x0:(READ) flags 0x0",
    "Lustre: Mounted fs-client",
    "EXT4-fs (sda1): mounted filesystem with ordered data mode. Quota mode: none.",
    "EXT4-fs (loop3): mounted filesystem ro without journal. Quota mode: none.",
    "XFS (sda1): Ending clean mount",
    "nvme nvme0: Shutdown timeout set to 8 seconds",
    "nvme nvme0: 64/0/0 default/read/poll queues",
    "nvme nvme0: I/O 12 QID 3 timeout, completion polled",
    "NMI watchdog: Enabled. Permanently consumes one hw-PMU counter.",
    "rcu: Hierarchical RCU implementation.",
    "NVRM: loading NVIDIA UNIX Open Kernel Module for x86_64  570.124.06",
]
CARDS = [
    (NIC.COMMAND, "wait_func:964:(pid 112): ENABLE_HCA(0x104) timeout. Will cause a leak of a command resource"),
    (NIC.TEMPERATURE, "temp_warn:171:(pid 0): High temperature on sensors with bit set 0 8000000000000001"),
    (NIC.TEMPERATURE, "Port module event[error]: module 0, Cable error, High Temperature"),
    (NIC.CABLE_ERROR, "Port module event[error]: module 0, Cable error, Bus stuck (I2C or data shorted)"),
    (NIC.CABLE, "Port module event: module 0, Cable unplugged"),
    (NIC.PLUGGED, "Port module event: module 0, Cable plugged"),
    (NIC.FATAL, "poll_health:471:(pid 0): device's health compromised - reached miss count"),
    (NIC.QUEUE, "cq_err_event_notifier:518:(pid 0): CQ error on CQN 0x40d, syndrome 0x1"),
]
RDMA = [
    ("rdmap16s27", None, "infiniband rdmap16s27: Admin queue is closed"),
    ("rdmap0s6", None, "infiniband rdmap0s6: Wait for completion (polling) timeout"),
    (None, "0000:00:06.0", "efa 0000:00:06.0: Device isn't ready, abort com init"),
    ("rdmap160s26", "0000:a0:1a.0", "efa 0000:a0:1a.0 rdmap160s26: Reset indication didn't turn on"),
]


def logged(text: str, number: int = 7) -> str:
    return f"[ {number:>5}.250000] {text}\n"


@pytest.mark.parametrize(("kind", "device", "text"), FAULTS)
@pytest.mark.parametrize(
    "form", ["[  104.250000] {}", "Apr 17 08:41:24 h03 kernel: {}", "[Sun Jan  5 18:28:55 2025] {}"]
)
def test_a_fault_of_the_machine_is_an_event_in_every_form_of_the_log(kind, device, text, form):
    line = form.format(text)
    (event,) = parse_kernel_log(line).host
    assert (event.kind, event.device) == (kind, device)
    assert text.startswith(event.text)
    assert re.search(KERNEL_PATTERN, line)


@pytest.mark.parametrize("text", HARMLESS)
def test_what_was_corrected_and_what_every_boot_says_is_no_event(text):
    log = parse_kernel_log(logged(text))
    assert (log.host, log.nics) == ((), ())


def test_a_process_that_used_a_gpu_and_was_killed_at_a_limit_was_a_job(take):
    text = "".join(
        logged(next(text for kind, _, text in FAULTS if kind is KIND.MEMORY_LIMIT).replace("4242", pid), at)
        for at, pid in enumerate(("4242", "5151"))
    )
    gathered = Gathered(gpus=(GpuReading(1.0, "0000:01:00.0", processes=(GpuProcess(4242, "python3"),)),))
    take("kernel", text, gathered=gathered)
    # The process is gone when the GPU is read again, and it was a job's all the same.
    gathered.gpus = (GpuReading(2.0, "0000:01:00.0"),)
    take("kernel", logged("Kernel panic - not syncing: x", 9), appended=True, gathered=gathered)
    assert [(event.kind, event.device) for event in gathered.host_events] == [
        (KIND.JOB_KILLED, "4242"),
        (KIND.MEMORY_LIMIT, "5151"),
        (KIND.PANIC, None),
    ]


@pytest.mark.parametrize(("kind", "text"), CARDS)
def test_what_mlx5_says_by_the_address_of_the_card(kind, text):
    line = logged(f"mlx5_core 0000:5e:00.0: {text}")
    (event,) = parse_kernel_log(line).nics
    assert (event.kind, event.interface, event.pci) == (kind, None, "0000:5e:00.0")
    assert re.search(KERNEL_PATTERN, line)


@pytest.mark.parametrize(("interface", "pci", "text"), RDMA)
def test_what_efa_says_of_its_administration_queue(interface, pci, text):
    (event,) = parse_kernel_log(logged(text)).nics
    assert (event.kind, event.interface, event.pci) == (NIC.FATAL, interface, pci)
    assert re.search(KERNEL_PATTERN, text)


def test_a_queue_of_a_kernel_that_uses_rdma_itself():
    (event,) = parse_kernel_log(logged("infiniband mlx5_0: dump_cqe:272:(pid 0): dump error cqe")).nics
    assert (event.kind, event.interface) == (NIC.QUEUE, "mlx5_0")


def test_efa_may_say_that_a_memory_region_of_a_dead_process_is_gone():
    text = "efa 0000:a0:1a.0 rdmap160s26: Failed to process command DEREG_MR (opcode 8) comp_status 7 err -22"
    assert parse_kernel_log(logged(text)).nics == ()
