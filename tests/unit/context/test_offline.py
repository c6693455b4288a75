"""Captures judged away from the rack: what an operator would say of them, and never ok by default."""

import json
import os
from datetime import UTC, datetime

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from lumctl.context.capture import observe_capture
from lumctl.errors import UsageError
from lumctl.health.states import State
from lumctl.inventory.load import example, load_inventory

GPU = """<?xml version="1.0" ?>
<nvidia_smi_log>
<timestamp>Sun Feb 23 16:31:00 2025</timestamp>
<attached_gpus>{attached}</attached_gpus>
{gpus}
</nvidia_smi_log>
"""
WELL = "[Sun Feb 23 16:31:00 2025] mlx5_core 0000:19:00.0: enabling device (0000 -> 0002)\n"


def gpu(pci, minor=None, **leaves):
    told = {"gpu_recovery_action": "None", "temp": "41 C", **leaves}
    number = "" if minor is None else f"<minor_number>{minor}</minor_number>"
    return (
        f'<gpu id="0000{pci}">{number}<uuid>GPU-{pci}</uuid>'
        f"<gpu_recovery_action>{told['gpu_recovery_action']}</gpu_recovery_action>"
        f"<fb_memory_usage><total>81559 MiB</total><used>1 MiB</used></fb_memory_usage>"
        f"<temperature><gpu_temp>{told['temp']}</gpu_temp></temperature></gpu>"
    )


def smi(*gpus, attached=None):
    return GPU.format(gpus="\n".join(gpus), attached=len(gpus) if attached is None else attached)


def xid(number, at="Sun Feb 23 16:30:13 2025", pci="0000:9b:00"):
    return f"[{at}] NVRM: Xid (PCI:{pci}): {number}, pid=1, name=x, told\n"


@pytest.fixture
def look(tmp_path):
    """Write hosts' files and judge them: ``look(h01={"kernel.log": TEXT})``."""

    def run(inventory=None, **hosts):
        folder = tmp_path / "capture"
        for host, files in hosts.items():
            (folder / host).mkdir(parents=True, exist_ok=True)
            for name, content in files.items():
                data = content if isinstance(content, bytes) else content.encode()
                (folder / host / name).write_bytes(data)
        return observe_capture(folder, inventory)

    return run


def states(group):
    return {id_: health.state.value for id_, health in group.items()}


def rules(health):
    return {(finding.rule, finding.case) for finding in health.findings}


def test_gpus_that_are_well_are_ok(look):
    seen = look(h01={"nvidia-smi.xml": smi(gpu("0000:1b:00.0", 1), gpu("0000:1a:00.0", 0)), "kernel.log": WELL})
    assert states(seen.report.accelerators) == {"h01-gpu1": "ok", "h01-gpu0": "ok"}
    assert states(seen.report.hosts) == {"h01": "ok"}
    assert seen.inventory.accelerators["h01-gpu1"].pci == "0000:1b:00.0"


def test_without_minor_numbers_the_place_in_the_list_names_them(look):
    seen = look(h01={"nvidia-smi.xml": smi(gpu("0000:1b:00.0"), gpu("0000:1a:00.0", 0))})
    assert [a.pci for a in seen.inventory.accelerators.values()] == ["0000:1b:00.0", "0000:1a:00.0"]
    assert list(seen.report.accelerators) == ["h01-gpu0", "h01-gpu1"]


def test_an_old_log_is_judged_at_its_own_time(look):
    """Years later, the XIDs of its last day still count, and those of a month before it do not."""
    log = xid(119) + xid(79, at="Mon Jan 20 10:00:00 2025", pci="0000:1a:00") + WELL
    seen = look(h01={"dmesg.log": log})
    assert states(seen.report.accelerators) == {"h01-gpu-0000:9b:00.0": "failed", "h01-gpu-0000:1a:00.0": "unknown"}
    assert datetime.fromtimestamp(seen.at, UTC).isoformat() == "2025-02-23T16:31:00+00:00"


@pytest.mark.parametrize(
    "stamp",
    ["[  900.000000]", "2025-02-23T16:30:13,000000+00:00", "[Sun Feb 23 16:30:13 2025]", "kern  :err : [    1.000000]"],
)
def test_every_form_of_log(look, stamp):
    seen = look(h01={"kernel.log": f"{stamp} NVRM: Xid (PCI:0000:9b:00): 119, pid=1, name=x, Timeout\n"})
    assert states(seen.report.accelerators) == {"h01-gpu-0000:9b:00.0": "failed"}


def test_a_syslog_is_a_kernel_log(look):
    line = "Feb 23 16:30:13 node7 kernel: "
    seen = look(h01={"kern.log": f"{line}mlx5_core 0000:19:00.0: enabling device\n"})
    assert states(seen.report.hosts) == {"h01": "ok"}
    seen = look(h01={"kern.log": f"{line}NVRM: Xid (PCI:0000:9b:00): 119, pid=1, name=x, Timeout\n"})
    assert states(seen.report.accelerators) == {"h01-gpu-0000:9b:00.0": "failed"}


def test_two_hosts_whose_made_up_ids_meet_hide_nothing(look):
    sound, lost = (
        "/sys/class/net/{}/operstate\t{}\n/sys/class/net/{}/carrier_changes\t5\n".format(*w)
        for w in (("b-c", "down", "b-c"), ("c", "up", "c"))
    )
    seen = look(**{"a": {"net.tsv": sound}, "a-b": {"net.tsv": lost}})
    assert states(seen.report.links) == {"a-b-c": "failed"}


def test_a_kernel_log_alone_names_gpus_and_cannot_say_ok(look):
    log = f"{WELL}[Sun Feb 23 16:31:00 2025] nvidia 0000:9b:00.0: enabling device (0140 -> 0142)\n" + xid(13)
    seen = look(h01={"kernel.log": log})
    assert states(seen.report.accelerators) == {"h01-gpu-0000:9b:00.0": "unknown"}


def test_a_gpu_of_the_kernel_log_that_nvidia_smi_lacks_is_lost(look):
    files = {"nvidia-smi.xml": smi(gpu("0000:1b:00.0", 0)), "kernel.log": xid(79)}
    seen = look(h01=files)
    assert states(seen.report.accelerators) == {"h01-gpu0": "ok", "h01-gpu-0000:9b:00.0": "failed"}
    assert ("gpu.lost", "not-listed") in rules(seen.report.accelerators["h01-gpu-0000:9b:00.0"])


def test_of_a_partial_list_nothing_is_missed(look):
    files = {"nvidia-smi.xml": smi(gpu("0000:1b:00.0", 1), attached=8), "kernel.log": WELL + xid(13)}
    seen = look(h01=files)
    assert states(seen.report.accelerators) == {"h01-gpu1": "ok", "h01-gpu-0000:9b:00.0": "unknown"}
    assert rules(seen.report.hosts["h01"]) == {("capture.file", "partly")}
    assert seen.report.hosts["h01"].state is State.OK


def test_what_a_gpu_asks_for(look):
    seen = look(h01={"nvidia-smi.xml": smi(gpu("0000:1b:00.0", 0, gpu_recovery_action="Reset"))})
    assert states(seen.report.accelerators) == {"h01-gpu0": "failed"}


def test_two_lists_of_different_gpus(look):
    files = {
        "nvidia-smi.xml": smi(gpu("0000:1b:00.0", 0)),
        "nvidia-smi-2.xml": smi(gpu("0000:1c:00.0", 1, temp="Unknown Error")),
    }
    seen = look(h01=files)
    assert states(seen.report.accelerators) == {"h01-gpu0": "ok", "h01-gpu1": "unknown"}


def test_a_gpu_that_is_listed_twice_is_told_of(look):
    files = {
        "nvidia-smi.xml": smi(gpu("0000:1b:00.0", 0)),
        "nvidia-smi-2.xml": smi(gpu("0000:1b:00.0", 0, gpu_recovery_action="Reset")),
    }
    seen = look(h01=files)
    assert list(seen.report.accelerators) == ["h01-gpu0"]
    assert states(seen.report.hosts) == {"h01": "unknown"}
    assert "listed twice" in seen.report.hosts["h01"].findings[0].evidence


IB = "{0}/ports/1/state\t{1}\n{0}/ports/1/phys_state\t{2}\n{0}/ports/1/counters/link_downed\t{3}\n{0}/board_id\tMT_1\n"


def test_infiniband_ports(look):
    table = (
        IB.format("mlx5_0", "4: ACTIVE", "5: LinkUp", 0)
        + IB.format("mlx5_1", "1: DOWN", "2: Polling", 0)
        + IB.format("mlx5_2", "1: DOWN", "2: Polling", 3)
        + IB.format("mlx5_3", "2: INIT", "5: LinkUp", 0)
    )
    seen = look(h01={"infiniband.tsv": table})
    assert states(seen.report.links) == {
        "h01-mlx5_0": "ok",
        "h01-mlx5_1": "disabled",
        "h01-mlx5_2": "failed",
        "h01-mlx5_3": "failed",
    }
    assert rules(seen.report.links["h01-mlx5_1"]) == {("capture.port", "never-up")}


def test_the_empty_second_port_of_an_adapter_in_use(look):
    table = IB.format("mlx5_0", "4: ACTIVE", "5: LinkUp", 0) + IB.format("mlx5_0", "1: DOWN", "3: Disabled", 0).replace(
        "/1/", "/2/"
    )
    assert states(look(h01={"infiniband.tsv": table}).report.links) == {"h01-mlx5_0": "ok"}


@pytest.mark.parametrize(("root", "between"), [("/sys/class/net/", ":"), ("/sys/class/net/", "\t"), ("", "\t")])
def test_interfaces(look, root, between):
    told = {"eth0": ("up", 2), "eth1": ("down", 5), "eth2": ("down", 1), "docker0": ("down", 9), "lo": ("unknown", 0)}
    table = "".join(
        f"{root}{name}/operstate{between}{state}\n{root}{name}/carrier_changes{between}{changes}\n"
        for name, (state, changes) in told.items()
    )
    seen = look(h01={"net.tsv": table})
    assert states(seen.report.links) == {"h01-eth0": "ok", "h01-eth1": "failed", "h01-eth2": "disabled"}


MODULE = """\tIdentifier                                : 0x03 (SFP)
\tConnector                                 : 0x07 (LC)
\tTransceiver type                          : 10G Ethernet: 10G Base-LR
\tLaser bias current                        : 30.000 mA
\tLaser output power                        : 0.6000 mW / -2.22 dBm
\tReceiver signal average optical power     : {power}
\tModule temperature                        : 40.00 degrees C / 104.00 degrees F
\tModule voltage                            : 3.3000 V
\tLaser rx power high alarm threshold       : 1.5849 mW / 2.00 dBm
\tLaser rx power low alarm threshold        : 0.0158 mW / -18.01 dBm
\tLaser rx power high warning threshold     : 1.2589 mW / 1.00 dBm
\tLaser rx power low warning threshold      : 0.0251 mW / -16.00 dBm
"""


@pytest.mark.parametrize(
    ("power", "state"),
    [
        ("0.3000 mW / -5.23 dBm", "ok"),
        ("0.0000 mW / -inf dBm", "failed"),
        ("0.0126 mW / -19.00 dBm", "degraded"),
        ("0.0200 mW / -17.00 dBm", "degraded"),
    ],
)
def test_light_alone_is_judged_by_the_modules_own_limits(look, power, state):
    seen = look(h01={"ethtool-m-eth2.txt": MODULE.format(power=power)})
    assert states(seen.report.links) == {"h01-eth2": state}


def test_a_weak_receiver_with_carrier_is_not_explained_away(look):
    net = "/sys/class/net/eth2/operstate:up\n"
    seen = look(h01={"ethtool-eth2.txt": MODULE.format(power="0.0126 mW / -19.00 dBm"), "net.tsv": net})
    assert states(seen.report.links) == {"h01-eth2": "degraded"}


@pytest.mark.parametrize(
    "text",
    [
        "netlink error: Operation not supported\n",
        "Cannot get module EEPROM information: Operation not supported\n",
    ],
)
def test_an_empty_cage_is_no_fault(look, text):
    seen = look(h01={"ethtool-eth2.txt": text, "net.tsv": "/sys/class/net/eth0/operstate:up\n"})
    assert states(seen.report.links) == {"h01-eth0": "ok"}
    assert states(seen.report.hosts) == {"h01": "ok"}


@pytest.mark.parametrize(
    "name",
    [
        *("nvidia-smi.xml", "nvlink.txt", "kernel.log", "infiniband.tsv", "net.tsv", "counters.tsv", "lldp.json"),
        *("ethtool-eth2.txt", "nvidia-smi-session.txt", "manifest.json"),
    ],
)
@pytest.mark.parametrize(
    "content",
    [b"", b"\x00\xff\xfe\x89PNG" * 99, b"<html>404</html>\n", b"[" * 5000],
    ids=["empty", "binary", "html", "brackets"],
)
def test_garbage_is_told_of_and_nothing_is_ok(look, name, content):
    seen = look(h01={name: content})
    assert states(seen.report.hosts) == {"h01": "unknown"}
    assert State.OK not in {health.state for group in seen.report.groups().values() for health in group.values()}
    (finding,) = seen.report.hosts["h01"].findings
    assert name in finding.evidence
    assert finding.evidence.isprintable()


def test_garbage_in_one_file_does_not_hide_the_others(look):
    seen = look(h01={"nvidia-smi.xml": smi(gpu("0000:1b:00.0", 0))[:-15], "kernel.log": WELL})
    assert states(seen.report.hosts) == {"h01": "unknown"}
    assert states(seen.report.accelerators) == {"h01-gpu0": "ok"}


def test_an_empty_host_is_unknown(look):
    assert states(look(h01={}).report.hosts) == {"h01": "unknown"}


def test_what_nvidia_smi_itself_complains_of_is_the_hosts(look):
    text = "NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver.\n"
    seen = look(h01={"nvidia-smi.xml": text})
    assert states(seen.report.hosts) == {"h01": "failed"}
    assert rules(seen.report.hosts["h01"]) == {("host.driver", "not-loaded")}


def test_times_without_a_word_are_the_files(look, tmp_path):
    path = tmp_path / "capture" / "h01" / "nvidia-smi.xml"
    look(
        h01={path.name: smi(gpu("0000:1b:00.0", 0)).replace("<timestamp>", "<time>").replace("</timestamp>", "</time>")}
    )
    os.utime(path, (1.0, 1_600_000_000.0))
    assert look(h01={}).at == 1_600_000_000.0


def test_hosts_of_different_years_are_each_judged_at_their_own_time(look):
    seen = look(
        h01={"kernel.log": xid(119)},
        h02={"kernel.log": xid(119, at="Fri Apr 10 10:23:01 2026")},
        h03={"kernel.log": "[Fri Apr 10 10:23:01 2026] a\n" + xid(119)},
    )
    assert states(seen.report.accelerators) == {
        "h01-gpu-0000:9b:00.0": "failed",
        "h02-gpu-0000:9b:00.0": "failed",
        "h03-gpu-0000:9b:00.0": "failed",
    }


@pytest.fixture(scope="module")
def inventory():
    return load_inventory(example("prototype"))


def test_hosts_that_the_inventory_names_are_judged_by_it(look, inventory):
    (known,) = inventory.accelerators_of("s1")
    listed = smi(gpu(known.pci or "0000:01:00.0", known.index))
    seen = look(inventory, s1={"nvidia-smi.xml": listed}, other={"nvidia-smi.xml": listed})
    assert states(seen.report.accelerators) == {known.id: "ok", "other-gpu0": "ok"}
    assert set(seen.report.hosts) == {"s1", "other"}
    lanes = {t.id for t in inventory.transponders.values() if t.host == "s1"}
    assert states(seen.report.links) == dict.fromkeys(lanes, "unknown")
    assert seen.report.circuits == {}


def test_a_circuit_is_judged_though_its_hosts_were_captured_at_different_times(look, inventory):
    def files(host, year):
        lanes = [t.interface for t in inventory.transponders.values() if t.host == host]
        net = "".join(f"/sys/class/net/{name}/operstate\tdown\n" for name in ("lo", *lanes))
        return {"net.tsv": net, "kernel.log": f"[Sun Feb 23 16:31:00 {year}] a\n"}

    seen = look(inventory, s1=files("s1", 2025), s2=files("s2", 2026))
    between = {c.id for c in seen.circuits if {c.a.transponder[:2], c.b.transponder[:2]} == {"s1", "s2"}}
    assert between
    assert states(seen.report.circuits) == dict.fromkeys(between, "failed")
    assert states(seen.report.hosts) == {"s1": "ok", "s2": "ok"}


def test_an_accelerator_of_the_inventory_that_is_not_there_is_lost(look, inventory):
    seen = look(inventory, s1={"nvidia-smi.xml": smi(gpu("0000:77:00.0", 7))})
    (known,) = inventory.accelerators_of("s1")
    assert states(seen.report.accelerators) == {known.id: "failed"}


def test_who_ran_where_is_the_captures(look, inventory, tmp_path):
    (job,) = inventory.jobs.values()
    spare = next(a for a in inventory.accelerators.values() if a.id not in job.ranks)
    ranks = [spare.id, *job.ranks[1:]]
    folder = tmp_path / "capture"
    folder.mkdir()
    for placed, used in (
        ({job.name: ranks}, ranks),
        ({job.name: ["gone"]}, list(job.ranks)),
        ({"x": [1]}, list(job.ranks)),
    ):
        about = {"schema": "lumctl/capture/v1", "taken_at": 1.0, "assignment": placed}
        (folder / "capture.json").write_text(json.dumps(about))
        assert look(inventory, s1={"kernel.log": WELL}).assignment == {job.name: tuple(used)}


def test_nothing_to_judge_says_what_to_do(tmp_path):
    with pytest.raises(UsageError, match="lumctl fleet capture"):
        observe_capture(tmp_path, None)


def by_name(capture):
    """The name under which a capture of real hardware is put into a host's folder."""
    kind, _, _ = capture.name.partition("__")
    return {
        "nvidia-smi-q-x": "nvidia-smi.xml",
        "nvidia-smi-session": "nvidia-smi-session.txt",
        "nvidia-smi-nvlink-s": "nvlink.txt",
        "dmesg": "dmesg.log",
        "sys-class-infiniband": "infiniband.tsv",
        "ethtool-m": "ethtool-eth0.txt",
    }[kind]


REAL = {
    "a100": ("nvidia-smi-q-x__a100-sxm4.xml", {"h01-gpu1": "ok"}),
    "t4": ("nvidia-smi-q-x__tesla-t4.xml", {"h01-gpu0": "ok"}),
    "rtx": ("nvidia-smi-q-x__rtx-3080-v13.xml", {"h01-gpu0": "ok"}),
    "gtx": ("nvidia-smi-q-x__gtx-1070-ti.xml", {"h01-gpu0": "ok"}),
    "h100": ("nvidia-smi-session__h100-80gb-hbm3.txt", {"h01-gpu0": "ok"}),
    "nvlink": ("nvidia-smi-nvlink-s__a100.txt", {f"h01-gpu{n}": "unknown" for n in range(8)}),
    "xid": ("dmesg__xid-119.log", {"h01-gpu-0000:9b:00.0": "failed"}),
    "infiniband": ("sys-class-infiniband__h100.tsv", {"h01-mlx5_0": "ok", "h01-mlx5_1": "ok"}),
    "dac": ("ethtool-m__dac.txt", {"h01-eth0": "ok"}),
}


@pytest.mark.parametrize("name", REAL)
def test_real_hardware(captures, look, name):
    file, expected = REAL[name]
    path = captures / file
    seen = look(h01={by_name(path): path.read_bytes()})
    assert states({**seen.report.accelerators, **seen.report.links}) == expected
    assert states(seen.report.hosts) == {"h01": "ok"}


def test_a_saturated_counter_is_noted(captures, look):
    seen = look(h01={"infiniband.tsv": (captures / REAL["infiniband"][0]).read_bytes()})
    (finding,) = [f for f in seen.report.links["h01-mlx5_1"].findings if "link_downed" in f.evidence]
    assert finding.state is State.OK
    assert not [f for f in seen.report.links["h01-mlx5_0"].findings if "link_downed" in f.evidence]


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_whatever_is_in_the_files_nothing_raises(captures, tmp_path, data):
    folder = tmp_path / "any" / "h01"
    folder.mkdir(parents=True, exist_ok=True)
    for capture in data.draw(st.lists(st.sampled_from([file for file, _ in REAL.values()]), min_size=1, max_size=3)):
        whole = (captures / capture).read_bytes()
        start, end = sorted(data.draw(st.tuples(st.integers(0, len(whole)), st.integers(0, len(whole)))))
        put_in = data.draw(st.binary(max_size=8))
        (folder / by_name(captures / capture)).write_bytes(whole[:start] + put_in + whole[end:])
    (folder / "manifest.json").write_text(data.draw(st.sampled_from(["", "{}", '{"schema": 1}'])))
    seen = observe_capture(folder.parent, None)
    assert seen.report.hosts["h01"].state is not State.OK
    assert json.dumps([f.evidence for f in seen.report.findings()])
